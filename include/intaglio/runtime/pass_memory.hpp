// SPDX-License-Identifier: MIT
// Device memory of a session's passes, the mailbox of its jobs, and the addresses that a plan's operands refer to.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "intaglio/gpu/transfer.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/runtime/executor_start.hpp"
#include "intaglio/runtime/kernel_set.hpp"
#include "intaglio/runtime/mailbox.hpp"
#include "intaglio/runtime/recorded_sequence.hpp"
#include "intaglio/runtime/recurrent_memory.hpp"
#include "intaglio/runtime/session_memory.hpp"
#include "intaglio/runtime/trace.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// Memory of the passes of one session.
class pass_memory {
 public:
  static constexpr std::size_t mailboxes = 4;

  const plan::table& table() const noexcept { return *table_; }
  const plan::device_plan& plan() const noexcept { return *plan_; }
  const gpu::device& device() const noexcept { return device_; }
  std::size_t pipelines() const noexcept { return kernels_.size(); }
  std::uint32_t subgroup_size() const noexcept { return kernels_.subgroup_size(); }
  const kernel_set& kernels() const noexcept { return kernels_; }

  /// For saving and restoring what passes wrote, when no pass is on the device: the KV cache, keys and values of each
  /// layer in turn; the state; and the position up to which both are written.
  const placed_items& caches() const noexcept { return caches_; }
  const gpu::buffer& state() const noexcept { return state_; }
  const weight_memory& weights() const noexcept { return weights_; }

  /// The last logits or probe job's logits, f32 [max_tokens, vocab_size]; the job must be done.
  std::span<const float> logits(bool hidden) const {
    const auto all = floats(hidden ? probe_output_ : logits_output_);
    return all.last(std::size_t{table_->logits.max_tokens} * table_->config->vocab_size);
  }
  /// The last probe job's hidden states, f32 [layers + 1, max_tokens, hidden_size].
  std::span<const float> hidden() const {
    return floats(probe_output_)
        .first(std::size_t{table_->config->num_hidden_layers + 1} * table_->logits.max_tokens *
               table_->config->hidden_size);
  }

  /// The token drawn by pass `index` of the job, index < completed().
  std::uint32_t drawn(std::uint32_t index) const { return drawn_word(index % table_->ring_size); }
  /// Number of tokens that the last verify job accepted; the job must be done. They are drawn(0) and on.
  std::uint32_t accepted() const { return drawn_word(table_->ring_size); }
  /// Whether a pass may continue after this number of tokens, which requires the state of recurrent layers there.
  bool has_state_of(std::uint32_t position) const {
    return recurrent_.empty() || recurrent_.positions().kept(position) == position;
  }
  recurrent_memory& recurrent() noexcept { return recurrent_; }

  /// Reads the stream after the last layer of the last prefill pass, from its token `first` on; the job must be done.
  /// @param into f32 [rows, hidden_size]  @error device_lost, out_of_memory
  void read_stream(std::uint32_t first, std::span<float> into) {
    weights_.expect_unchanged();
    gpu::transfer(device_, std::uint64_t{1} << 20)
        .download(arena_, table_->prefill.residual_offset + std::uint64_t{4} * first * table_->config->hidden_size,
                  std::as_writable_bytes(into));
  }

 protected:
  /// Allocates no memory yet. @param decode of the plan's table
  [[gnu::cold]] pass_memory(const gpu::device& on, std::shared_ptr<const plan::device_plan> plan,
                            const plan::sequence& decode, weight_memory weights, kernel_set kernels)
      : device_(on), plan_(std::move(plan)), table_(&plan_->table()), decode_(&decode), weights_(std::move(weights)),
        kernels_(std::move(kernels)) {}
  ~pass_memory() = default;
  pass_memory(const pass_memory&) = delete;
  pass_memory& operator=(const pass_memory&) = delete;

  std::span<std::uint32_t> box_words(std::size_t box) const {
    return mailbox_.words(box * box_bytes_, kernels::state::tokens + table_->max_tokens);
  }
  std::uint32_t drawn_word(std::uint32_t index) const {
    std::uint32_t out = 0;
    std::memcpy(&out, ring_.mapped().data() + std::size_t{4} * index, sizeof out);
    return out;
  }
  static std::span<const float> floats(const gpu::buffer& of) {
    const auto bytes = of.mapped();
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4};
  }

  [[gnu::cold]] void make_memory() {
    arena_ = gpu::buffer(device_, (std::max)(table_->arena_bytes(), std::uint64_t{4}), gpu::placement::device_local,
                         "the arena");
    state_ = gpu::buffer(device_, table_->state_bytes(), gpu::placement::device_local, "the session's state");
    ring_ =
        gpu::buffer(device_, kernels::ring_bytes(table_->ring_size), gpu::placement::readback, "the ring of tokens");
    box_bytes_ = (std::uint64_t{4} * (kernels::state::tokens + table_->max_tokens) + 255) / 256 * 256;
    mailbox_ = mailbox(device_, mailboxes * box_bytes_);
    caches_ =
        place_caches(device_, *table_, "the KV cache", [&](std::uint32_t layer) { return table_->cache_of(layer); });
    addresses_ = addresses_of(arena_, caches_, weights_);
    addresses_.state = state_.address();
    addresses_.ring = ring_.address();
    if (table_->kept_bytes() != 0) recurrent_ = recurrent_memory(device_, *table_);
    addresses_.kept = recurrent_.addresses();
    if (table_->trace.top != 0) {
      trace_ = gpu::buffer(device_, table_->trace.bytes(), gpu::placement::readback, "the trace");
      addresses_.trace = trace_.address();
      traces_.emplace(table_->trace);
    }
    write_arguments();
    for (std::size_t box = 0; box < mailboxes; ++box)
      feeds_[box] =
          mailbox_.feed(device_, model_name(*table_), box * box_bytes_, state_, 0, box_words(box).size_bytes());
  }
  void write_arguments() {
    if (decode_->resident.empty()) return;
    arguments_ = arguments_of(device_, *table_, *decode_, addresses_);
    addresses_.arguments = arguments_.address();
  }

  gpu::device device_;
  std::shared_ptr<const plan::device_plan> plan_;
  const plan::table* table_;      ///< the plan's
  const plan::sequence* decode_;  ///< of the table
  weight_memory weights_;
  kernel_set kernels_;
  gpu::buffer arena_, wide_arena_, long_arena_, state_, ring_, arguments_, trace_, logits_output_, probe_output_;
  std::optional<trace_ring> traces_;
  placed_items caches_;
  recurrent_memory recurrent_;
  address_table addresses_;
  mailbox mailbox_;
  std::uint64_t box_bytes_ = 0;
  std::array<gpu::recording, mailboxes> feeds_;
};

}  // namespace intaglio::runtime
