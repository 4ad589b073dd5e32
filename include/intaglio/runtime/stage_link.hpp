// SPDX-License-Identifier: MIT
// Messages from a stage of a cut plan to the next stage: a pass, and the rows of the stream that it starts with.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/runtime/pass_kind.hpp"
#include "intaglio/runtime/stage_poll.hpp"

namespace intaglio::runtime {

/// A pass over `count` tokens. Bytes: u32 [count] of token ids for the first stage, f32 [count, hidden_size] for the
/// others. If the pass failed in a stage, the failure is passed on instead. Calls of a batch are `words`
/// (batch_calls.hpp), whose bytes are only rows.
struct stage_message {
  pass_kind kind = pass_kind::decode;
  std::uint32_t position = 0, count = 0;
  /// Bytes of the payload, or of memory that the sender keeps until the receiver has begun the pass.
  std::span<const std::byte> bytes;
  std::vector<std::byte> payload;
  std::vector<std::uint32_t> words;
  std::exception_ptr failure;

  /// Copies bytes into the payload.
  void hold(std::span<const std::byte> from) {
    payload.assign(from.begin(), from.end());
    bytes = payload;
  }
};

/// A link from one stage to the next, used by one thread at each end.
class stage_link {
 public:
  virtual ~stage_link() = default;
  stage_link(const stage_link&) = delete;
  stage_link& operator=(const stage_link&) = delete;

  /// Sends a message; its buffers may be reused afterwards. Waits while there is no room.
  /// @return false: the link has ended
  virtual bool put(stage_message& message) = 0;
  /// Waits for the next message. @return false: the link has ended
  virtual bool take(stage_message& message) = 0;
  /// Whether take() would not wait: a message has arrived, or the link has ended.
  virtual bool ready() = 0;
  /// Ends the link in both directions.
  virtual void end() noexcept = 0;

 protected:
  stage_link() = default;
};

/// A link between two threads of a process. Buffers are reused, so that nothing is allocated once all were in use.
class local_link final : public stage_link {
 public:
  /// @param room most messages that wait
  /// @param poll how long take() polls before it sleeps
  explicit local_link(std::size_t room, std::chrono::microseconds poll = {}) : waiting_(room), poll_(poll) {}

  bool put(stage_message& message) override {
    std::unique_lock own(guard_);
    changed_.wait(own, [&] { return ended_ || count_ < waiting_.size(); });
    if (ended_) return false;
    std::swap(waiting_[(first_ + count_++) % waiting_.size()], message);
    there_.store(true, std::memory_order_release);
    changed_.notify_all();
    return true;
  }
  bool take(stage_message& message) override {
    poll_for(poll_, [&] { return there_.load(std::memory_order_acquire); });
    std::unique_lock own(guard_);
    changed_.wait(own, [&] { return ended_ || count_ != 0; });
    if (ended_) return false;
    std::swap(waiting_[first_], message);
    first_ = (first_ + 1) % waiting_.size();
    there_.store(--count_ != 0, std::memory_order_release);
    changed_.notify_all();
    return true;
  }
  bool ready() override {
    const std::lock_guard own(guard_);
    return ended_ || count_ != 0;
  }
  void end() noexcept override {
    const std::lock_guard own(guard_);
    ended_ = true;
    there_.store(true, std::memory_order_release);
    changed_.notify_all();
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<stage_message> waiting_;
  std::chrono::microseconds poll_;
  std::size_t first_ = 0, count_ = 0;
  bool ended_ = false;
  std::atomic<bool> there_{false};  ///< a message waits, or the link has ended
};

}  // namespace intaglio::runtime
