// SPDX-License-Identifier: MIT
// Messages from a stage of a cut plan to the next one: a pass, and the rows of the stream that go into it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "intaglio/runtime/pass_kind.hpp"

namespace intaglio::runtime {

/// A pass over `count` tokens. Payload: u32 [count] of token ids for the first stage, f32 [count, hidden_size] for the
/// others. Of a pass that failed in a stage the failure goes on in its place. Calls of a batch are `words`
/// (batch_calls.hpp), whose payload is rows alone.
struct stage_message {
  pass_kind kind = pass_kind::decode;
  std::uint32_t position = 0, count = 0;
  std::vector<std::byte> payload;
  std::vector<std::uint32_t> words;
  std::exception_ptr failure;
};

/// A way from one stage to the next, used by one thread at each end.
class stage_link {
 public:
  virtual ~stage_link() = default;
  stage_link(const stage_link&) = delete;
  stage_link& operator=(const stage_link&) = delete;

  /// Hands a message over; what is in it afterwards is free for use. Waits while there is no room.
  /// @return false: the link has ended
  virtual bool put(stage_message& message) = 0;
  /// Waits for the next message. @return false: the link has ended
  virtual bool take(stage_message& message) = 0;
  /// Whether take() would not wait: a message is there, or the link has ended.
  virtual bool ready() = 0;
  /// No more messages, in either direction.
  virtual void end() noexcept = 0;

 protected:
  stage_link() = default;
};

/// Between two threads of a process. Buffers go round, so that nothing is allocated once all were in use.
class local_link final : public stage_link {
 public:
  /// @param room messages that wait at most
  explicit local_link(std::size_t room) : waiting_(room) {}

  bool put(stage_message& message) override {
    std::unique_lock own(guard_);
    changed_.wait(own, [&] { return ended_ || count_ < waiting_.size(); });
    if (ended_) return false;
    std::swap(waiting_[(first_ + count_++) % waiting_.size()], message);
    changed_.notify_all();
    return true;
  }
  bool take(stage_message& message) override {
    std::unique_lock own(guard_);
    changed_.wait(own, [&] { return ended_ || count_ != 0; });
    if (ended_) return false;
    std::swap(waiting_[first_], message);
    first_ = (first_ + 1) % waiting_.size();
    --count_;
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
    changed_.notify_all();
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<stage_message> waiting_;
  std::size_t first_ = 0, count_ = 0;
  bool ended_ = false;
};

}  // namespace intaglio::runtime
