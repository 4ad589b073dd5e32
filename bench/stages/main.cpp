// SPDX-License-Identifier: MIT
// A model over one device and cut over several, with synthetic weights: prompts, decode alone, and sessions together.
// usage: stages NAME CODEC [--devices LIST] [--turns N] [--widest N] [--same N] [--prompt N] [--chunk N] [--tokens N]
//   [--sessions N] [--context N]
// NAME: of families/published_models.hpp, or llama_70b, a shape; --devices: numbers of devices to use, one after the
// other, with commas (1,2); --turns: stages on each device, which take turns; --same: device N, opened as often;
// --prompt 0: no session alone; --sessions 0: none together; --chunk: tokens at once, may be given with commas, 0: a
// session's choice; --widest: tokens of the plan's chunk
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "intaglio/families/published_models.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/cut_batch.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

struct options {
  std::vector<std::uint32_t> devices{1, 2}, chunks{0}, same;
  std::uint32_t prompt = 4096, tokens = 128, sessions = 32, context = 0, turns = 1, widest = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
template <class Body>
double median_seconds(Body&& body) {
  // Warms up for half a second: a device that has waited for another one's load has clocks of a device at rest.
  for (const auto start = std::chrono::steady_clock::now(); body(), seconds_since(start) < 0.5;) {}
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    times.push_back(seconds_since(start));
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

struct model {
  std::string name;
  decoder_config config;
  families::weight_types types;
  const plan::profile* target;
  plan::planned planned(std::uint32_t context, const plan::batch_shape& shape = {}) const {
    return families::planned_of(config, types, name, *target, context, shape);
  }
};
model model_of(const std::string& name, const std::string& codec, const plan::profile& target) {
  const bool larger = name == "llama_70b";
  const families::published_model* const found = families::find_published_model(larger ? "llama_31_8b" : name);
  const auto type = dtype_from_name(codec);
  if (found == nullptr || !type) throw argument_error("model and codec", "known ones", name + " " + codec);
  model out{name, *found->config, found->types(*type), &target};
  if (larger) {
    out.config.hidden_size = 8192, out.config.intermediate_size = 28672, out.config.num_hidden_layers = 80;
    out.config.num_attention_heads = 64;
  }
  return out;
}

/// What runs a stage, or all of a model where nothing is cut.
template <class Executor>
std::unique_ptr<Executor> runner(const gpu::device& on, const plan::table& table) {
  static std::deque<gpu::pipeline_cache> caches;  // each outlives its runner
  return runtime::proven_executor<Executor>(on, table, runtime::synthetic_weights(on, table),
                                            caches.emplace_back(on, "", table.hash), true);
}

/// @param print_stages prints the stages' times of a pass of a kind, and ends the line
template <class Print>
void measure_prompts(runtime::executor& run, const options& how, Print&& print_stages) {
  const std::uint32_t widest = run.table().prefill.max_tokens;
  for (const std::uint32_t wish : how.chunks) {
    const std::uint32_t chunk = wish == 0 ? widest : (std::min)(wish, widest);
    const std::vector<std::uint32_t> ids(run.table().max_tokens, 1);
    const std::vector<std::int32_t> all(how.prompt, 1);
    const double seconds = median_seconds([&] {
      for (std::uint32_t at = 0; at < how.prompt;) {
        const std::uint32_t many = wish == 0 ? run.long_chunk(how.prompt - at, false, nullptr) : 0,
                            count = many != 0 ? many : (std::min)(how.prompt - at, chunk);
        run.begin(many != 0 ? runtime::pass_kind::prefill_long : runtime::pass_kind::prefill, at,
                  std::span(ids).first(count), {}, 1);
        run.ask_ahead(runtime::pass_kind::prefill, at + count, std::span(all).subspan(at + count), chunk);
        while (run.pending()) {
          if (!run.may_submit()) run.wait();
          run.submit(250, runtime::executor::max_buffers);
        }
        at += count;
      }
      while (run.in_flight() != 0) run.wait();
    });
    std::printf("  prompt of %u by %u: %.0f tok/s, %.3f ms", how.prompt, chunk, how.prompt / seconds, seconds * 1e3);
    print_stages(runtime::pass_kind::prefill);
  }
}
void measure_decode(runtime::executor& run, const options& how) {
  const std::uint32_t token = 1;
  const double seconds = median_seconds([&] {
    run.begin(runtime::pass_kind::decode, 128, {&token, 1}, {}, how.tokens);
    while (run.completed() < how.tokens) {
      while (run.may_submit()) run.submit(250, 32);
      run.wait();
    }
  });
  std::printf("  decode: %.1f tok/s, %.3f ms a token%s", how.tokens / seconds, seconds / how.tokens * 1e3,
              run.plan_of(runtime::pass_kind::decode).resident.empty() ? "" : ", resident");
}

void measure_alone(const model& of, std::span<const gpu::device> on, const options& how) {
  const std::uint32_t context = how.context != 0 ? how.context : how.prompt + 1024;
  const plan::planned made = of.planned(context);
  const std::array<const plan::table*, 1> tables{&made.table()};
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<runtime::executor> last;
  std::shared_ptr<const runtime::stage_threads<runtime::front_stage>> threads;
  runtime::device_cut cut;
  if (on.size() == 1) {
    last = runner<runtime::executor>(on[0], made.table());
    last->complete();
  } else {
    cut = runtime::cut_over(on, tables, {});
    runtime::require_stage_memory(on, cut);
    std::vector<std::unique_ptr<runtime::front_stage>> fronts;
    for (std::size_t i = 0; i + 1 < on.size(); ++i)
      fronts.push_back(std::make_unique<runtime::front_stage>(
          on[i], cut.stages[i], std::make_unique<gpu::pipeline_cache>(on[i], "", cut.stages[i]->table().hash),
          runner<runtime::executor>(on[i], cut.stages[i]->table()), 250, true));
    last = runner<runtime::executor>(on.back(), cut.stages.back()->table());
    threads = runtime::join_stages(on.back(), *last, std::move(fronts));
  }
  std::printf("  loaded and proven in %.1f s\n", seconds_since(start));
  std::fflush(stdout);
  const auto pass_ms = [](const runtime::executor& run, runtime::pass_kind kind) {
    return run.speed(kind).segment_ms() * run.segments(kind);
  };
  const auto print_stages = [&](runtime::pass_kind kind) {
    for (std::size_t i = 0; threads && i < on.size(); ++i)
      std::printf("%s%.3f", i == 0 ? "; stages, ms: " : ", ",
                  pass_ms(i + 1 < on.size() ? threads->stage(i).stage_executor() : *last, kind));
    std::printf("\n");
    std::fflush(stdout);
  };
  measure_prompts(*last, how, print_stages);
  measure_decode(*last, how);
  print_stages(runtime::pass_kind::decode);
}
void measure_together(const model& of, std::span<const gpu::device> on, const options& how) {
  const auto groups = static_cast<std::uint32_t>(on.size());
  const std::uint32_t context = (std::min)(1024u, of.config.max_position_embeddings), group = how.sessions / groups;
  plan::batch_shape shape{.slot_count = group, .coded_products = of.target->coded_chunks};
  shape.pages = how.sessions * kernels::state::slot_pages(context, shape.page_size);
  const plan::planned made = of.planned(context, shape);
  const std::array<const plan::table*, 1> tables{&made.table()};
  std::unique_ptr<runtime::batch_executor> run;
  runtime::device_cut cut;
  if (on.size() == 1) {
    run = runner<runtime::batch_executor>(on[0], made.table());
  } else {
    cut = runtime::cut_over(on, tables, {}, groups);
    runtime::require_stage_memory(on, cut);
    std::vector<std::unique_ptr<runtime::front_batch_stage>> fronts;
    for (std::size_t i = 0; i + 1 < on.size(); ++i)
      fronts.push_back(std::make_unique<runtime::front_batch_stage>(
          on[i], cut.stages[i], runner<runtime::batch_executor>(on[i], cut.stages[i]->table()), 100));
    auto last = runner<runtime::last_batch_stage>(on.back(), cut.stages.back()->table());
    runtime::join_stages(on.back(), *last, std::move(fronts));
    run = std::move(last);
  }
  const std::vector<std::uint32_t> rows(groups, group);
  const double seconds = median_seconds([&] {
    const plan::table& table = run->table();
    for (std::uint32_t slot = 0; slot < how.sessions; ++slot) {
      const std::vector<std::int32_t> tokens(129, static_cast<std::int32_t>(slot + 1));
      std::vector<std::uint32_t> pages(table.slot_pages());
      std::iota(pages.begin(), pages.end(), slot * table.slot_pages());
      run->set(slot, {tokens, pages, table.context, true, {.temperature = 0}});
    }
    for (std::uint32_t done = 0; done < how.tokens; done += 4) run->decode_groups(rows, 4, false, 100);
  });
  std::printf("  %u sessions, %u groups of %u: %.0f tok/s, %.3f ms a pass%s\n", how.sessions, groups, group,
              how.sessions * how.tokens / seconds, seconds / how.tokens * 1e3,
              run->runs_resident() ? ", resident" : "");
  std::fflush(stdout);
}

std::vector<std::uint32_t> numbers(const std::string& list) {
  std::vector<std::uint32_t> out;
  std::stringstream in(list);
  for (std::string each; std::getline(in, each, ',');) out.push_back(static_cast<std::uint32_t>(std::stoul(each)));
  return out;
}

}  // namespace

int main(int count, char** arguments) try {
  options how;
  std::vector<std::string> names;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (!word.starts_with("--")) {
      names.push_back(word);
      continue;
    }
    const std::vector<std::uint32_t> values = i + 1 < count ? numbers(arguments[++i]) : std::vector<std::uint32_t>{};
    if (values.empty()) throw argument_error(word, "a number after it", "none");
    const std::map<std::string, std::uint32_t*> one{{"--prompt", &how.prompt},     {"--tokens", &how.tokens},
                                                    {"--sessions", &how.sessions}, {"--context", &how.context},
                                                    {"--turns", &how.turns},       {"--widest", &how.widest}};
    if (word == "--devices") how.devices = values;
    else if (word == "--chunk") how.chunks = values;
    else if (word == "--same") how.same = values;
    else if (const auto found = one.find(word); found != one.end()) *found->second = values.front();
    else
      throw argument_error("option",
                           "--devices, --chunk, --turns, --widest, --prompt, --tokens, --sessions or --context", word);
  }
  if (names.size() != 2) throw argument_error("usage", "stages NAME CODEC", std::to_string(names.size()) + " words");
  for (const std::uint32_t each : how.devices) {
    std::vector<gpu::device> on;
    for (std::uint32_t i = 0; i < each; ++i)
      on.emplace_back(
          gpu::device_options{.selector = std::to_string(how.same.empty() ? i : how.same.front()), .copies = each > 1});
    for (std::uint32_t i = each; each > 1 && i < each * how.turns; ++i) on.push_back(on[i - each]);
    const bool is_cpu = on.front().description().type == gpu::device_type::cpu;
    plan::profile target = is_cpu ? plan::profiles::cpu : plan::profiles::portable;
    if (how.widest != 0) target.prefill_tokens = how.widest;
    const model of = model_of(names[0], names[1], target);
    std::printf("%s %s on %u x %s\n", names[0].c_str(), names[1].c_str(), each, on.front().label().c_str());
    if (how.prompt != 0) measure_alone(of, on, how);
    if (how.sessions != 0) measure_together(of, on, how);
  }
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
