// SPDX-License-Identifier: MIT
// bench: prompt and decode speed of a model, real or made up, and where the device's time goes.
#include "commands.hpp"
#include "console.hpp"
#include "device_choice.hpp"
#include "engraved_models.hpp"
#include "stream_read.hpp"

#include <intaglio/runtime/executor.hpp>
#include <intaglio/runtime/load_session.hpp>
#include <intaglio/runtime/synthetic_weights.hpp>

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <optional>

namespace intaglio::tool {
namespace {

using clock = std::chrono::steady_clock;
using json = nlohmann::ordered_json;
using runtime::pass_kind;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Mean time of each dispatch of a sequence in the order prologue, one layer, epilogue; the median over some passes.
struct timed_sequence {
  const plan::sequence* of;
  std::vector<const plan::dispatch*> calls;
  std::vector<double> microseconds;
};

/// One model on one device, driven pass by pass.
class bench_run {
 public:
  bench_run(const bench_options& options, const common_options& common) : options_(options) {
    std::optional<io::checkpoint> file;
    const engraved_model* plans = nullptr;
    if (options.synthetic.empty()) plans = &engraved_model_of(file.emplace(open_model(options.model)));
    else plans = &engraved_model_by_name(options.synthetic);
    source_ = file ? file->path() : "random weights";
    device_.emplace(open_device(common));
    table_ = &plans->table(device_->description().type == gpu::device_type::cpu);
    if (options.context >= table_->context)
      throw argument_error("--context", "less than " + std::to_string(table_->context) + " (the context)", std::to_string(options.context));
    const auto start = clock::now();
    cache_.emplace(*device_, gpu::default_cache_folder(), table_->hash);
    progress_bar bar("loading");
    const auto drawn = [&](const runtime::load_progress& at) {
      bar.show(at.bytes_total == 0 ? 0 : static_cast<double>(at.bytes_done) / static_cast<double>(at.bytes_total),
               bytes_text(static_cast<double>(at.bytes_total)));
    };
    auto weights =
        file ? runtime::load_weights(*device_, *table_, *file, {.progress = drawn}) : runtime::synthetic_weights(*device_, *table_);
    run_ = runtime::proven_executor(*device_, *table_, std::move(weights), *cache_, true);
    cache_->store();
    load_seconds_ = seconds_since(start);
  }

  void measure() {
    prompt_ = std::min(std::max(options_.prompt, 1u), table_->context);
    tokens_ = std::min(std::max(options_.tokens, 1u), table_->context - options_.context);
    if (prompt_ != options_.prompt) note("note: prompt of " + std::to_string(prompt_) + " tokens, all that the context takes");
    if (tokens_ != options_.tokens) note("note: " + std::to_string(tokens_) + " tokens decoded, all that the context takes");
    stream_ = stream_read_rate(*device_);
    progress_bar bar("measuring");
    std::vector<double> prompt, decode;
    for (std::uint32_t i = 0; i <= options_.runs; ++i) {  // the first one only warms up
      bar.show(static_cast<double>(i) / (options_.runs + 1.0), "run " + std::to_string(i) + " of " + std::to_string(options_.runs));
      const double one = prompt_seconds(), other = decode_seconds();
      if (i == 0) continue;
      prompt.push_back(prompt_ / one);
      decode.push_back(tokens_ / other);
    }
    prompt_rate_ = median(prompt);
    decode_rate_ = median(decode);
    if (device_->limits().timestamp_bits == 0) return;
    timed_.push_back(timed(pass_kind::decode, table_->decode, 1));
    timed_.push_back(timed(pass_kind::prefill, table_->prefill, std::min(table_->prefill.max_tokens, table_->context - options_.context)));
  }

