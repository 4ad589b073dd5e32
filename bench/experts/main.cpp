// SPDX-License-Identifier: MIT
// A chunk of a mixture of experts with synthetic weights: tokens a second by length of the chunk, and the time of every
// dispatch of a pass. A GPU has Mixtral 8x7B's shape and Qwen3 30B-A3B's, four of their layers; a CPU driver a small
// one. usage: experts [q4_0 | q8_0 | f16 | "q4_0 of 128"]... [--tokens N]... [--dispatches]; all codecs, and chunks of
// 1 to the profile's, unless said
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/measuring.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/models/qwen3moe.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

constexpr decoder_config four_layers = [] {
  auto out = models::mixtral_8x7b_config;
  out.num_hidden_layers = 4, out.max_position_embeddings = 1024;
  return out;
}();
constexpr decoder_config small = [] {
  auto out = four_layers;
  out.hidden_size = 512, out.intermediate_size = 1792, out.num_hidden_layers = 2, out.num_attention_heads = 8,
  out.num_key_value_heads = 2, out.head_dim = 64, out.vocab_size = 4096;
  return out;
}();

constexpr decoder_config four_layers_of_128 = [] {
  auto out = models::qwen3_30b_a3b_config;
  out.num_hidden_layers = 4, out.max_position_embeddings = 1024;
  return out;
}();

struct options {
  std::vector<std::string> codecs;
  std::vector<std::uint32_t> tokens;
  bool dispatches = false;
};

template <class Model>
void measure(const gpu::device& device, const plan::profile& target, const char* name, const options& how) {
  if (!how.codecs.empty() && std::find(how.codecs.begin(), how.codecs.end(), name) == how.codecs.end()) return;
  const plan::planned made = plan::planned::of<Model>(target, 1024);
  const plan::table& table = made.table();
  runtime::executor run(device, table, runtime::synthetic_weights(device, table), runtime::usable_classes(device).at(0),
                        nullptr);
  if (const auto fault = run.prove(); !fault.kernel.empty())
    std::printf("%s: WRONG: %s (%s), off by %g\n", name, fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  std::vector<std::uint32_t> lengths = how.tokens;
  if (lengths.empty())
    for (std::uint32_t n = 1; n <= table.prefill.max_tokens; n *= n < 8 ? 8 : 2) lengths.push_back(n);
  for (const std::uint32_t length : lengths) {
    std::vector<std::uint32_t> ids(std::min(length, table.prefill.max_tokens));
    for (std::uint32_t i = 0; i < ids.size(); ++i)
      ids[i] =
          i * 37 % table.config->vocab_size;  // rows of the embedding that differ, so that tokens choose for themselves
    std::vector<double> all, experts;
    std::map<const plan::dispatch*, std::vector<double>> times;
    for (int i = 0; i < 9; ++i) {
      double whole = 0, of_experts = 0;
      for (const auto& time : run.measure(runtime::pass_kind::prefill, 0, ids)) {
        whole += time.nanoseconds;
        if (time.what->label.view().find("exp") != std::string_view::npos ||
            time.what->kernel == kernels::kernel::route || (time.what->kernel == kernels::kernel::fixed))
          of_experts += time.nanoseconds;
        times[time.what].push_back(time.nanoseconds);
      }
      all.push_back(whole), experts.push_back(of_experts);
    }
    std::printf("%-11s %4zu tokens: %9.3f ms, %8.0f tokens/s; experts %9.3f ms, %6.1f us a layer and token\n", name,
                ids.size(), bench::median(all) / 1e6, 1e9 * static_cast<double>(ids.size()) / bench::median(all),
                bench::median(experts) / 1e6,
                bench::median(experts) / 1e3 / table.config->num_hidden_layers / static_cast<double>(ids.size()));
    std::fflush(stdout);
    if (!how.dispatches) continue;
    for (const plan::dispatch& each : table.prefill.period)
      if (times.contains(&each))
        std::printf("    %-13s %-30s %5u x %5u %10.2f us\n", kernels::interface_of(each.kernel).name.data(),
                    each.label.data, each.groups[0], each.groups[1], bench::median(times[&each]) / 1e3);
  }
}

template <const decoder_config& c>
void measure_all(const gpu::device& device, const plan::profile& target, const options& how) {
  measure<models::mixtral<c, dtype::q4_0, dtype::f16, dtype::f16>>(device, target, "q4_0", how);
  measure<models::mixtral<c, dtype::q8_0, dtype::f16, dtype::f16>>(device, target, "q8_0", how);
  measure<models::mixtral<c, dtype::f16>>(device, target, "f16", how);
}

}  // namespace

int main(int count, char** arguments) try {
  options how;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--tokens" && i + 1 < count)
      how.tokens.push_back(static_cast<std::uint32_t>(std::atoi(arguments[++i])));
    else if (word == "--dispatches") how.dispatches = true;
    else how.codecs.push_back(word);
  }
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  if (device.description().type == gpu::device_type::cpu) measure_all<small>(device, plan::profiles::cpu, how);
  else {
    measure_all<four_layers>(device, plan::profiles::portable, how);
    measure<models::qwen3moe<four_layers_of_128, dtype::q4_0>>(device, plan::profiles::portable, "q4_0 of 128", how);
  }
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
