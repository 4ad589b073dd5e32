// SPDX-License-Identifier: MIT
// Whole decode tokens of published models and of examples/custom_model's block at 4B's size with synthetic weights:
// tokens a second, and the time of every dispatch of one pass. usage: families ["NAME CODEC"... [--context N] [--passes
// N] [--dispatches] [--chain]]; --chain: never the resident dispatch; names are those of published models or custom_4b,
// a selection unless given
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/named_model.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"

using namespace intaglio;

namespace {

/// The block of examples/custom_model: FFNs before and after attention, 3.7 billion weights in layers, ternary ones or
/// of a codec.
constexpr const decoder_config& custom_config = models::bitnet_2b_4t_config;
template <dtype W>
struct half_step {
  std::string_view gate, up, norm, down;

  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const std::uint32_t width = custom_config.hidden_size, inner = custom_config.intermediate_size;
    constexpr bool ternary = W == dtype::i2_s;
    const ir::value_id h = ternary ? t.quantize(x, gate) : x;
    const ir::value_id g = t.matmul(h, gate, inner, width, W), u = t.matmul(h, up, inner, width, W);
    const ir::value_id y = t.gated(g, u, activation::silu);
    return t.matmul(ternary ? t.quantize(t.rms_norm(y, norm, 1e-5f), down) : y, down, width, inner, W);
  }
};
template <dtype W>
struct custom_model {
  static constexpr std::string_view name = "custom";
  static constexpr const decoder_config& config = custom_config;

  static constexpr auto graph() {
    using namespace intaglio::graph;
    constexpr const decoder_config& c = config;
    constexpr auto attention = [] {
      constexpr auto front = rms_norm{"attn_norm.weight", c.rms_norm_eps} | self_attention<W>{c};
      constexpr auto back = linear<W>{"attn_output.weight", c.q_size(), c.hidden_size};
      if constexpr (W == dtype::i2_s) return residual(front | rms_norm{"attn_sub_norm.weight", c.rms_norm_eps} | back);
      else return residual(front | back);
    }();
    return embedding{"token_embd.weight", c.vocab_size, c.hidden_size} |
           repeat(c.num_hidden_layers, residual(rms_norm{"first_norm.weight", c.rms_norm_eps} |
                                                half_step<W>{"first_gate.weight", "first_up.weight",
                                                             "first_sub_norm.weight", "first_down.weight"}) |
                                           attention |
                                           residual(rms_norm{"last_norm.weight", c.rms_norm_eps} |
                                                    half_step<W>{"last_gate.weight", "last_up.weight",
                                                                 "last_sub_norm.weight", "last_down.weight"})) |
           rms_norm{"output_norm.weight", c.rms_norm_eps} | lm_head{"token_embd.weight", c.vocab_size, c.hidden_size};
  }
};

using clock_type = std::chrono::steady_clock;
double milliseconds_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

struct options {
  std::uint32_t context = 128, passes = 128;
  bool dispatches = false, chain = false;
  std::vector<std::string> names;
};

void print_dispatches(runtime::executor& run, std::uint32_t position, std::span<const std::uint32_t> tokens) {
  std::map<const plan::dispatch*, std::vector<double>> times;
  for (int i = 0; i < 5; ++i)
    for (const auto& time : run.measure(runtime::pass_kind::decode, position, tokens))
      times[time.what].push_back(time.nanoseconds);
  for (auto& [what, list] : times) {
    std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
    std::printf("    %-12s %-28s x %3zu %8.2f us, %.0f us a token\n", kernels::interface_of(what->kernel).name.data(),
                what->label.data, list.size() / 5, list[list.size() / 2] / 1e3,
                list[list.size() / 2] / 1e3 * static_cast<double>(list.size()) / 5);
  }
}

/// @param plans makes the model's plan
void measure(const gpu::device& device, const char* name, const options& how, const auto& plans) {
  const plan::planned made = plans();
  const plan::table& table = made.table();
  plan::device_class of = runtime::usable_classes(device).front();
  if (how.chain) of = of.without_residency();
  runtime::executor run(device, table, runtime::synthetic_weights(device, table), of, nullptr);
  if (const auto fault = run.prove(); !fault.kernel.empty())
    std::printf("%s: WRONG: %s (%s), off by %g\n", name, fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  const std::uint32_t token = 11;
  std::vector<double> times;
  for (int repeat = 0; repeat < 7; ++repeat) {
    run.begin(runtime::pass_kind::decode, how.context, std::span(&token, 1), {}, how.passes);
    const auto start = clock_type::now();
    while (run.pending() || run.in_flight()) {
      while (run.may_submit()) run.submit(100, 16);
      run.wait();
    }
    times.push_back(milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  const double token_ms = times[3] / how.passes;
  std::printf("%-18s %8.1f us a token, %7.1f tok/s, %5.0f GB/s of weights, %llu dispatches\n", name, 1e3 * token_ms,
              1e3 / token_ms, static_cast<double>(table.decode.weight_bytes()) / token_ms / 1e6,
              static_cast<unsigned long long>(run.plan_of(runtime::pass_kind::decode).dispatch_count()));
  std::fflush(stdout);
  if (how.dispatches) print_dispatches(run, how.context, std::span(&token, 1));
}

void measure(const gpu::device& device, const std::string& word, const options& how) {
  measure(device, word.c_str(), how, [&] { return bench::named_model(word).planned(plan::profiles::portable, 4096); });
}
template <dtype W>
void measure_custom(const gpu::device& device, const char* name, const options& how) {
  measure(device, name, how, [] { return plan::planned::of<custom_model<W>>(plan::profiles::portable, 4096); });
}

}  // namespace

int main(int count, char** arguments) try {
  options how;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--context") how.context = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--passes") how.passes = static_cast<std::uint32_t>(std::atoi(arguments[++i]));
    else if (word == "--dispatches") how.dispatches = true;
    else if (word == "--chain") how.chain = true;
    else how.names.push_back(word);
  }
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  if (how.names.empty())
    how.names = {"bitnet_2b_4t",      "custom_4b",         "custom_4b q8_0",    "custom_4b bf16",  "mistral_7b q4_0",
                 "mistral_7b q4_1",   "mistral_7b q8_0",   "gemma3_4b q8_0",    "gemma3_4b bf16",  "gemma2_2b q8_0",
                 "olmo2_7b q8_0",     "mistral_7b q4_k_m", "mistral_7b q3_k_m", "gemma4_e2b q8_0", "gemma4_31b q4_0",
                 "mixtral_8x7b q4_0", "qwen3_30b_a3b q4_0"};
  for (const std::string& each : how.names)
    if (each == "custom_4b") measure_custom<dtype::i2_s>(device, each.c_str(), how);
    else if (each == "custom_4b q8_0") measure_custom<dtype::q8_0>(device, each.c_str(), how);
    else if (each == "custom_4b bf16") measure_custom<dtype::bf16>(device, each.c_str(), how);
    else measure(device, each, how);
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
