// SPDX-License-Identifier: MIT
// Nearest gates for many vectors at once on a device (docs/walk.md). matmul computes the scores, and walk_select keeps
// the nearest gates of each vector on the device, so that only one list a vector is read back.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "intaglio/gpu/memory.hpp"
#include "intaglio/gpu/pipeline.hpp"
#include "intaglio/gpu/queue.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/io/nearest_gates.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/walk.hpp"
#include "intaglio/runtime/device_class.hpp"
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/kernel_proof.hpp"

namespace intaglio::runtime {

/// Searches the gates of one layer at a time; all layers have the same shape. Used by one thread.
class gate_search {
 public:
  /// @param width columns of a gate, a multiple of 4  @param count number of nearest gates, at most `features`
  /// @param batch vectors that are searched at once; more vectors are split
  /// @error argument_error; out_of_memory, device_lost
  gate_search(const gpu::device& on, kernels::codec type, std::uint32_t width, std::uint32_t features,
              std::uint32_t count, std::uint32_t batch = 64)
      : device_(on), type_(type), width_(width), features_(features), count_((std::min)(count, features)),
        batch_(batch), queue_(on) {
    if (!kernels::is_dense(type))
      throw argument_error("gates", "f32, f16 or bf16", std::string(kernels::info(type).name));
    if (width == 0 || width % kernels::column_step(type) != 0)
      throw argument_error("width", "a multiple of " + std::to_string(kernels::column_step(type)),
                           std::to_string(width));
    if (features == 0 || count == 0 || batch == 0)
      throw argument_error("features, count and batch", "at least 1",
                           std::to_string(features) + ", " + std::to_string(count) + ", " + std::to_string(batch));
    const auto bytes = [](std::uint64_t rows, std::uint64_t columns) { return 4 * rows * columns; };
    weight_ = {on, kernels::matmul_weight_bytes(type, features, width), gpu::placement::device_local,
               "a layer's gates"};
    input_ = {on, bytes(batch, width), gpu::placement::shared, "gate inputs"};
    scores_ = {on, bytes(batch, features), gpu::placement::device_local, "gate scores"};
    choice_ = {on, bytes(batch, 2 * std::uint64_t{count_}), gpu::placement::readback, "the nearest gates"};
    state_ = {on, 4 * std::uint64_t{kernels::state::words(batch, 1)}, gpu::placement::shared, "the state of a search"};
    std::memset(state_.mapped().data(), 0, state_.mapped().size());
    make_pipelines();
  }

  std::uint32_t count() const { return count_; }

  /// Loads a layer's gates onto the device, and replaces the previous ones. @param rows [features, width] of the type,
  /// row by row
  void load(std::span<const std::byte> rows) {
    const std::uint64_t row = kernels::file_row_bytes(type_, width_);
    if (rows.size() != row * features_)
      throw argument_error("gates", std::to_string(row * features_) + " bytes", std::to_string(rows.size()));
    gpu::transfer transfer(device_);
    const std::uint64_t group = kernels::matmul_group_bytes(type_, width_);
    const std::span<const std::byte> sources[] = {rows};
    std::vector<std::byte> groups;
    for (std::uint64_t first = 0, all = (features_ + std::uint64_t{3}) / 4; first < all;
         first += groups.size() / group) {
      groups.resize(static_cast<std::size_t>(
          (std::min<std::uint64_t>)(all - first, (std::max<std::uint64_t>)(1, (std::uint64_t{8} << 20) / group)) *
          group));
      kernels::repack_matmul(type_, kernels::row_order::plain(features_), sources, width_, first, groups);
      transfer.upload(weight_, first * group, groups);
    }
    transfer.finish();
    loaded_ = true;
  }

  /// The nearest features of each vector by |score|, the largest first; of equal scores the lowest feature first.
  /// @param x [vectors, width]  @error argument_error: no gates are loaded, values in x or scores that are not finite;
  ///   device_lost
  std::vector<std::vector<reference::scored_feature>> nearest(std::span<const float> x) {
    if (!loaded_) throw argument_error("gates", "a layer's, loaded", "none");
    if (x.size() % width_ != 0)
      throw argument_error("vectors", "of " + std::to_string(width_), std::to_string(x.size()) + " values");
    const std::size_t vectors = x.size() / width_;
    for (std::size_t v = 0; v < vectors; ++v) io::gates::expect_query(x.subspan(v * width_, width_), width_);
    std::vector<std::vector<reference::scored_feature>> out;
    for (std::size_t first = 0; first < vectors; first += batch_) {
      const auto many = static_cast<std::uint32_t>((std::min<std::size_t>)(batch_, vectors - first));
      const auto part = std::as_bytes(x.subspan(first * width_, std::size_t{many} * width_));
      std::ranges::copy(part, input_.mapped().begin());
      std::memcpy(state_.mapped().data() + std::size_t{4} * kernels::state::count, &many, 4);
      run(many);
      for (std::uint32_t v = 0; v < many; ++v) out.push_back(list(v));
    }
    return out;
  }

