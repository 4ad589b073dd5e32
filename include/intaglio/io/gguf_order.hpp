// SPDX-License-Identifier: MIT
// The tensors of a model with delta rules in GGUF's order (llama.cpp's convert_hf_to_gguf.py): queries and gates of
// attention alternate head by head. In qwen35 value heads are in turn: the first of every key head, then the second.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_data.hpp"

namespace intaglio::io {

/// The index in the folder's order of value head `at` of GGUF's order.
constexpr std::uint64_t value_head_of(const delta_net_config& delta, std::uint64_t at) {
  return at % delta.key_heads * (delta.value_heads / delta.key_heads) + at / delta.key_heads;
}

/// Puts the value heads of a tensor in turn; other tensors are unchanged. @throws argument_error where its rows are
/// apart
[[gnu::cold]] inline void put_value_heads_in_turn(const delta_net_config& delta, checkpoint_tensor& tensor) {
  const std::string_view name = tensor.stored.name;
  const auto is = [&](std::string_view tail) { return name.ends_with(tail); };
  const bool conv = is(".ssm_conv1d.weight"), out = is(".ssm_out.weight"), one = tensor.dimensions == 1,
             single = is(".ssm_beta.weight") || is(".ssm_alpha.weight");
  if (!(conv || out || single || is(".attn_qkv.weight") || is(".attn_gate.weight") || is(".ssm_a") ||
        is(".ssm_dt.bias")))
    return;
  const auto& layout = info(tensor.stored.type);
  if (!tensor.pieces.empty() || layout.block_elements != 1)
    throw argument_error("model", "rows of " + printable(name, 70) + " that follow one another, as floats",
                         tensor.pieces.empty() ? std::string(intaglio::name(tensor.stored.type)) : "rows apart");
  const std::uint64_t columns = tensor.stored.columns, element = layout.block_bytes,
                      wide = single || one ? 1 : delta.value_dim,
                      first = conv || is(".attn_qkv.weight") ? tensor.stored.rows - delta.value_size() : 0;
  const auto add = [&](std::uint64_t from_row, std::uint64_t from_column, tensor_piece piece) {
    piece.file = tensor.stored.file;
    piece.offset = tensor.stored.offset + (from_row * columns + from_column) * element;
    piece.row_stride = columns;
    tensor.pieces.push_back(piece);
  };
  if (first != 0) add(0, 0, {.rows = first, .columns = columns});
  for (std::uint64_t at = 0; at < delta.value_heads; ++at) {
    const std::uint64_t from = value_head_of(delta, at) * wide, to = at * wide;
    if (out) add(0, from, {.rows = tensor.stored.rows, .column0 = to, .columns = wide});
    else if (one) add(0, from, {.rows = 1, .column0 = to, .columns = 1});
    else add(first + from, 0, {.row0 = first + to, .rows = wide, .columns = columns});
  }
}

/// The model's tensors in GGUF's order, each with references to the rows in its file.
[[gnu::cold]] inline std::deque<checkpoint_tensor> tensors_in_gguf_order(const checkpoint& model) {
  const decoder_config& c = model.config();
  std::deque<checkpoint_tensor> out;
  for (const checkpoint_tensor& tensor : model.tensors()) {
    const std::string_view name = tensor.stored.name;
    if (name.ends_with(".attn_q_gate.weight")) continue;  // its rows are between those of the queries
    checkpoint_tensor& made = out.emplace_back(tensor);
    made.rows_in_pairs = made.rotary_dim = 0;
    if (name.ends_with(".attn_q.weight")) {  // runs of a matrix that begins with the first of them
      made.stored.offset = made.pieces.front().offset;
      made.stored.rows *= 2;
      made.stored.bytes = made.stored.rows * row_bytes(made.stored.type, made.stored.columns);
      made.pieces.clear();
    }
    if (has_values_in_turn(family_of(c.model_type)) && !c.delta_net.in_turn) put_value_heads_in_turn(c.delta_net, made);
  }
  return out;
}

}  // namespace intaglio::io
