// SPDX-License-Identifier: MIT
// Throughput of sessions that decode together against a single session, with synthetic weights: tokens a second of 1,
// 8, 16 and 32 rows, of wider plans also 64 and 128, and the time of every dispatch of a pass. usage: batch [name...
// [--f16] [--slots N] [--rows N] [--position N] [--passes N] [--dispatches] [--prove] [--chain] [--temperature T]
// [--module KERNEL=FILE.spv] [--first N]]; --f16: coded products as prompts have them; --chain: never the resident
// dispatch; --rows: slots in use; --temperature: all sessions sample with top-k 40 and top-p 0.95 (0 unless given);
// --module: a FILE replaces a kernel's module; --first: also the time to the first token of a prompt of N tokens; names
// are those that it prints, all unless given
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/measuring.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/batch_executor.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

struct options {
  std::uint32_t position = 128, passes = 64;
  bool dispatches = false, prove = false, f16 = false, chain = false;
  std::uint32_t first = 0;                 // tokens of a prompt
  std::uint32_t slot_count = 0, rows = 0;  // 0: 8, 16 and 32; 1, 8, 16 and 32 of them in use
  sampling_options sampling{.temperature = 0};
  std::vector<std::string> names;
  struct other_module {
    std::string kernel, file;
    std::vector<std::byte> words;
  };
  std::vector<other_module> modules;  // of which each is measured; none: the library's own
};

const options::other_module* replacing = nullptr;
runtime::program_module module_of(kernels::variant which) {
  runtime::program_module out = runtime::modules_of<>(which);
  if (replacing != nullptr && kernels::interface_of(kernels::kernel_of(which)).name == replacing->kernel)
    out.spirv = replacing->words;
  return out;
}

/// Median of seven runs, after half a second of the same work: a GPU that was idle while pipelines were compiled has to
/// raise its clocks first.
template <class Body>
double median_ms(Body&& body) {
  for (const auto start = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500);)
    body();
  std::vector<double> times;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    body();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[3];
}

void print_dispatches(runtime::batch_executor& run, std::uint32_t rows) {
  std::map<const plan::dispatch*, std::vector<double>> times;
  for (int i = 0; i < 5; ++i)
    for (const auto& time : run.measure(rows)) times[time.what].push_back(time.nanoseconds);
  for (auto& [what, list] : times) {
    std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
    std::printf("    %-14s %-28s x %3zu %8.2f us, %.0f us a pass\n", kernels::interface_of(what->kernel).name.data(),
                what->label.data, list.size() / 5, list[list.size() / 2] / 1e3,
                list[list.size() / 2] / 1e3 * static_cast<double>(list.size()) / 5);
  }
}

/// Fills a slot as if it were in the middle of its own story, and uses its words.
template <class Take>
void with_story(const plan::table& table, std::uint32_t slot, const options& how, const Take& take) {
  const std::vector<std::int32_t> tokens(how.position + 1, static_cast<std::int32_t>(slot + 1));
  std::vector<std::uint32_t> pages(table.slot_pages());
  std::iota(pages.begin(), pages.end(), slot * table.slot_pages());
  take({tokens, pages, table.context, true, how.sampling});
}
void fill(runtime::batch_executor& run, const options& how) {
  for (std::uint32_t slot = 0; slot < run.table().shape.slot_count; ++slot)
    with_story(run.table(), slot, how, [&](const runtime::slot_words& words) { run.set(slot, words); });
}
/// Slot 0 by itself, from its pages on.
void measure_alone(runtime::batch_executor& run, double one, const options& how) {
  fill(run, how);
  const double ms = median_ms([&] {
    with_story(run.table(), 0, how, [&](const runtime::slot_words& words) { run.enter_alone(0, words); });
    run.decode_alone(how.passes, 100);
  });
  std::printf("  plan of %2u slots, one by itself: %6.1f us a pass, %9.1f tok/s, %5.2f of one alone%s\n",
              run.table().shape.slot_count, ms / how.passes * 1e3, how.passes / ms * 1e3, how.passes / ms * 1e3 / one,
              run.alone_is_resident() ? ", resident" : "");
}

