// SPDX-License-Identifier: MIT
// What the server has done, in Prometheus' text format.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace intaglio::serve {

/// Times in seconds, counted by upper bounds.
class histogram {
 public:
  void observe(double seconds);
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                     0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};
  std::array<std::uint64_t, bounds.size() + 1> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

/// Time of the device by kernel, in passes of one kind; of those that were timed since it was opened.
struct kernel_seconds {
  std::string pass, kernel;
  double seconds = 0;
};

/// What an engine has and does at the moment. Any thread may write and read.
struct engine_gauges {
  std::atomic<std::uint64_t> running{0}, waiting{0}, weights_bytes{0}, cache_bytes{0}, device_free_bytes{0},
      device_used_bytes{0}, slot_count{0}, page_size{0}, pages{0}, free_pages{0}, waiting_for_pages{0}, ready{0},
      drafted{0}, accepted{0}, ranks{0};

  void set_kernels(std::vector<kernel_seconds> list) {
    const std::lock_guard lock(mutex_);
    kernels_ = std::move(list);
  }
  std::vector<kernel_seconds> kernels() const {
    const std::lock_guard lock(mutex_);
    return kernels_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<kernel_seconds> kernels_;
};

/// An engine's gauges. @param model the label that distinguishes engines; empty: there is one engine
struct labelled_gauges {
  std::string model;
  const engine_gauges* gauges = nullptr;
};

/// Any thread may write and read.
class metrics {
 public:
  void request(const std::string& path, int status, double seconds);
  void generated(std::uint32_t prompt_tokens, std::uint32_t cached_tokens, std::uint32_t completion_tokens,
                 double first_token_seconds);
  /// Between two tokens of a generation.
  void token(double seconds);
  /// While passes were under way.
  void device_busy(double seconds) {
    const std::lock_guard lock(mutex_);
    busy_seconds_ += seconds;
  }
  void cancelled() { cancelled_ += 1; }
  void failed() { failed_ += 1; }
  void restarted() { restarts_ += 1; }

  std::atomic<std::uint64_t> connections{0};

  std::string text(std::span<const labelled_gauges> engines) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  histogram request_seconds_, first_token_seconds_, token_seconds_;
  double busy_seconds_ = 0;
  std::uint64_t prompt_tokens_ = 0, cached_tokens_ = 0, completion_tokens_ = 0;
  std::atomic<std::uint64_t> cancelled_{0}, failed_{0}, restarts_{0};
};

}  // namespace intaglio::serve
