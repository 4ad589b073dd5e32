// SPDX-License-Identifier: MIT
// Why an op has no kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "intaglio/core/message.hpp"
#include "intaglio/ir/op.hpp"

namespace intaglio::plan {

/// Explains in one sentence that no rule and no kernel covers an op. @param uses number of readers of its result
constexpr void explain_unfused(const ir::graph& g, const ir::op& o, std::uint32_t uses, text<256>& failure) {
  using kind = ir::op_kind;
  failure.append(o.layer.view(), ": no kernel computes ", o.kind, " here; ");
  switch (o.kind) {
    case kind::rms_norm:
      failure.append("expected products as readers, an int8 product or the head, or a sum with the stream, found ",
                     uses, uses == 1 ? " of another kind" : "");
      break;
    case kind::matmul:
      failure.append("expected i2_s weights of int8 or f32 inputs or coded weights of f32 inputs, found ",
                     g.weights[static_cast<std::size_t>(o.weight)].type, " weights of ",
                     g.values[static_cast<std::size_t>(o.in[0])].type);
      break;
    case kind::add:
      failure.append("expected the product of an output projection as second operand and no later reader of the first");
      break;
    case kind::weigh:
      failure.append("expected a sum with the stream as its only reader (residual)");
      break;
    case kind::bias:
      failure.append(
          "expected products of q, k and v in front of it and of two others, or a sum with the stream or a route "
          "after it");
      break;
    case kind::rope:
    case kind::cache_write:
      failure.append("expected q, k and v of one input with one rope each for q and k");
      break;
    case kind::gated:
      failure.append("expected gate and up products of one input and one codec in front of it, to walk or trace");
      break;
    default:
      failure.append("expected gate and up products of one input in front of it");
      break;
  }
}

}  // namespace intaglio::plan