  void print_report() const {
    print_line(std::string(table_->model) + " (" + printable(source_, 240) + ") on " + device_->label() + ", profile " +
               std::string(table_->profile));
    const auto row = [](const std::string& key, const std::string& value) {
      print_line("  " + key + std::string(key.size() < 22 ? 22 - key.size() : 1, ' ') + value);
    };
    row("prompt", fixed(prompt_rate_, 1) + " tokens/s  (" + std::to_string(prompt_) + " tokens)");
    row("decode",
        fixed(decode_rate_, 1) + " tokens/s  (" + std::to_string(tokens_) + " tokens behind " + std::to_string(options_.context) + ")");
    row("read a token", bytes_text(bytes_per_token()));
    row("bandwidth", fixed(bytes_per_token() * decode_rate_ / 1e9, 2) + " GB/s, " + fixed(percent(), 1) + " % of a streaming read (" +
                         fixed(stream_ / 1e9, 2) + " GB/s)");
    row("load", fixed(load_seconds_, 2) + " s");
    for (const auto& each : timed_) {
      print_line("  device time of one " + std::string(each.of->name) + " pass, by kernel");
      double total = 0;
      const auto kinds = by_kernel(each);
      for (const auto& [kernel, part] : kinds) total += part.microseconds;
      for (const auto& [kernel, part] : kinds)
        row("  " + kernel,
            fixed(part.microseconds, 1) + " us, " + fixed(100 * part.microseconds / std::max(total, 1e-9), 1) + " %, " +
                std::to_string(part.calls) + " dispatches" +
                (part.bytes != 0 ? ", " + fixed(static_cast<double>(part.bytes) / part.microseconds / 1e3, 2) + " GB/s" : ""));
    }
  }

  json report() const {
    json out{{"model", table_->model}, {"source", source_}, {"device", device_->label()}, {"load_ms", load_seconds_ * 1e3}};
    out["plan"] = {{"model", table_->model}, {"profile", table_->profile}, {"hash", std::to_string(table_->hash)}};
    out["prompt"] = {{"tokens", prompt_}, {"tokens_per_second", prompt_rate_}};
    out["decode"] = {{"tokens", tokens_}, {"context", options_.context}, {"tokens_per_second", decode_rate_}};
    out["runs"] = options_.runs;
    out["bytes_per_token"] = bytes_per_token();
    out["gigabytes_per_second"] = bytes_per_token() * decode_rate_ / 1e9;
    out["stream_bytes_per_second"] = stream_;
    out["percent_of_stream"] = percent();
    out["kernels"] = json::array();
    out["sequences"] = json::array();
    for (const auto& each : timed_) {
      for (const auto& [kernel, part] : by_kernel(each))
        out["kernels"].push_back({{"sequence", each.of->name},
                                  {"kernel", kernel},
                                  {"dispatches", part.calls},
                                  {"microseconds", part.microseconds},
                                  {"weight_bytes", part.bytes}});
      json calls = json::array();
      for (std::size_t i = 0; i < each.calls.size(); ++i)
        calls.push_back({{"kernel", kernels::interface_of(each.calls[i]->kernel).name},
                         {"tensors", each.calls[i]->label.view()},
                         {"microseconds", each.microseconds[i]},
                         {"weight_bytes", each.calls[i]->weight_bytes}});
      out["sequences"].push_back({{"name", each.of->name}, {"dispatches", std::move(calls)}});
    }
    return out;
  }

  void require_silence() const { require_no_messages(*device_); }

 private:
  struct kernel_part {
    double microseconds = 0;
    std::uint64_t calls = 0, bytes = 0;
  };
  std::uint64_t times_run(const timed_sequence& of, std::size_t index) const {
    return index >= of.of->prologue.size() && index < of.of->prologue.size() + of.of->period.size() ? of.of->layers : 1;
  }
  std::map<std::string, kernel_part> by_kernel(const timed_sequence& of) const {
    std::map<std::string, kernel_part> out;
    for (std::size_t i = 0; i < of.calls.size(); ++i) {
      auto& part = out[std::string(kernels::interface_of(of.calls[i]->kernel).name)];
      const std::uint64_t times = times_run(of, i);
      part.microseconds += static_cast<double>(times) * of.microseconds[i];
      part.calls += times;
      part.bytes += times * of.calls[i]->weight_bytes;
    }
    return out;
  }

