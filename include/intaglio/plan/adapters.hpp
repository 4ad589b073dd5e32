// SPDX-License-Identifier: MIT
// LoRA adapters beside a model's matrices: y += scale B (A x) follows each adapted product y = W x. A and B belong to
// the adapter of the token's session. The graph computes them as products of a mixture of experts, one expert an
// adapter; the state holds each token's choice. Expert 0 is all zeros, for sessions without an adapter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/message.hpp"
#include "intaglio/ir/op.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::plan {

/// The adapters for which a plan reserves memory beside the model's own matrices.
struct adapter_room {
  std::uint32_t count = 0;           ///< adapters that sessions choose from; 0: the plan has none
  std::uint32_t rank = 0;            ///< largest rank of an adapter; a multiple of 8
  dtype type = dtype::f32;           ///< type of A and B in memory: f32, f16 or bf16
  std::vector<text<48>> matrices{};  ///< adapted matrices; "attn_q.weight" names that matrix of every layer
  friend bool operator==(const adapter_room& a, const adapter_room& b) {
    return a.count == b.count && a.rank == b.rank && a.type == b.type &&
           std::equal(a.matrices.begin(), a.matrices.end(), b.matrices.begin(), b.matrices.end(),
                      [](const text<48>& one, const text<48>& other) { return one.view() == other.view(); });
  }
};

/// Names of the tensors that hold A [(count + 1) * rank, columns] and B [(count + 1) * rows, rank] of all adapters.
inline constexpr std::string_view adapter_a = ".lora_a", adapter_b = ".lora_b";

/// Rewrites a graph so that its products add their adapters.
class adapted_graph {
 public:
  /// @error in the graph's failure: a matrix that no f32 product of the layers uses, or one whose product cannot have
  /// adapters
  static constexpr void make_room(ir::graph& g, const adapter_room& room) {
    if (room.count != 0 && g.failure.empty()) adapted_graph(g, room).run();
  }

 private:
  constexpr adapted_graph(ir::graph& g, const adapter_room& room) : graph_(g), room_(room), before_(g.ops) {}

  constexpr void run() {
    for (const text<48>& each : room_.matrices) check(each.view());
    if (!graph_.failure.empty()) return;
    for (std::size_t i = 0; i < before_.size(); ++i) find_sum(i);
    graph_.ops = {};
    for (std::size_t i = 0; i < before_.size(); ++i) {
      ir::op o = before_[i];
      if (o.where == ir::section::period && choice_ == ir::none) push_choice();
      for (ir::value_id& each : o.in) each = now(each);
      ir::value_id part = ir::none;
      if (is_adapted(o)) part = push_products(o);
      graph_.ops.push_back(o);
      if (part != ir::none) parts_.push_back({sums_[i], part});
      for (const added& each : parts_)
        if (each.after == i) push_sum(o, each.part);
    }
    for (ir::value_id& each : graph_.block_ends) each = now(each);
    graph_.stream_out = now(graph_.stream_out);
  }

  /// Whether every product with the matrix can have adapters.
  constexpr void check(std::string_view matrix) {
    bool found = false;
    for (const ir::op& o : before_) {
      if (o.walk || o.nearest != 0 || o.traced != 0)
        return refuse(matrix, "expected FFNs that are neither walked nor traced, found others");
      if (!names(o, matrix)) continue;
      found = true;
      const ir::weight& w = weight_of(o);
      if (w.type == dtype::i2_s || graph_.values[static_cast<std::size_t>(o.in[0])].type != dtype::f32)
        return refuse(matrix, "expected a matrix that is multiplied in floats or blocks, found a ternary one");
      if (w.rows % 4 != 0) return refuse(matrix, "expected rows in multiples of 4, found ", w.rows);
      if (w.name.view().size() + adapter_a.size() >= 48)
        return refuse(matrix, "expected a name under ", 48 - adapter_a.size(), " characters, found a longer one");
      for (const ir::op& other : before_)
        if (other.kind == ir::op_kind::route && other.in[0] == o.out)
          return refuse(matrix, "expected a matrix that does not choose experts, found one that does");
    }
    if (!found) refuse(matrix, "expected a matrix of one product of the layers, found none");
  }
  constexpr void refuse(std::string_view matrix, auto... parts) {
    if (!graph_.failure.empty()) return;
    graph_.failure.append("adapters of ").append(matrix).append(": ");
    (graph_.failure.append(parts), ...);
  }

  constexpr const ir::weight& weight_of(const ir::op& o) const {
    return graph_.weights[static_cast<std::size_t>(o.weight)];
  }
  constexpr bool names(const ir::op& o, std::string_view matrix) const {
    return o.kind == ir::op_kind::matmul && o.experts == 0 && o.where == ir::section::period &&
           weight_of(o).name.view() == matrix;
  }
  constexpr bool is_adapted(const ir::op& o) const {
    for (const text<48>& each : room_.matrices)
      if (names(o, each.view())) return true;
    return false;
  }

