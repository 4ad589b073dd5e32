// SPDX-License-Identifier: MIT
// A batch beside a session alone, and what sessions of the one have to draw as the other does.
#pragma once

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"

namespace intaglio::testing {

/// A model's plan with a batch, a session alone and a batch of it.
struct both {
  checked_device on;
  plan::planned plan;
  std::array<const plan::table*, 1> tables;
  io::checkpoint file;
  basic_session alone;
  basic_batch batch;

  both(plan::planned with, io::checkpoint from, bool prove = true)
      : plan(std::move(with)), tables{&plan.table()}, file(std::move(from)),
        alone(on.device, tables, file, {.cache_folder = "", .prove_kernels = false}),
        batch(on.device, tables, file, {.cache_folder = "", .prove_kernels = prove}) {}
  /// @param make_batch of the plan and the file
  template <class MakeBatch>
    requires std::invocable<MakeBatch, std::span<const plan::table* const>, const io::checkpoint&>
  both(plan::planned with, io::checkpoint from, MakeBatch&& make_batch)
      : plan(std::move(with)), tables{&plan.table()}, file(std::move(from)),
        alone(on.device, tables, file, {.cache_folder = "", .prove_kernels = false}),
        batch(make_batch(std::span<const plan::table* const>(tables), std::as_const(file))) {}

  std::vector<std::int32_t> drawn_alone(const std::vector<std::int32_t>& ids, const batch_options& options) {
    const sampling_options& s = options.sampling;
    alone.reset();
    return alone
        .generate(ids, {.temperature = s.temperature,
                        .top_k = s.top_k,
                        .top_p = s.top_p,
                        .min_p = s.min_p,
                        .repeat_penalty = s.repeat_penalty,
                        .repeat_last_n = s.repeat_last_n,
                        .seed = s.seed,
                        .max_tokens = options.max_tokens,
                        .stop_at_end = false})
        .ids;
  }
};

inline std::vector<std::int32_t> some_ids(std::uint32_t count, std::uint32_t seed, std::uint32_t vocabulary) {
  std::vector<std::int32_t> out(count);
  for (std::uint32_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>((seed * 7919 + i * 104'729 + i * i * 31) % vocabulary);
  return out;
}

/// Prompts of all lengths about pages and chunks, joining at their step, some leaving early; slots are taken again.
/// @param drawn what a session draws by itself  @param staying others, which are there all along
template <class Drawn>
void check_mixed(both& b, Drawn&& drawn, std::uint32_t staying = 0) {
  struct visit {
    std::uint32_t step, prompt;
    batch_options options;
    std::uint32_t leaves_after;  // tokens; 0: stays
    batch_handle who{};
    std::vector<std::int32_t> ids{}, got{};
  };
  std::vector<visit> visits{
      {0, 40, {{}, 14}, 0},
      {0,
       3,
       {{.temperature = 0.9f, .top_k = 50, .top_p = 0.95f, .min_p = 0.01f, .repeat_penalty = 1.2f, .seed = 5}, 16},
       9},
      {2, 1, {{.temperature = 1.1f, .seed = 77}, 12}, 0},
      {9, 70, {{.temperature = 0.7f, .repeat_penalty = 1.3f, .repeat_last_n = 20, .seed = 9}, 10}, 0},
      {12, 17, {{.temperature = 0.8f, .seed = 5}, 1}, 0},
      {16, 33, {{}, 6}, 0}};
  const std::uint32_t vocabulary = b.plan.table().config->vocab_size;
  for (std::size_t i = 0; i < visits.size(); ++i)
    visits[i].ids = some_ids(visits[i].prompt, static_cast<std::uint32_t>(i + 1), vocabulary);
  for (std::uint32_t step = 0; step == 0 || step <= visits.back().step || b.batch.active() != staying; ++step) {
    REQUIRE(step < 200);
    for (visit& each : visits)
      if (each.step == step) each.who = b.batch.join(each.ids, each.options);
    for (const batch_token& token : b.batch.step(step % 3 == 2 ? 3 : 1))
      for (visit& each : visits)
        if (each.who == token.of) {
          each.got.push_back(token.id);
          CHECK(token.last == (each.got.size() == each.options.max_tokens));
        }
    for (visit& each : visits)
      if (each.leaves_after != 0 && each.got.size() >= each.leaves_after) b.batch.leave(each.who);
  }
  CHECK(b.batch.free_slots() == b.batch.slot_count() - staying);
  if (staying == 0) CHECK(b.batch.free_pages() == b.plan.table().shape.pages);
  for (const visit& each : visits) {
    INFO("prompt of " << each.prompt << " joining at step " << each.step);
    auto expected = drawn(each.ids, each.options);
    if (each.leaves_after != 0) {
      CHECK(each.got.size() >= each.leaves_after);
      expected.resize(each.got.size());
    }
    CHECK(each.got == expected);
  }
}
inline void check_mixed(both& b) {
  check_mixed(b, [&](const std::vector<std::int32_t>& ids, const batch_options& options) {
    return b.drawn_alone(ids, options);
  });
}

}  // namespace intaglio::testing
