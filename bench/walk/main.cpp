// SPDX-License-Identifier: MIT
// Decode of a BitNet whose FFNs are walked (docs/walk.md) against the dense one: tokens a second and the time of the
// two kernels, with synthetic weights of which a share of the features is off; and, of a model file of fable, which
// vectors a walk reads, by layer, by the CPU reference. For Gemma 3 4B's shape in bf16 with made-up weights: dense,
// the full walk and the sparse walks of 1,024, 512 and 256 features. With --trace: decode that traces the 32 features
// of each layer that added most against the same without, in turns. With --wide: the first comparison at a width of
// 7168 and 28672, where FFNs are most of what decode reads; with --2b at BitNet 2B's on a CPU driver too. usage: walk
// [--wide | --2b] [context [passes [SHARE...]]], shares of 0 to 1; walk --gemma [context [passes [NAME...]]], names as
// printed, all unless said; walk --trace [context [passes]]; walk --vectors FABLE_GGUF [tokens]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "examples/tool/stream_read.hpp"
#include "intaglio/graph/layers/walk_ffn.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/reference/machine.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "intaglio/runtime/weight_image.hpp"

using namespace intaglio;

namespace {

template <const decoder_config& c>
using walked = models::bitnet_b158<c, dtype::i2_s, dtype::i8, dtype::f16, graph::walk_ffn>;

/// Microseconds of the dispatches whose labels hold `name`: of each label the median over layers and 5 passes, added
/// up.
double dispatches_us(runtime::executor& run, std::uint32_t context, std::string_view name) {
  const std::uint32_t token = 1;
  std::map<std::string, std::vector<double>, std::less<>> times;
  for (int i = 0; i < 5; ++i)
    for (const auto& time : run.measure(runtime::pass_kind::decode, context, {&token, 1}))
      if (time.what->label.view().find(name) != std::string_view::npos)
        times[std::string(time.what->label.view())].push_back(time.nanoseconds / 1e3);
  double all = 0;
  for (auto& [label, of] : times) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    all += of[of.size() / 2];
  }
  return all;
}

