// SPDX-License-Identifier: MIT
#include "bench_result.hpp"

#include <intaglio/plan/bytes_moved.hpp>

#include <map>

namespace intaglio::tool {
namespace {

using json_value = nlohmann::ordered_json;

struct kernel_part {
  double microseconds = 0;
  std::uint64_t calls = 0, bytes = 0;
};

std::string kernel_of(const plan::dispatch& call) { return std::string(kernels::interface_of(call.kernel).name); }

/// Bytes that dispatch `index` of a timed pass must move, in one layer.
std::uint64_t moved(const bench_result& of, const timed_sequence& in, std::size_t index) {
  return plan::bytes_moved(*of.table, *in.of, *in.calls[index], of.context, in.tokens);
}

std::map<std::string, kernel_part> by_kernel(const bench_result& of, const timed_sequence& in) {
  std::map<std::string, kernel_part> out;
  for (std::size_t i = 0; i < in.calls.size(); ++i) {
    auto& part = out[kernel_of(*in.calls[i])];
    const std::uint64_t times = in.times_run(i);
    part.microseconds += static_cast<double>(times) * in.microseconds[i];
    part.calls += times;
    part.bytes += times * moved(of, in, i);
  }
  return out;
}

double gigabytes_a_second(std::uint64_t bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1e3 : 0;
}

void row(const std::string& key, const std::string& value) { print_line("  " + padded(key, 22) + value); }

std::string spread(const std::vector<double>& rates) {
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return rates.size() < 2
             ? ""
             : ", " + fixed(*least, 1) + " to " + fixed(*most, 1) + " in " + std::to_string(rates.size()) + " runs";
}

std::string in_words(const start_times& of) {
  return fixed(of.total(), 0) + " ms: device " + fixed(of.open_ms, 0) + ", weights " + fixed(of.load_ms, 0) +
         ", kernels " + fixed(of.kernels_ms, 0) + ", first token " + fixed(of.first_token_ms, 0);
}

json_value json_of(const start_times& of) {
  return {{"first_token_ms", of.total()},
          {"open_ms", of.open_ms},
          {"load_ms", of.load_ms},
          {"kernels_ms", of.kernels_ms},
          {"prompt_and_token_ms", of.first_token_ms}};
}

}  // namespace

double bench_result::bytes_per_token() const {
  const double cache = static_cast<double>(table->cache_bytes()) / table->context;
  return static_cast<double>(table->decode.weight_bytes()) + cache * (context + tokens / 2.0);
}
double bench_result::percent_of_stream() const {
  return stream > 0 ? 100 * bytes_per_token() * median(decode_rates) / stream : 0;
}

double bench_result::cost(double decode_cost::*which) const {
  std::vector<double> values;
  for (const decode_cost& each : costs) values.push_back(each.*which);
  return median(std::move(values));
}

void bench_result::print() const {
  print_line(std::string(table->model) + " (" + printable(source, 240) + ") on " + device + ", profile " +
             std::string(table->profile));
  const double rate = median(decode_rates);
  row("prompt", fixed(median(prompt_rates), 1) + " tokens/s  (" + std::to_string(prompt) + " tokens" +
                    spread(prompt_rates) + ")");
  row("decode", fixed(rate, 1) + " tokens/s  (" + std::to_string(tokens) + " tokens after " + std::to_string(context) +
                    spread(decode_rates) + ")");
  row("read a token", bytes_text(bytes_per_token()));
  row("bandwidth", fixed(bytes_per_token() * rate / 1e9, 2) + " GB/s, " + fixed(percent_of_stream(), 1) +
                       " % of a streaming read (" + fixed(stream / 1e9, 2) + " GB/s)");
  row("host a token", fixed(cost(&decode_cost::thread_us), 1) + " us of CPU in the calling thread, " +
                          fixed(cost(&decode_cost::process_us), 1) + " in the process" +
                          (on_cpu ? ", which is the device too" : ""));
  row("", fixed(cost(&decode_cost::allocations), 2) + " allocations, " + fixed(cost(&decode_cost::submits), 2) +
              " submissions, " + fixed(cost(&decode_cost::waits), 2) + " waits, " +
              fixed(cost(&decode_cost::recorded_commands), 2) + " recorded commands");
  row("cold start", in_words(cold));
  row("warm start", in_words(warm) + " (both after " + std::to_string(start_prompt) + " tokens)");
  row("device memory",
      bytes_text(static_cast<double>(device_bytes)) + ": weights " + bytes_text(static_cast<double>(need.weights)) +
          ", KV cache " + bytes_text(static_cast<double>(need.caches)) + ", arena " +
          bytes_text(static_cast<double>(need.arena)) +
          (mapped_bytes != 0
               ? "; " + bytes_text(static_cast<double>(mapped_bytes)) + " of weights are read where the file is mapped"
               : "") +
          (host_weight_bytes != 0
               ? "; " + bytes_text(static_cast<double>(host_weight_bytes)) + " of weights are in the host's memory"
               : ""));
  row("host memory",
      bytes_text(static_cast<double>(host_peak_bytes)) + " at most" + (on_cpu ? ", the device's among them" : ""));
  for (const ab_result& each : ab)
    row("A/B " + std::string(each.pair->name),
        std::string(each.pair->first.name) + " " + fixed(each.first_rate, 1) + " tokens/s (" +
            fixed(each.first_thread_us, 1) + " us of the host), " + std::string(each.pair->second.name) + " " +
            fixed(each.second_rate, 1) + " (" + fixed(each.second_thread_us, 1) +
            " us): " + fixed(each.second_rate / std::max(each.first_rate, 1e-9), 3) + " times as fast");
  for (const timed_sequence& each : timed) {
    print_line("  device time of one " + std::string(each.of->name) + " pass of " + std::to_string(each.tokens) +
               (each.tokens == 1 ? " token" : " tokens") + ", by kernel; bytes that must be moved");
    double total = 0;
    const auto kinds = by_kernel(*this, each);
    for (const auto& [kernel, part] : kinds) total += part.microseconds;
    for (const auto& [kernel, part] : kinds)
      row("  " + kernel,
          fixed(part.microseconds, 1) + " us, " + fixed(100 * part.microseconds / std::max(total, 1e-9), 1) + " %, " +
              std::to_string(part.calls) + " dispatches, " + bytes_text(static_cast<double>(part.bytes)) + ", " +
              fixed(gigabytes_a_second(part.bytes, part.microseconds), 2) + " GB/s");
    print_line("  and by dispatch");
    for (std::size_t i = 0; i < each.calls.size(); ++i)
      row("  " + padded(std::string(each.calls[i]->label.view()), 34) + "x " + std::to_string(each.times_run(i)),
          padded(fixed(each.microseconds[i], 1) + " us,", 12) + bytes_text(static_cast<double>(moved(*this, each, i))) +
              ", " + fixed(gigabytes_a_second(moved(*this, each, i), each.microseconds[i]), 2) + " GB/s");
  }
}

nlohmann::ordered_json bench_result::json() const {
  const double rate = median(decode_rates);
  json_value out{{"model", table->model},
                 {"source", source},
                 {"codec", codec},
                 {"device", device},
                 {"load_ms", warm.load_ms + warm.kernels_ms}};
  out["plan"] = {{"model", table->model}, {"profile", table->profile}, {"hash", std::to_string(table->hash)}};
  out["prompt"] = {{"tokens", prompt}, {"tokens_per_second", median(prompt_rates)}, {"runs", prompt_rates}};
  out["decode"] = {{"tokens", tokens}, {"context", context}, {"tokens_per_second", rate}, {"runs", decode_rates}};
  out["runs"] = decode_rates.size();
  out["bytes_per_token"] = bytes_per_token();
  out["gigabytes_per_second"] = bytes_per_token() * rate / 1e9;
  out["stream_bytes_per_second"] = stream;
  out["percent_of_stream"] = percent_of_stream();
  out["host_per_token"] = {{"thread_cpu_us", cost(&decode_cost::thread_us)},
                           {"process_cpu_us", cost(&decode_cost::process_us)},
                           {"allocations", cost(&decode_cost::allocations)},
                           {"submits", cost(&decode_cost::submits)},
                           {"waits", cost(&decode_cost::waits)},
                           {"recorded_commands", cost(&decode_cost::recorded_commands)}};
  out["start"] = {{"prompt_tokens", start_prompt}, {"cold", json_of(cold)}, {"warm", json_of(warm)}};
  out["memory"] = {{"device_bytes", device_bytes},        {"weight_bytes", need.weights},
                   {"mapped_weight_bytes", mapped_bytes}, {"host_weight_bytes", host_weight_bytes},
                   {"cache_bytes", need.caches},          {"arena_bytes", need.arena},
                   {"host_peak_bytes", host_peak_bytes},  {"shared", on_cpu}};
  out["ab"] = json_value::array();
  for (const ab_result& each : ab) {
    const auto one = [](std::string_view name, double tokens_per_second, double thread_us) {
      return json_value{{"name", name}, {"tokens_per_second", tokens_per_second}, {"thread_cpu_us", thread_us}};
    };
    out["ab"].push_back({{"pair", each.pair->name},
                         {"first", one(each.pair->first.name, each.first_rate, each.first_thread_us)},
                         {"second", one(each.pair->second.name, each.second_rate, each.second_thread_us)},
                         {"second_to_first", each.second_rate / std::max(each.first_rate, 1e-9)}});
  }
  out["kernels"] = json_value::array();
  out["sequences"] = json_value::array();
  for (const timed_sequence& each : timed) {
    for (const auto& [kernel, part] : by_kernel(*this, each))
      out["kernels"].push_back({{"sequence", each.of->name},
                                {"kernel", kernel},
                                {"dispatches", part.calls},
                                {"microseconds", part.microseconds},
                                {"bytes", part.bytes}});
    json_value calls = json_value::array();
    for (std::size_t i = 0; i < each.calls.size(); ++i)
      calls.push_back({{"kernel", kernel_of(*each.calls[i])},
                       {"tensors", each.calls[i]->label.view()},
                       {"times", each.times_run(i)},
                       {"microseconds", each.microseconds[i]},
                       {"weight_bytes", each.calls[i]->weight_bytes},
                       {"bytes", moved(*this, each, i)}});
    out["sequences"].push_back({{"name", each.of->name}, {"tokens", each.tokens}, {"dispatches", std::move(calls)}});
  }
  return out;
}

}  // namespace intaglio::tool
