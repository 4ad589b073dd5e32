// SPDX-License-Identifier: MIT
// What waits for the engine: generations and questions for a slot, work between two steps, and the end. Any thread adds
// to it, the engine's thread takes from it. Only the engine's source file includes this.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "between_steps.hpp"
#include "generation.hpp"
#include "metrics.hpp"
#include "token_engine.hpp"

namespace intaglio::serve {

/// What an engine takes at this time.
struct engine_now {
  engine_state state = engine_state::loading;
  bool encodes = false;  ///< its model is an encoder
  bool scores = false;   ///< one with a head for pairs
};

class request_queue {
 public:
  /// @param most generations that wait at most, beside those that find a free slot  @param gauges of the engine
  request_queue(std::size_t most, metrics& counts, engine_gauges& gauges)
      : most_(most), gauges_(gauges), between_(counts) {}

  /// @throws api_error as token_engine::submit() and so on
  void add(const std::vector<std::shared_ptr<generation>>& list, const engine_now& now);
  void add(question asked, const engine_now& now);
  void add(embedding asked, const engine_now& now);
  void add(slot_order asked, const engine_now& now);
  /// From here on nothing is taken.
  void refuse_more();
  /// The engine ends what runs, and does nothing more.
  void end_all();
  /// The engine's thread ends.
  void stop();
  bool must_stop() const;
  /// The engine's thread looks again whether there is work.
  void wake();

  // Functions for the engine's thread:
  /// Waits until something is in the queue or `busy()`, or the end is asked for. Removes what was cancelled.
  /// @return false: the end
  template <class Busy>
  bool wait_for_work(const Busy& busy);
  /// Gives what waits for a slot to `sit(shared_ptr)`, in order, questions first, while `fits(*shared_ptr)`. Both are
  /// called under the mutex.
  template <class Fits, class Sit>
  void seat_waiting(const Fits& fits, const Sit& sit);
  bool some_wait_for_a_slot() const;
  /// Waits. @return whether the end was asked for meanwhile
  bool ends_within(std::chrono::duration<double> time);
  /// Fails all that waits, and whatever still comes until stop().
  void fail_until_stopped();
  between_steps& between() { return between_; }
  /// A generation has ended this long after it came.
  void generation_took(double seconds) { seconds_each_ = 0.8 * seconds_each_ + 0.2 * seconds; }

 private:
  /// Under the mutex.
  void require_room(std::size_t more, const engine_now& now) const;
  static void require_decoder(const engine_now& now);
  template <class Each>
  static Each taken(std::deque<Each>& from);

  const std::size_t most_;
  engine_gauges& gauges_;
  std::atomic<double> seconds_each_{0.5};  ///< of a generation, lately
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<generation>> waiting_;
  std::deque<std::shared_ptr<question>> questions_;
  between_steps between_;
  bool stopping_ = false, refuses_ = false, ends_ = false;
};

inline void request_queue::require_room(std::size_t more, const engine_now& now) const {
  if (refuses_) throw api_error(503, "the server is stopping", {}, "stopping", 5);
  if (now.state == engine_state::loading) throw api_error(503, "the model is being loaded", {}, "loading", 1);
  if (now.state == engine_state::failed)
    throw api_error(503, "the device or the model failed; /health says why", {}, "failed", 30);
  const std::uint64_t slot_count = std::max<std::uint64_t>(gauges_.slot_count, 1), running = gauges_.running,
                      free_slots =
                          slot_count -
                          std::min(running, slot_count);  // what waits only for the end of a step needs no room
  if (waiting_.size() + questions_.size() + between_.size() + more > most_ + free_slots)
    throw api_error(
        429, "the queue is full: expected at most " + std::to_string(most_) + " generations that wait", {},
        "queue_full",
        std::clamp(static_cast<unsigned>(static_cast<double>(waiting_.size() / slot_count) * seconds_each_), 1u, 60u));
}
/// Once the model is loaded.
inline void request_queue::require_decoder(const engine_now& now) {
  if (now.encodes)
    throw api_error(
        400,
        "model: expected a decoder, whose texts have a next token, found an encoder: /v1/embeddings gives its vectors",
        "model", "unsupported_model");
}

inline void request_queue::add(const std::vector<std::shared_ptr<generation>>& list, const engine_now& now) {
  const std::lock_guard lock(mutex_);
  require_room(list.size(), now);
  require_decoder(now);
  waiting_.insert(waiting_.end(), list.begin(), list.end());
  gauges_.waiting = waiting_.size();
  news_.notify_all();
}
inline void request_queue::add(question asked, const engine_now& now) {
  const std::lock_guard lock(mutex_);
  require_room(1, now);
  require_decoder(now);
  questions_.push_back(std::make_shared<question>(std::move(asked)));
  news_.notify_all();
}
inline void request_queue::add(embedding asked, const engine_now& now) {
  const std::lock_guard lock(mutex_);
  require_room(1, now);
  if (!asked.seconds.empty() && !now.scores)
    throw api_error(501,
                    "this model has no head that scores a query and a document together; /v1/embeddings gives vectors "
                    "to compare",
                    {}, "unsupported_endpoint");
  between_.add(std::move(asked));
  news_.notify_all();
}
inline void request_queue::add(slot_order asked, const engine_now& now) {
  const std::lock_guard lock(mutex_);
  require_room(1, now);
  require_decoder(now);
  between_.add(std::move(asked));
  news_.notify_all();
}

inline void request_queue::refuse_more() {
  const std::lock_guard lock(mutex_);
  refuses_ = true;
}
inline void request_queue::end_all() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  news_.notify_all();
}
inline void request_queue::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  news_.notify_all();
}
inline bool request_queue::must_stop() const {
  const std::lock_guard lock(mutex_);
  return stopping_ || ends_;
}
inline void request_queue::wake() {
  const std::lock_guard lock(mutex_);
  news_.notify_all();
}

template <class Busy>
bool request_queue::wait_for_work(const Busy& busy) {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] {
    return stopping_ || ends_ || !waiting_.empty() || !questions_.empty() || between_.size() != 0 || busy();
  });
  if (stopping_ || ends_) return false;
  std::erase_if(waiting_, [](const auto& each) { return each->cancelled(); });
  return true;
}
/// Takes the first one out of a queue before it gets a slot: a generation that fails there does not wait again.
template <class Each>
Each request_queue::taken(std::deque<Each>& from) {
  Each out = std::move(from.front());
  from.pop_front();
  return out;
}
template <class Fits, class Sit>
void request_queue::seat_waiting(const Fits& fits, const Sit& sit) {
  const std::lock_guard lock(mutex_);
  while (!questions_.empty() && fits(*questions_.front())) sit(taken(questions_));
  while (questions_.empty() && !waiting_.empty() && fits(*waiting_.front())) sit(taken(waiting_));
  gauges_.waiting = waiting_.size();
}
inline bool request_queue::some_wait_for_a_slot() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() || !questions_.empty();
}
inline bool request_queue::ends_within(std::chrono::duration<double> time) {
  std::unique_lock lock(mutex_);
  return news_.wait_for(lock, time, [&] { return stopping_ || ends_; });
}
inline void request_queue::fail_until_stopped() {
  std::unique_lock lock(mutex_);
  for (const api_error why(503, "the server is stopping", {}, "stopping", 5);;) {
    for (const auto& each : waiting_) each->fail("the server is stopping");
    waiting_.clear();
    for (const auto& each : questions_) each->refuse(why);
    questions_.clear();
    between_.refuse_all(why);
    if (stopping_) return;
    news_.wait(lock);
  }
}

}  // namespace intaglio::serve