/// Microseconds of a pass, over `passes` of them.
double decode_us(runtime::executor& run, std::uint32_t context, std::uint32_t passes) {
  const std::uint32_t token = 1;
  run.begin(runtime::pass_kind::decode, context, {&token, 1}, {}, passes);
  const auto start = std::chrono::steady_clock::now();
  while (run.pending() || run.in_flight()) {
    while (run.may_submit()) run.submit(100, 16);
    run.wait();
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / passes;
}

/// One way to decode, and what it took, round by round.
struct way {
  const char* name;
  bool walks;
  std::unique_ptr<runtime::executor> run;
  std::vector<double> token, gate_up, down, ffn;  ///< us; the FFN's with its norms
};
double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

/// A width whose FFNs are four fifths of what a token reads.
constexpr decoder_config wide_config = [] {
  decoder_config c = models::bitnet_2b_4t_config;
  c.hidden_size = 7168, c.intermediate_size = 28'672, c.num_hidden_layers = 10, c.num_attention_heads = 56,
  c.num_key_value_heads = 8, c.vocab_size = 32'000;
  return c;
}();

/// @param limit bytes a second of a streaming read
template <template <dtype, dtype> class FFN>
void measure_gemma(const gpu::device& device, const char* name, std::uint32_t context, std::uint32_t passes,
                   double limit) {
  const auto planned = plan::planned::of<models::gemma3<models::gemma3_4b_config, dtype::bf16, dtype::bf16, FFN>>(
      plan::profiles::portable, 1024);
  const plan::table& table = planned.table();
  const plan::device_class chain = runtime::usable_classes(device).front().without_residency();
  runtime::executor run(device, table, runtime::synthetic_weights(device, table, {}), chain, nullptr);
  if (const auto fault = run.prove(); !fault.kernel.empty())
    std::printf("  WRONG: %s (%s), off by %g\n", fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  std::vector<double> times;
  const std::uint32_t token = 1;
  for (int repeat = 0; repeat < 7; ++repeat) {
    run.begin(runtime::pass_kind::decode, context, {&token, 1}, {}, passes);
    const auto start = std::chrono::steady_clock::now();
    while (run.pending() || run.in_flight()) {
      while (run.may_submit()) run.submit(100, 16);
      run.wait();
    }
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                    passes);
  }
  std::sort(times.begin(), times.end());
  double bytes = 0, ffn_bytes = 0;
  for (const auto& d : table.decode.block(0))
    if (d.label.view().find("ffn_") == 0 && d.weight_bytes != 0) ffn_bytes += static_cast<double>(d.weight_bytes);
  bytes = static_cast<double>(table.decode.weight_bytes());
  const double us = times[times.size() / 2];
  std::printf(
      "  %-12s median %8.1f us  best %8.1f us  %7.1f tok/s  weights read %6.2f GB (%.0f %% of the limit), of an FFN "
      "%6.1f MB, memory %5.2f GB |",
      name, us, times[0], 1e6 / us, bytes / 1e9, bytes / (us * 1e-6) / limit * 100, ffn_bytes / 1e6,
      static_cast<double>(table.weight_bytes()) / 1e9);
  for (const auto& d : table.decode.block(0)) {
    const std::string label(d.label.view());
    if (label.find("ffn_") != 0) continue;
    const double each = dispatches_us(run, context, label);
    std::printf(" %s %.1f us", label.c_str(), each);
    if (d.weight_bytes != 0)
      std::printf(" (%.0f %%)", static_cast<double>(d.weight_bytes) / (each * 1e-6) / limit * 100);
  }
  std::printf("\n");
}

/// Compares dense decode, by the resident dispatch and by the chain, with the exact walk, in turns; prints the bytes
/// that a token and an FFN's products read.
void compare(const gpu::device& device, const plan::table& dense, const plan::table& walk, const char* name,
             std::uint32_t context, std::uint32_t passes, const std::vector<double>& shares) {
  const double limit = tool::stream_read_rate(device);
  std::printf("%s, profile %.*s, context %u, a streaming read of %.0f GB/s\n", name,
              static_cast<int>(dense.profile.size()), dense.profile.data(), context, limit / 1e9);
  const plan::device_class best = runtime::usable_classes(device).front(), chain = best.without_residency();
  const decoder_config& c = *dense.config;
  const double matrix = 0.25 * c.hidden_size * c.intermediate_size,
               token = static_cast<double>(dense.decode.weight_bytes());
  for (const double share : shares) {
    std::vector<way> ways;
    const auto add = [&](const char* what, const plan::table& table, const plan::device_class& of) {
      way& each = ways.emplace_back();
      each.name = what, each.walks = &table == &walk;
      each.run = std::make_unique<runtime::executor>(
          device, table, runtime::synthetic_weights(device, table, {.relu_zeros = share}), of, nullptr);
      if (const auto fault = each.run->prove(); !fault.kernel.empty())
        std::printf("  WRONG: %s (%s), off by %g\n", fault.kernel.c_str(), fault.label.c_str(), fault.apart);
    };
    if (!dense.resident_decode.resident.empty() && plan::runs(dense.resident_decode.resident.front(), best))
      add("dense, resident", dense, best);
    add("dense, chain", dense, chain);
    add("exact walk, chain", walk, chain);
    for (int round = 0; round < 7; ++round)
      for (way& each : ways) {
        each.token.push_back(decode_us(*each.run, context, passes));
        each.gate_up.push_back(dispatches_us(*each.run, context, "ffn_gate"));
        each.down.push_back(dispatches_us(*each.run, context, "ffn_down"));
        each.ffn.push_back(dispatches_us(*each.run, context, "ffn_"));
      }
    for (const way& each : ways) {
      // What the walk leaves out, of up and of down: features whose gate is off.
      const double left_out = each.walks ? share * matrix : 0, us = median(each.token), gate_up = median(each.gate_up),
                   down = median(each.down);
      const double bytes = token - 2 * left_out * c.num_hidden_layers, percent = 100 / limit;
      std::printf("  %-22s %3.0f%% off  %9.1f us a token (%7.1f MB, %4.1f %%)", each.name, 100 * share, us, bytes / 1e6,
                  bytes / (us * 1e-6) * percent);
      if (gate_up != 0)
        std::printf(
            "  gate, up %8.2f us (%6.2f MB, %4.1f %%)  down %8.2f us (%6.2f MB, %4.1f %%)  FFN and its norms %8.2f us",
            gate_up, (2 * matrix - left_out) / 1e6, (2 * matrix - left_out) / (gate_up * 1e-6) * percent, down,
            (matrix - left_out) / 1e6, (matrix - left_out) / (down * 1e-6) * percent, median(each.ffn));
      std::printf("\n");
    }
  }
}

/// A plan with a trace against that without: rounds of both in turns, so that what the machine does besides meets both;
/// then the host takes the trace.
template <class Plain, class Traced>
void compare_trace(const gpu::device& device, const plan::profile& target, const char* name, std::uint32_t context,
                   std::uint32_t passes) {
  const std::uint32_t room = context + passes;
  const auto plain = plan::planned::of<Plain>(target, room), traced = plan::planned::of<Traced>(target, room);
  const plan::device_class chain = runtime::usable_classes(device).front().without_residency();
  runtime::executor without(device, plain.table(), runtime::synthetic_weights(device, plain.table()), chain, nullptr),
      with(device, traced.table(), runtime::synthetic_weights(device, traced.table()), chain, nullptr);
  for (runtime::executor* each : {&without, &with})
    if (const auto fault = each->prove(); !fault.kernel.empty())
      std::printf("  WRONG: %s (%s), off by %g\n", fault.kernel.c_str(), fault.label.c_str(), fault.apart);
  struct round {
    double without, with, taken;
  };
  std::vector<round> rounds;
  std::size_t tokens = 0;
  for (int i = 0; i < 12; ++i) {
    round now{decode_us(without, context, passes), decode_us(with, context, passes), 0};
    const auto start = std::chrono::steady_clock::now();
    tokens = with.take_trace(room).tokens.size();
    now.taken = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                static_cast<double>(std::max<std::size_t>(tokens, 1));
    if (i != 0) rounds.push_back(now);  // of the first the drivers compile
  }
  const auto median = [&](auto of) {
    std::vector<double> all;
    for (const round& each : rounds) all.push_back(of(each));
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  };
  std::printf(
      "  %-34s without %9.1f us  with %9.1f us  %+6.2f %% (median of %zu rounds' own)  the kernel %7.2f us  host %6.1f "
      "us a token\n",
      name, median([](const round& r) { return r.without; }), median([](const round& r) { return r.with; }),
      median([](const round& r) { return 100 * (r.with / r.without - 1); }), rounds.size(),
      dispatches_us(with, context, "trace"), median([](const round& r) { return r.taken; }));
}

template <const decoder_config& c, template <dtype, dtype> class FFN>
using bitnet = models::bitnet_b158<c, dtype::i2_s, dtype::i8, dtype::f16, FFN>;
template <const decoder_config& c, dtype W, template <dtype, dtype> class FFN>
using gemma = models::gemma3<c, W, dtype::bf16, FFN>;

void compare_traces(const gpu::device& device, std::uint32_t context, std::uint32_t passes) {
  using graph::traced, graph::traced_walk;
  if (device.description().type == gpu::device_type::cpu) {
    compare_trace<bitnet<models::fable_config, graph::walk_ffn>, bitnet<models::fable_config, traced<32>::ffn>>(
        device, plan::profiles::cpu, "fable, exact walk", std::min(context, 128u), std::min(passes, 64u));
    return;
  }
  const plan::profile& target = plan::profiles::portable;
  compare_trace<bitnet<models::bitnet_2b_4t_config, graph::walk_ffn>,
                bitnet<models::bitnet_2b_4t_config, traced<32>::ffn>>(device, target, "bitnet_2b_4t, exact walk",
                                                                      context, passes);
  compare_trace<gemma<models::gemma3_4b_config, dtype::q4_0, graph::gated_ffn>,
                gemma<models::gemma3_4b_config, dtype::q4_0, traced<32>::ffn>>(device, target, "gemma3_4b, q4_0, dense",
                                                                               context, passes);
  compare_trace<gemma<models::gemma3_4b_config, dtype::bf16, graph::walk_ffn>,
                gemma<models::gemma3_4b_config, dtype::bf16, traced_walk<32>::ffn>>(
      device, target, "gemma3_4b, bf16, full walk", context, passes);
  compare_trace<gemma<models::gemma3_4b_config, dtype::bf16, graph::sparse_walk<512>::ffn>,
                gemma<models::gemma3_4b_config, dtype::bf16, traced_walk<32, 512>::ffn>>(
      device, target, "gemma3_4b, bf16, sparse 512", context, passes);
}

/// Which features' up and down vectors a walk of fable reads, token by token.
void print_vectors(const char* path, std::uint32_t tokens) {
  const plan::table& table = plan::engraved<walked<models::fable_config>, plan::profiles::cpu>::table;
  const io::checkpoint file = io::checkpoint::open(path);
  runtime::weight_image image(file, table);
  image.measure(1, [](std::uint64_t) {});
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> bytes;
  reference::machine machine(table, [&](std::uint32_t slot, std::uint32_t layer) {
    auto& found = bytes[{slot, layer}];
    if (found.empty()) {
      found.resize(table.weights[slot].bytes);
      image.fill(slot, layer, 0, found);
    }
    return std::span<const std::byte>(found);
  });
  machine.state[kernels::state::repeat_penalty] = std::bit_cast<std::uint32_t>(1.f);
  struct read_counts {
    std::uint64_t up = 0, down = 0;
  };
  std::vector<read_counts> layers(table.config->num_hidden_layers);
  const std::size_t features = table.config->intermediate_size;
  std::uint32_t token = 1;
  for (std::uint32_t at = 0; at < tokens; ++at) {
    machine.feed(at, {&token, 1});
    machine.run(table.decode, [&](const plan::dispatch& d, std::uint32_t layer) {
      if (d.kernel != kernels::kernel::walk_gate_up) return;
      const auto h = machine.floats(d[kernels::push_ids<kernels::walk_gate_up_kernel>.output].offset, features);
      for (const float value : h) layers[layer].up += value != 0;
      // What the next dispatch quantises.
      for (const auto& next : table.decode.block(0)) {
        if (next.kernel != kernels::kernel::walk_down) continue;
        const auto& norm = next[kernels::push_ids<kernels::walk_down_kernel>.norm_weight];
        const auto& weight = bytes[{norm.slot, layer}];
        if (weight.empty()) continue;  // the first token, before anybody asked for it
        std::vector<std::int8_t> q(features);
        std::vector<reference::factors> factor(1);
        reference::norm_quantize(h, {reinterpret_cast<const float*>(weight.data()), features}, features,
                                 plan::constants_of<kernels::walk_down_kernel>(next).eps, q, factor);
        for (const std::int8_t value : q) layers[layer].down += value != 0;
      }
    });
    token = machine.ring[at % table.ring_size];
  }
  std::printf(
      "fable, %u tokens: vectors of features that a walk reads\n  layer       up     down    bytes of the FFN\n",
      tokens);
  double all = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double up = static_cast<double>(layers[i].up) / static_cast<double>(features * tokens),
                 down = static_cast<double>(layers[i].down) / static_cast<double>(features * (tokens - 1));
    std::printf("  %5zu   %5.1f%%   %5.1f%%   %5.1f%%\n", i, 100 * up, 100 * down, 100 * (1 + up + down) / 3);
    all += (1 + up + down) / 3 / static_cast<double>(layers.size());
  }
  std::printf("    all                     %5.1f%%\n", 100 * all);
}

}  // namespace

