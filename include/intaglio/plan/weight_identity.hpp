// SPDX-License-Identifier: MIT
// The identity of a plan's weight as text: its tensors and its layout in device memory. Two weights with the same text
// have the same bytes for the same checkpoint, in whatever plans.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "intaglio/core/number_text.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// Version of the weight layouts. It rises with any change of the bytes that a layout means (kernels/*_layout.hpp,
/// row_codes.hpp, rope_turns.hpp); files of another version are refused. tests/runtime/packed_weights.test.cpp checks
/// the bytes of every layout.
inline constexpr std::uint32_t weight_layout_version = 2;

/// The name of a layout in packed files. It must not change while the layout's bytes stay the same.
constexpr std::string_view name(weight_layout layout) {
  switch (layout) {
    case weight_layout::vector_f32:
      return "vector_f32";
    case weight_layout::matrix:
      return "matrix";
    case weight_layout::row_groups:
      return "row_groups";
    case weight_layout::ternary_tiles:
      return "ternary_tiles";
    case weight_layout::ternary_scales:
      return "ternary_scales";
    case weight_layout::feature_rows:
      return "feature_rows";
    case weight_layout::feature_columns:
      return "feature_columns";
    case weight_layout::turned:
      return "turned";
    case weight_layout::row_codes:
      return "row_codes";
    case weight_layout::row_scales:
      return "row_scales";
    case weight_layout::column_norms:
      return "column_norms";
    case weight_layout::rope_turns:
      break;
  }
  return "rope_turns";
}
/// The name of a row order in packed files.
constexpr std::string_view name(row_order order) {
  constexpr std::string_view names[] = {"plain", "rope_pairs", "gate_up", "stacked"};
  return names[static_cast<std::size_t>(order)];
}

/// The layers that have a weight: "*" for all, else a list like "0-3,6,9-31".
[[gnu::cold]] inline std::string layers_text(const weight& w, const table& of) {
  const std::uint32_t layers = of.config->num_hidden_layers;
  if (of.copies(w) == layers || !w.per_layer) return "*";
  std::string out;
  for (std::uint32_t first = 0; first < layers; ++first) {
    if (!of.has(w, first)) continue;
    std::uint32_t last = first;
    while (last + 1 < layers && of.has(w, last + 1)) ++last;
    (out += out.empty() ? "" : ",") += std::to_string(first);
    if (last != first) (out += '-') += std::to_string(last);
    first = last;
  }
  return out;
}

/// A weight's identity, for example "blk.*.attn_q.weight 4096 + blk.*.attn_k.weight 1024 + blk.*.attn_v.weight 1024:
/// row_groups rope_pairs 128 q8_0 [6144, 4096]".
/// @param layers that have it, from layers_text
[[gnu::cold]] inline std::string identity(const weight& w, std::string_view layers = "*") {
  std::string out;
  const auto number = [&](auto value) { (out += ' ') += std::to_string(value); };
  if (w.layout == weight_layout::rope_turns) {
    const rope_scaling_config& scaling = w.rope.scaling;
    out = "rope_turns";
    number(w.head_dim);
    if (w.rope.no_rope_interval != 0) out += " but every", number(w.rope.no_rope_interval);
    if (w.rope.rotary_dim != 0) out += " of which", number(w.rope.rotary_dim);
    if (w.rope.turning_pairs != 0) out += " of whose pairs", number(w.rope.turning_pairs);
    ((out += " theta ") += number_text(w.rope.theta)) += ' ';
    out += intaglio::name(scaling.type);
    if (scaling.type == rope_type::plain) return out;
    if (scaling.type == rope_type::longrope) return out += w.rope.long_context ? " long" : " short";
    for (const float value : {scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor})
      (out += ' ') += number_text(value);
    number(scaling.original_max_position_embeddings);
    if (!scaling.truncate) out += " between pairs";
    return out;
  }
  for (std::uint8_t s = 0; s < w.source_count; ++s) {
    if (s != 0) out += " + ";
    if (w.per_layer || w.layout == weight_layout::column_norms) ((out += "blk.") += layers) += '.';
    out += w.sources[s].view();
    number(w.source_rows[s]);
  }
  ((out += ": ") += name(w.layout)) += ' ';
  out += name(w.order);
  if (w.order == row_order::rope_pairs) number(w.head_dim);
  if (w.scale != 1.f) (out += " times ") += number_text(w.scale);
  const bool coded = w.layout == weight_layout::matrix || w.layout == weight_layout::row_groups ||
                     w.layout == weight_layout::row_codes || w.layout == weight_layout::row_scales;
  if (coded) (out += ' ') += kernels::info(w.codec).name;
  ((out += " [") += std::to_string(w.rows)) += ',';
  number(w.columns);
  return out += ']';
}
/// The identity of a weight of a plan, with the layers that have it.
[[gnu::cold]] inline std::string identity(const weight& w, const table& of) { return identity(w, layers_text(w, of)); }

}  // namespace intaglio::plan
