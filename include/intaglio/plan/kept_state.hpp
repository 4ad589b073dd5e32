// SPDX-License-Identifier: MIT
// The state that recurrent layers keep from one pass to the next, beside caches: bytes and offsets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "intaglio/ir/op.hpp"
#include "intaglio/kernels/short_conv.hpp"
#include "intaglio/plan/dispatch.hpp"

namespace intaglio::plan {

/// Bytes of the recurrent state of an op; 0: it has none.
constexpr std::uint64_t kept_bytes(const ir::graph& g, const ir::op& o) {
  if (o.kind == ir::op_kind::delta_net || o.kind == ir::op_kind::state_space)
    return aligned(std::uint64_t{4} * o.delta.value_size() * o.delta.key_dim);
  if (o.kind != ir::op_kind::short_conv) return 0;
  return aligned(kernels::short_conv_state_bytes(g.weights[static_cast<std::size_t>(o.weight)].rows, o.taps));
}
/// Offset of an op's state in the state of its layer.
constexpr std::uint64_t kept_offset(const ir::graph& g, std::size_t op) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < op; ++i)
    if (g.ops[i].where == ir::section::period && g.ops[i].block == g.ops[op].block) out += kept_bytes(g, g.ops[i]);
  return out;
}
/// Bytes of the recurrent state of all ops of a kind of block.
constexpr std::uint64_t kept_of_block(const ir::graph& g, std::uint8_t block) {
  std::uint64_t out = 0;
  for (const ir::op& o : g.ops)
    if (o.where == ir::section::period && o.block == block) out += kept_bytes(g, o);
  return out;
}
/// Whether a model's layers keep any state other than keys and values.
constexpr bool is_recurrent(const ir::graph& g) {
  for (const ir::op& o : g.ops)
    if (kept_bytes(g, o) != 0) return true;
  return false;
}

}  // namespace intaglio::plan