/// A plan's passes over 1, 8, 16, 32, 64 and 128 of its slots. @param one tokens a second of a session alone  @return
/// the weights
runtime::weight_memory measure_passes(const gpu::device& device, const plan::table& table,
                                      runtime::weight_memory weights, const plan::device_class& of, double one,
                                      const options& how) {
  const std::uint32_t slot_count = table.shape.slot_count;
  runtime::batch_executor run(device, runtime::batch_executor::plan_for(table, of), std::move(weights),
                              runtime::kernel_set(device, &module_of), nullptr);
  if (how.prove)
    if (const auto fault = run.prove(); !fault.kernel.empty())
      std::printf("  WRONG: %s (%s), off by %g\n", fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  if (run.has_alone() && (how.rows == 0 || how.rows == 1)) measure_alone(run, one, how);
  for (const std::uint32_t rows : {1u, 8u, 16u, 32u, 64u, 128u}) {
    if (rows > slot_count || (how.rows != 0 && rows != how.rows)) continue;
    const double ms = median_ms([&] {
      fill(run, how);
      run.decode(rows, how.passes, false, 100);
    });
    std::printf("  plan of %2u slots, %2u in use: %8.1f us a pass, %9.1f tok/s, %5.2f of one alone%s\n", slot_count,
                rows, ms / how.passes * 1e3, rows * how.passes / ms * 1e3, rows * how.passes / ms * 1e3 / one,
                run.runs_resident() ? ", resident" : "");
    std::fflush(stdout);
  }
  fill(run, how);
  if (how.dispatches) print_dispatches(run, slot_count);
  return run.release_weights();
}

/// Time to the first token of prompts of a batch that is empty, and of one where all other sessions decode, a token of
/// each a step. @return the weights
runtime::weight_memory measure_first(const gpu::device& device, const plan::table& table,
                                     runtime::weight_memory weights, const plan::device_class& of, const options& how) {
  auto run = std::make_unique<runtime::batch_executor>(device, runtime::batch_executor::plan_for(table, of),
                                                       std::move(weights), runtime::kernel_set(device), nullptr);
  basic_batch batch(std::make_shared<runtime::session_body>(device, table, 250.0), std::move(run));
  std::uint32_t stories = 0;
  const auto prompt = [&](std::uint32_t count) {  // no two begin alike
    std::vector<std::int32_t> out(count);
    for (std::uint32_t i = 0; i < count; ++i)
      out[i] = static_cast<std::int32_t>((7919ull * ++stories + 31 * i) % table.config->vocab_size);
    return out;
  };
  const auto first_ms = [&] {
    std::vector<double> times;
    for (int repeat = 0; repeat < 9; ++repeat) {
      const auto ids = prompt(how.first);
      const auto start = std::chrono::steady_clock::now();
      const batch_handle who = batch.join(ids, {how.sampling, 2});
      while (batch.history(who).size() == ids.size()) batch.step();
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      batch.leave(who);
    }
    return bench::median(times);
  };
  for (const auto start = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500);)
    first_ms();
  const double alone = first_ms();
  for (std::uint32_t i = 0; i + 1 < table.shape.slot_count; ++i)
    batch.join(prompt(how.position), {how.sampling, table.context - how.position});
  for (std::uint32_t i = 0; i < table.shape.slot_count + 16; ++i) batch.step();
  const double beside = first_ms();
  std::printf("  first token of a prompt of %u: %.2f ms, beside %u that decode %.2f ms, %.2f times\n", how.first, alone,
              batch.active(), beside, beside / alone);
  return batch.executor().release_weights();
}

