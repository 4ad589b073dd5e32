// SPDX-License-Identifier: MIT
// Matrices of latent attention (MLA), as files hold them and as models have them. A head's query has channels without
// and channels with a rotation, which are rows of one matrix in files. Keys and values of a head are made from the
// latent vector by one matrix in folders and in older GGUF files; models have two matrices, of which the keys' one is
// transposed. Sources: transformers, models/deepseek_v3; llama.cpp, src/models/deepseek2.cpp and its converter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_builder.hpp"

namespace intaglio::io {

/// Whether a name belongs to a matrix that holds one matrix for each head of latent attention.
constexpr bool is_latent_heads(std::string_view name) {
  return name.ends_with(".attn_k_b.weight") || name.ends_with(".attn_v_b.weight");
}
/// Whether a name belongs to a matrix with rows of rotated channels only.
constexpr bool is_latent_rotated(std::string_view name) {
  return name.ends_with(".attn_q_rope.weight") || name.ends_with(".attn_k_rope.weight");
}

/// The end of the name of the matrix that gives keys and values of all heads.
inline constexpr std::string_view latent_keys_values = "attn_kv_b.weight";

/// Adds the matrices of keys and of values, one for each head, from the matrix that has the rows of a head's keys in
/// front of those of its values. Floats are read where they are, with strides. Blocks of keys, which hold neighbours in
/// a row, are decoded on reading, to f16. @return whether this was such a matrix  @param add is called with each part
[[gnu::cold]] inline bool add_latent_heads(checkpoint_builder& builder, const checkpoint_tensor& whole,
                                           const part_receiver& add) {
  const decoder_config& c = builder.config();
  if (!family_of(c.model_type).latent || !whole.stored.name.ends_with("." + std::string(latent_keys_values)))
    return false;
  const std::string shown = printable(whole.stored_name, 100);
  const std::uint64_t heads = c.num_attention_heads, key = unrotated_dim(c), value = c.v_head_dim,
                      rank = c.kv_lora_rank, both = key + value;
  const dtype type = whole.stored.type;
  const auto& layout = info(type);
  if (whole.dimensions != 2 || whole.stored.rows != heads * both || whole.stored.columns != rank)
    return builder.fault("shape of " + shown + ": expected [" + std::to_string(heads * both) + ", " +
                         std::to_string(rank) + "], found [" + std::to_string(whole.stored.rows) + ", " +
                         std::to_string(whole.stored.columns) + "]"),
           true;
  if (!whole.pieces.empty() || !is_decodable(type) || rank % layout.block_elements != 0)
    return builder.fault("rows of " + shown + ": expected one after the other, of floats or of blocks, found " +
                         std::string(intaglio::name(type))),
           true;
  const std::string block = whole.stored.name.substr(0, whole.stored.name.size() - latent_keys_values.size());
  const std::uint64_t blocks = rank / layout.block_elements, row = blocks * layout.block_bytes;
  checkpoint_tensor values = whole, keys = whole;
  values.dimensions = keys.dimensions = 3;
  values.stored.name = block + "attn_v_b.weight", keys.stored.name = block + "attn_k_b.weight";
  values.stored.rows = heads * value, keys.stored.rows = heads * rank, keys.stored.columns = key;
  const bool floats = layout.block_elements == 1;
  for (std::uint64_t head = 0; head < heads; ++head) {
    const std::uint64_t at = whole.stored.offset + head * both * row;
    values.pieces.push_back({.file = whole.stored.file,
                             .offset = at + key * row,
                             .row0 = head * value,
                             .rows = value,
                             .columns = blocks,
                             .row_stride = blocks});
    if (floats)
      keys.pieces.push_back({.file = whole.stored.file,
                             .offset = at,
                             .row0 = head * rank,
                             .rows = rank,
                             .columns = key,
                             .row_stride = 1,
                             .column_stride = rank});
  }
  if (!floats) {
    keys.stored.type = dtype::f16;
    keys.transposed = transposed_heads{type, rank, both};
  }
  values.stored.bytes = heads * value * row;
  keys.stored.bytes = row_bytes(keys.stored.type, key) * keys.stored.rows;
  add(std::move(values));
  add(std::move(keys));
  return true;
}

}  // namespace intaglio::io
