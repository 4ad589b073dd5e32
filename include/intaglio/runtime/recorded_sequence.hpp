// SPDX-License-Identifier: MIT
// A plan's sequence as command buffers, which are recorded once. Each segment covers some layers; a submission may end
// between segments. Every segment starts with its own barrier, which replaces the plan's barrier in front of its first
// dispatch.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/gpu/recorder.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "intaglio/runtime/pace.hpp"
#include "intaglio/runtime/placement.hpp"
#include "intaglio/runtime/session_handle.hpp"

namespace intaglio::runtime {

/// Device addresses of everything that a plan's operands point into.
struct address_table {
  const gpu::buffer* arena_memory = nullptr;  ///< the buffer of `arena`, for sequences that clear exchange memory
  std::uint64_t arena = 0, state = 0, ring = 0, arguments = 0, trace = 0;
  std::vector<std::uint64_t> keys, values, kept;      ///< by layer
  std::vector<std::uint64_t> pool_keys, pool_values;  ///< keys and values in a batch's pool, by layer
  std::vector<std::uint64_t> weights;                 ///< by weight_index
  std::vector<std::uint32_t> first_weight;            ///< by slot

  std::uint64_t resolve(const plan::operand& what, const plan::table& of, std::uint32_t layer) const {
    switch (what.where) {
      case plan::region::none:
        return 0;
      case plan::region::arena:
        return arena + what.offset + layer * what.layer_stride;
      case plan::region::weight:
        return weights[first_weight[what.slot] + of.copy_of(of.weights[what.slot], layer)] + what.offset;
      case plan::region::keys:
        return keys[layer] + what.offset;
      case plan::region::values:
        return values[layer] + what.offset;
      case plan::region::kept:
        return kept[layer] + what.offset;
      case plan::region::pool_keys:
        return pool_keys[layer] + what.offset;
      case plan::region::pool_values:
        return pool_values[layer] + what.offset;
      case plan::region::state:
        return state + what.offset;
      case plan::region::ring:
        return ring + what.offset;
      case plan::region::arguments:
        return arguments + what.offset;
      case plan::region::trace:
        return trace + what.offset;
    }
    return 0;
  }
};

/// The buffer from which the resident dispatch reads its arguments, which do not fit push constants.
inline gpu::buffer arguments_of(const gpu::device& on, const plan::table& table, const plan::sequence& of,
                                const address_table& addresses) {
  gpu::buffer out(on, of.argument_bytes(), gpu::placement::shared, "the arguments of all layers");
  std::byte* at = out.mapped().data();
  for (std::uint32_t layer = 0; layer < of.layers; ++layer)
    for (const plan::operand& each : of.arguments_of(layer)) {
      const std::uint64_t address = addresses.resolve(each, table, layer);
      std::memcpy(at, &address, sizeof address);
      at += sizeof address;
    }
  return out;
}

/// Where a probing sequence copies the residual stream: f32 [layers + 1, max_tokens, hidden_size], with the embedding's
/// output first. The logits f32 [max_tokens, vocab_size] follow.
struct probe {
  const gpu::buffer* arena = nullptr;
  const gpu::buffer* to = nullptr;
  std::uint64_t state_bytes = 0;  ///< bytes of one hidden state; 0: only logits
  std::uint64_t logits_at = 0;
  std::uint64_t logits_bytes = 0;
};

/// The segments of a sequence and their measured times.
struct recorded_sequence {
  const plan::sequence* plan = nullptr;
  std::vector<gpu::recording> segments;
  std::vector<VkCommandBuffer> handles;
  gpu::recording greedy;                  ///< the last segment of passes that do not sample, where it has its own form
  std::vector<gpu::timestamps> clocks;    ///< one a segment where times are measured, else empty
  std::vector<dispatch_time> dispatches;  ///< in order of recording, where times are measured
  runtime::pace speed;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(segments.size()); }
  /// The commands of a segment. @param draws_nothing for a pass that does not sample, where the last segment has a form
  /// for that
  VkCommandBuffer handle(std::uint32_t segment, bool draws_nothing) const {
    return draws_nothing && segment + 1 == size() ? greedy.handle() : handles[segment];
  }
};

/// Number of layers in a segment. It is small for prompts, whose passes take long, and larger for decode passes, since
/// the two ends of a segment take 4 us on an H200.
inline std::uint32_t layers_per_segment(const plan::sequence& of) {
  return of.max_tokens > 1 && !of.has_sampler ? 1u : (std::max)(1u, of.layers / 10);
}

/// Which forms of the last segment are recorded, where the sampler has several: a form for passes that sample, and the
/// greedy form.
struct sampler_forms {
  bool drawing = true, greedy = false;
  kernels::sample_form draws_by = kernels::sample_form::any;  ///< or interim
};

