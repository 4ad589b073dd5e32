// SPDX-License-Identifier: MIT
// Matrices that some families' files hold as one, one after the other, and that models have separately: q, k and v;
// gate and up; the inputs of Mamba-2; the matrices that make streams.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/gathered_rows.hpp"
#include "intaglio/io/latent_tensors.hpp"

namespace intaglio::io {

/// Whether files of a family have fused matrices in GGUF.
constexpr bool has_fused_matrices(const family& of) {
  return of.fused || of.fused_qkv || of.fused_gate_up || of.joined != joined_qkv::none || of.streams || of.latent ||
         of.recurrent == recurrence::mamba2;
}

/// Some rows of a fused matrix, or some values of a fused vector.
struct fused_part {
  std::string name;
  std::uint64_t first = 0, rows = 0;
};
/// The parts of a tensor with this GGUF name in a family with fused matrices; empty for a tensor that is not fused.
/// @param writes whether the tensor is to be written, not read
[[gnu::cold]] inline std::vector<fused_part> fused_parts(const decoder_config& c, std::string_view name,
                                                         bool writes = false) {
  const family& facts = family_of(c.model_type);
  const bool fused = facts.fused || facts.fused_gate_up, fused_qkv = facts.fused || facts.fused_qkv ||
                                                                     facts.joined == joined_qkv::blocks ||
                                                                     (facts.loose_qkv && !writes);
  const std::uint64_t q = c.q_size(), kv = c.kv_size(), inner = c.intermediate_size;
  const auto before = [&](std::string_view tail) { return std::string(name.substr(0, name.size() - tail.size())); };
  if (family_of(c.model_type).streams && (name == "altup_proj.weight" || name == "altup_unembd_proj.weight")) {
    std::vector<fused_part> out;
    for (std::uint32_t i = 1; i < c.altup_num_inputs; ++i)
      out.push_back({before("weight") + std::to_string(i - 1) + ".weight", (i - 1) * std::uint64_t{c.hidden_size},
                     c.hidden_size});
    return out;
  }
  constexpr std::string_view qkv = "attn_qkv.weight", up = "ffn_up.weight", gate_up = "ffn_gate_up.weight";
  for (const std::string_view whole : {qkv, std::string_view("attn_qkv.bias")}) {
    if (!fused_qkv || !name.ends_with(whole)) continue;
    const std::string block = before(whole), end(whole.substr(std::string_view("attn_qkv").size()));
    return {{block + "attn_q" + end, 0, q}, {block + "attn_k" + end, q, kv}, {block + "attn_v" + end, q + kv, kv}};
  }
  if (constexpr std::string_view latent = "attn_kv_a_mqa.weight"; facts.latent && name.ends_with(latent))
    return {{before(latent) + "attn_kv_latent.weight", 0, c.kv_lora_rank},
            {before(latent) + "attn_k_rope.weight", c.kv_lora_rank, c.rotary_dim}};
  if (constexpr std::string_view in = "ssm_in.weight";
      family_of(c.model_type).recurrent == recurrence::mamba2 && name.ends_with(in)) {
    const std::string block = before(in);
    const std::uint64_t gate = c.delta_net.value_size(), xbc = c.delta_net.qkv_size();
    return {{block + "ssm_in_gate.weight", 0, gate},
            {block + "ssm_in_xbc.weight", gate, xbc},
            {block + "ssm_in_dt.weight", gate + xbc, c.delta_net.value_heads}};
  }
  if (may_share_expert(family_of(c.model_type)) && c.num_local_experts != 0) {  // of the shared expert
    const std::uint64_t shared = c.shared_expert_intermediate_size;
    if (constexpr std::string_view down = "ffn_down.weight"; name.ends_with(down))
      return {{before(down) + "ffn_down_shexp.weight", 0, c.hidden_size}};
    if (name.ends_with(gate_up))
      return {{before(gate_up) + "ffn_gate_shexp.weight", 0, shared},
              {before(gate_up) + "ffn_up_shexp.weight", shared, shared}};
  }
  const bool both = name.ends_with(gate_up);
  if (!both && !(fused && name.ends_with(up))) return {};
  const std::string block = before(both ? gate_up : up);
  return {{block + "ffn_gate.weight", 0, inner}, {block + "ffn_up.weight", inner, inner}};
}
/// The fused GGUF tensor that a tensor is the first part of, with its rows; a tensor that is not fused gives itself.
/// Absent where it is a later part.
[[gnu::cold]] inline std::optional<std::pair<std::string, std::uint64_t>> fused_into(const decoder_config& c,
                                                                                     const stored_tensor& tensor) {
  const std::string_view name = tensor.name;
  const std::size_t dot = name.starts_with("blk.") ? name.find('.', 4) : name.npos;
  for (const std::string_view tail : {"attn_qkv.weight", "attn_qkv.bias", "ffn_up.weight", "ssm_in.weight",
                                      "altup_proj.weight", "altup_unembd_proj.weight"}) {
    if ((dot == name.npos) != tail.starts_with("altup_")) continue;
    if (tail.starts_with("attn_qkv.") && family_of(c.model_type).joined != joined_qkv::none) continue;  // written apart
    std::string whole = std::string(name.substr(0, dot == name.npos ? 0 : dot + 1)) + std::string(tail);
    const auto parts = fused_parts(c, whole, true);
    for (const fused_part& part : parts) {
      if (part.name != name) continue;
      if (part.first != 0) return std::nullopt;
      return std::pair{std::move(whole), parts.back().first + parts.back().rows};
    }
  }
  return std::pair{tensor.name, tensor.rows};
}

/// Sets the pieces of a tensor of a folder. A layer's matrix becomes the transpose of what the file holds, where the
/// family's files hold transposes.  @param pieces empty where elements follow one another
inline void set_pieces(checkpoint_tensor& tensor, std::vector<tensor_piece> pieces, const family& of) {
  stored_tensor& stored = tensor.stored;
  tensor.pieces = std::move(pieces);
  if (!of.transposed || tensor.dimensions != 2 || !stored.name.starts_with("blk.")) return;
  if (tensor.pieces.empty())
    tensor.pieces = {{.file = stored.file, .offset = stored.offset, .row_stride = stored.columns}};
  std::swap(stored.rows, stored.columns);
  tensor_piece& piece = tensor.pieces.front();
  piece.rows = stored.rows, piece.columns = stored.columns;
  std::swap(piece.row_stride, piece.column_stride);
}

/// Adds the parts of a vector, which follow one another. @param add is called with each part
[[gnu::cold]] inline void add_bias_parts(checkpoint_builder& builder, const checkpoint_tensor& whole,
                                         const std::vector<fused_part>& parts, const part_receiver& add) {
  const auto& layout = info(whole.stored.type);
  const std::uint64_t values = parts.back().first + parts.back().rows;
  if (whole.dimensions != 1 || whole.stored.columns != values || !whole.pieces.empty() || layout.block_elements != 1)
    return builder.fault("values of " + printable(whole.stored_name, 100) + ": expected " + std::to_string(values) +
                         " floats in a row, found " + std::to_string(whole.stored.columns) + " of " +
                         std::string(intaglio::name(whole.stored.type)));
  for (const fused_part& part : parts) {
    checkpoint_tensor out = whole;
    out.stored.name = part.name;
    out.stored.columns = part.rows;
    out.stored.offset += part.first * layout.block_bytes;
    out.stored.bytes = part.rows * layout.block_bytes;
    add(std::move(out));
  }
}

/// Adds a tensor, or the parts of a fused one. @param turned applied to q and k
[[gnu::cold]] inline void add_parts(checkpoint_builder& builder, checkpoint_tensor whole,
                                    const std::function<void(checkpoint_tensor&)>& turned) {
  const part_receiver add = [&](checkpoint_tensor tensor) {
    for (const std::string_view each : {".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"})
      if (tensor.stored.name.ends_with(each)) turned(tensor);
    if (family_of(builder.config().model_type).latent && is_latent_rotated(tensor.stored.name)) turned(tensor);
    // Norms of heads of which some channels turn are in the order of theirs.
    if (const decoder_config& c = builder.config();
        c.rotary_dim != 0 && (family_of(c.model_type).head_norms || family_of(c.model_type).whole_norms) &&
        (tensor.stored.name.ends_with(".attn_q_norm.weight") || tensor.stored.name.ends_with(".attn_k_norm.weight")))
      turned(tensor);
    builder.add(std::move(tensor));
  };
  if (add_gathered(builder, whole, add) || add_latent_heads(builder, whole, add)) return;
  const auto parts = fused_parts(builder.config(), whole.stored.name);
  if (parts.empty()) return add(std::move(whole));
  if (whole.stored.name.ends_with(".bias")) return add_bias_parts(builder, whole, parts, add);
  if (const std::uint64_t rows = parts.back().first + parts.back().rows; whole.stored.rows != rows)
    return builder.fault("rows of " + printable(whole.stored_name, 100) + ": expected " + std::to_string(rows) +
                         ", found " + std::to_string(whole.stored.rows));
  const std::uint64_t row = row_bytes(whole.stored.type, whole.stored.columns);
  for (const fused_part& part : parts) {
    checkpoint_tensor out = whole;
    out.stored.name = part.name;
    out.stored.rows = part.rows;
    out.dimensions = (std::min)(out.dimensions, 2u);  // several matrices one after the other
    out.stored.offset += part.first * row;
    out.stored.bytes = part.rows * row;
    for (tensor_piece& piece : out.pieces) {  // a view with strides has one
      piece.offset += part.first * piece.row_stride * info(whole.stored.type).block_bytes;
      piece.rows = part.rows;
    }
    add(std::move(out));
  }
}

}  // namespace intaglio::io
