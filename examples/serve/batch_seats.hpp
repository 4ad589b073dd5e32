// SPDX-License-Identifier: MIT
// The users of the batch's slots, step by step: a waiting generation gets a slot, tokens are drawn and given to their
// generations, and a generation that draws in a form or goes on after the context's end leaves its slot meanwhile.
// Only the engine's thread calls these functions. Only the engine's source file includes this.
#pragma once

#include <intaglio/core/error.hpp>
#include <intaglio/runtime/basic_batch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "form_draws.hpp"
#include "metrics.hpp"
#include "request_queue.hpp"
#include "seat.hpp"
#include "token_engine.hpp"

namespace intaglio::serve {

/// The batch that has the slots, and what its generations get.
struct seated_batch {
  basic_batch* batch = nullptr;
  const language* words = nullptr;
  std::uint32_t context = 0;
  std::uint32_t lookup = 0, drafted = 0;  ///< tokens drafted at most for a pass, by prompt lookup and by a model
};

class batch_seats {
 public:
  batch_seats(request_queue& queue, metrics& counts, engine_gauges& gauges)
      : queue_(queue), counts_(counts), gauges_(gauges) {}

  /// Nobody has a seat of another batch. An empty one: until the next call there is nothing to be seated.
  void use(const seated_batch& of) { on_ = of; }
  /// Generations and questions that have begun, and not ended.
  std::size_t size() const { return seats_.size() + away_.size() + returning_.size(); }
  /// Whether there is something to do.
  bool busy() const;
  /// Returns sessions that drew outside of the batch with their tokens, or ends them.
  void look_after_those_away();
  /// Starts waiting work in order while there are slots and pages; work that had a slot before comes first.
  void seat_those_who_wait();
  /// Draws tokens. @return seconds that the device was busy  @throws what the device throws
  double step();
  /// Fills in the users of the slots.
  void add_running(std::vector<slot_state>& to) const;
  void fail_all(const std::string& why);

 private:
  bool some_have_drawn() const;
  batch_options options_of(const generation& who, std::size_t tokens) const {
    return batch_options_of(who, tokens, on_.context, on_.lookup, on_.drafted);
  }
  bool fits(const question& asked) const { return on_.batch->fits(asked.prompt, 1); }
  bool fits(const generation& who) const {
    return on_.batch->fits(who.prompt(), options_of(who, who.prompt().size()).max_tokens, who.adapter());
  }
  void sit(const std::shared_ptr<question>& asked) {
    sit({.asked = asked}, asked->prompt, {.max_tokens = 1, .keep_logits = true});
  }
  void sit(const std::shared_ptr<generation>& who) {
    sit(first_seat_of(who), who->prompt(), options_of(*who, who->prompt().size()));
  }
  void sit(seat next, std::span<const std::int32_t> prompt, const batch_options& options);
  std::uint32_t tokens_of_step() const;
  void leave_cancelled();
  bool goes_on(seat& of, const batch_token& token);
  void draw_in_form(seat& of, const batch_token& token);
  void take_forms();
  void take_drawn_forms(steady::time_point end);
  bool take_drawn(seat& of);
  void fail(const seat& each, const std::string& why);
  bool take_all(seat& of, const batch_token& token);
  bool take(seat& of, const batch_token& token);
  bool take_token(const seat& of, std::int32_t id);