/// Checks that a pipeline is the one that a dispatch was proven with.
/// @error argument_error: it is another kernel's pipeline, or has another constant
inline void expect_as_proven(const plan::dispatch& call, const gpu::pipeline& kernel) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    throw argument_error("pipeline of " + std::string(call.label.view()), expected, found);
  };
  const kernels::kernel_interface& face = kernels::interface_of(call.kernel);
  if (!plan::is_fitted(call)) refuse("a dispatch that is fitted to the device", "an engraved one");
  if (kernel.name() != face.name) refuse("one of " + std::string(face.name), kernel.name());
  for (const gpu::specialization& each : kernel.constants())
    if (each.value != call.specialization[each.id])
      refuse("constant " + std::to_string(each.id) + " to be " + std::to_string(call.specialization[each.id]),
             std::to_string(each.value));
}

/// The push constants of a dispatch.
struct push_bytes {
  std::array<std::byte, kernels::max_push_constant_bytes> bytes{};
  std::size_t size = 0;
  std::span<const std::byte> all() const { return std::span(bytes).first(size); }
};
/// The push constants of a dispatch for one layer, with the addresses of its operands.
inline push_bytes push_of(const plan::dispatch& call, const plan::table& table, const address_table& addresses,
                          std::uint32_t layer) {
  const kernels::kernel_interface& face = kernels::interface_of(call.kernel);
  push_bytes out;
  out.size = face.push_bytes();
  for (std::size_t i = 0; i < face.push_count(); ++i) {
    const std::uint64_t value = call.push[i].where == plan::region::none
                                    ? kernels::unbound(face.push[i].type)
                                    : addresses.resolve(call.push[i], table, layer);
    std::memcpy(out.bytes.data() + face.push_offset(i), &value, sizeof value);
  }
  return out;
}

/// A dispatch of a segment and the layer that it computes.
struct planned_step {
  const plan::dispatch* call = nullptr;
  std::uint32_t layer = 0;
};
/// The dispatches of a plan's sequence from repetition `first` to `end` - 1, with what is once before and after all.
/// @param form of the sampler
inline std::vector<planned_step> planned_steps(const plan::sequence& of, std::uint32_t first, std::uint32_t end,
                                               kernels::sample_form form) {
  std::vector<planned_step> out;
  const auto add = [&](array_view<const plan::dispatch> part, std::uint32_t layer) {
    for (const plan::dispatch& call : part) out.push_back({&call, layer});
  };
  if (first == 0) add(of.prologue, 0);
  for (std::uint32_t layer = first; layer < end; ++layer) add(of.stretch(layer), layer);
  if (end != of.repeats()) return out;
  add(of.epilogue, 0);
  if (out.empty()) return out;
  if (form == kernels::sample_form::greedy && !of.greedy.empty()) out.back().call = &of.greedy.front();
  if (form == kernels::sample_form::interim && !of.interim.empty()) out.back().call = &of.interim.front();
  return out;
}

/// Checks that a recording runs a plan's dispatches and nothing else: module, constants, workgroups and addresses of
/// each one.
/// @error argument_error naming the dispatch
[[gnu::cold]] inline void expect_recorded(const plan::table& table, const kernel_set& kernels,
                                          const address_table& addresses, array_view<const planned_step> steps,
                                          const gpu::recording& found) {
  const std::span<const std::uint64_t> hashes = found.dispatch_hashes();
  if (hashes.size() != steps.size())
    throw argument_error("recording " + found.name(), std::to_string(steps.size()) + " dispatches",
                         std::to_string(hashes.size()));
  std::array<gpu::specialization, kernels::max_specialization_constants> constants{};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const plan::dispatch& call = *steps[i].call;
    const std::size_t count = kernels::interface_of(call.kernel).specialization_count();
    for (std::uint32_t id = 0; id < count; ++id) constants[id] = {id, call.specialization[id]};
    if (gpu::hash_of_dispatch(kernels.module_hash(call), std::span(constants).first(count), call.groups,
                              push_of(call, table, addresses, steps[i].layer).all()) != hashes[i])
      throw argument_error(
          "recording " + found.name() + ", dispatch " + std::to_string(i),
          "module, constants, workgroups and addresses of " + std::string(call.label.view()) + " as they are planned",
          "others");
  }
}

