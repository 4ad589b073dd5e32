// SPDX-License-Identifier: MIT
// Decode after 131,064 positions: the tokens that attention in f64 gives.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/reference/cached.hpp"
#include "intaglio/reference/machine.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;

namespace {

constexpr std::uint32_t context = 131072, first = context - 8, drawn = 4;
constexpr decoder_config small_long{.model_type = architecture::llama,
                                    .hidden_size = 64,
                                    .intermediate_size = 192,
                                    .num_hidden_layers = 2,
                                    .num_attention_heads = 2,
                                    .num_key_value_heads = 1,
                                    .head_dim = 32,
                                    .vocab_size = 512,
                                    .max_position_embeddings = context,
                                    .rope_theta = 500'000.f,
                                    .hidden_act = activation::silu,
                                    .tie_word_embeddings = false};

/// Keys so large that a head attends to only some positions, wherever they are; values of usual size.
std::vector<std::byte> random_cache(const plan::table& table, bool is_value, std::uint32_t seed) {
  const reference::cached form{table.cache_element, is_value, small_long.head_dim, context};
  std::vector<std::byte> out(static_cast<std::size_t>(form.bytes(1)));
  std::vector<float> row(small_long.head_dim);
  for (std::uint32_t at = 0; at < first; ++at) {
    for (float& each : row) {
      seed = seed * 1664525u + 1013904223u;
      each = (static_cast<float>(seed >> 8) / 8388608.f - 1) * (is_value ? 1.f : 6.f);
    }
    form.store(out, 0, at, row);
  }
  return out;
}

/// What an attention of one token gives in f64. @return how much of a softmax is in the first half of the context
double attend(reference::machine& on, const plan::dispatch& call, std::uint32_t layer, std::uint32_t position) {
  const auto& face = kernels::attention_interface;
  const std::uint32_t width = small_long.head_dim, heads = small_long.num_attention_heads;
  const auto query = on.floats(call.push[face.push_index("query")].offset, std::size_t{heads} * width);
  const reference::cached keys{on.table->cache_element, false, width, context},
      values{on.table->cache_element, true, width, context};
  double before = 0;
  for (std::uint32_t head = 0; head < heads; ++head) {
    std::vector<double> scores(position + 1), sums(width);
    double most = -HUGE_VAL, total = 0, early = 0;
    for (std::uint32_t at = 0; at <= position; ++at) {
      for (std::uint32_t c = 0; c < width; ++c)
        scores[at] += static_cast<double>(query[head * width + c]) * keys.read(on.keys[layer], 0, at, c);
      scores[at] /= std::sqrt(static_cast<double>(width));
      most = std::max(most, scores[at]);
    }
    for (std::uint32_t at = 0; at <= position; ++at) {
      const double p = std::exp(scores[at] - most);
      total += p;
      if (at < context / 2) early += p;
      if (p < 1e-12) continue;
      for (std::uint32_t c = 0; c < width; ++c) sums[c] += p * values.read(on.values[layer], 0, at, c);
    }
    for (std::uint32_t c = 0; c < width; ++c) {
      const auto result = static_cast<float>(sums[c] / total);
      std::memcpy(on.arena.data() + call.push[face.push_index("output")].offset + 4 * (head * width + c), &result, 4);
    }
    before += early / total / heads;
  }
  return before;
}

void check(const plan::profile& target) {
  const plan::planned made = plan::planned::of<models::llama<small_long, dtype::f16>>(target, context);
  const plan::table& table = made.table();
  const checked_device on;
  runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table),
                        runtime::usable_classes(on.device).front(), nullptr);
  gpu::transfer transfer(on.device);

  std::vector<std::vector<std::byte>> weights;  // of the device, by slot and layer
  for (const auto& item : run.weights().placed.items) {
    weights.emplace_back(static_cast<std::size_t>(item.bytes));
    transfer.download(run.weights().placed.buffers[item.buffer], item.offset, weights.back());
  }
  std::vector<std::uint32_t> first_copy;
  std::uint32_t copies = 0;
  for (const plan::weight& each : table.weights) first_copy.push_back(copies), copies += table.copies(each);
  REQUIRE(copies == weights.size());
  reference::machine machine(table, [&](std::uint32_t slot, std::uint32_t layer) {
    return std::span<const std::byte>(weights[first_copy[slot] + table.copy_of(table.weights[slot], layer)]);
  });
  machine.state[kernels::state::repeat_penalty] = std::bit_cast<std::uint32_t>(1.f);
  for (std::uint32_t layer = 0; layer < 2; ++layer)
    for (const bool is_value : {false, true}) {
      auto& own = (is_value ? machine.values : machine.keys)[layer];
      const auto content = random_cache(table, is_value, 17 * layer + (is_value ? 5 : 3));
      std::copy(content.begin(), content.end(), own.begin());
      const auto& item = run.caches().items[2 * layer + (is_value ? 1 : 0)];
      transfer.upload(run.caches().buffers[item.buffer], item.offset, own);
    }
  transfer.finish();

  std::uint32_t token = 7;
  run.begin(runtime::pass_kind::decode, first, std::span(&token, 1), {}, drawn);
  while (run.pending() || run.in_flight() != 0) {
    if (run.may_submit()) run.submit(1e6, drawn);
    else run.wait();
  }
  double early = 0;
  for (std::uint32_t i = 0; i < drawn; ++i) {
    machine.feed(first + i, std::span(&token, 1));
    const auto part = [&](std::span<const plan::dispatch> calls, std::uint32_t layer) {
      for (const plan::dispatch& call : calls)
        if (call.kernel == kernels::kernel::attention) early += attend(machine, call, layer, first + i) / drawn / 2;
        else machine.step(call, layer);
    };
    part(table.decode.prologue, 0);
    for (std::uint32_t layer = 0; layer < 2; ++layer) part(table.decode.block(table.decode.pattern(layer)), layer);
    part(table.decode.epilogue, 0);
    token = machine.ring[i];
    CHECK(run.drawn(i) == token);
  }
  CHECK(early > 0.1);  // else the test would not see far
  CHECK(early < 0.9);
}

}  // namespace

TEST_CASE("decode after 131,064 positions draws what attention in f64 gives", "[runtime]") {
  SECTION("floats, heads together by CPU drivers") { check(plan::profiles::cpu); }
  SECTION("halves, spans by workgroups of their own") { check(plan::profiles::portable); }
  SECTION("eight bits") { check(plan::with_cache(plan::profiles::portable, kernels::element::q8_0)); }
}
