// SPDX-License-Identifier: MIT
// The common part of sequences with a resident dispatch: it gives their values offsets in the arena, and moves the
// operands of the chain's dispatches before and after the layers to those offsets.
#pragma once

#include <array>
#include <vector>

#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/plan/place.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/plan/resident.hpp"

namespace intaglio::plan {

/// A sequence for one token with a resident dispatch, made from a chain of dispatches.
class one_dispatch {
 public:
  constexpr one_dispatch(const decoder_config& config, const profile& target, std::uint32_t context,
                         std::uint64_t counters_end)
      : config_(config), target_(target), context_(context), counters_end_(counters_end) {}

  std::vector<dispatch> prologue, period, epilogue, resident, resident_long;
  std::uint32_t long_from = 0;
  std::vector<placed_value> values;
  std::vector<operand> arguments;
  std::uint64_t arena_bytes = 0, residual_offset = 0, logits_offset = 0, blank_offset = 0, blank_bytes = 0;

 protected:
  using kernel = kernels::kernel;

  /// Whether a separate dispatch normalises the head's input.
  constexpr bool normalises_first() const { return epilogue[0].kernel == kernel::rms_norm; }
  constexpr bool cooperative() const { return target_.work.layers_subgroups > 1; }

  /// Reserves a value in the arena with an offset for each of `count` layers.
  constexpr operand reserve(std::string_view name, std::uint32_t width, std::uint32_t count) {
    const std::uint64_t stride = aligned(std::uint64_t{4} * width);
    const operand out{region::arena, 0, arena_bytes, stride};
    values.push_back({text<32>{name}, dtype::f32, width, arena_bytes, stride * count, 0,
                      static_cast<std::uint32_t>(prologue.size() + period.size() + epilogue.size())});
    arena_bytes += stride * count;
    return out;
  }

  /// Reserves the values of the dispatches after the layers.
  constexpr void reserve_after() {
    const std::uint32_t layers = config_.num_hidden_layers;
    logits_ = reserve("logits", config_.vocab_size, 1);
    scratch_ =
        reserve("sample scratch", static_cast<std::uint32_t>(kernels::sample_scratch_bytes(config_.vocab_size) / 4), 1);
    if (const std::uint32_t count = constants_of<kernels::sample_kernel>(epilogue.back()).first_count; count != 0) {
      firsts_ = reserve("first tokens", 2 * count, 1);
      if (epilogue[0].kernel == kernel::head_screen) {
        normalised_ = reserve("normalised", config_.hidden_size, 1);
        lowest_ = reserve("lowest of the largest", count, 1);
      }
    }
    if (normalises_first()) normalised_ = reserve("normalised", config_.hidden_size, 1);
    next_ = stream_;
    next_.offset += stream_.layer_stride;
    last_ = stream_;
    last_.offset += layers * stream_.layer_stride;
    last_.layer_stride = logits_.layer_stride = scratch_.layer_stride = 0;
    residual_offset = last_.offset;
    logits_offset = logits_.offset;
  }

  /// Moves an operand and its accesses to another address.
  static constexpr void move(dispatch& d, kernels::push_id id, operand to) {
    operand& from = d[id];
    for (std::size_t i = 0; i < d.access_count; ++i) {
      access& a = d.accesses[i];
      if (a.where == from.where && a.slot == from.slot && a.offset == from.offset)
        a.offset = to.offset, a.layer_stride = to.layer_stride;
    }
    from = to;
  }
  /// The kernels of dispatches after the layers: norms, heads, their bounds and corrections, the sampler.
  using kernels_after =
      kernels::kernel_list<kernels::rms_norm_kernel, kernels::dense_matmul_kernel, kernels::dense_rows_kernel,
                           kernels::matmul_kernel, kernels::head_screen_kernel, kernels::head_rescore_kernel,
                           kernels::gated_kernel, kernels::sample_kernel>;
  /// Where the arena operands of a dispatch after the layers belong, by their index: at the logits, unless a kernel has
  /// another operand.
  constexpr std::array<std::uint64_t, kernels::max_push_constants> offsets_after(kernel which) const {
    std::array<std::uint64_t, kernels::max_push_constants> out{};
    for (std::uint64_t& each : out) each = logits_.offset;
    const auto set = [&](kernels::push_id id, const operand& to) { out[static_cast<std::size_t>(id)] = to.offset; };
    const auto add = [&]<class Kernel>(std::type_identity<Kernel>) {
      constexpr auto at = kernels::push_ids<Kernel>;
      if constexpr (requires { at.input; }) set(at.input, which == kernel::dense_rows ? normalised_ : last_);
      if constexpr (Kernel::id == kernel::rms_norm) set(at.output, normalised_);
      if constexpr (requires { at.firsts; }) set(at.firsts, firsts_);
      if constexpr (requires { at.y; }) set(at.y, normalised_);
      if constexpr (requires { at.lowest; }) set(at.lowest, lowest_);
      if constexpr (requires { at.scratch; }) set(at.scratch, scratch_);
    };
    kernels::visit(which, add, kernels_after{});
    return out;
  }
  /// Moves the arena operands of a dispatch after the layers to this sequence's values.
  constexpr void move_after(dispatch& d) {
    const auto offsets = offsets_after(d.kernel);
    std::array<bool, max_accesses> moved{};
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      operand& from = d.push[i];
      if (from.where != region::arena) continue;
      for (std::size_t k = 0; k < d.access_count; ++k) {
        access& a = d.accesses[k];
        if (moved[k] || a.where != region::arena || a.offset != from.offset) continue;
        a.offset = offsets[i];
        moved[k] = true;
      }
      from.offset = offsets[i];
    }
  }
  const decoder_config& config_;
  const profile& target_;
  std::uint32_t context_, parts_ = 2;
  std::uint64_t counters_end_, layers_bytes_ = 0;
  operand stream_, middle_, query_, attended_, gated_, partials_, logits_, scratch_, firsts_, normalised_, lowest_,
      next_, last_;
  kernels::layers::ffns ffns_;
  /// Operands of an FFN that a block has besides its first one.
  struct further_ffn {
    operand gated, stream;
  };
  std::array<further_ffn, 3> further_;  ///< those before attention, then those after it
};

}  // namespace intaglio::plan
