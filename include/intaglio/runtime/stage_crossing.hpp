// SPDX-License-Identifier: MIT
// The input and output of a stage's passes on one device: asks the earlier stages for passes, and brings rows of the
// stream in and out (stage_rows.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/recorder.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/runtime/pass_runner.hpp"
#include "intaglio/runtime/stage_ends.hpp"
#include "intaglio/runtime/stage_link.hpp"
#include "intaglio/runtime/stage_rows.hpp"

namespace intaglio::runtime {

/// The stages before a runner's own stage: one link asks them for passes, another link brings the rows.
struct stages_before {
  std::shared_ptr<stage_link> asked, given;
  std::size_t room = 1;  ///< number of passes that may be asked for at once
};

/// The ends of a stage's cuts in one runner: brings the rows of its passes, and gives the rows that it computed.
class stage_crossing final : public stage_ends {
 public:
  static constexpr std::size_t slot_count = stage_rows::slot_count;  ///< for rows that leave

  /// @param state of the runner, outlives this  @param before stages before a session's own stage; empty: rows are
  ///   supplied
  /// @error out_of_memory, device_lost
  stage_crossing(const gpu::device& on, const plan::table& of, const gpu::buffer& state, stages_before before = {})
      : device_(on), table_(&of), before_(std::move(before)), rows_(on, of) {
    before_.room = (std::min)(before_.room, slot_count);
    if (before_.asked) make_history(state);
  }

  /// Sets the rows of the next pass, where there are no stages to ask. @param rows outlive the call of before()
  void supply(std::span<const std::byte> rows) noexcept { supplied_ = rows; }
  /// Chooses the memory for the rows of the next pass: one of `slot_count` slots, so that the rows of earlier passes
  /// can be read meanwhile.
  void give_to(std::size_t slot) noexcept { slot_ = slot; }
  /// The rows of the last pass that wrote to a slot, f32 [tokens, hidden_size]. @param end of the pass, which is done
  /// @error device_lost, out_of_memory
  std::span<const std::byte> given(pass_kind kind, std::size_t slot, std::uint32_t tokens,
                                   const gpu::queue_point& end) {
    return rows_.bring(kind, slot, tokens, end);
  }

  void ask(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens) override {
    if (!before_.asked) return;
    std::copy_n(tokens.begin(), (std::min<std::size_t>)(tokens.size(), history_.size() - position),
                history_.begin() + position);
    if (!asked_.empty() && !asked_.front().begun && asked_.front().is(kind, position, tokens)) {
      asked_.front().begun = true;
      return;
    }
    forget();
    send(kind, position, tokens);
    asked_.front().begun = true;
  }
  std::uint32_t ask_ahead(pass_kind kind, std::uint32_t position, std::span<const std::int32_t> tokens,
                          std::uint32_t chunk) override {
    if (!before_.asked || asked_.empty()) return position;
    const std::uint32_t end = position + static_cast<std::uint32_t>(tokens.size());
    std::uint32_t at = (std::max)(position, asked_.back().end());
    while (at < end && asked_.size() < before_.room) {
      const std::uint32_t count = (std::min)(chunk, end - at);
      ids_.assign(tokens.begin() + (at - position), tokens.begin() + (at - position) + count);
      send(kind, at, ids_);
      at += count;
    }
    return at;
  }
  std::size_t before(pass_kind kind, std::size_t box, bool penalised, VkCommandBuffer* into,
                     gpu::queue_point& after) override {
    if (!rows_.takes(kind)) return 0;
    if (before_.asked) {
      receive();
      supplied_ = taken_.bytes;
    }
    into[0] = rows_.enter(kind, box, supplied_, after);
    if (!penalised || !before_.asked) return 1;
    const std::size_t bytes = history_.size() * 4;
    std::memcpy(history_memory_.mapped().data() + box * bytes, history_.data(), bytes);
    into[1] = history_copies_[box].handle();
    return 2;
  }
  std::size_t after(pass_kind kind, VkCommandBuffer* into) override {
    into[0] = rows_.leave(kind, slot_);
    return into[0] == nullptr ? 0 : 1;
  }
  void record(pass_kind kind, const plan::sequence& of, const gpu::buffer& arena) override {
    rows_.record(kind, of, arena);
  }

 private:
  static constexpr std::size_t boxes = stage_rows::boxes;
  /// A pass that the earlier stages were asked for and whose rows were not taken yet.
  struct pass {
    pass_kind kind;
    std::uint32_t position;
    std::vector<std::uint32_t> tokens;
    bool begun;  ///< the runner has begun it
    std::uint32_t end() const { return position + static_cast<std::uint32_t>(tokens.size()); }
    bool is(pass_kind other, std::uint32_t at, std::span<const std::uint32_t> ids) const {
      return kind == other && position == at && std::equal(ids.begin(), ids.end(), tokens.begin(), tokens.end());
    }
  };

  /// The sampler reads tokens of the history, which a stage without an embedding does not write: where it reads them,
  /// all of them are copied.
  void make_history(const gpu::buffer& state) {
    history_.resize(table_->context);
    const std::uint64_t all = plan::row_memory_of(*table_, false).history, bytes = all / boxes;
    history_memory_ = gpu::buffer(device_, all, gpu::placement::host, "the history of a stage");
    for (std::size_t box = 0; box < boxes; ++box) {
      gpu::recorder to(device_, "history of " + model_name(*table_));
      to.copy(history_memory_, box * bytes, state, std::uint64_t{4} * kernels::state::history(table_->max_tokens),
              bytes);
      history_copies_[box] = to.finish();
    }
  }
  void send(pass_kind kind, std::uint32_t position, std::span<const std::uint32_t> tokens) {
    message_.kind = kind;
    message_.position = position;
    message_.count = static_cast<std::uint32_t>(tokens.size());
    message_.hold(std::as_bytes(tokens));
    asked_.push_back({kind, position, {tokens.begin(), tokens.end()}, false});
    if (!before_.asked->put(message_)) refuse_end();
  }
  [[noreturn]] void refuse_end() const {
    throw device_error(device_.label(), "take rows of the stream", "the stages before this one have ended");
  }
  /// Takes the rows or the failure of the oldest pass.
  void take() {
    if (!before_.given->take(taken_)) refuse_end();
    asked_.pop_front();
  }
  void receive() {
    take();
    if (taken_.failure) std::rethrow_exception(std::exchange(taken_.failure, nullptr));
  }
  /// Forgets rows and failures of passes that no caller waits for.
  void forget() {
    while (!asked_.empty()) take();
    taken_.failure = nullptr;
  }

  gpu::device device_;
  const plan::table* table_;
  stages_before before_;
  stage_rows rows_;
  gpu::buffer history_memory_;
  std::array<gpu::recording, boxes> history_copies_;
  std::vector<std::uint32_t> history_, ids_;
  std::deque<pass> asked_;
  stage_message message_, taken_;
  std::span<const std::byte> supplied_;
  std::size_t slot_ = 0;
};

}  // namespace intaglio::runtime
