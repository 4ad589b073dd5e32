// SPDX-License-Identifier: MIT
// The pipelines of a plan: one for each distinct kernel, activation and specialization, made in parallel, kept in the pipeline cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/gpu/pipeline.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/kernel_modules.hpp"

namespace intaglio::runtime {

/// Pipelines by dispatch. Grows when another sequence is added, never between tokens.
class kernel_set {
 public:
  kernel_set(const gpu::device& on, const kernel_modules& modules) : device_(on), modules_(modules), subgroup_(choose_subgroup(on.limits())) {}

  /// Makes what the dispatches of sequences need and what is not there yet.
  /// @error device_error naming the kernel: the device refuses it; out_of_memory, device_lost
  void add(std::span<const plan::sequence* const> sequences, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      std::vector<key> wanted;
      for (const plan::sequence* each : sequences)
        for (const auto part : each->recorded()) want(part, wanted);
      make(wanted, cache);
    });
  }
  /// The same for some dispatches.
  void add(std::span<const plan::dispatch> calls, gpu::pipeline_cache* cache) {
    gpu::translated([&] {
      std::vector<key> wanted;
      want(calls, wanted);
      make(wanted, cache);
    });
  }

  const kernel_modules& modules() const noexcept { return modules_; }
  /// @param rows of a batch that a pass has; 0: all
  const gpu::pipeline& of(const plan::dispatch& call, std::uint32_t rows = 0) const { return pipelines_[find(keys_, key_of(call, rows))]; }
  /// Workgroups of a dispatch. @param all rows of the sequence, if `rows` is not 0
  std::array<std::uint32_t, 3> groups_of(const plan::dispatch& call, std::uint32_t rows = 0, std::uint32_t all = 0) const {
    std::array<std::uint32_t, 3> out = call.groups;
    if (const kernels::few_tile by = tile_of(call, rows); by.rows != 0)
      return {(constant(call, "rows") + by.rows - 1) / by.rows,
              lists_tokens(call) ? lists_of(call, rows) * (constant(call, "list_tokens") / by.tokens) : ((rows != 0 ? rows : tokens_of(call)) + by.tokens - 1) / by.tokens, 1};
    if (lists_tokens(call)) out[1] = lists_of(call, rows) * parts_of(call);
    else if (rows != 0) out[1] = std::max(1u, out[1] * rows / all);
    return out;
  }
  /// Whether it is a product of few tokens by matrices, whose tiles are those of the device and not of the plan.
  bool takes_matrices(const plan::dispatch& call, std::uint32_t rows = 0) const { return tile_of(call, rows).rows != 0; }
  /// Passes over how many rows have pipelines of their own, beside those over all.
  std::vector<std::uint32_t> rows_of(const plan::dispatch& call) const {
    std::vector<std::uint32_t> out;
    if (takes_matrices(call) && !lists_tokens(call))
      for (std::uint32_t rows = 8; rows < tokens_of(call); rows *= 2) out.push_back(rows);
    return out;
  }
  /// Whether it takes tokens by lists of expert_tiles.
  static bool lists_tokens(const plan::dispatch& call) {
    return (call.kernel == kernels::kernel::matmul_few && constant(call, "experts_used") != 0) ||
           (call.kernel == kernels::kernel::matmul && constant(call, "experts_used") != 0 && constant(call, "tile_tokens") > 1);
  }
  std::size_t size() const noexcept { return pipelines_.size(); }
  std::uint32_t subgroup_size() const noexcept { return subgroup_.size; }

 private:
  struct key {
    kernels::kernel kernel;
    const shader::expression* activation;
    std::array<std::uint32_t, kernels::max_specialization_constants> values;
    bool few_matrix = false;
    friend bool operator==(const key&, const key&) = default;
  };
  static std::uint32_t constant(const plan::dispatch& call, std::string_view name) { return call.specialization[kernels::interface_of(call.kernel).specialization_index(name)]; }
  static std::uint32_t tokens_of(const plan::dispatch& call) { return call.groups[1] * constant(call, "tile_tokens"); }
  /// How many workgroups (y) share a list of expert_tiles, and how many lists so many rows, 0 being all, take at most.
  static std::uint32_t parts_of(const plan::dispatch& call) { return call.kernel == kernels::kernel::matmul ? 1 : constant(call, "list_tokens") / constant(call, "tile_tokens"); }
  static std::uint32_t lists_of(const plan::dispatch& call, std::uint32_t rows) {
    const std::uint32_t all = call.groups[1] / parts_of(call);
    return rows == 0 ? all : std::min(all, rows * constant(call, "experts_used"));
  }
  /// No rows: not by matrices.
  kernels::few_tile tile_of(const plan::dispatch& call, std::uint32_t rows) const {
    if (!modules_.few_matrix || (call.kernel != kernels::kernel::matmul_few && call.kernel != kernels::kernel::ternary_few)) return {};
    if (lists_tokens(call)) {
      const kernels::few_tile out = kernels::few_matrix_tile(call.kernel, constant(call, "rows"), constant(call, "list_tokens"));
      return out.tokens != 0 && constant(call, "list_tokens") % out.tokens == 0 ? out : kernels::few_tile{};
    }
    return kernels::few_matrix_tile(call.kernel, constant(call, "rows"), rows != 0 ? rows : tokens_of(call));
  }
  key key_of(const plan::dispatch& call, std::uint32_t rows = 0) const {
    key out{call.kernel, call.activation, call.specialization};
    out.values[0] = call.subgroups * subgroup_.size;
    const kernels::interface& face = kernels::interface_of(call.kernel);
    if (const std::size_t width = face.specialization_index("subgroup_width"); width < face.specialization_count()) out.values[width] = subgroup_.size;
    if (const kernels::few_tile by = tile_of(call, rows); by.rows != 0) {
      out.few_matrix = true;
      out.values[0] = by.subgroups * subgroup_.size;
      out.values[face.specialization_index("tile_rows")] = by.rows;
      out.values[face.specialization_index("tile_tokens")] = by.tokens;
    }
    if (call.kernel == kernels::kernel::matmul) {
      const auto constant = [&](std::string_view name) -> std::uint32_t& { return out.values[face.specialization_index(name)]; };
      constexpr std::uint64_t rest = 2048;  // a norm's sums
      if (std::uint32_t& staged = constant("staged"); staged == kernels::staged_where_room)
        staged = kernels::matmul_staged_bytes(static_cast<kernels::codec>(constant("codec")), constant("columns"), constant("tile_tokens")) + rest <= device_.limits().max_shared_memory_bytes ? 1 : 0;
    }
    return out;
  }
  void want(std::span<const plan::dispatch> calls, std::vector<key>& wanted) const {
    for (const auto& call : calls) {
      std::vector<std::uint32_t> passes = rows_of(call);
      passes.push_back(0);
      for (const std::uint32_t rows : passes) {
        const key its = key_of(call, rows);
        if (find(keys_, its) == keys_.size() && find(wanted, its) == wanted.size()) wanted.push_back(its);
      }
    }
  }
  void make(const std::vector<key>& wanted, gpu::pipeline_cache* cache) {
    std::vector<std::array<gpu::specialization, kernels::max_specialization_constants>> constants(wanted.size());
    std::vector<std::vector<std::uint32_t>> gating(wanted.size());
    std::vector<gpu::pipeline_description> descriptions;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const kernels::interface& face = kernels::interface_of(wanted[i].kernel);
      const std::size_t count = face.specialization_count();
      for (std::uint32_t id = 0; id < count; ++id) constants[i][id] = {id, wanted[i].values[id]};
      kernel_modules modules = modules_;
      modules.few_matrix = wanted[i].few_matrix;
      if (wanted[i].activation != nullptr) gating[i] = modules.with(wanted[i].kernel, *wanted[i].activation);
      const auto module = gating[i].empty() ? modules.of(wanted[i].kernel) : std::as_bytes(std::span(gating[i]));
      descriptions.push_back({.name = face.name, .spirv = module, .constants = std::span(constants[i]).first(count),
                              .push_constant_bytes = face.push_bytes(), .required_subgroup_size = subgroup_.required});
    }
    auto made = gpu::build_pipelines(device_, descriptions, cache);
    keys_.insert(keys_.end(), wanted.begin(), wanted.end());
    for (auto& each : made) pipelines_.push_back(std::move(each));
  }
  static std::size_t find(const std::vector<key>& in, const key& wanted) {
    return static_cast<std::size_t>(std::find(in.begin(), in.end(), wanted) - in.begin());
  }

  gpu::device device_;
  kernel_modules modules_;
  subgroup_choice subgroup_;
  std::vector<key> keys_;
  std::vector<gpu::pipeline> pipelines_;
};

}  // namespace intaglio::runtime
