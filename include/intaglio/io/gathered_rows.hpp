// SPDX-License-Identifier: MIT
// Matrices whose rows are interleaved with those of others in a file: queries and output gates of attention head by
// head; queries, keys, values and gates of delta rules key head by key head; gates and ups of experts row by row.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_builder.hpp"

namespace intaglio::io {

/// Rows of a stored matrix that follow one another.
struct row_run {
  std::uint64_t first = 0, rows = 0;
};
/// A matrix as the runs of rows that it consists of, in order.
struct gathered_part {
  std::string name;
  std::vector<row_run> runs;
};
/// Parts q, k and v of a matrix that has, for each key head, its queries, the key and the value. @param block "blk.3."
[[gnu::cold]] inline std::vector<gathered_part> parts_of_groups(const decoder_config& c, const std::string& block) {
  if (c.num_key_value_heads == 0) return {};
  gathered_part q{block + "attn_q.weight", {}}, k{block + "attn_k.weight", {}}, v{block + "attn_v.weight", {}};
  const std::uint64_t queries = c.num_attention_heads / c.num_key_value_heads, wide = c.head_dim,
                      all = (queries + 2) * wide;
  for (std::uint64_t head = 0; head < c.num_key_value_heads; ++head) {
    q.runs.push_back({head * all, queries * wide});
    k.runs.push_back({head * all + queries * wide, wide});
    v.runs.push_back({head * all + (queries + 1) * wide, wide});
  }
  return {q, k, v};
}
/// The parts of a tensor with this GGUF name; empty for one that is not interleaved.
[[gnu::cold]] inline std::vector<gathered_part> gathered_parts(const decoder_config& c, std::string_view name) {
  const auto block = [&](std::string_view tail) { return std::string(name.substr(0, name.size() - tail.size())); };
  if (constexpr std::string_view both = "ffn_gate_up_exps.weight"; c.num_local_experts != 0 && name.ends_with(both)) {
    gathered_part gates{block(both) + "ffn_gate_exps.weight", {}}, ups{block(both) + "ffn_up_exps.weight", {}};
    const std::uint64_t rows = c.intermediate_size;
    for (std::uint64_t expert = 0; expert < c.num_local_experts; ++expert) {
      gates.runs.push_back({2 * expert * rows, rows});
      ups.runs.push_back({(2 * expert + 1) * rows, rows});
    }
    return {gates, ups};
  }
  for (const std::string_view q : {"attn_q.weight", "attn_q_b.weight"}) {  // a head's rows with a rotation are the last
    if (!family_of(c.model_type).latent || !name.ends_with("." + std::string(q))) continue;
    gathered_part first{block(q) + "attn_q_nope.weight", {}}, rotated{block(q) + "attn_q_rope.weight", {}};
    for (std::uint64_t head = 0; head < c.num_attention_heads; ++head) {
      first.runs.push_back({head * c.head_dim, unrotated_dim(c)});
      rotated.runs.push_back({head * c.head_dim + unrotated_dim(c), c.rotary_dim});
    }
    return {first, rotated};
  }
  if (constexpr std::string_view qkv = "attn_qkv.weight";
      family_of(c.model_type).joined == joined_qkv::groups && name.ends_with(qkv))
    return parts_of_groups(c, block(qkv));
  for (const std::string end : {"weight", "bias"}) {
    const std::string tail = "attn_qkv_heads." + end;
    if (!family_of(c.model_type).qkv_by_head || !name.ends_with(tail)) continue;
    std::vector<gathered_part> out;
    for (std::size_t part = 0; part < 3; ++part) {
      out.push_back({block(tail) + std::array{"attn_q.", "attn_k.", "attn_v."}[part] + end, {}});
      for (std::uint64_t head = 0; head < c.num_attention_heads; ++head)
        out.back().runs.push_back({(3 * head + part) * c.head_dim, c.head_dim});
    }
    return out;
  }
  if (family_of(c.model_type).recurrent != recurrence::delta_net) return {};
  if (constexpr std::string_view q = "attn_q.weight"; name.ends_with("." + std::string(q))) {
    gathered_part queries{std::string(name), {}}, gates{block(q) + "attn_q_gate.weight", {}};
    for (std::uint64_t head = 0; head < c.num_attention_heads; ++head) {
      queries.runs.push_back({2 * head * c.head_dim, c.head_dim});
      gates.runs.push_back({(2 * head + 1) * c.head_dim, c.head_dim});
    }
    return {queries, gates};
  }
  constexpr std::string_view qkvz = "attn_qkvz.weight";
  if (!name.ends_with(qkvz)) return {};
  const delta_net_config& delta = c.delta_net;
  if (delta.key_heads == 0) return {};
  const std::uint64_t key = delta.key_dim,
                      values = std::uint64_t{delta.value_heads} / delta.key_heads * delta.value_dim,
                      all = 2 * key + 2 * values;
  gathered_part qkv{block(qkvz) + "attn_qkv.weight", {}}, z{block(qkvz) + "attn_gate.weight", {}};
  for (const auto& [before, rows] : {row_run{0, key}, row_run{key, key}, row_run{2 * key, values}})
    for (std::uint64_t head = 0; head < delta.key_heads; ++head) qkv.runs.push_back({head * all + before, rows});
  for (std::uint64_t head = 0; head < delta.key_heads; ++head)
    z.runs.push_back({head * all + 2 * key + values, values});
  return {qkv, z};
}

/// Adds the parts of an interleaved vector. @param all number of its values  @param add is called with each part
[[gnu::cold]] inline void add_gathered_values(checkpoint_builder& builder, const checkpoint_tensor& whole,
                                              const std::vector<gathered_part>& parts, std::uint64_t all,
                                              const part_receiver& add) {
  if (whole.stored.columns != all || info(whole.stored.type).block_elements != 1 || !whole.pieces.empty())
    return builder.fault("values of " + printable(whole.stored_name, 100) + ": expected " + std::to_string(all) +
                         ", found " + std::to_string(whole.stored.columns));
  const std::uint64_t element = info(whole.stored.type).block_bytes;
  for (const gathered_part& part : parts) {
    checkpoint_tensor out = whole;
    out.stored.name = part.name;
    out.stored.columns = 0;
    for (const row_run& run : part.runs) {
      out.pieces.push_back({.file = whole.stored.file,
                            .offset = whole.stored.offset + run.first * element,
                            .rows = 1,
                            .column0 = out.stored.columns,
                            .columns = run.rows});
      out.stored.columns += run.rows;
    }
    out.stored.bytes = out.stored.columns * element;
    add(std::move(out));
  }
}

/// Adds the parts of an interleaved tensor. @return false: it is not interleaved  @param add is called with each part
[[gnu::cold]] inline bool add_gathered(checkpoint_builder& builder, const checkpoint_tensor& whole,
                                       const part_receiver& add) {
  const auto parts = gathered_parts(builder.config(), whole.stored.name);
  if (parts.empty()) return false;
  const auto shown = printable(whole.stored_name, 100);
  std::uint64_t all = 0;
  for (const gathered_part& part : parts)
    for (const row_run& run : part.runs) all += run.rows;
  if (whole.dimensions == 1) return add_gathered_values(builder, whole, parts, all, add), true;
  if (whole.stored.rows != all || whole.dimensions != (whole.stored.name.ends_with("_exps.weight") ? 3u : 2u))
    return builder.fault("rows of " + shown + ": expected " + std::to_string(all) + ", found " +
                         std::to_string(whole.stored.rows)),
           true;
  if (!whole.pieces.empty())
    return builder.fault("rows of " + shown + ": expected one after the other, found strides"), true;
  const auto& layout = info(whole.stored.type);
  if (whole.stored.type == dtype::bcml1 || whole.stored.type == dtype::i2_s ||
      whole.stored.columns % layout.block_elements != 0)
    return builder.fault("type of " + shown + ": expected rows that lie one after the other, found " +
                         std::string(intaglio::name(whole.stored.type))),
           true;
  const std::uint64_t blocks = whole.stored.columns / layout.block_elements;  // the unit in which pieces count
  for (const gathered_part& part : parts) {
    checkpoint_tensor out = whole;
    out.stored.name = part.name;
    out.stored.rows = 0;
    for (const row_run& run : part.runs) {
      out.pieces.push_back({.file = whole.stored.file,
                            .offset = whole.stored.offset + run.first * blocks * layout.block_bytes,
                            .row0 = out.stored.rows,
                            .rows = run.rows,
                            .columns = blocks,
                            .row_stride = blocks});
      out.stored.rows += run.rows;
    }
    out.stored.bytes = out.stored.rows * blocks * layout.block_bytes;
    add(std::move(out));
  }
  return true;
}

}  // namespace intaglio::io
