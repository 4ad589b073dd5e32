// SPDX-License-Identifier: MIT
// Decode and prefill speed of an engraved plan with synthetic weights, and the time of every dispatch: what a change of
// a kernel or a profile is judged by. usage: decode [context [passes [prompt [modules]]]]; the prompt is as long as the
// context unless said, `modules` counts from 0, the fastest that the device may run
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

using clock_type = std::chrono::steady_clock;
double milliseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

void print_dispatches(runtime::executor& run, runtime::pass_kind kind, std::uint32_t position,
                      std::span<const std::uint32_t> tokens) {
  struct row {
    double nanoseconds = 0;
    std::uint32_t count = 0;
  };
  std::map<const plan::dispatch*, std::vector<double>> times;
  for (int i = 0; i < 5; ++i)
    for (const auto& time : run.measure(kind, position, tokens)) times[time.what].push_back(time.nanoseconds);
  for (auto& [what, list] : times) {
    std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
    const double median = list[list.size() / 2];
    std::printf("    %-16s %-24s x %3zu %9.2f us %8.1f GB/s\n", kernels::interface_of(what->kernel).name.data(),
                what->label.data, list.size() / 5, median / 1e3, static_cast<double>(what->weight_bytes) / median);
  }
}

void measure(const gpu::device& device, const plan::table& table, const char* name, std::uint32_t context,
             std::uint32_t passes, std::uint32_t prompt, std::size_t modules) {
  std::printf("%s, profile %.*s, context %u, prompt %u\n", name, static_cast<int>(table.profile.size()),
              table.profile.data(), context, prompt);
  auto start = clock_type::now();
  runtime::executor run(device, table, runtime::synthetic_weights(device, table),
                        runtime::usable_classes(device).at(modules), nullptr);
  std::printf("  ready in %.0f ms, subgroups of %u\n", milliseconds_since(start), run.subgroup_size());
  if (const auto fault = run.prove(); !fault.kernel.empty())
    std::printf("  WRONG: %s (%s), off by %g\n", fault.kernel.c_str(), fault.label.c_str(), fault.apart);

  std::vector<std::uint32_t> tokens(table.prefill.max_tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint32_t>(i * 7919 % table.config->vocab_size);
  std::vector<double> prefill, decode;
  for (int repeat = 0; repeat < 5; ++repeat) {
    start = clock_type::now();
    for (std::uint32_t at = 0; at < prompt; at += static_cast<std::uint32_t>(tokens.size())) {
      run.begin(runtime::pass_kind::prefill, at,
                std::span(tokens).first(std::min<std::size_t>(tokens.size(), prompt - at)), {}, 1);
      while (run.pending()) run.submit(250, 1);
      run.drain();
    }
    prefill.push_back(milliseconds_since(start));
    run.begin(runtime::pass_kind::decode, context, std::span(tokens).first(1), {}, passes);
    start = clock_type::now();
    while (run.pending() || run.in_flight()) {
      while (run.may_submit()) run.submit(100, 16);
      run.wait();
    }
    decode.push_back(milliseconds_since(start));
  }
  std::sort(prefill.begin(), prefill.end());
  std::sort(decode.begin(), decode.end());
  const double token_ms = decode[2] / passes;
  std::printf("  %s %.1f tok/s (%.1f us, %.0f GB/s of weights); prefill %.0f tok/s\n",
              run.plan_of(runtime::pass_kind::decode).name.data(), 1e3 / token_ms, 1e3 * token_ms,
              static_cast<double>(table.decode.weight_bytes()) / token_ms / 1e6, prompt / prefill[2] * 1e3);
  std::printf("  decode, one pass:\n");
  print_dispatches(run, runtime::pass_kind::decode, context, std::span(tokens).first(1));
  const std::uint32_t last = (prompt - 1) / table.prefill.max_tokens * table.prefill.max_tokens;
  std::printf("  prefill, the last chunk, from %u:\n", last);
  print_dispatches(run, runtime::pass_kind::prefill, last, std::span(tokens).first(prompt - last));
  run.prepare_verify(true, nullptr);
  for (const std::uint32_t all :
       {std::min(table.verify.max_tokens, runtime::executor::short_tokens), table.verify.max_tokens}) {
    std::printf("  a pass over %u drafts:\n", all - 1);
    print_dispatches(run, run.verify_kind(all), context, std::span(tokens).first(all));
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const auto context = static_cast<std::uint32_t>(count > 1 ? std::atoi(arguments[1]) : 128);
  const auto passes = static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 128);
  const auto prompt = static_cast<std::uint32_t>(count > 3 ? std::atoi(arguments[3]) : static_cast<int>(context));
  const auto modules = static_cast<std::size_t>(count > 4 ? std::atoi(arguments[4]) : 0);
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  if (device.description().type == gpu::device_type::cpu) {
    measure(device, plan::engraved<models::fable, plan::profiles::cpu>::table, "fable", std::min(context, 256u), passes,
            std::min(prompt, 256u), modules);
  } else {
    measure(device, plan::engraved<models::fable, plan::profiles::portable>::table, "fable", std::min(context, 256u),
            passes, std::min(prompt, 256u), modules);
    measure(device, plan::engraved<models::bitnet_2b_4t, plan::profiles::portable>::table, "bitnet_2b_4t", context,
            passes, prompt, modules);
    measure(device, plan::engraved<models::bitnet_2b_4t, plan::profiles::screened>::table, "bitnet_2b_4t", context,
            passes, prompt, modules);
  }
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
