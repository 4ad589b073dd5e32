// SPDX-License-Identifier: MIT
// Shared code of tests that compare batches with the resident dispatch and with the chain.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/batch_executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"

namespace intaglio::testing {

/// Slot s has pages s, s + 8, ... : no slot's lie after each other.
inline std::vector<std::uint32_t> pages_of(const plan::table& table, std::uint32_t slot) {
  std::vector<std::uint32_t> out(table.slot_pages());
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i] = slot + i * table.shape.slot_count;
  return out;
}
/// Tokens of a slot's session up to a position.
inline std::vector<std::int32_t> tokens_of(std::uint32_t slot, std::uint32_t position) {
  std::vector<std::int32_t> out;
  for (std::uint32_t i = 0; i <= position; ++i)
    out.push_back(static_cast<std::int32_t>((37 * i + 101 * slot + i * i % 29) % 512));
  return out;
}
/// Feeds each of these slots tokens of its own, slot s to its position, one pass a token. @param rows of the passes; 0:
/// all slots  @return logits of the slots
inline std::vector<std::vector<float>> fed(runtime::batch_executor& run, const std::vector<std::uint32_t>& slot_count,
                                           const std::vector<std::uint32_t>& positions, std::uint32_t rows = 0) {
  const plan::table& table = run.table();
  const std::uint32_t most = *std::ranges::max_element(positions);
  std::vector<std::vector<std::int32_t>> tokens(table.shape.slot_count);
  for (const std::uint32_t slot : slot_count) tokens[slot] = tokens_of(slot, positions[slot]);
  for (std::uint32_t turn = 0; turn <= most; ++turn) {
    for (const std::uint32_t slot : slot_count) {
      const std::uint32_t after = most - positions[slot];  // all end together
      if (turn >= after)
        run.set(slot,
                {std::span(tokens[slot]).first(turn - after + 1), pages_of(table, slot), table.context, true, {}});
    }
    run.decode(rows != 0 ? rows : table.shape.slot_count, 1, turn == most, 100);
  }
  std::vector<std::vector<float>> out;
  for (const std::uint32_t slot : slot_count) out.emplace_back(run.logits(slot).begin(), run.logits(slot).end());
  return out;
}
/// A session that ends at a position, whose last tokens are rows of one pass: the first in its slot, the others, its
/// drafts, in vacant slots.
struct drafted_session {
  std::uint32_t slot = 0, position = 0;
  std::vector<std::uint32_t> drafts;
};
/// @return logits of all rows of the pass with drafts
inline std::vector<std::vector<float>> fed_with_drafts(runtime::batch_executor& run,
                                                       const std::vector<drafted_session>& sessions) {
  const plan::table& table = run.table();
  std::vector<std::uint32_t> slot_count, positions(table.shape.slot_count), rows;
  for (const drafted_session& each : sessions) {
    slot_count.push_back(each.slot);
    positions[each.slot] = each.position - static_cast<std::uint32_t>(each.drafts.size()) - 1;
  }
  fed(run, slot_count, positions);
  for (const drafted_session& each : sessions) {
    const std::vector<std::int32_t> tokens = tokens_of(each.slot, each.position);
    std::uint32_t row = each.slot, before = 0, count = positions[each.slot] + 2;
    for (std::size_t i = 0; i <= each.drafts.size(); ++i, ++count) {
      if (i != 0) before = 1 + std::exchange(row, each.drafts[i - 1]);
      run.set(row,
              {std::span(tokens).first(count), pages_of(table, each.slot), table.context, true, {}, {0, 0}, before});
      rows.push_back(row);
    }
  }
  run.decode(table.shape.slot_count, 1, true, 100);
  std::vector<std::vector<float>> out;
  for (const std::uint32_t row : rows) out.emplace_back(run.logits(row).begin(), run.logits(row).end());
  return out;
}
inline bool runs(const gpu::device& on, const plan::table& table, const plan::device_class& modules) {
  return runtime::resident_workgroups(on) != 0 && plan::runs(table.resident_batch.resident.front(), modules);
}
/// What a test says that cannot run here.
inline std::string not_run(const gpu::device& on, const plan::table& table) {
  const plan::dispatch& all = table.resident_batch.resident.front();
  return "NOT RUN: needs an NVIDIA GPU with " +
         std::to_string(all.least_groups != 0 ? all.least_groups : all.groups[0]) + " multiprocessors or more, found " +
         on.label();
}

/// Logits of the first slots, fed up to these positions by the proven resident dispatch and by the chain.
struct both_ways {
  std::vector<std::vector<float>> found, expected;
};
/// @param modules of the one dispatch
inline both_ways fed_both_ways(const gpu::device& on, const plan::table& table, const plan::device_class& modules,
                               const std::vector<std::uint32_t>& positions) {
  std::vector<std::uint32_t> slot_count(positions.size());
  std::iota(slot_count.begin(), slot_count.end(), 0u);
  runtime::batch_executor run(on, table, runtime::synthetic_weights(on, table), modules, nullptr);
  CHECK(run.prove().kernel.empty());
  REQUIRE(run.runs_resident());
  both_ways out{fed(run, slot_count, positions), {}};
  runtime::batch_executor chain(on, table, runtime::synthetic_weights(on, table), as_chain(modules), nullptr);
  REQUIRE_FALSE(chain.runs_resident());
  out.expected = fed(chain, slot_count, positions);
  return out;
}

/// A batch whose workgroups wait for one turn has no numbers, and goes on as the chain.
inline void wait_in_vain(const plan::planned& made) {
  const checked_device on;
  const plan::device_class modules = runtime::usable_classes(on.device).front();
  if (!runs(on.device, made.table(), modules)) SKIP(not_run(on.device, made.table()));
  std::vector<plan::dispatch> resident(made.table().resident_batch.resident.begin(),
                                       made.table().resident_batch.resident.end());
  resident[0].specialization[kernels::interface_of(resident[0].kernel).specialization_index("spin_limit")] = 1;
  plan::table table = made.table();
  table.resident_batch.resident = resident;
  const std::vector<std::uint32_t> positions(8, 2);
  runtime::batch_executor chain(on.device, table, runtime::synthetic_weights(on.device, table), as_chain(modules),
                                nullptr);
  const auto expected = fed(chain, {0, 1}, positions);

  runtime::batch_executor unproven(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  REQUIRE(unproven.runs_resident());
  for (const auto& logits : fed(unproven, {0, 1}, positions))
    CHECK(std::ranges::all_of(logits, [](float x) { return std::isnan(x); }));
  for (const std::uint32_t slot : {0u, 1u}) unproven.set(slot, {});
  unproven.clean(2, pages_of(table, 2));
  REQUIRE_FALSE(unproven.runs_resident());
  CHECK(fed(unproven, {0, 1}, positions) == expected);

  // Who asks for a proof begins with the chain.
  runtime::batch_executor proven(on.device, table, runtime::synthetic_weights(on.device, table), modules, nullptr);
  CHECK(proven.prove().kernel.empty());
  REQUIRE_FALSE(proven.runs_resident());
  CHECK(fed(proven, {0, 1}, positions) == expected);
}

}  // namespace intaglio::testing