/// Records a sequence of a plan that is fitted to the device: every dispatch with the module, constants and workgroups
/// that were proven, which is checked once it is recorded (expect_recorded).
/// @param copy null, or where a probing sequence copies its states and logits; needs a chain of dispatches
/// @param measure measures the time of every dispatch
/// @param layers number of layers in a segment, 0: layers_per_segment()
/// @param forms forms of the last segment that are recorded, where the sampler has several; without a form that
///   samples, that segment is empty
/// @error out_of_memory, device_lost; device_error: no timestamps on this device
[[gnu::cold]] inline recorded_sequence record_sequence(const gpu::device& on, const plan::table& table,
                                                       const plan::sequence& of, const kernel_set& kernels,
                                                       const address_table& addresses, const probe* copy = nullptr,
                                                       bool measure = false, std::uint32_t layers = 0,
                                                       sampler_forms forms = {}) {
  return gpu::translated([&] {
    recorded_sequence out;
    out.plan = &of;
    const std::uint32_t repeats = of.repeats(), step = layers != 0 ? layers : layers_per_segment(of);
    const std::uint32_t count = (std::max)(1u, (repeats + step - 1) / step);
    const auto segment = [&](std::uint32_t s, kernels::sample_form form) {
      const std::uint32_t first = s * step, end = (std::min)(repeats, first + step);
      std::size_t dispatches = 0;
      for (std::uint32_t layer = first; layer < end; ++layer) dispatches += of.stretch(layer).size();
      if (s == 0) dispatches += of.prologue.size();
      if (s + 1 == count) dispatches += of.epilogue.size();
      gpu::timestamps* clock = nullptr;
      if (measure) clock = &out.clocks.emplace_back(on, static_cast<std::uint32_t>(dispatches + 1));
      gpu::recorder to(on,
                       std::string(of.name) + " of " + model_name(table) + ", layers " + std::to_string(first) +
                           " to " + std::to_string(end),
                       clock);
      bool fresh = true;  // directly after a barrier
      const auto run = [&](array_view<const plan::dispatch> part, std::uint32_t layer) {
        for (const auto& call : part) {
          if (call.barrier && !fresh) to.barrier();
          fresh = false;
          const gpu::pipeline& kernel = kernels.of(call);
          expect_as_proven(call, kernel);
          to.dispatch(kernel, push_of(call, table, addresses, layer).all(), call.groups);
          if (measure) out.dispatches.push_back({&call, layer, 0});
        }
      };
      const auto keep_state = [&](std::uint32_t index) {
        if (copy == nullptr || copy->state_bytes == 0) return;
        to.full_barrier()
            .copy(*copy->arena, of.residual_offset, *copy->to, index * copy->state_bytes, copy->state_bytes)
            .full_barrier();
        fresh = true;
      };
      if (s == 0) {
        if (of.blank_bytes != 0 && !of.blanks_itself())
          to.fill(*addresses.arena_memory, of.blank_offset, of.blank_bytes, 0xffffffffu);
        run(of.prologue, 0);
        if (of.blank_bytes != 0) {
          to.full_barrier();
          fresh = true;
        }
        keep_state(0);
      }
      for (std::uint32_t layer = first; layer < end; ++layer) {
        run(of.stretch(layer), layer);
        keep_state(layer + 1);
      }
      if (s + 1 == count) {
        const array_view<const plan::dispatch> other = form == kernels::sample_form::greedy    ? of.greedy
                                                       : form == kernels::sample_form::interim ? of.interim
                                                                                               : of.interim.first(0);
        run(of.epilogue.first(of.epilogue.size() - other.size()), 0);
        run(other, 0);
        if (copy != nullptr && copy->logits_bytes != 0)
          to.full_barrier()
              .copy(*copy->arena, of.logits_offset, *copy->to, copy->logits_at, copy->logits_bytes)
              .full_barrier();
      }
      gpu::recording made = to.finish();
      expect_recorded(table, kernels, addresses, planned_steps(of, first, end, form), made);
      return made;
    };
    for (std::uint32_t s = 0; s < count; ++s) {
      const bool last = s + 1 == count;
      out.segments.push_back(!last || forms.drawing ? segment(s, forms.draws_by) : gpu::recording{});
      out.handles.push_back(out.segments.back().handle());
      if (last && forms.greedy) out.greedy = segment(s, kernels::sample_form::greedy);
    }
    return out;
  });
}

/// Records a sequence with a timestamp after every dispatch, in one form: for passes that sample or, with `greedy`,
/// for passes that do not, where the sampler has several forms.
/// @error as record_sequence()
inline recorded_sequence record_timed_sequence(const gpu::device& on, const plan::table& table,
                                               const plan::sequence& of, const kernel_set& kernels,
                                               const address_table& addresses, std::uint32_t layers, bool greedy) {
  recorded_sequence out = record_sequence(on, table, of, kernels, addresses, nullptr, true, layers, {!greedy, greedy});
  if (greedy) {
    out.segments.back() = std::move(out.greedy);
    out.handles.back() = out.segments.back().handle();
  }
  return out;
}

/// Reads the times of the last run of a measured sequence; the run must be done.
inline void read_times(recorded_sequence& of) {
  std::size_t at = 0;
  for (std::size_t s = 0; s < of.segments.size(); ++s) {
    const auto points = of.clocks[s].read(of.segments[s].points());
    for (std::size_t i = 1; i < points.size(); ++i) of.dispatches[at++].nanoseconds = points[i] - points[i - 1];
  }
}

}  // namespace intaglio::runtime