template <class Model>
void measure(const gpu::device& device, const char* name, const options& how) {
  const plan::profile& target =
      device.description().type == gpu::device_type::cpu ? plan::profiles::cpu : plan::profiles::portable;
  const std::uint32_t context = std::min(1024u, Model::config.max_position_embeddings);
  const plan::device_class of = runtime::usable_classes(device).front();
  runtime::weight_memory weights;
  double one = 0;
  std::vector<std::uint32_t> plans{8, 16, 32};
  if (how.slot_count != 0) plans = {8, how.slot_count};
  if (how.slot_count == 8) plans = {8};
  for (const std::uint32_t slot_count : plans) {
    const plan::planned made = plan::planned::of<Model>(
        target, context,
        {.slot_count = slot_count, .coded_products = how.f16 ? target.coded_chunks : plan::chunk_arithmetic::exact});
    const plan::table& table = made.table();
    if (slot_count == 8) {
      const std::uint32_t token = 11;
      runtime::executor alone(device, table, runtime::synthetic_weights(device, table), of, nullptr);
      const double ms = median_ms([&] {
        alone.begin(runtime::pass_kind::decode, how.position, std::span(&token, 1), {}, how.passes);
        while (alone.pending() || alone.in_flight()) {
          while (alone.may_submit()) alone.submit(100, 16);
          alone.wait();
        }
      });
      one = how.passes / ms * 1e3;
      std::printf("%s: one session alone %.1f tok/s\n", name, one);
      weights = alone.release_weights();
    }
    if (how.slot_count != 0 && slot_count != how.slot_count) continue;
    const plan::device_class of_batch = how.chain ? of.without_residency() : of;
    if (how.modules.empty()) weights = measure_passes(device, table, std::move(weights), of_batch, one, how);
    if (how.first != 0) weights = measure_first(device, table, std::move(weights), of_batch, how);
    for (const options::other_module& each : how.modules) {
      replacing = &each;
      std::printf("  %s from %s\n", each.kernel.c_str(), each.file.c_str());
      weights = measure_passes(device, table, std::move(weights), of_batch, one, how);
    }
    replacing = nullptr;
  }
}

struct model {
  const char* name;
  void (*run)(const gpu::device&, const char*, const options&);
};
constexpr model models_to_measure[]{{"fable", &measure<models::fable>},
                                    {"bitnet_2b_4t", &measure<models::bitnet_2b_4t>},
                                    {"mistral_7b q4_0", &measure<models::mistral_7b<dtype::q4_0>>},
                                    {"mistral_7b q8_0", &measure<models::mistral_7b<dtype::q8_0>>},
                                    {"gemma3_4b q8_0", &measure<models::gemma3_4b<dtype::q8_0>>},
                                    {"gemma3_4b bf16", &measure<models::gemma3_4b<dtype::bf16>>}};

/// @error argument_error: a word that is neither an option nor the name of a model
void expect_a_model(const std::string& word) {
  std::string known;
  for (const model& each : models_to_measure) {
    if (word == each.name) return;
    known += (known.empty() ? "\"" : ", \"") + std::string(each.name) + '"';
  }
  throw argument_error("arguments", "an option or one of " + known, word);
}

}  // namespace

int main(int count, char** arguments) try {
  options how;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--position" && i + 1 < count) how.position = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--passes" && i + 1 < count) how.passes = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--dispatches") how.dispatches = true;
    else if (word == "--prove") how.prove = true;
    else if (word == "--f16") how.f16 = true;
    else if (word == "--chain") how.chain = true;
    else if (word == "--module" && i + 1 < count) {
      const std::string what = arguments[++i], file = what.substr(what.find('=') + 1);
      how.modules.push_back({what.substr(0, what.find('=')), file, bench::module_in(file)});
    } else if (word == "--temperature" && i + 1 < count)
      how.sampling = {.temperature = static_cast<float>(std::atof(arguments[++i])), .top_k = 40, .top_p = 0.95f};
    else if (word == "--first" && i + 1 < count) how.first = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--rows" && i + 1 < count) how.rows = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--slots" && i + 1 < count) how.slot_count = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else expect_a_model(word), how.names.push_back(word);
  }
  const gpu::device device;
  std::printf("%s, positions %u to %u\n", device.label().c_str(), how.position, how.position + how.passes);
  for (const model& each : models_to_measure) {
    if (how.names.empty() || std::find(how.names.begin(), how.names.end(), each.name) != how.names.end())
      each.run(device, each.name, how);
    if (device.description().type == gpu::device_type::cpu && how.names.empty()) break;
  }
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
