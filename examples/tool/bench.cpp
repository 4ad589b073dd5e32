// SPDX-License-Identifier: MIT
// bench: prompt and decode speed of a model, real or made up, what the host does meanwhile, and where the device's time
// goes.
#include "bench_cut.hpp"
#include "bench_result.hpp"
#include "commands.hpp"
#include "device_choice.hpp"
#include "engraved_models.hpp"
#include "known_models.hpp"
#include "model_file.hpp"
#include "plan_page.hpp"
#include "stream_read.hpp"

#include <intaglio/io/atomic_file.hpp>
#include <intaglio/platform/facts.hpp>
#include <intaglio/platform/files.hpp>
#include <intaglio/platform/path_text.hpp>
#include <intaglio/platform/program.hpp>
#include <intaglio/runtime/load_session.hpp>
#include <intaglio/runtime/synthetic_weights.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string_view>
#include <utility>

namespace intaglio::tool {
namespace {

using clock = std::chrono::steady_clock;
using runtime::pass_kind;

/// A folder that goes with the bench: its pipeline cache and the driver's, empty at the cold start.
class own_folder {
 public:
  own_folder() {
    std::error_code failure;
    path_ = (std::filesystem::temp_directory_path(failure) / "intaglio-bench").string();
    if (failure || !platform::make_private_folder(path_))
      throw file_error(path_, std::nullopt, "cannot make the folder of the pipeline cache");
  }
  ~own_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(platform::path_of(path_), ignored);
  }
  own_folder(const own_folder&) = delete;
  own_folder& operator=(const own_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// One model on one device.
class bench_run {
 public:
  bench_run(const bench_options& options, const common_options& common) : options_(options) {
    // A driver's own cache of other runs would make the cold start a warm one.
    for (const char* const name : {"MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH"})
      platform::set_environment(name, folder_.path());
    const cache_choice cache = cache_of(options.positions, options.model.cache_type);
    plans_ = options.synthetic.empty()
                 ? &engraved_model_of(file_.emplace(open_model(options.model)), cache, options.codec)
                 : &engraved_model_by_name(options.synthetic, options.codec, cache);
    require_decoder(*plans_);
    if (file_) judge_codecs(*file_, *plans_, options.codec);
    if (options.relu_zeros && plans_->config().hidden_act != activation::relu_squared)
      throw argument_error("--relu-zeros", "a model whose gate is a ReLU",
                           std::string(plans_->name) + ", whose gate is not");
    const auto start = clock::now();
    device_.emplace(open_device(common));
    out_.cold.open_ms = out_.warm.open_ms = seconds_since(start) * 1e3;
    out_.on_cpu = device_->description().type == gpu::device_type::cpu;
    out_.table = &plans_->table(runtime::class_of(*device_));
    const plan::table& table = *out_.table;
    out_.codec = options.synthetic.empty() ? ""
                 : !options.codec.empty()  ? options.codec
                                           : std::string(name(layer_codec(table).value_or(dtype::i2_s)));
    out_.source = file_ ? file_->path() : "random weights";
    out_.device = device_->label();
    out_.need = runtime::needed_memory(table);
    out_.context = options.context;
    if (options.context >= table.context)
      throw argument_error("--context", "less than " + std::to_string(table.context) + " (the context)",
                           std::to_string(options.context));
    out_.prompt = std::min(std::max(options.prompt, 1u), table.context);
    out_.tokens = std::min(std::max(options.tokens, 1u), table.context - options.context);
    out_.start_prompt = std::min(out_.prompt, 16u);
    if (out_.prompt != options.prompt)
      note("note: prompt of " + std::to_string(out_.prompt) + " tokens, all that the context takes");
    if (out_.tokens != options.tokens)
      note("note: " + std::to_string(out_.tokens) + " tokens decoded, all that the context takes");
  }

  void measure() {
    start(out_.cold, "cold start");
    run_.reset();
    print_note("the rest is a warm start and " + std::to_string(options_.runs + 1) + " runs of " +
               std::to_string(out_.prompt) + " tokens of a prompt and " + std::to_string(out_.tokens) +
               " decoded ones (-p, -n, -r)");
    start(out_.warm, "warm start");
    out_.device_bytes = device_->counters().allocated_bytes - out_.host_weight_bytes;
    progress_bar bar("measuring");
    for (std::uint32_t i = 0; i <= options_.runs; ++i) {  // the first one only warms up
      bar.show(static_cast<double>(i) / (options_.runs + 1.0),
               "run " + std::to_string(i) + " of " + std::to_string(options_.runs));
      const double prompt_seconds = run_->prompt_seconds(out_.prompt, options_.chunk);
      const decode_cost decoded = run_->decode(out_.context, out_.tokens);
      print_note("run " + std::to_string(i) + " of " + std::to_string(options_.runs) +
                 (i == 0 ? ", which only warms up: prompt " : ": prompt ") + rate_text(out_.prompt / prompt_seconds) +
                 ", decode " + rate_text(out_.tokens / decoded.seconds));
      if (i == 0) continue;
      out_.prompt_rates.push_back(out_.prompt / prompt_seconds);
      out_.decode_rates.push_back(out_.tokens / decoded.seconds);
      out_.costs.push_back(decoded);
    }
    // Measured after the runs: seconds after a model was freed an H200 read at 0.4 to 0.9 of its rate.
    out_.stream = stream_read_rate(*device_);
    for (const std::string& each : options_.ab)
      for (const ab_pair& pair : ab_pairs)
        if (pair.name == each) out_.ab.push_back(compare(pair));
    out_.host_peak_bytes = platform::memory_of_process().most;
    if (device_->limits().timestamp_bits == 0) return;
    const plan::table& table = *out_.table;
    out_.timed.push_back(run_->timed(pass_kind::decode, out_.context, 1));
    out_.timed.push_back(run_->timed(pass_kind::prefill, out_.context,
                                     std::min(table.prefill.max_tokens, table.context - out_.context)));
  }

  void report() const {
    if (!options_.html.empty()) {
      std::vector<measured_times> times;
      for (const timed_sequence& each : out_.timed)
        times.push_back({std::string(each.of->name), each.microseconds, out_.stream, out_.device});
      const std::string page = plan_page(*out_.table, out_.table->model, std::move(times)).text();
      io::atomic_file file(platform::path_of(options_.html));
      file.write(std::as_bytes(std::span(page)));
      file.commit();
      note("wrote " + printable(options_.html, 240));
    }
    if (options_.json) print_line(out_.json().dump());
    else out_.print();
    require_no_messages(*device_);
  }
  std::string json_text() const {
    require_no_messages(*device_);
    return out_.json().dump();
  }

 private:
  /// Everything from the weights to the first token, with what the folder holds of pipelines.
  void start(start_times& out, const char* label) {
    const plan::table& table = *out_.table;
    auto at = clock::now();
    const auto lap = [&] {
      const double ms = seconds_since(at) * 1e3;
      at = clock::now();
      return ms;
    };
    gpu::pipeline_cache cache(*device_, folder_.path(), table.hash);
    progress_bar bar(label);
    const auto drawn = [&](const runtime::load_progress& done) {
      bar.show(done.bytes_total == 0 ? 0 : static_cast<double>(done.bytes_done) / static_cast<double>(done.bytes_total),
               bytes_text(static_cast<double>(done.bytes_total)));
    };
    runtime::pipelines_ahead pipelines = runtime::begin_pipelines(*device_, table, cache);
    auto weights = load_weights(drawn);
    out_.mapped_bytes = weights.mapped_bytes;
    out_.host_weight_bytes = weights.host_bytes;
    out_.need = runtime::needed_memory(
        table, table.weight_bytes() - std::min(table.weight_bytes(), weights.mapped_bytes + weights.host_bytes));
    out.load_ms = lap();
    if (out_.on_cpu && table.weight_bytes() > (std::uint64_t{1} << 27)) {
      note(std::string(label) +
           ": compiling and proving the kernels of a large model, on a CPU driver a matter of minutes");
      show_notes();
    }
    auto proven = runtime::proven_executor(*device_, table, std::move(weights), cache, true, &runtime::modules_of<>,
                                           std::move(pipelines));
    const std::size_t kernels = proven->pipelines();
    run_.emplace(std::move(proven));
    out.kernels_ms = lap();
    run_->prompt_seconds(out_.start_prompt);
    run_->decode(std::min(out_.start_prompt, table.context - 1), 1);
    out.first_token_ms = lap();
    run_->complete();
    cache.store();
    print_note(std::string(label) + ": weights " + seconds_text(out.load_ms) + ", " + std::to_string(kernels) +
               " kernels compiled and proven in " + seconds_text(out.kernels_ms) + ", " +
               std::to_string(out_.start_prompt) + " tokens and one in " + seconds_text(out.first_token_ms));
  }

  /// Where a measurement takes long, as on CPU drivers, it says what it has done, at once.
  void print_note(const std::string& done) const {
    if (seconds_since(begin_) < 10) return;
    note(done);
    show_notes();
  }
  static std::string rate_text(double rate) { return number_text(static_cast<float>(rate)) + " tokens/s"; }
  static std::string seconds_text(double ms) { return std::to_string(static_cast<long>(ms / 1e3 + 0.5)) + " s"; }

  runtime::weight_memory load_weights(const runtime::load_callback& progress) const {
    const plan::table& table = *out_.table;
    constexpr std::array<std::pair<std::string_view, runtime::weight_storage>, 4> storages{
        {{"automatic", runtime::weight_storage::automatic},
         {"copied", runtime::weight_storage::copied},
         {"mapped", runtime::weight_storage::mapped},
         {"features_mapped", runtime::weight_storage::features_mapped}}};
    const auto storage = std::find_if(storages.begin(), storages.end(),
                                      [&](const auto& each) { return each.first == options_.storage; });
    return file_ ? runtime::load_weights(
                       *device_, table, *file_,
                       {.progress = progress, .storage = storage->second, .budget = options_.model.weight_budget})
                 : runtime::synthetic_weights(
                       *device_, table, {.relu_zeros = options_.relu_zeros, .budget = options_.model.weight_budget});
  }

  /// Another executor, with weights of its own.
  /// @error argument_error: not of this model or device; device_error: a kernel of it differs from the reference
  bench_driver driver_apart(const ab_pair& pair, const decode_mode& mode) {
    return mode.chain ? chain_driver(pair) : planned_driver(pair, mode);
  }
  bench_driver planned_driver(const ab_pair& pair, const decode_mode& mode) {
    const std::string option = "--ab " + std::string(pair.name);
    if (mode.screened && out_.on_cpu) throw argument_error(option, "a GPU", device_->label());
    const plan::profile& target = mode.screened               ? plan::profiles::screened
                                  : out_.table->is_for_cpus() ? plan::profiles::cpu
                                                              : plan::profiles::portable;
    const plan::table& table = apart_.emplace_back(plans_->planned(target, {.walk = mode.walk})).table();
    if (mode.screened && table.hash == out_.table->hash)
      throw argument_error(option, "a head in f32, f16 or bf16", "one of blocks");
    auto weights = file_
                       ? runtime::load_weights(*device_, table, *file_, {})
                       : runtime::synthetic_weights(*device_, table, {.relu_zeros = options_.relu_zeros, .budget = {}});
    auto run = std::make_unique<runtime::executor>(*device_, table, std::move(weights),
                                                   runtime::usable_classes(*device_).front(), nullptr);
    if (const auto fault = run->prove(); !fault.kernel.empty()) runtime::refuse(*device_, fault);
    return bench_driver(std::move(run));
  }
  bench_driver chain_driver(const ab_pair& pair) const {
    if (!run_->resident())
      throw argument_error("--ab " + std::string(pair.name), "a device that decodes by the resident dispatch",
                           device_->label() + ", which runs the chain of dispatches");
    auto chain =
        std::make_unique<runtime::executor>(*device_, *out_.table, load_weights({}),
                                            runtime::usable_classes(*device_).front().without_residency(), nullptr);
    if (const auto fault = chain->prove(); !fault.kernel.empty()) runtime::refuse(*device_, fault);
    return bench_driver(std::move(chain));
  }

  /// Both variants in turns, each first every other time; medians.
  ab_result compare(const ab_pair& pair) {
    std::optional<bench_driver> apart;
    for (const ab_variant* each : {&pair.first, &pair.second})
      if (is_apart(each->mode)) apart.emplace(driver_apart(pair, each->mode));
    std::array<std::vector<double>, 2> rates, host;
    const std::array variants{&pair.first, &pair.second};
    for (std::uint32_t i = 0; i <= options_.runs; ++i)
      for (std::uint32_t turn = 0; turn < 2; ++turn) {
        const std::size_t which = (i + turn) % 2;
        const decode_mode& mode = variants[which]->mode;
        const decode_cost cost = (is_apart(mode) ? *apart : *run_).decode(out_.context, out_.tokens, mode);
        if (i == 0) continue;
        rates[which].push_back(out_.tokens / cost.seconds);
        host[which].push_back(cost.thread_us);
      }
    return {&pair, median(rates[0]), median(rates[1]), median(host[0]), median(host[1])};
  }

  clock::time_point begin_ = clock::now();
  bench_options options_;
  bench_result out_;
  own_folder folder_;
  std::optional<io::checkpoint> file_;
  const engraved_model* plans_ = nullptr;
  std::deque<plan::planned> apart_;  ///< what executors of their own run
  std::optional<gpu::device> device_;
  std::optional<bench_driver> run_;
};

}  // namespace

void bench(const bench_options& options, const common_options& common) {
  if (!options.model.devices.empty()) return bench_cut(options, common);
  if (!options.model.cut.empty()) throw argument_error("--cut", "--devices beside it", "none");
  bench_run run(options, common);
  const graceful_stop guard;
  run.measure();
  run.report();
}

std::string bench_text(const bench_options& options, const common_options& common) {
  bench_run run(options, common);
  const graceful_stop guard;
  run.measure();
  return run.json_text();
}

}  // namespace intaglio::tool
