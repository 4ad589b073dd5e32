// SPDX-License-Identifier: MIT
// States of recurrent layers in a batch's memory: one for each slot, one for the prompt that is fed, and copies that
// sessions share. Recorded commands copy one state to another through one intermediate state. So each state needs two
// recordings, not one for each pair. Plans without recurrent layers have no states.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/recorder.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/clear_memory.hpp"
#include "intaglio/runtime/placement.hpp"

namespace intaglio::runtime {

/// The states of the recurrent layers of a batch's sessions, with copies after prefixes that sessions may share.
class batch_states {
 public:
  /// Names one of the states.
  struct name {
    std::uint32_t index = 0;
  };
  /// Names the state of the prompt that is fed, or of the session that decodes without others.
  static constexpr name alone() { return {0}; }
  static constexpr name slot(std::uint32_t which) { return {1 + which}; }
  /// @param index of the copy in prefix_states
  name copy(std::uint32_t index) const { return {1 + slot_count_ + index}; }

  batch_states() = default;
  [[gnu::cold]] batch_states(const gpu::device& on, const plan::table& of) : slot_count_(of.shape.slot_count) {
    const std::uint32_t layers = of.config->num_hidden_layers;
    std::vector<std::uint64_t> of_layers(layers), whole(2 + of.batch_snapshots(), of.kept_bytes());
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      of_layers[layer] = slot_count_ * of.cache_of(layer).kept_bytes;
    slots_ = place_items(on, of_layers, gpu::placement::device_local, "states of the batch");
    whole_ = place_items(on, whole, gpu::placement::device_local, "copies of states");
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      of_slots_.push_back(slots_.items[layer].address);
      of_prompt_.push_back(whole_.items[0].address + of.kept_offset(layer));
    }
    const std::uint32_t all = 1 + slot_count_ + of.batch_snapshots();
    for (std::uint32_t i = 0; i < all; ++i) {
      const bool of_slot = i >= 1 && i <= slot_count_;
      gpu::recorder in(on, "copy a state of " + model_name(of)), out(on, "copy a state of " + model_name(of));
      if (of_slot)
        for (std::uint32_t layer = 0; layer < layers; ++layer) copy_layer(of, i - 1, layer, in, out);
      else copy_whole(i == 0 ? 0 : i - slot_count_ + 1, of.kept_bytes(), in, out);
      from_.push_back(in.finish());
      to_.push_back(out.finish());
    }
  }

  bool empty() const noexcept { return from_.empty(); }
  /// By layer: the first slot's state, and the prompt's state.
  const std::vector<std::uint64_t>& of_slots() const noexcept { return of_slots_; }
  const std::vector<std::uint64_t>& of_prompt() const noexcept { return of_prompt_; }
  const placed_items& slot_memory() const noexcept { return slots_; }
  const placed_items& other_memory() const noexcept { return whole_; }

  /// The buffer and the offset of a copy. @param index of the copy in prefix_states
  std::pair<const gpu::buffer*, std::uint64_t> memory_of(std::uint32_t index) const {
    const placed_items::item& its = whole_.items[between + 1 + index];
    return {&whole_.buffers[its.buffer], its.offset};
  }

  /// Commands that copy one state to another.
  std::pair<VkCommandBuffer, VkCommandBuffer> copied(name from, name to) const {
    return {from_[from.index].handle(), to_[to.index].handle()};
  }

 private:
  static constexpr std::size_t between = 1;  ///< index of the intermediate state

  void copy_whole(std::size_t item, std::uint64_t bytes, gpu::recorder& in, gpu::recorder& out) const {
    const placed_items::item &its = whole_.items[item], &hub = whole_.items[between];
    in.copy(whole_.buffers[its.buffer], its.offset, whole_.buffers[hub.buffer], hub.offset, bytes);
    out.copy(whole_.buffers[hub.buffer], hub.offset, whole_.buffers[its.buffer], its.offset, bytes);
  }
  void copy_layer(const plan::table& of, std::uint32_t slot, std::uint32_t layer, gpu::recorder& in,
                  gpu::recorder& out) const {
    const std::uint64_t bytes = of.cache_of(layer).kept_bytes;
    if (bytes == 0) return;
    const placed_items::item &its = slots_.items[layer], &hub = whole_.items[between];
    const std::uint64_t own = its.offset + slot * bytes, there = hub.offset + of.kept_offset(layer);
    in.copy(slots_.buffers[its.buffer], own, whole_.buffers[hub.buffer], there, bytes);
    out.copy(whole_.buffers[hub.buffer], there, slots_.buffers[its.buffer], own, bytes);
  }

  std::uint32_t slot_count_ = 0;
  placed_items slots_, whole_;  ///< by layer; the states of the prompt, the intermediate state, copies
  std::vector<std::uint64_t> of_slots_, of_prompt_;
  std::vector<gpu::recording> from_, to_;  ///< by index
};

}  // namespace intaglio::runtime
