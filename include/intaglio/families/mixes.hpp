// SPDX-License-Identifier: MIT
// The named mixes of llama-quantize: which codec each of a model's matrices has, without an importance matrix
// (llama.cpp, src/llama-quant.cpp, llama_tensor_get_type).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "intaglio/families/file_types.hpp"

namespace intaglio::families {

/// A mix: its name, and the codec of matrices for which no rule gives another one.
struct mix {
  std::string_view name;
  dtype base;
  char size;  ///< 's', 'm' or 'l'
};
/// The mixes by name.
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

/// A matrix of some layers with a codec of its own.
struct changed_type {
  std::string matrix;
  std::uint32_t first = 0, last = ~0u;  ///< layers
  dtype type{};
};
/// Reads "ffn_gate=q5_k", "ffn_gate.3=q5_k" or "ffn_gate.0-7=q5_k". @return absent for other words
inline std::optional<changed_type> changed_type_of(std::string_view words) {
  changed_type out;
  const std::size_t equal = words.find('='), dot = words.find('.');
  if (equal == std::string_view::npos) return std::nullopt;
  const auto type = dtype_from_name(words.substr(equal + 1));
  out.matrix = words.substr(0, (std::min)(equal, dot));
  if (!type || !is_planned(*type) || out.matrix.empty()) return std::nullopt;
  out.type = *type;
  if (dot >= equal) return out;
  const char *at = words.data() + dot + 1, *const end = words.data() + equal;
  auto read = std::from_chars(at, end, out.first);
  out.last = out.first;
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, out.last);
  return read.ec == std::errc{} && read.ptr == end && out.first <= out.last ? std::optional(out) : std::nullopt;
}

/// The matrices of a layer to which a mix gives codecs, with their columns.
inline std::vector<std::pair<std::string, std::uint32_t>> mixed_matrices(const decoder_config& c) {
  const std::string of_experts = c.num_local_experts != 0 ? "_exps" : "";
  std::vector<std::pair<std::string, std::uint32_t>> out{
      {"attn_q", c.hidden_size}, {"attn_k", c.hidden_size}, {"attn_v", c.hidden_size}, {"attn_output", c.q_size()}};
  if (const std::uint32_t latent = c.kv_lora_rank; latent != 0) {  // what the layers name instead of q, k and v
    const std::uint32_t queries = c.q_lora_rank != 0 ? c.q_lora_rank : c.hidden_size;
    out = {{"attn_q_nope", queries},
           {"attn_q_rope", queries},
           {"attn_kv_latent", c.hidden_size},
           {"attn_k_rope", c.hidden_size},
           {"attn_k_b", unrotated_dim(c)},
           {"attn_v_b", latent},
           {"attn_output", c.num_attention_heads * c.v_head_dim}};
    if (c.q_lora_rank != 0) out.emplace_back("attn_q_a", c.hidden_size);
    for (const auto& [end, inner] :
         {std::pair{"", c.dense_intermediate_size}, {"_shexp", c.shared_expert_intermediate_size}})
      for (const char* each : {"ffn_gate", "ffn_up", "ffn_down"})
        if (inner != 0) out.emplace_back(each + std::string(end), each[4] == 'd' ? inner : c.hidden_size);
  }
  out.insert(out.end(), {{"ffn_gate" + of_experts, c.hidden_size},
                         {"ffn_up" + of_experts, c.hidden_size},
                         {"ffn_down" + of_experts, c.intermediate_size}});
  return out;
}

/// The codec of each weight of a model under a mix, such as "q4_k_m". Matrices with other codecs may follow, separated
/// by commas, as in files that are quantised by measured importance: "q4_k_m,ffn_gate.0-7=q5_k,attn_output=q6_k".
/// @return absent where no mix, matrix or codec has that name
inline std::optional<weight_types> mix_of(const decoder_config& c, std::string_view name) {
  std::vector<changed_type> changes;
  for (std::size_t comma = name.rfind(','); comma != std::string_view::npos; comma = name.rfind(',')) {
    const auto change = changed_type_of(name.substr(comma + 1));
    if (!change) return std::nullopt;
    changes.insert(changes.begin(), *change);
    name = name.substr(0, comma);
  }
  for (const mix& each : mixes) {
    if (each.name != name) continue;
    weight_types out{each.base, for_columns(each.base, c.hidden_size), for_columns(dtype::q6_k, c.hidden_size)};
    if (c.tie_word_embeddings) out.embedding = out.head;
    const auto matrices = mixed_matrices(c);
    for (const changed_type& change : changes)
      if (std::none_of(matrices.begin(), matrices.end(), [&](const auto& its) { return its.first == change.matrix; }))
        return std::nullopt;
    layer_types layers(c.num_hidden_layers);
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
      for (const auto& [matrix, columns] : matrices) {
        dtype type = mixed_type(each, c, matrix, layer);
        for (const changed_type& change : changes)
          if (change.matrix == matrix && change.first <= layer && layer <= change.last) type = change.type;
        layers.add(layer, matrix + ".weight", for_columns(type, columns));
      }
    layers.into(out);
    return out;
  }
  return std::nullopt;
}

}  // namespace intaglio::families
