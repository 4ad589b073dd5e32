// SPDX-License-Identifier: MIT
// Device memory of a batch's passes: slots, pages, the caches of a single session, and the mailbox.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/plan/device_plan.hpp"
#include "intaglio/runtime/adapter_choice.hpp"
#include "intaglio/runtime/batch_states.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "intaglio/runtime/mailbox.hpp"
#include "intaglio/runtime/recorded_sequence.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "intaglio/runtime/session_memory.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// The state of a slot that the host writes to the device. A slot with empty `tokens` is vacant.
struct slot_words {
  std::span<const std::int32_t> tokens;  ///< fed or drawn so far; the last is the next pass's input
  std::span<const std::uint32_t> pages;
  std::uint32_t limit = 0;  ///< positions that may be written; at most what the pages hold
  bool running = false;     ///< takes part in passes
  sampling_options sampling;
  adapter_choice adapter{0, 0};
  std::uint32_t before = 0;  ///< kernels::state::before
};

/// The sequence that runs while only one session of a batch decodes: the resident dispatch where the device has it,
/// else the chain of dispatches. Null where a CPU driver would run the chain, whose compilation costs more than it
/// gains, and in a stage of a cut plan.
inline const plan::sequence* one_alone(const plan::device_plan& plan) {
  const plan::table& table = plan.table();
  if (table.model_layers != 0) return nullptr;
  if (!table.resident_decode.resident.empty()) return &table.resident_decode;
  return table.is_for_cpus() ? nullptr : &table.decode;
}

/// The sequence of a single session for passes from plan.long_from() on, where that sequence is not resident; null
/// where the plan has none.
inline const plan::sequence* one_alone_long(const plan::device_plan& plan) {
  const plan::sequence* const alone = one_alone(plan);
  if (alone == nullptr || !alone->resident_long.empty() ||
      plan.table().context <= plan.long_from(!alone->resident.empty()))
    return nullptr;
  return plan.long_decode();
}

/// Memory of the passes of a batch, and the words of its slots. Slots are counted through all groups; each group has
/// its own state.
class batch_memory {
 public:
  const plan::table& table() const noexcept { return *table_; }
  const gpu::device& device() const noexcept { return device_; }
  std::uint32_t subgroup_size() const noexcept { return kernels_.subgroup_size(); }
  /// Moves the weights to another executor. This one may only be destroyed afterwards.
  weight_memory release_weights() { return std::move(weights_); }

  const weight_memory& weights() const noexcept { return weights_; }
  const batch_states& states() const noexcept { return states_; }
  const placed_items& pool() const noexcept { return pool_; }

  /// Sets what a slot is from the next call on. The first token that it draws then is drawn(slot, 0).
  void set(std::uint32_t slot, const slot_words& to) {
    namespace state = kernels::state;
    const std::span<std::uint32_t> words = slot_mailbox(slot);
    std::fill(words.begin(), words.begin() + state::page_table, 0u);
    if (!to.tokens.empty()) {
      words[state::position] = static_cast<std::uint32_t>(to.tokens.size()) - 1;
      words[state::count] = to.running ? 1 : 0;
      words[state::limit] = to.limit;
      words[state::before] = to.before;
      write_sampling(to.sampling, words);
      write_adapter(to.adapter, words);
      words[state::tokens] = static_cast<std::uint32_t>(to.tokens.back());
      std::copy(to.pages.begin(), to.pages.end(), words.begin() + state::page_table);
      std::uint32_t* const history = words.data() + state::page_table + table_->slot_pages();
      if (looks_back(to.sampling))  // a write to the device's memory for each of all tokens
        for (std::size_t i = 0; i < to.tokens.size(); ++i) history[i] = static_cast<std::uint32_t>(to.tokens[i]);
    }
    draws_[slot] = !to.tokens.empty() && draws(to.sampling);
    note_changed(slot);
  }

  /// The token that a slot drew as its index-th since it was last set.
  std::uint32_t drawn(std::uint32_t slot, std::uint32_t index) const {
    std::uint32_t out = 0;
    std::memcpy(&out, ring_.mapped().data() + 4 * (std::size_t{slot} * table_->ring_size + index % table_->ring_size),
                sizeof out);
    return out;
  }

  /// The words of a slot that a stage without a sampler reads.
  struct head_words {
    std::uint32_t position = 0, count = 0, limit = 0, token = 0;
  };
  /// Writes a slot's words in a stage that has no sampler; they have neither sampling options nor a history.
  void set_words(std::uint32_t slot, const head_words& to, std::span<const std::uint32_t> pages) {
    namespace state = kernels::state;
    const std::span<std::uint32_t> words = slot_mailbox(slot);
    std::fill(words.begin(), words.begin() + state::page_table, 0u);
    std::copy(pages.begin(), pages.end(), words.begin() + state::page_table);
    words[state::limit] = to.limit;
    go_on(slot, to);
    draws_[slot] = false;
    note_changed(slot);
  }
  /// Sets what the next pass of a slot feeds; the slot's limit stays. Such a stage copies these words to the device
  /// before each pass.
  void go_on(std::uint32_t slot, const head_words& to) {
    namespace state = kernels::state;
    const std::span<std::uint32_t> words = slot_mailbox(slot);
    words[state::position] = to.position;
    words[state::count] = to.count;
    words[state::tokens] = to.token;
  }

