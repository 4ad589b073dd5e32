// SPDX-License-Identifier: MIT
// The named mixes of llama-quantize: which codec each of a model's matrices has, without an importance matrix
// (llama.cpp, src/llama-quant.cpp, llama_tensor_get_type).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "intaglio/families/file_types.hpp"

namespace intaglio::families {

/// A mix: its name, and the codec of matrices for which no rule gives another one.
struct mix {
  std::string_view name;
  dtype base;
  char size;  ///< 's', 'm' or 'l'
};
inline constexpr std::array mixes{mix{"q3_k_s", dtype::q3_k, 's'}, mix{"q3_k_m", dtype::q3_k, 'm'},
                                  mix{"q3_k_l", dtype::q3_k, 'l'}, mix{"q4_k_s", dtype::q4_k, 's'},
                                  mix{"q4_k_m", dtype::q4_k, 'm'}, mix{"q5_k_s", dtype::q5_k, 's'},
                                  mix{"q5_k_m", dtype::q5_k, 'm'}};

/// The codec for rows of `columns` columns: `type`, or a replacement where `columns` is no multiple of 256.
constexpr dtype for_columns(dtype type, std::uint32_t columns) {
  if (columns % 256 == 0) return type;
  switch (type) {
    case dtype::q2_k:
    case dtype::q3_k:
      return dtype::iq4_nl;
    case dtype::q4_k:
      return dtype::q5_0;
    case dtype::q5_k:
      return dtype::q5_1;
    case dtype::q6_k:
      return dtype::q8_0;
    default:
      return type;
  }
}

/// The codec of a layer's matrix before for_columns.
/// @param matrix "attn_v", "ffn_down", ...
constexpr dtype mixed_type(const mix& of, const decoder_config& c, std::string_view matrix, std::uint32_t layer) {
  const std::uint32_t n = c.num_hidden_layers;
  const bool medium = of.size == 'm', more = layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2,
             small_4 = of.base == dtype::q4_k && of.size == 's', eight = c.num_local_experts == 8;
  if (c.model_type == architecture::phi3 && (matrix == "attn_q" || matrix == "attn_k" || matrix == "attn_v")) {
    if (of.base == dtype::q3_k) return of.size == 's' ? dtype::q3_k : dtype::q4_k;
    if (!medium) return of.base;
    return of.base == dtype::q4_k ? dtype::q5_k : dtype::q6_k;
  }
  if (matrix == "attn_k" && eight) return dtype::q8_0;
  if (matrix == "attn_v") {
    if (eight) return dtype::q8_0;
    if (of.base == dtype::q3_k) return of.size == 's' ? dtype::q3_k : medium && layer >= 2 ? dtype::q4_k : dtype::q5_k;
    if (medium && more) return dtype::q6_k;
    return small_4 && layer < 4 ? dtype::q5_k : of.base;
  }
  if (matrix == "attn_output") {
    if (eight && of.base != dtype::q5_k && of.size != 'l') return dtype::q5_k;
    if (of.base == dtype::q3_k && of.size != 's') return medium ? dtype::q4_k : dtype::q5_k;
    return of.base;
  }
  if (matrix == "ffn_down" || matrix == "ffn_down_exps") {
    if (of.base == dtype::q3_k)
      return of.size == 's' ? dtype::q3_k : medium && layer >= n / 16 ? dtype::q4_k : dtype::q5_k;
    if (medium && more) return dtype::q6_k;
    return small_4 && layer < n / 8 ? dtype::q5_k : of.base;
  }
  return of.base;
}

/// The codec of each weight of a model under a named mix. @return absent where no mix has the name
inline std::optional<weight_types> mix_of(const decoder_config& c, std::string_view name) {
  for (const mix& each : mixes) {
    if (each.name != name) continue;
    weight_types out{each.base, for_columns(each.base, c.hidden_size), for_columns(dtype::q6_k, c.hidden_size)};
    if (c.tie_word_embeddings) out.embedding = out.head;
    layer_types layers(c.num_hidden_layers);
    const bool experts = c.num_local_experts != 0;
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
      const auto add = [&](const char* matrix, std::uint32_t columns) {
        layers.add(layer, std::string(matrix) + ".weight", for_columns(mixed_type(each, c, matrix, layer), columns));
      };
      add("attn_q", c.hidden_size);
      add("attn_k", c.hidden_size);
      add("attn_v", c.hidden_size);
      add("attn_output", c.q_size());
      add(experts ? "ffn_gate_exps" : "ffn_gate", c.hidden_size);
      add(experts ? "ffn_up_exps" : "ffn_up", c.hidden_size);
      add(experts ? "ffn_down_exps" : "ffn_down", c.intermediate_size);
    }
    layers.into(out);
    return out;
  }
  return std::nullopt;
}

}  // namespace intaglio::families
