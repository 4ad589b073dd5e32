// SPDX-License-Identifier: MIT
#include "form_draws.hpp"

#include <algorithm>
#include <utility>

namespace intaglio::serve {
namespace {

void carry_out(form_draws::draw& one) {
  try {
    one.id = one.who->draw(one.logits, one.history, one.id);
  } catch (const match_limit& limit) {
    one.error = one.who->form_field() + ": " + limit.what() + ": expected a simpler schema";
    one.status = 400;
  } catch (const std::exception& problem) { one.error = problem.what(); }
  one.logits = {};
}

}  // namespace

form_draws::form_draws(std::size_t threads, std::function<void()> wake) : wake_(std::move(wake)) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { draw_waiting(); });
}

form_draws::~form_draws() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  work_.notify_all();
  for (std::thread& each : threads_) each.join();
}

std::shared_ptr<form_draws::draw> form_draws::start(std::shared_ptr<generation> who, std::span<const float> logits,
                                                    std::span<const std::int32_t> history, std::int32_t of_device) {
  const auto out = std::make_shared<draw>();
  out->who = std::move(who);
  out->logits.assign(logits.begin(), logits.end());
  out->history.assign(history.begin(), history.end());
  out->id = of_device;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(out);
  }
  work_.notify_one();
  return out;
}

bool form_draws::done(const draw& one) const {
  const std::lock_guard lock(mutex_);
  return one.done;
}

void form_draws::wait(std::span<const std::shared_ptr<draw>> list, std::chrono::microseconds most) const {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, most,
                 [&] { return std::all_of(list.begin(), list.end(), [](const auto& each) { return each->done; }); });
}

void form_draws::draw_waiting() {
  for (std::unique_lock lock(mutex_);;) {
    work_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
    if (stops_) return;
    const std::shared_ptr<draw> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    carry_out(*next);
    lock.lock();
    next->done = true;
    done_.notify_all();
    lock.unlock();
    wake_();
    lock.lock();
  }
}

}  // namespace intaglio::serve
