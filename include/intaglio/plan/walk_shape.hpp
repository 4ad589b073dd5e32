// SPDX-License-Identifier: MIT
// Exact walks of an FFN, which compute only active features: which nodes are walked, and how their two kernels split
// the features.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "intaglio/kernels/feature_layout.hpp"
#include "intaglio/plan/lowering_context.hpp"
#include "intaglio/plan/node.hpp"

namespace intaglio::plan {

/// How the two kernels of an exact walk split an FFN.
struct walk_shape {
  std::uint32_t features, shares;        ///< walk_gate_up: features of a workgroup; number of workgroups
  std::uint32_t words, stripes, splits;  ///< walk_down
  std::uint32_t sum_words;               ///< words of zeros between the two kernels' data
};
/// Whether decode computes a product feature by feature (graph::walk_ffn).
constexpr bool is_walked(const node& n, std::uint32_t tokens) {
  return tokens == 1 && n.walk && n.kernel == kernels::kernel::ternary_matmul &&
         n.prologue == kernels::prologue::norm_quantize;
}

/// Chooses the shapes of walk_gate_up and walk_down, so that enough workgroups run for the profile.
constexpr walk_shape walk_shape_of(const profile& target, std::uint32_t features, std::uint32_t hidden_size) {
  const auto parts = [](std::uint64_t whole, std::uint64_t part) {
    return static_cast<std::uint32_t>((whole + part - 1) / part);
  };
  const std::uint32_t row_words = hidden_size / 16,
                      busy = enough_groups(target, target.work.matmul_groups, std::uint64_t{features} * hidden_size);
  walk_shape out{};
  if (target.work.group_weights == 0) {
    out.features = (parts(features, busy) + 3) / 4 * 4;
    out.words = row_words < 256 ? 32 : 64;  // 128 or 256 bytes of a row
    out.splits = std::clamp(busy / parts(row_words, out.words), 1u, parts(features, 64));
  } else {
    // CPU drivers. A lane takes four groups of rows of gate at a time, so 128 features are a step of eight lanes. There
    // are half as many workgroups as the product of gate and up has. Each workgroup of walk_down lists all features, so
    // there are few of them. A lane of a subgroup of 4 takes up to 10 words at a time, and reads the list again for
    // more; llvmpipe allows its loops 65,535 iterations.
    out.features = parts(parts(features, 128), (std::max)(2u, busy / 2)) * 128;
    const std::uint32_t most_words = 40 * (std::max)(1u, 45'000 / features);
    out.words = (std::min)(most_words,
                           (parts(row_words, (std::min)((std::max)(busy / 8, 1u), parts(row_words, 16))) + 1) / 2 * 2);
    out.splits = 1;
  }
  out.shares = parts(features, out.features);
  out.stripes = parts(row_words, out.words);
  out.sum_words = kernels::walk_sum_words(out.stripes, out.words);
  return out;
}
/// Bytes of the memory that walk_gate_up and walk_down share.
constexpr std::uint64_t walk_total_bytes(const walk_shape& shape, std::uint32_t features) {
  return 4 * kernels::walk_total_words(features, shape.shares, shape.sum_words);
}

/// Sets the norm that follows each walk_gate_up. A gated node without a walk_down, or the reverse, stays dense.
constexpr void join_walks(std::vector<node>& nodes, std::uint32_t tokens) {
  std::vector<std::uint8_t> joined(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t k = i + 1;
         k < nodes.size() && is_walked(nodes[i], tokens) && nodes[i].epilogue == kernels::epilogue::gated; ++k)
      if (is_walked(nodes[k], tokens) && nodes[k].epilogue == kernels::epilogue::add && nodes[k].in == nodes[i].out)
        nodes[i].value_norm = nodes[k].norm, joined[i] = joined[k] = 1;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!joined[i]) nodes[i].walk = false;
}

/// Checks that the rows of walk_sum's weights are whole loads: a lane reads 16 bytes of a feature's down vector at a
/// time.
constexpr void check_sums(const ir::graph& g, const std::vector<node>& nodes, text<256>& failure) {
  for (const node& n : nodes) {
    if (n.kernel != kernels::kernel::walk_sum || !failure.empty()) continue;
    const ir::weight& down = g.weights[static_cast<std::size_t>(n.weights[0])];
    if (down.type != dtype::f32 && down.type != dtype::f16 && down.type != dtype::bf16) {
      failure.append(down.name.view(), ": expected f32, f16 or bf16 to walk, found ", down.type);
      return;
    }
    const std::uint32_t step = down.type == dtype::f32 ? 4 : 8;
    if (down.rows % step == 0) continue;
    failure.append(down.name.view());
    failure.append(": expected a multiple of ");
    failure.append(step);
    failure.append(" rows to walk in ");
    failure.append(info(down.type).name);
    failure.append(", found ");
    failure.append(down.rows);
  }
}

/// Splits the sum over features into several vectors where a norm is its only reader; the norm adds the vectors. So
/// there are enough workgroups, and none waits for another.
constexpr void split_sums(const profile& target, const ir::graph& g, std::vector<node>& nodes) {
  constexpr std::uint32_t parts = 4;
  for (node& from : nodes) {
    if (from.kernel != kernels::kernel::walk_sum || from.stream != ir::none || target.work.group_weights != 0) continue;
    node* reader = nullptr;
    std::uint32_t readers = 0;
    for (node& to : nodes)
      if (to.in == from.out) reader = &to, ++readers;
    if (readers != 1 || reader->kernel != kernels::kernel::norm_add) continue;
    from.parts = reader->parts = parts;
    from.out_width = parts * g.values[static_cast<std::size_t>(from.out)].width;
  }
}

}  // namespace intaglio::plan
