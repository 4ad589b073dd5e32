// SPDX-License-Identifier: MIT
// Walks of the model over its index of features, on the CPU (docs/walk.md): one after the other, on a thread of their
// own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "../tool/walker.hpp"
#include "job_line.hpp"

namespace intaglio::serve {

class walk_service {
 public:
  /// @param log receives a message when the walks are ready, or the reason why there are none
  walk_service(tool::model_options model, std::string index,
               std::function<void(const std::string& event, const std::string& text)> log);
  ~walk_service();

  bool ready() const { return ready_; }
  /// Has a job done when its turn comes; what it throws it has to catch. @throws api_error 503: not ready; 429: too
  /// many wait
  void submit(std::function<void(tool::walker&)> job);
  /// What running jobs look at between tokens.
  bool stops() const { return line_.stops(); }

 private:
  void read_index();

  tool::model_options model_;
  std::string index_, failure_;  ///< failure_ under mutex_
  std::function<void(const std::string&, const std::string&)> log_;
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  std::unique_ptr<tool::walker> walker_;
  job_line line_;
};

}  // namespace intaglio::serve
