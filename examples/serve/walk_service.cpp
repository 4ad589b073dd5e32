// SPDX-License-Identifier: MIT
#include "walk_service.hpp"

#include <csignal>

#include "../tool/console.hpp"
#include "api_error.hpp"

namespace intaglio::serve {

walk_service::walk_service(tool::model_options model, std::string index,
                           std::function<void(const std::string&, const std::string&)> log)
    : model_(std::move(model)), index_(std::move(index)), log_(std::move(log)) {
  line_.add([this] { read_index(); });
}

walk_service::~walk_service() {
  line_.ask_to_stop();
  tool::graceful_stop::ask(SIGTERM);  // a download ends
}

void walk_service::submit(std::function<void(tool::walker&)> job) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw api_error(503, "the model cannot be walked: " + failure_, {}, "no_walk", 30);
  }
  if (!ready_) throw api_error(503, "the index of features is being read", {}, "loading", 1);
  line_.add([this, job = std::move(job)] { job(*walker_); });
}

void walk_service::read_index() {
  try {
    walker_ = std::make_unique<tool::walker>(model_, index_);
    ready_ = true;
    log_("walk_ready", index_);
  } catch (const std::exception& problem) {
    if (line_.stops()) return;
    log_("walk_failed", problem.what());
    const std::lock_guard lock(mutex_);
    failure_ = problem.what();
  }
}

}  // namespace intaglio::serve
