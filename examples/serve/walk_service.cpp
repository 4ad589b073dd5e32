// SPDX-License-Identifier: MIT
#include "walk_service.hpp"

#include <csignal>

#include "../tool/console.hpp"
#include "api_error.hpp"

namespace intaglio::serve {

walk_service::walk_service(tool::model_options model, std::string index,
                           std::function<void(const std::string&, const std::string&)> log)
    : model_(std::move(model)), index_(std::move(index)), log_(std::move(log)), thread_([this] { answer_waiting(); }) {}

walk_service::~walk_service() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  news_.notify_all();
  tool::graceful_stop::ask(SIGTERM);  // a download ends
  thread_.join();
}

void walk_service::submit(std::function<void(tool::walker&)> job) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw api_error(503, "the model cannot be walked: " + failure_, {}, "no_walk", 30);
  if (!ready_) throw api_error(503, "the index of features is being read", {}, "loading", 1);
  if (waiting_.size() >= most_waiting)
    throw api_error(429, "the queue is full: expected at most " + std::to_string(most_waiting) + " walks that wait", {},
                    "queue_full", 5);
  waiting_.push_back(std::move(job));
  news_.notify_all();
}

void walk_service::answer_waiting() {
  std::unique_ptr<tool::walker> walker;
  try {
    walker = std::make_unique<tool::walker>(model_, index_);
    ready_ = true;
    log_("walk_ready", index_);
  } catch (const std::exception& problem) {
    log_("walk_failed", problem.what());
    const std::lock_guard lock(mutex_);
    failure_ = problem.what();
    return;
  }
  for (std::unique_lock lock(mutex_);;) {
    news_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
    if (stops_) return;
    const auto job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job(*walker);
    lock.lock();
  }
}

}  // namespace intaglio::serve
