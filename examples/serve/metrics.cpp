// SPDX-License-Identifier: MIT
#include "metrics.hpp"

#include <algorithm>
#include <charconv>

namespace intaglio::serve {
namespace {

std::string decimal_text(double value) {
  std::array<char, 40> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}
std::string head(const std::string& name, const std::string& help, const char* type) {
  return "# HELP " + name + ' ' + help + "\n# TYPE " + name + ' ' + type + '\n';
}
std::string single(const std::string& name, const std::string& help, const char* type, std::uint64_t value) {
  return head(name, help, type) + name + ' ' + std::to_string(value) + '\n';
}

/// model="NAME", with what the format asks to be escaped.
std::string label_of(const std::string& model) {
  std::string out = "model=\"";
  for (const char each : model) {
    if (each == '"' || each == '\\') out += '\\';
    if (each == '\n') out += "\\n";
    else out += each;
  }
  return out + '"';
}

struct gauge {
  const char *name, *help;
  std::atomic<std::uint64_t> engine_gauges::*value;
};
constexpr std::array engine_gauge_list{
    gauge{"intaglio_running", "Generations on the device.", &engine_gauges::running},
    gauge{"intaglio_queue", "Generations that wait.", &engine_gauges::waiting},
    gauge{"intaglio_ready", "1 when tokens have been generated and the device is well.", &engine_gauges::ready},
    gauge{"intaglio_weights_bytes", "Weights in the device's memory.", &engine_gauges::weights_bytes},
    gauge{"intaglio_kv_cache_bytes", "KV cache in the device's memory.", &engine_gauges::cache_bytes},
    gauge{"intaglio_slots", "Generations that can run at once.", &engine_gauges::slot_count},
    gauge{"intaglio_kv_page_positions", "Positions of a page of the KV cache.", &engine_gauges::page_size},
    gauge{"intaglio_kv_pages", "Pages of the KV cache.", &engine_gauges::pages},
    gauge{"intaglio_kv_pages_free", "Pages that no generation uses; they may still hold prompts to share.",
          &engine_gauges::free_pages},
    gauge{"intaglio_waiting_for_pages", "Generations that gave their pages to earlier ones and wait for others.",
          &engine_gauges::waiting_for_pages},
    gauge{"intaglio_drafted_tokens", "Tokens that were drafted since the model was loaded.", &engine_gauges::drafted},
    gauge{"intaglio_accepted_tokens", "Drafted tokens that were drawn.", &engine_gauges::accepted},
    gauge{"intaglio_ranks", "Ranks of MPI that compute; 0 without --mpi.", &engine_gauges::ranks},
    gauge{"intaglio_device_free_bytes", "Memory that the device has left, as its driver reports.",
          &engine_gauges::device_free_bytes},
    gauge{"intaglio_device_used_bytes",
          "Memory of the device that this process has, as its driver reports; 0 where it does not.",
          &engine_gauges::device_used_bytes}};

}  // namespace

void histogram::observe(double seconds) {
  counts_[static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin())] += 1;
  count_ += 1;
  sum_ += seconds;
}

std::string histogram::text(const std::string& name, const std::string& help) const {
  std::string out = head(name, help, "histogram");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    below += counts_[i];
    out += name + "_bucket{le=\"" + decimal_text(bounds[i]) + "\"} " + std::to_string(below) + '\n';
  }
  out += name + "_bucket{le=\"+Inf\"} " + std::to_string(count_) + '\n';
  return out + name + "_sum " + decimal_text(sum_) + '\n' + name + "_count " + std::to_string(count_) + '\n';
}

void metrics::request(const std::string& path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  requests_[{path, status}] += 1;
  request_seconds_.observe(seconds);
}

void metrics::generated(std::uint32_t prompt_tokens, std::uint32_t cached_tokens, std::uint32_t completion_tokens,
                        double first_token_seconds) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += prompt_tokens;
  cached_tokens_ += cached_tokens;
  completion_tokens_ += completion_tokens;
  if (completion_tokens != 0) first_token_seconds_.observe(first_token_seconds);
}

void metrics::token(double seconds) {
  const std::lock_guard lock(mutex_);
  token_seconds_.observe(seconds);
}

std::string metrics::text(std::span<const labelled_gauges> engines) const {
  const std::lock_guard lock(mutex_);
  std::string out = head("intaglio_requests_total", "Requests answered, by path and status.", "counter");
  for (const auto& [key, count] : requests_)
    out += "intaglio_requests_total{path=\"" + key.first + "\",status=\"" + std::to_string(key.second) + "\"} " +
           std::to_string(count) + '\n';
  out += request_seconds_.text("intaglio_request_seconds", "Time from a request's last byte to its answer's.");
  out += first_token_seconds_.text("intaglio_first_token_seconds", "Time from a request to its first token.");
  out += token_seconds_.text("intaglio_token_seconds", "Time between two tokens of a generation.");
  out += single("intaglio_prompt_tokens_total", "Tokens of prompts.", "counter", prompt_tokens_);
  out += single("intaglio_cached_tokens_total", "Tokens of prompts that were in the cache already.", "counter",
                cached_tokens_);
  out += single("intaglio_completion_tokens_total", "Tokens generated.", "counter", completion_tokens_);
  out += head(
      "intaglio_kernel_seconds_total",
      "Time on the device by kernel, of the passes that were timed: one in 128 that draw tokens, one in 16 of prompts.",
      "counter");
  for (const labelled_gauges& of : engines)
    for (const kernel_seconds& each : of.gauges->kernels())
      out += "intaglio_kernel_seconds_total{" + (of.model.empty() ? "" : label_of(of.model) + ",") + "pass=\"" +
             each.pass + "\",kernel=\"" + each.kernel + "\"} " + decimal_text(each.seconds) + '\n';
  out += head("intaglio_device_busy_seconds_total", "Time while passes of the model were under way.", "counter") +
         "intaglio_device_busy_seconds_total " + decimal_text(busy_seconds_) + '\n';
  out += single("intaglio_cancelled_total", "Generations whose client went away.", "counter", cancelled_);
  out += single("intaglio_failed_total", "Generations that ended with an error.", "counter", failed_);
  out += single("intaglio_device_restarts_total", "Times the device was opened anew after it failed.", "counter",
                restarts_);
  out += single("intaglio_connections", "Connections open.", "gauge", connections);
  for (const gauge& each : engine_gauge_list) {
    out += head(each.name, each.help, "gauge");
    for (const labelled_gauges& of : engines)
      out += std::string(each.name) + (of.model.empty() ? "" : '{' + label_of(of.model) + '}') + ' ' +
             std::to_string((of.gauges->*each.value).load()) + '\n';
  }
  return out;
}

}  // namespace intaglio::serve
