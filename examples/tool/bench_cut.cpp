// SPDX-License-Identifier: MIT
#include "bench_cut.hpp"

#include "bench_driver.hpp"
#include "cut.hpp"
#include "engraved_models.hpp"
#include "known_models.hpp"
#include "model_file.hpp"

#include <intaglio/runtime/load_session.hpp>
#include <intaglio/runtime/synthetic_weights.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <numeric>

namespace intaglio::tool {
namespace {

void expect_for_cut(const bench_options& options) {
  const auto refuse = [](const char* option) {
    throw argument_error(option, "a model on one device", "a model that is cut over several");
  };
  if (!options.ab.empty()) refuse("--ab");
  if (!options.html.empty()) refuse("--html");
  if (options.relu_zeros) refuse("--relu-zeros");
  if (options.model.weight_budget) refuse("--weight-budget");
  if (options.storage != "automatic") refuse("--weights");
}

std::string milliseconds(double value) { return fixed(value, 3) + " ms"; }

/// @param file is opened where the options name one
const engraved_model& plans_of(const bench_options& options, std::optional<io::checkpoint>& file) {
  cache_choice cache = cache_of(options.positions, options.model.cache_type);
  cache.chunk = chunk_of_stages(options.model.devices);
  if (!options.synthetic.empty()) return engraved_model_by_name(options.synthetic, options.codec, cache);
  return engraved_model_of(file.emplace(open_model(options.model)), cache, options.codec);
}

/// The length of a prompt's chunks that all stages compute.
std::uint32_t chunk_of(const bench_options& options, const runtime::device_cut& cut) {
  std::uint32_t chunk = cut.tables.front()->prefill.max_tokens;
  for (const plan::table* each : cut.tables) chunk = std::min(chunk, each->prefill.max_tokens);
  if (options.chunk > chunk)
    throw argument_error("--chunk", "at most the plans' " + std::to_string(chunk), std::to_string(options.chunk));
  return options.chunk != 0 ? options.chunk : chunk;
}

/// Medians of the runs.
struct cut_speed {
  std::uint32_t prompt, tokens;
  double prompts, decodes;       ///< tokens a second
  std::vector<double> stage_ms;  ///< time of a token in each stage
};

void print_cut(const bench_options& options, const std::string& model, const std::vector<gpu::device>& on,
               const runtime::device_cut& cut, const cut_speed& speed) {
  const double sum = std::accumulate(speed.stage_ms.begin(), speed.stage_ms.end(), 0.0), token_ms = 1e3 / speed.decodes;
  if (options.json) {
    nlohmann::ordered_json out{{"model", model}, {"prompt_tokens", speed.prompt}, {"tokens", speed.tokens}};
    for (const gpu::device& each : on) out["devices"].push_back(each.label());
    for (const auto& each : cut.stages) out["layers"].push_back({each->layers().first, each->layers().end});
    out["prompt_tokens_per_second"] = speed.prompts;
    out["decode_tokens_per_second"] = speed.decodes;
    out["stage_ms"] = speed.stage_ms;
    return print_line(out.dump());
  }
  print_line(model + " in " + std::to_string(on.size()) + " stages");
  print_line("prompt of " + std::to_string(speed.prompt) + ": " + fixed(speed.prompts, 1) + " tokens/s");
  print_line("decode after " + std::to_string(options.context) + ": " + fixed(speed.decodes, 1) + " tokens/s, " +
             milliseconds(token_ms) + " a token, of which the stages " + milliseconds(sum));
  for (std::size_t i = 0; i < on.size(); ++i)
    print_line("  stage " + std::to_string(i) + " on " + on[i].label() + ", layers " +
               std::to_string(cut.stages[i]->layers().first) + " to " +
               std::to_string(cut.stages[i]->layers().end - 1) + ": " + milliseconds(speed.stage_ms[i]));
  for (const gpu::device& each : on) require_no_messages(each);
}

}  // namespace

void bench_cut(const bench_options& options, const common_options& common) {
  expect_for_cut(options);
  std::optional<io::checkpoint> file;
  const engraved_model& plans = plans_of(options, file);
  require_decoder(plans);
  if (file) judge_codecs(*file, plans, options.codec);
  const std::vector<gpu::device> on = open_devices(options.model, common);
  const std::array<const plan::table*, 2> tables{&plans.cpu, &plans.portable};
  const runtime::device_cut cut = runtime::cut_over(on, tables, cut_choice(on, options.model.cut));
  runtime::require_stage_memory(on, cut);
  const std::uint32_t context = cut.tables.front()->context, prompt = std::min(std::max(options.prompt, 1u), context),
                      tokens = std::min(std::max(options.tokens, 1u), context - options.context);
  if (options.context >= context)
    throw argument_error("--context", "less than " + std::to_string(context) + " (the context)",
                         std::to_string(options.context));

  const auto start = std::chrono::steady_clock::now();
  const auto runner = [&](std::size_t i, gpu::pipeline_cache& cache) {
    const plan::table& table = cut.stages[i]->table();
    auto weights = file ? runtime::load_weights(on[i], table, *file, {})
                        : runtime::synthetic_weights(on[i], table, {.relu_zeros = {}, .budget = {}});
    return runtime::proven_executor(on[i], table, std::move(weights), cache, true);
  };
  std::vector<std::unique_ptr<runtime::front_stage>> fronts;
  for (std::size_t i = 0; i + 1 < on.size(); ++i) {
    auto cache = std::make_unique<gpu::pipeline_cache>(on[i], "", cut.stages[i]->table().hash);
    auto run = runner(i, *cache);
    fronts.push_back(
        std::make_unique<runtime::front_stage>(on[i], cut.stages[i], std::move(cache), std::move(run), 250, true));
  }
  gpu::pipeline_cache cache(on.back(), "", cut.stages.back()->table().hash);
  auto last = runner(on.size() - 1, cache);
  last->complete();
  const auto threads = on.size() > 1 ? runtime::join_stages(on.back(), *last, std::move(fronts)) : nullptr;
  const runtime::executor& own = *last;
  bench_driver drive(std::move(last));
  note("stages loaded and proven in " + fixed(seconds_since(start), 1) + " s");

  const std::uint32_t chunk = chunk_of(options, cut);
  std::vector<double> prompts, decodes;
  for (std::uint32_t i = 0; i <= options.runs; ++i) {  // the first one only warms up
    const double seconds = drive.prompt_seconds(prompt, chunk), decoded = drive.decode(options.context, tokens).seconds;
    if (i == 0) continue;
    prompts.push_back(prompt / seconds);
    decodes.push_back(tokens / decoded);
  }
  std::vector<double> stage_ms;
  for (std::size_t i = 0; i < on.size(); ++i) {
    const runtime::executor& of = i + 1 < on.size() ? threads->stage(i).stage_executor() : own;
    stage_ms.push_back(of.speed(runtime::pass_kind::decode).segment_ms() * of.segments(runtime::pass_kind::decode));
  }
  print_cut(options, std::string(plans.name), on, cut, {prompt, tokens, median(prompts), median(decodes), stage_ms});
}

}  // namespace intaglio::tool