int main(int count, char** arguments) try {
  if (count > 2 && std::string_view(arguments[1]) == "--vectors") {
    print_vectors(arguments[2], static_cast<std::uint32_t>(count > 3 ? std::max(2, std::atoi(arguments[3])) : 32));
    return 0;
  }
  if (count > 1 && std::string_view(arguments[1]) == "--gemma") {
    gpu::device device;
    const double limit = tool::stream_read_rate(device);
    std::printf("%s, a streaming read of %.0f GB/s\ngemma3_4b, bf16, chain\n", device.label().c_str(), limit / 1e9);
    const auto context = static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 128),
               passes = static_cast<std::uint32_t>(count > 3 ? std::atoi(arguments[3]) : 64);
    const std::vector<std::string_view> names(arguments + std::min(count, 4), arguments + count);
    const auto measure = [&]<template <dtype, dtype> class Ffn>(std::string_view name) {
      if (names.empty() || std::find(names.begin(), names.end(), name) != names.end())
        measure_gemma<Ffn>(device, name.data(), context, passes, limit);
    };
    measure.operator()<graph::gated_ffn>("dense");
    measure.operator()<graph::walk_ffn>("full");
    measure.operator()<graph::sparse_walk<1024>::ffn>("sparse 1024");
    measure.operator()<graph::sparse_walk<512>::ffn>("sparse 512");
    measure.operator()<graph::sparse_walk<256>::ffn>("sparse 256");
    return 0;
  }
  if (count > 1 && std::string_view(arguments[1]) == "--trace") {
    gpu::device device;
    std::printf("%s\ndecode with a trace of 32 features a layer, chain\n", device.label().c_str());
    compare_traces(device, static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 128),
                   static_cast<std::uint32_t>(count > 3 ? std::atoi(arguments[3]) : 64));
    return 0;
  }
  const bool wide = count > 1 && std::string_view(arguments[1]) == "--wide",
             large = count > 1 && std::string_view(arguments[1]) == "--2b";
  if (wide || large) ++arguments, --count;
  const auto context = static_cast<std::uint32_t>(count > 1 ? std::atoi(arguments[1]) : 128);
  const auto passes = static_cast<std::uint32_t>(count > 2 ? std::atoi(arguments[2]) : 128);
  std::vector<double> shares;
  for (int i = 3; i < count; ++i) shares.push_back(std::atof(arguments[i]));
  if (shares.empty()) shares = {0, 0.5, 0.7};
  gpu::device device;
  std::printf("%s\n", device.label().c_str());
  if (wide)
    compare(device, plan::engraved<bitnet<wide_config, graph::gated_ffn>, plan::profiles::portable>::table,
            plan::engraved<walked<wide_config>, plan::profiles::portable>::table,
            "10 layers of 7168 and 28672, 56 heads, 8 of keys and values", context, passes, shares);
  else if (large && device.description().type == gpu::device_type::cpu)
    compare(device, plan::engraved<models::bitnet_2b_4t, plan::profiles::cpu>::table,
            plan::engraved<walked<models::bitnet_2b_4t_config>, plan::profiles::cpu>::table, "bitnet_2b_4t",
            std::min(context, 256u), passes, shares);
  else if (device.description().type == gpu::device_type::cpu)
    compare(device, plan::engraved<models::fable, plan::profiles::cpu>::table,
            plan::engraved<walked<models::fable_config>, plan::profiles::cpu>::table, "fable", std::min(context, 256u),
            passes, shares);
  else
    compare(device, plan::engraved<models::bitnet_2b_4t, plan::profiles::portable>::table,
            plan::engraved<walked<models::bitnet_2b_4t_config>, plan::profiles::portable>::table, "bitnet_2b_4t",
            context, passes, shares);
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
