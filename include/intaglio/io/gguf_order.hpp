// SPDX-License-Identifier: MIT
// The tensors of a model with delta rules in GGUF's order (llama.cpp's convert_hf_to_gguf.py): queries and gates of
// attention alternate head by head. In qwen35 value heads are in turn: the first of every key head, then the second.
#pragma once

#include <algorithm>
#include <cstdint>
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

/// The queries' matrix of latent attention as GGUF has it: head by head the rows without a rotation, then those with
/// one, whose pairs are neighbours. @param part the matrix of rows without a rotation
[[gnu::cold]] inline checkpoint_tensor joined_queries(const decoder_config& c, const checkpoint_tensor& part,
                                                      const checkpoint_tensor& rotated) {
  checkpoint_tensor out = part;
  const std::uint64_t first = unrotated_dim(c), last = c.rotary_dim, blocks = part.pieces.front().columns;
  const auto stem = std::string_view(part.stored.name).substr(0, part.stored.name.find('.', 4) + 1);
  out.stored.name = std::string(stem) + (c.q_lora_rank != 0 ? "attn_q_b.weight" : "attn_q.weight");
  out.stored.rows = std::uint64_t{c.num_attention_heads} * c.head_dim;
  out.stored.bytes = out.stored.rows * row_bytes(part.stored.type, part.stored.columns);
  out.pieces.clear();
  for (std::uint64_t head = 0; head < c.num_attention_heads; ++head) {
    tensor_piece piece = part.pieces[static_cast<std::size_t>(head)];
    piece.row0 = head * c.head_dim;
    out.pieces.push_back(piece);
    tensor_piece rows = rotated.pieces[static_cast<std::size_t>(head)];
    const std::uint64_t from = rows.offset, row = blocks * info(part.stored.type).block_bytes;
    rows.row0 = head * c.head_dim + first;
    if (rotated.rows_in_pairs != 0) out.pieces.push_back(rows);  // as the file has them
    for (std::uint64_t i = 0; rotated.rows_in_pairs == 0 && i < last; ++i) {
      rows.offset = from + i * row, rows.rows = 1;
      rows.row0 = head * c.head_dim + first + row_in_pairs(last, i);
      out.pieces.push_back(rows);
    }
  }
  return out;
}

/// The latent vector's matrix with the rows of the rotated key after it, as GGUF has them.
[[gnu::cold]] inline checkpoint_tensor joined_latent(const decoder_config& c, const checkpoint_tensor& latent,
                                                     const checkpoint_tensor& key) {
  checkpoint_tensor out = latent;
  const std::uint64_t row = row_bytes(latent.stored.type, latent.stored.columns),
                      blocks = latent.stored.columns / info(latent.stored.type).block_elements;
  const auto stem = std::string_view(latent.stored.name).substr(0, latent.stored.name.find('.', 4) + 1);
  out.stored.name = std::string(stem) + "attn_kv_a_mqa.weight";
  out.stored.rows += c.rotary_dim;
  out.stored.bytes += c.rotary_dim * row;
  if (!latent.pieces.empty() && key.rows_in_pairs == 0)
    throw argument_error("model", "rows of " + printable(out.stored_name, 70) + " that follow one another", "strides");
  for (tensor_piece piece : key.pieces) {  // a view with strides has one
    piece.row0 = c.kv_lora_rank;
    out.pieces.push_back(piece);
  }
  if (key.rows_in_pairs != 0) return out;  // the file has these rows after those of the latent vector
  const auto add = [&](std::uint64_t offset, std::uint64_t row0, std::uint64_t rows) {
    out.pieces.push_back({.file = latent.stored.file,
                          .offset = offset,
                          .row0 = row0,
                          .rows = rows,
                          .columns = blocks,
                          .row_stride = blocks});
  };
  add(latent.stored.offset, 0, c.kv_lora_rank);
  for (std::uint64_t i = 0; i < c.rotary_dim; ++i)
    add(key.stored.offset + i * row, c.kv_lora_rank + row_in_pairs(c.rotary_dim, i), 1);
  return out;
}

/// The tensors of a model with latent attention as GGUF has them.
[[gnu::cold]] inline std::deque<checkpoint_tensor> latent_in_gguf_order(const checkpoint& model) {
  const decoder_config& c = model.config();
  std::deque<checkpoint_tensor> out;
  for (const checkpoint_tensor& tensor : model.tensors()) {
    const std::string_view name = tensor.stored.name;
    const std::string stem(name.substr(0, name.find('.', (std::min)(name.size(), std::size_t{4})) + 1));
    if (name.ends_with(".attn_q_rope.weight") || name.ends_with(".attn_k_rope.weight")) continue;
    if (name.ends_with(".attn_q_nope.weight"))
      out.push_back(joined_queries(c, tensor, model.at(stem + "attn_q_rope.weight")));
    else if (name.ends_with(".attn_kv_latent.weight"))
      out.push_back(joined_latent(c, tensor, model.at(stem + "attn_k_rope.weight")));
    else out.push_back(tensor);
  }
  return out;
}

/// Whether convert writes tensors of a family that are put together otherwise than those of the model.
constexpr bool has_gguf_order(const family& of) { return of.latent || of.recurrent == recurrence::delta_net; }

/// The model's tensors in GGUF's order, each with references to the rows in its file.
[[gnu::cold]] inline std::deque<checkpoint_tensor> tensors_in_gguf_order(const checkpoint& model) {
  const decoder_config& c = model.config();
  if (family_of(c.model_type).latent) return latent_in_gguf_order(model);
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