  /// Whether this runs a stage of a cut plan.
  bool is_stage() const noexcept { return table_->model_layers != 0; }
  std::uint32_t groups() const noexcept { return table_->shape.groups; }
  std::uint32_t group_of(std::uint32_t slot) const noexcept { return slot / table_->shape.slot_count; }

 protected:
  [[gnu::cold]] batch_memory(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan,
                             weight_memory weights, kernel_set kernels)
      : device_(on), plan_(std::move(plan)), table_(&plan_->table()), weights_(std::move(weights)),
        kernels_(std::move(kernels)) {}
  ~batch_memory() = default;
  batch_memory(const batch_memory&) = delete;
  batch_memory& operator=(const batch_memory&) = delete;

  static constexpr std::size_t headers = 3;
  static constexpr std::uint64_t header_bytes = 4 * kernels::state::first_slot;
  static constexpr std::uint32_t octets(std::uint32_t positions) {
    return (positions + kernels::cache_octet - 1) / kernels::cache_octet;
  }

  void note_changed(std::uint32_t slot) {
    if (std::find(changed_.begin(), changed_.end(), slot) == changed_.end()) changed_.push_back(slot);
  }
  std::uint64_t slot_bytes() const {
    return std::uint64_t{4} * kernels::state::slot_words(table_->context, table_->shape.page_size);
  }
  std::uint64_t alone_bytes() const {
    return std::uint64_t{4} * kernels::state::words(table_->max_tokens, table_->context);
  }
  /// The offset of a group's state in the whole state.
  std::uint64_t group_at(std::uint32_t group) const { return group * plan::aligned(table_->batch_state_bytes()); }
  std::uint64_t header_at(std::uint32_t group, std::size_t which) const {
    return (group * headers + which) * header_bytes;
  }
  std::uint64_t slot_at(std::uint32_t slot) const { return groups() * headers * header_bytes + slot * slot_bytes(); }
  std::span<std::uint32_t> header(std::uint32_t group, std::size_t which) const {
    return mailbox_.words(header_at(group, which), kernels::state::first_slot);
  }
  std::span<std::uint32_t> slot_mailbox(std::uint32_t slot) const {
    return mailbox_.words(slot_at(slot), static_cast<std::size_t>(slot_bytes() / 4));
  }
  std::uint64_t alone_at() const { return slot_at(table_->shape.all_slots()); }
  std::span<std::uint32_t> alone_mailbox() const {
    return mailbox_.words(alone_at(), static_cast<std::size_t>(alone_bytes() / 4));
  }

  [[gnu::cold]] void make_memory() {
    const plan::table& t = *table_;
    const plan::sequence* const alone = one_alone(*plan_);
    arena_ =
        gpu::buffer(device_,
                    (std::max)({t.prefill.arena_bytes, t.batch.arena_bytes, alone != nullptr ? alone->arena_bytes : 0,
                                runs_resident_ ? t.resident_batch.arena_bytes : 0, std::uint64_t{4}}),
                    gpu::placement::device_local, "the arena");
    state_ = gpu::buffer(device_, group_at(groups() - 1) + t.batch_state_bytes(), gpu::placement::device_local,
                         "the batch's state");
    alone_ = gpu::buffer(device_, t.state_bytes(), gpu::placement::device_local, "the prompt's state");
    ring_ = gpu::buffer(device_, std::uint64_t{4} * t.shape.all_slots() * t.ring_size, gpu::placement::readback,
                        "the rings of tokens");
    mailbox_ = mailbox(device_, alone_at() + alone_bytes());
    caches_ =
        place_caches(device_, t, "the KV cache of a prompt", [&](std::uint32_t layer) { return t.cache_of(layer); });
    if (t.kept_bytes() != 0) states_ = batch_states(device_, t);
    pool_ =
        place_caches(device_, t, "the pool of KV pages", [&](std::uint32_t layer) { return t.pool(t.pattern(layer)); });
  }
  /// Addresses for passes, except the arguments.
  address_table batch_addresses() const {
    address_table out = addresses_of(arena_, caches_, weights_);
    add_caches(pool_, out.pool_keys, out.pool_values);
    out.ring = ring_.address();
    out.state = state_.address();
    return out;
  }
  /// Addresses for prompts and for decode of a single session, except its ring and arguments.
  address_table prompt_addresses() const {
    address_table out = batch_addresses();
    out.state = alone_.address();
    out.kept = states_.of_prompt();
    return out;
  }

  gpu::device device_;
  std::shared_ptr<const plan::device_plan> plan_;
  const plan::table* table_;  ///< the plan's table
  weight_memory weights_;
  kernel_set kernels_;
  gpu::buffer arena_, state_, alone_, ring_, alone_ring_, logits_, alone_arguments_;
  mailbox mailbox_;
  placed_items caches_, pool_;
  batch_states states_;
  std::vector<bool> draws_;             ///< by slot: whether the session samples
  std::vector<std::uint32_t> changed_;  ///< slots whose words are not copied to the device yet
  /// Whether passes run the resident dispatch; whether its results were too far from the chain's.
  bool runs_resident_ = false, differs_ = false;
};

}  // namespace intaglio::runtime