  /// Weights, and the part of the KV cache that a token in the middle of the measured ones reads.
  double bytes_per_token() const {
    const double cache = 2.0 * static_cast<double>(table_->cache_layer_bytes) * table_->config->num_hidden_layers / table_->context;
    return static_cast<double>(table_->decode.weight_bytes()) + cache * (options_.context + tokens_ / 2.0);
  }
  double percent() const { return stream_ > 0 ? 100 * bytes_per_token() * decode_rate_ / stream_ : 0; }

  void stop_on_signal() const {
    if (graceful_stop::received() != 0) throw interrupted(graceful_stop::received());
  }
  double prompt_seconds() {
    const std::vector<std::uint32_t> ids(table_->prefill.max_tokens, 1);
    const auto start = clock::now();
    for (std::uint32_t at = 0; at < prompt_;) {
      const std::uint32_t count = std::min(prompt_ - at, table_->prefill.max_tokens);
      run_->begin(pass_kind::prefill, at, std::span(ids).first(count), {}, 1);
      while (run_->pending()) {
        if (!run_->may_submit()) run_->wait();
        run_->submit(submit_budget_ms, runtime::executor::max_buffers);
      }
      at += count;
      stop_on_signal();
    }
    run_->drain();
    return seconds_since(start);
  }
  double decode_seconds() {
    const std::uint32_t id = 1;
    const std::uint32_t passes = std::max(1u, table_->ring_size / 4);
    const auto start = clock::now();
    run_->begin(pass_kind::decode, options_.context, {&id, 1}, {}, tokens_);
    while (run_->completed() < tokens_) {
      while (run_->may_submit()) run_->submit(submit_budget_ms, passes);
      run_->wait();
      stop_on_signal();
    }
    return seconds_since(start);
  }

  timed_sequence timed(pass_kind kind, const plan::sequence& of, std::uint32_t tokens) {
    timed_sequence out{&of, {}, {}};
    for (const auto part : {of.prologue, of.period, of.epilogue})
      for (const auto& each : part) out.calls.push_back(&each);
    std::vector<std::vector<double>> samples(out.calls.size());
    const std::vector<std::uint32_t> ids(tokens, 1);
    for (int repeat = 0; repeat < 6; ++repeat) {
      std::vector<double> sum(out.calls.size());
      for (const auto& each : run_->measure(kind, options_.context, ids)) {
        const auto index = static_cast<std::size_t>(std::find(out.calls.begin(), out.calls.end(), each.what) - out.calls.begin());
        if (index < sum.size()) sum[index] += each.nanoseconds / 1e3;
      }
      if (repeat == 0) continue;
      for (std::size_t i = 0; i < sum.size(); ++i) samples[i].push_back(sum[i] / static_cast<double>(times_run(out, i)));
    }
    for (auto& each : samples) out.microseconds.push_back(median(std::move(each)));
    return out;
  }

  static constexpr double submit_budget_ms = 250;
  bench_options options_;
  std::string source_;
  std::optional<gpu::device> device_;
  const plan::table* table_ = nullptr;
  std::optional<gpu::pipeline_cache> cache_;
  std::unique_ptr<runtime::executor> run_;
  std::uint32_t prompt_ = 0, tokens_ = 0;
  double load_seconds_ = 0, prompt_rate_ = 0, decode_rate_ = 0, stream_ = 0;
  std::vector<timed_sequence> timed_;
};

}  // namespace

void bench(const bench_options& options, const common_options& common) {
  bench_run run(options, common);
  const graceful_stop guard;
  run.measure();
  if (options.json) print_line(run.report().dump());
  else run.print_report();
  run.require_silence();
}

}  // namespace intaglio::tool