  static constexpr std::chrono::milliseconds form_moment{10};
  request_queue& queue_;
  metrics& counts_;
  engine_gauges& gauges_;
  seated_batch on_;
  std::vector<seat> seats_, away_;  ///< away: they draw in a form, and have no slot meanwhile
  std::deque<seat> returning_;      ///< have drawn or were shortened, and wait for a slot
  double step_seconds_ = 0;         ///< of a token of the batch, lately
  form_draws draws_{2, [this] { queue_.wake(); }};
};

inline bool batch_seats::some_have_drawn() const {
  return std::any_of(away_.begin(), away_.end(), [&](const seat& each) { return draws_.done(*each.drawing); });
}
inline bool batch_seats::busy() const { return !seats_.empty() || !returning_.empty() || some_have_drawn(); }

inline void batch_seats::look_after_those_away() {
  std::erase_if(returning_, [](const seat& each) { return each.who->cancelled(); });
  std::erase_if(away_, [&](seat& each) {
    if (!draws_.done(*each.drawing)) return false;
    if (!each.who->cancelled() && take_drawn(each)) each.shorten(on_.context), returning_.push_back(std::move(each));
    return true;
  });
}

inline void batch_seats::seat_those_who_wait() {
  while (!returning_.empty()) {
    const auto& who = *returning_.front().who;
    const batch_options options = options_of(who, returning_.front().history.size());
    if (!on_.batch->fits(returning_.front().history, options.max_tokens, who.adapter())) return;
    seat next = std::move(returning_.front());
    returning_.pop_front();
    const std::vector<std::int32_t> all = next.history;
    sit(std::move(next), all, options);
  }
  queue_.seat_waiting([&](const auto& each) { return fits(each); }, [&](const auto& each) { sit(each); });
}
inline void batch_seats::sit(seat next, std::span<const std::int32_t> prompt, const batch_options& options) {
  try {
    if (next.who) next.drafts_before = {next.who->drafted, next.who->accepted};
    next.handle = on_.batch->join(prompt, options);
    seats_.push_back(std::move(next));
  } catch (const argument_error& refused) {
    if (next.who) next.who->fail(refused.what());
    if (next.asked) next.asked->refuse(api_error(400, refused.what()));
  } catch (...) {
    seats_.push_back(std::move(next));  // it ends with the others
    throw;
  }
  gauges_.running = size();
}

/// Number of tokens of a step: after each token the engine looks after sessions that draw on the host or wait.
inline std::uint32_t batch_seats::tokens_of_step() const {
  for (const seat& each : seats_)
    if (each.keeps_logits()) return 1;
  if (queue_.some_wait_for_a_slot() || step_seconds_ <= 0) return 1;
  constexpr double wanted_seconds = 0.01;
  return static_cast<std::uint32_t>(std::clamp(wanted_seconds / step_seconds_, 1.0, 8.0));
}

inline void batch_seats::leave_cancelled() {
  std::erase_if(seats_, [&](const seat& each) {
    const bool gone = each.who && each.who->cancelled();
    if (gone) on_.batch->leave(each.handle);
    return gone;
  });
}
inline double batch_seats::step() {
  leave_cancelled();
  if (seats_.empty()) return 0;
  const std::uint32_t tokens = tokens_of_step();
  const auto start = steady::now();
  const std::span<const batch_token> drawn = on_.batch->step(tokens);
  const double busy = std::chrono::duration<double>(steady::now() - start).count();
  step_seconds_ = busy / tokens;
  counts_.device_busy(busy);
  for (const batch_token& token : drawn) {
    const auto of =
        std::find_if(seats_.begin(), seats_.end(), [&](const seat& each) { return each.handle == token.of; });
    if (of != seats_.end() && !goes_on(*of, token)) seats_.erase(of);  // else: ended with an earlier token of this step
  }
  take_forms();
  return busy;
}
/// @return false: the seat is free
inline bool batch_seats::goes_on(seat& of, const batch_token& token) {
  if (!token.finite) {
    if (of.drawing) of.who->cancel(), draws_.wait({&of.drawing, 1}, std::chrono::hours(1));
    fail(of, "the model's numbers at this position are none: this generation has ended, others go on");
    return false;
  }
  if (of.asked) {
    of.asked->answer(likeliest(*on_.words, on_.batch->logits(token.of), of.asked->top));
    return false;
  }
  if (of.who->has_form()) {
    if (of.who->ids().empty()) of.who->cached_tokens = on_.batch->cached_tokens(token.of);
    draw_in_form(of, token);
    return true;
  }
  if (take_all(of, token)) return true;
  on_.batch->leave(token.of);
  return false;
}

inline void batch_seats::add_running(std::vector<slot_state>& to) const {
  for (const seat& each : seats_) {
    slot_state& of = to[each.handle.slot];
    of.task = each.handle.number;
    if (!each.who) continue;
    of.drawn = static_cast<std::uint32_t>(each.who->ids().size());
    of.max_tokens = each.who->max_tokens(), of.sampling = each.who->sampling();
    of.drafts = on_.lookup != 0 || on_.drafted != 0;
  }
}

inline void batch_seats::draw_in_form(seat& of, const batch_token& token) {
  of.of_device = token.id;
  of.drawing = draws_.start(of.who, on_.batch->logits(token.of), of.history, token.id);
}
/// Draws for sessions whose text follows a form. Each gets a short time; longer draws continue outside of the batch,
/// which does not wait for them. Tokens after right drafts are drawn as long as that time lasts.
inline void batch_seats::take_forms() {
  const auto end = steady::now() + form_moment;
  for (std::vector<std::shared_ptr<form_draws::draw>> drawing;; drawing.clear()) {
    for (const seat& each : seats_)
      if (each.drawing) drawing.push_back(each.drawing);
    if (drawing.empty()) return;
    draws_.wait(drawing, form_moment);
    take_drawn_forms(end);
  }
}
inline void batch_seats::take_drawn_forms(steady::time_point end) {
  std::erase_if(seats_, [&](seat& each) {
    if (!each.drawing) return false;
    each.count(on_.batch->drafts(each.handle));
    if (!draws_.done(*each.drawing)) {
      on_.batch->leave(each.handle);
      away_.push_back(std::move(each));
      return true;
    }
    const bool lives = take_drawn(each);
    if (lives && !each.shorten(on_.context)) {
      if (each.history.back() != each.of_device) on_.batch->set_next(each.handle, each.history.back());
      const auto next = steady::now() < end ? on_.batch->next_drafted(each.handle) : std::nullopt;
      if (next) draw_in_form(each, *next);
      return false;
    }
    on_.batch->leave(each.handle);
    if (lives) returning_.push_back(std::move(each));
    return true;
  });
}

/// @return false: the generation has ended
inline bool batch_seats::take_drawn(seat& of) {
  const auto drawn = std::exchange(of.drawing, nullptr);
  if (!drawn->error.empty()) {
    of.who->fail(drawn->error, drawn->status);
    counts_.failed();
    return false;
  }
  of.history.push_back(drawn->id);
  return take_token(of, drawn->id);
}

/// One ends with an error.
inline void batch_seats::fail(const seat& each, const std::string& why) {
  if (each.who) each.who->fail(why);
  if (each.asked) each.asked->refuse(api_error(503, why, {}, "generation_failed", 1));
  counts_.failed();
}
inline void batch_seats::fail_all(const std::string& why) {
  std::vector<std::shared_ptr<form_draws::draw>> drawing;
  for (const seat& each : away_) each.who->cancel(), drawing.push_back(each.drawing);
  for (const seat& each : seats_)
    if (each.drawing) each.who->cancel(), drawing.push_back(each.drawing);
  draws_.wait(drawing, std::chrono::hours(1));  // a cancelled draw ends at the next byte
  seats_.insert(seats_.end(), away_.begin(), away_.end());
  seats_.insert(seats_.end(), returning_.begin(), returning_.end());
  for (const seat& each : seats_) fail(each, why);
  seats_.clear(), away_.clear(), returning_.clear();
}

/// With what drafts bring after a token that the host drew.
/// @return false: the generation has ended, or waits for a slot to go on
inline bool batch_seats::take_all(seat& of, const batch_token& token) {
  for (std::optional<batch_token> next = token; next; next = on_.batch->next_drafted(token.of))
    if (!take(of, *next)) return false;
  return true;
}
/// @return as take_all
inline bool batch_seats::take(seat& of, const batch_token& token) {
  generation& who = *of.who;
  if (who.ids().empty()) who.cached_tokens = on_.batch->cached_tokens(token.of);
  of.count(on_.batch->drafts(token.of));
  std::int32_t id = token.id;
  if (who.drawn_by_host()) {
    try {
      id = who.draw(on_.batch->logits(token.of), of.history, token.id);
    } catch (const std::exception& problem) {  // the host's: the device and the others are well
      fail(of, problem.what());
      return false;
    }
  }
  if (!of.history.empty()) of.history.push_back(id);
  if (!take_token(of, id)) return false;
  if (of.shorten(on_.context)) return returning_.push_back(std::move(of)), false;
  if (id != token.id) on_.batch->set_next(token.of, id);
  return true;
}

/// @return false: the generation has ended
inline bool batch_seats::take_token(const seat& of, std::int32_t id) {
  generation& who = *of.who;
  const auto before = who.last_token;
  bool lives = false;
  try {
    lives = who.take(id);
  } catch (const std::exception& problem) {
    fail(of, problem.what());
    return false;
  }
  if (who.ids().size() > 1) counts_.token(std::chrono::duration<double>(who.last_token - before).count());
  if (lives) return true;
  counts_.generated(static_cast<std::uint32_t>(who.prompt().size()), who.cached_tokens,
                    static_cast<std::uint32_t>(who.ids().size()),
                    std::chrono::duration<double>(who.first_token - who.arrived).count());
  queue_.generation_took(std::chrono::duration<double>(who.last_token - who.arrived).count());
  return false;
}

}  // namespace intaglio::serve
