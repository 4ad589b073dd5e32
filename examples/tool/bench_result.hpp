// SPDX-License-Identifier: MIT
// What a bench found, and its two forms: a table for people, JSON for scripts.
#pragma once

#include "bench_driver.hpp"

#include <intaglio/runtime/placement.hpp>

#include <nlohmann/json.hpp>

namespace intaglio::tool {

/// From nothing to the first token; milliseconds, each part after the one before.
struct start_times {
  double open_ms = 0;         ///< the device; the same for both starts
  double load_ms = 0;         ///< the weights
  double kernels_ms = 0;      ///< pipelines, their proof where it is due, command buffers
  double first_token_ms = 0;  ///< the prompt and one token
  double total() const { return open_ms + load_ms + kernels_ms + first_token_ms; }
};

/// Two variants, run in turns.
struct ab_result {
  const ab_pair* pair;
  double first_rate, second_rate, first_thread_us, second_thread_us;
};

struct bench_result {
  const plan::table* table = nullptr;
  std::string source, device, codec;
  bool on_cpu = false;
  std::uint32_t prompt = 0, tokens = 0, context = 0, start_prompt = 0;
  std::vector<double> prompt_rates, decode_rates;  ///< tokens/s of each run
  std::vector<decode_cost> costs;
  double stream = 0;  ///< bytes/s of a streaming read
  start_times cold, warm;
  runtime::memory_need need;
  std::uint64_t mapped_bytes = 0;       ///< of weights that are read where the file is mapped
  std::uint64_t host_weight_bytes = 0;  ///< of weights that are read across the bus
  std::uint64_t device_bytes = 0, host_peak_bytes = 0;
  std::vector<timed_sequence> timed;
  std::vector<ab_result> ab;

  /// Weights, and the part of the KV cache that a token in the middle of the measured ones reads.
  double bytes_per_token() const;
  double percent_of_stream() const;
  /// The median of one figure over the runs.
  double cost(double decode_cost::*which) const;

  void print() const;
  nlohmann::ordered_json json() const;
};

}  // namespace intaglio::tool
