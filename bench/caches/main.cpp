// SPDX-License-Identifier: MIT
// Decode and a chunk of a prompt after a long context, by each form of the KV cache: one plan after the other in one
// run, with synthetic weights. usage: caches [MODEL [CODEC [CONTEXT [PASSES [TYPE...]]]]], e.g. mistral_7b q8_0 16000
// 32 f16 q8_0; CONTEXT positions are cached before. q8_0:8 gives attention workgroups of 8 subgroups. Forms of decode:
// the chain of dispatches, the resident dispatch, the chain whose attention processes heads together, and the form that
// sessions choose by position; all draw the same tokens.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "intaglio/families/planned_family.hpp"
#include "intaglio/families/published_models.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

using clock_type = std::chrono::steady_clock;
double milliseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}
double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

/// Milliseconds of the slowest dispatches of a token.
void print_dispatches(runtime::executor& run, std::uint32_t position) {
  const std::uint32_t token = 1;
  std::vector<std::pair<double, std::string>> sums;
  for (const auto& time : run.measure(runtime::pass_kind::decode, position, std::span(&token, 1))) {
    const std::string name(kernels::interface_of(time.what->kernel).name);
    auto at = std::find_if(sums.begin(), sums.end(), [&](const auto& each) { return each.second == name; });
    if (at == sums.end()) at = sums.insert(at, {0, name});
    at->first += time.nanoseconds / 1e6;
  }
  std::sort(sums.rbegin(), sums.rend());
  for (std::size_t i = 0; i < std::min<std::size_t>(4, sums.size()); ++i)
    std::printf("%s %s %.3f ms", i == 0 ? "   of a token" : ",", sums[i].second.c_str(), sums[i].first);
  std::printf("\n");
}

enum class form : std::uint8_t { resident, chain, together, session };

/// @return the tokens that were drawn
std::vector<std::uint32_t> measure(const gpu::device& device, const plan::table& table, form how, std::uint32_t context,
                                   std::uint32_t passes) {
  const gpu::device_type type = device.description().type;
  const auto classes = runtime::usable_classes(device);
  const bool resident = how == form::resident || how == form::session;
  plan::device_plan_options options;
  if (how != form::session) options.long_from = how == form::together ? 0u : ~0u;
  const auto plan = std::make_shared<const plan::device_plan>(
      table, resident ? classes.front() : classes.front().without_residency(), options);
  if (how == form::together && plan->long_decode() == nullptr) return {};
  runtime::executor run(device, plan, runtime::synthetic_weights(device, table), runtime::kernel_set(device), nullptr);
  if (const auto fault = run.prove(); !fault.kernel.empty())
    std::printf("  WRONG: %s (%s), off by %g\n", fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  std::vector<std::uint32_t> tokens(table.prefill.max_tokens, 1);
  std::vector<double> chunks, decodes;
  for (int repeat = 0; repeat < 3; ++repeat) {
    auto start = clock_type::now();
    run.begin(runtime::pass_kind::prefill, context - static_cast<std::uint32_t>(tokens.size()), tokens, {}, 1);
    while (run.pending()) run.submit(250, 1);
    run.drain();
    chunks.push_back(milliseconds_since(start));
    run.begin(runtime::pass_kind::decode, context, std::span(tokens).first(1), {}, passes);
    start = clock_type::now();
    while (run.pending() || run.in_flight()) {
      while (run.may_submit()) run.submit(100, 16);
      run.wait();
    }
    decodes.push_back(milliseconds_since(start) / passes);
  }
  const plan::sequence& decode = run.plan_of(runtime::pass_kind::decode, context);
  const double bytes = static_cast<double>(plan::bytes_moved(table, table.decode, context, 1));
  std::printf("%-5s %-22s %s: cache %llu bytes, decode %.1f tok/s, %.0f GB/s; chunk of %zu: %.0f tok/s\n",
              std::string(kernels::cache_codec_of(table.cache_element).name).c_str(), decode.name.data(),
              type == gpu::device_type::cpu ? "CPU" : "GPU", static_cast<unsigned long long>(table.cache_bytes()),
              1e3 / median(decodes), bytes / median(decodes) / 1e6, tokens.size(),
              static_cast<double>(tokens.size()) / median(chunks) * 1e3);
  std::vector<std::uint32_t> drawn;
  for (std::uint32_t i = 0; i < std::min(passes, table.ring_size); ++i) drawn.push_back(run.drawn(i));
  print_dispatches(run, context);
  std::fflush(stdout);
  return drawn;
}

}  // namespace

int main(int count, char** arguments) try {
  const auto argument = [&](int index, const char* otherwise) {
    return std::string(count > index ? arguments[index] : otherwise);
  };
  const auto* const model = families::find_published_model(argument(1, "mistral_7b"));
  const auto codec = dtype_from_name(argument(2, "q8_0"));
  if (model == nullptr || !codec) return std::fprintf(stderr, "a model's name and a codec's, please\n"), 2;
  const auto context = static_cast<std::uint32_t>(std::strtoul(argument(3, "16000").c_str(), nullptr, 10)),
             passes = static_cast<std::uint32_t>(std::strtoul(argument(4, "32").c_str(), nullptr, 10));
  std::vector<std::string> types;
  for (int i = 5; i < count; ++i) types.emplace_back(arguments[i]);
  if (types.empty()) types = {"f16", "q8_0", "q4_0"};
  const gpu::device device;
  std::printf("%s, %s, %u positions cached, on %s\n", argument(1, "mistral_7b").c_str(), argument(2, "q8_0").c_str(),
              context, device.label().c_str());
  const plan::profile& profile =
      device.description().type == gpu::device_type::cpu ? plan::profiles::cpu : plan::profiles::portable;
  for (const std::string& type : types)
    for (const kernels::cache_codec& each : kernels::cache_codecs)
      if (each.name == type.substr(0, type.find(':'))) {
        plan::profile target = plan::with_cache(profile, each.type);
        if (type.find(':') != std::string::npos)
          target.work.attention_subgroups =
              static_cast<std::uint32_t>(std::strtoul(type.c_str() + type.find(':') + 1, nullptr, 10));
        const plan::planned made = families::planned_of(
            *model->config, model->types(*codec), model->name, target,
            std::min(model->config->max_position_embeddings, (context + passes + 255) / 256 * 256));
        const auto drawn = measure(device, made.table(), form::chain, context, passes);
        for (const form how : {form::resident, form::together, form::session})
          if (how != form::resident || made.table().resident_decode.layers != 0)
            if (const auto its = measure(device, made.table(), how, context, passes); !its.empty() && its != drawn)
              std::printf("  WRONG: other tokens than the chain's\n");
      }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