 private:
  /// Subgroups of a workgroup; both kernels stride over their input.
  static constexpr std::uint32_t subgroups = 4, tile = 8;

  /// @param constants without the workgroup's size
  template <class Kernel>
  gpu::pipeline made(typename Kernel::constants constants) const {
    const subgroup_choice subgroup = choose_subgroup(device_.limits());
    const kernels::kernel_interface& face = kernels::interface_of(Kernel::id);
    constants.workgroup_size = subgroups * subgroup.size;
    kernels::constant_words words{};
    kernels::store(constants, words);
    std::vector<gpu::specialization> values;
    for (std::uint32_t id = 0; id < face.specialization_count(); ++id) values.push_back({id, words[id]});
    return gpu::pipeline(device_, {.name = face.name,
                                   .spirv = modules_of<>(kernels::first_candidate<Kernel>(class_of(device_).offers())),
                                   .constants = values,
                                   .push_constant_bytes = face.push_bytes(),
                                   .required_subgroup_size = subgroup.required});
  }
  void make_pipelines() {
    score_ = made<kernels::matmul_kernel>({.columns = width_,
                                           .rows = features_,
                                           .codec = type_,
                                           .prologue = kernels::prologue::plain,
                                           .epilogue = kernels::epilogue::store,
                                           .tile_tokens = tile,
                                           .head_dim = 4,
                                           .context = 1,
                                           .subgroup_width = choose_subgroup(device_.limits()).size});
    select_ = made<kernels::walk_select_kernel>({.columns = features_, .count = count_});
  }

  void run(std::uint32_t vectors) {
    gpu::recorder commands(device_, "nearest gates");
    kernels::matmul_kernel::push<std::uint64_t> scores{};
    scores.input = input_.address(), scores.weight = weight_.address();
    scores.output = scores_.address(), scores.state = state_.address();
    const std::uint32_t groups =
        (std::min)((features_ + 4 * subgroups - 1) / (4 * subgroups), device_.limits().max_workgroup_count[0]);
    commands.dispatch(score_, std::as_bytes(std::span(&scores, 1)), {groups, (vectors + tile - 1) / tile, 1})
        .full_barrier();
    for (std::uint32_t v = 0; v < vectors; ++v) {
      const kernels::walk_select_kernel::push<std::uint64_t> choice{
          .input = scores_.address() + std::uint64_t{4} * features_ * v,
          .choice = choice_.address() + std::uint64_t{8} * count_ * v,
          .state = state_.address()};
      commands.dispatch(select_, std::as_bytes(std::span(&choice, 1)), {1, 1, 1});
    }
    const gpu::recording recorded = commands.finish();
    const VkCommandBuffer handle = recorded.handle();
    // CPU drivers compile a pipeline when it first runs, which may take long on a busy machine.
    const bool compiles_late = device_.description().type == gpu::device_type::cpu;
    queue_.wait(queue_.submit(std::span(&handle, 1), "nearest gates"),
                compiles_late ? gpu::queue::first_hang_limit : gpu::queue::hang_limit);
  }
  std::vector<reference::scored_feature> list(std::uint32_t vector) const {
    std::vector<std::array<std::uint32_t, 2>> pairs(count_);
    std::memcpy(pairs.data(), choice_.mapped().data() + std::size_t{8} * count_ * vector,
                pairs.size() * sizeof pairs[0]);
    std::vector<reference::scored_feature> out;
    for (const auto& [feature, bits] : pairs) {
      out.push_back({feature, std::bit_cast<float>(bits)});
      if (std::isnan(out.back().score))
        throw argument_error("gates", "numbers", "NaN as the score of feature " + std::to_string(feature));
    }
    std::ranges::sort(out, [](const reference::scored_feature& a, const reference::scored_feature& b) {
      return std::fabs(a.score) != std::fabs(b.score) ? std::fabs(a.score) > std::fabs(b.score) : a.feature < b.feature;
    });
    return out;
  }

  gpu::device device_;
  kernels::codec type_;
  std::uint32_t width_, features_, count_, batch_;
  gpu::buffer weight_, input_, scores_, choice_, state_;
  gpu::pipeline score_, select_;
  gpu::queue queue_;
  bool loaded_ = false;
};

}  // namespace intaglio::runtime