  /// Finds the op after which a product's adapters are added. It is the addition to the stream where the product's
  /// kernel does that addition too; else it is the product itself.
  constexpr void find_sum(std::size_t product) {
    const ir::value_id y = before_[product].out;
    std::size_t readers = 0, sum = product;
    for (std::size_t i = product + 1; i < before_.size() && y != ir::none; ++i)
      for (std::size_t k = 0; k < before_[i].in.size(); ++k) {
        if (before_[i].in[k] != y) continue;
        ++readers;
        if (before_[i].kind == ir::op_kind::add && k == 1) sum = i;
      }
    sums_.push_back(readers == 1 ? sum : product);
  }

  /// The value that replaces `id` in ops that follow.
  constexpr ir::value_id now(ir::value_id id) const {
    for (const renamed& each : renamed_)
      if (each.from == id) return each.to;
    return id;
  }

  constexpr ir::value_id push(ir::op o, std::string_view layer, const ir::value& made) {
    o.layer.append(layer);
    o.out = static_cast<ir::value_id>(graph_.values.size());
    graph_.values.push_back(made);
    graph_.ops.push_back(o);
    return o.out;
  }
  constexpr void push_choice() {
    choice_ = push({.kind = ir::op_kind::adapter, .experts = room_.count + 1, .top_k = 1}, "adapter",
                   {dtype::u32, 2, ir::section::prologue, text<32>{"adapters"}});
  }
  /// Adds the ops of B (A x), with the adapter of each token.
  constexpr ir::value_id push_products(const ir::op& o) {
    const std::uint32_t rows = weight_of(o).rows, columns = weight_of(o).columns;
    const ir::value_id narrow = push_product(o, o.in[0], adapter_a, room_.rank, columns);
    return push_product(o, narrow, adapter_b, rows, room_.rank);
  }
  constexpr ir::value_id push_product(const ir::op& of, ir::value_id x, std::string_view which, std::uint32_t rows,
                                      std::uint32_t columns) {
    ir::op o{.kind = ir::op_kind::matmul,
             .where = of.where,
             .block = of.block,
             .in = {x, choice_, ir::none},
             .weight = weight(of, which, (room_.count + 1) * rows, columns),
             .experts = room_.count + 1,
             .top_k = 1};
    return push(o, of.layer.view(), {dtype::f32, rows, of.where, text<32>{"adapter"}});
  }
  constexpr ir::weight_id weight(const ir::op& of, std::string_view which, std::uint32_t rows, std::uint32_t columns) {
    text<48> name{weight_of(of).name.view()};
    name.append(which);
    const std::uint64_t kind = std::uint64_t{1} << of.block;
    for (std::size_t i = 0; i < graph_.weights.size(); ++i) {
      ir::weight& known = graph_.weights[i];
      if (known.name.view() != name.view() || known.rows != rows || known.columns != columns) continue;
      known.kinds |= kind;
      return static_cast<ir::weight_id>(i);
    }
    graph_.weights.push_back({name, rows, columns, room_.type, of.where, kind});
    return static_cast<ir::weight_id>(graph_.weights.size()) - 1;
  }
  /// Adds an adapter's product `part` to the value that op `to` computes.
  constexpr void push_sum(const ir::op& to, ir::value_id part) {
    const ir::value made = graph_.values[static_cast<std::size_t>(to.out)];
    const ir::value_id weighed = push(
        {.kind = ir::op_kind::weigh, .where = to.where, .block = to.block, .in = {part, choice_, ir::none}, .top_k = 1},
        to.layer.view(), {dtype::f32, made.width, to.where, text<32>{"adapter"}});
    const ir::value_id sum =
        push({.kind = ir::op_kind::add, .where = to.where, .block = to.block, .in = {to.out, weighed, ir::none}},
             to.layer.view(), made);
    renamed_.push_back({to.out, sum});
  }

  struct added {
    std::size_t after;
    ir::value_id part;
  };
  struct renamed {
    ir::value_id from, to;
  };
  ir::graph& graph_;
  const adapter_room& room_;
  std::vector<ir::op> before_;
  ir::value_id choice_ = ir::none;
  std::vector<std::size_t> sums_;  ///< index of the op after which the adapters of op i are added, by op
  std::vector<added> parts_;
  std::vector<renamed> renamed_;
};

/// Number of adapters that sessions of a plan choose from; 0: the plan has none.
constexpr std::uint32_t adapters_of(const table& of) {
  for (const dispatch& d : of.decode.prologue)
    if (d.kernel == kernels::kernel::route &&
        kernels::constants_of<kernels::route_kernel>(d.specialization).stated == 1)
      return kernels::constants_of<kernels::route_kernel>(d.specialization).experts - 1;
  return 0;
}

}  // namespace intaglio::plan
