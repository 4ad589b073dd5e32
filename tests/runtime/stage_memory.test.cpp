// SPDX-License-Identifier: MIT
// The memory that stages of a cut take: what is counted before anything is loaded, and what is allocated then.
#include "intaglio/runtime/stage_memory.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "intaglio/runtime/cut_batch.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr plan::batch_shape together{.slot_count = 2, .page_size = 16, .pages = 24};
const cut_options by_hand{.after = {1, 2}};

/// A model of 3 layers and its plan for CPU drivers.
struct model {
  io::checkpoint file = io::checkpoint::open(conformance("llama-tiny") / "gguf/llama-tiny-q4_0.gguf");
  plan::planned plan;
  std::array<const plan::table*, 1> tables{&plan.table()};
  explicit model(const plan::batch_shape& shape = {})
      : plan(families::planned_of(file.config(), families::types_of(file).types, "tiny", plan::profiles::cpu, 128,
                                  shape)) {}
};

/// One device three times, behind the shim.
std::vector<gpu::device> three_devices() {
  gpu::device_options options;
  options.entry = &faults::entry;
  faults::the_shim().reset();
  return {gpu::device(options), gpu::device(options), gpu::device(options)};
}
std::uint64_t allocated(const gpu::device& on) { return on.counters().allocated_bytes; }
struct reported {
  explicit reported(std::uint64_t free) { faults::reported_free = free; }
  reported(const reported&) = delete;
  reported& operator=(const reported&) = delete;
  ~reported() { faults::reported_free.reset(); }
};

}  // namespace

TEST_CASE("rows that cross take the memory that is counted for them, of a session and of a batch") {
  const checked_device on;
  const model alone, of_batch(together);
  for (const plan::layer_range layers : {plan::layer_range{0, 1}, {1, 2}, {2, 3}}) {
    INFO("layers " << layers.first << " to " << layers.end - 1);
    const plan::stage stage(alone.plan.table(), layers), in_batch(of_batch.plan.table(), layers, 3);
    const plan::row_memory rows = plan::row_memory_of(stage.table(), false),
                           batch_rows = plan::row_memory_of(in_batch.table(), true);
    CHECK(rows.of_device() != 0);
    CHECK(batch_rows.of_device() == 0);
    CHECK(batch_rows.of_host() == (layers.first != 0 && layers.end != 3 ? 2u : 1u) * batch_rows.slot);
    const std::uint64_t before = allocated(on.device);
    {
      const runtime::stage_rows made(on.device, stage.table());
      CHECK(allocated(on.device) - before == rows.of_device() + rows.of_host() - rows.history);
    }
    {
      const runtime::batch_crossing made(on.device, in_batch.table());
      CHECK(allocated(on.device) - before == batch_rows.of_host());
    }
    CHECK(allocated(on.device) == before);
  }
}

TEST_CASE("a cut fits or not by one byte, with the rows that cross counted", "[once]") {
  const model alone, of_batch(together);
  const auto check = [&](const model& of, std::uint32_t groups, const auto& load) {
    const std::vector<gpu::device> on = three_devices();
    if (on.front().description().heaps.size() != 1) SKIP("NOT RUN: needs a device with one heap");
    std::uint64_t need = 0, rows = 0;
    const runtime::device_cut cut = runtime::cut_over(on, of.tables, by_hand, groups);
    for (const auto& stage : cut.stages) {
      const runtime::stage_need its = runtime::needed_stage_memory(on.front(), stage->table());
      need += its.total(), rows += its.rows;
    }
    CHECK(rows > 0);
    {
      const reported less(need - 1);
      CHECK_THROWS_AS(runtime::require_stage_memory(on, cut), out_of_memory);
      CHECK_THROWS_WITH(load(on), ContainsSubstring("load stage 0 of 3 of tiny: need ") &&
                                      ContainsSubstring("for layers 0 to 0 (weights ") &&
                                      ContainsSubstring(", rows that cross ") &&
                                      ContainsSubstring(" with the other stages there, have "));
      for (const gpu::device& each : on) CHECK(allocated(each) == 0);
    }
    const reported enough(need);
    CHECK_NOTHROW(runtime::require_stage_memory(on, cut));
    const auto loaded = load(on);
    std::uint64_t taken = 0;
    for (const gpu::device& each : on) taken += allocated(each);
    INFO(taken << " of " << need);
    CHECK(taken <= need);
    CHECK(taken + 4 * (1u << 20) > need);
  };
  check(alone, 1, [&](const std::vector<gpu::device>& on) {
    return cut_session(on, alone.tables, alone.file, {.cache_folder = ""}, by_hand);
  });
  check(of_batch, 3, [&](const std::vector<gpu::device>& on) {
    return cut_batch(on, of_batch.tables, of_batch.file, {.cache_folder = ""}, by_hand);
  });
  CHECK(faults::the_shim().live().empty());
}

TEST_CASE("a cut is chosen among those that fit with their rows, and one that is chosen is not refused") {
  const model of;
  const std::vector<gpu::device> on = three_devices();
  const std::span<const gpu::device> two = std::span(on).first(2);
  if (on.front().description().heaps.size() != 1) SKIP("NOT RUN: needs a device with one heap");
  const auto need = [&](std::uint32_t after, bool twice_the_larger) {
    const runtime::device_cut cut = runtime::cut_over(two, of.tables, {.after = {after}});
    std::uint64_t sum = 0, largest = 0;
    for (const auto& stage : cut.stages) {
      const std::uint64_t its = runtime::needed_stage_memory(on.front(), stage->table()).total();
      sum += its, largest = (std::max)(largest, its);
    }
    return twice_the_larger ? 2 * largest : sum;  // each of the two has half of the device
  };
  for (const bool twice_the_larger : {true, false}) {
    // Where no stages of equal memory fit, the closest cut can: its larger stage is beside a smaller one.
    const reported enough(twice_the_larger ? (std::min)(need(1, true), need(2, true))
                                           : need(need(1, true) < need(2, true) ? 1 : 2, false));
    const runtime::device_cut cut = runtime::cut_over(two, of.tables, {});
    CHECK_NOTHROW(runtime::require_stage_memory(two, cut));
  }
}

TEST_CASE("a chosen cut that does not fit is refused as one by hand: by a stage, its layers and its bytes") {
  const model of;
  const std::vector<gpu::device> on = three_devices();
  const std::span<const gpu::device> two = std::span(on).first(2);
  const reported little(std::uint64_t{1} << 20);
  const auto refusal = [&](const cut_options& wish) {
    try {
      cut_session(two, of.tables, of.file, {.cache_folder = ""}, wish);
    } catch (const out_of_memory& problem) {
      CHECK(problem.device() == on.front().label());
      return std::string(problem.what());
    }
    return std::string("none");
  };
  const std::string chosen = refusal({});
  const runtime::device_cut cut = runtime::cut_over(two, of.tables, {});
  CHECK(chosen == refusal({.after = {cut.stages.front()->layers().end}}));
  CHECK_THAT(chosen, ContainsSubstring("load stage 0 of 2 of tiny: need ") && ContainsSubstring("for layers 0 to ") &&
                         ContainsSubstring(", have "));
  for (const gpu::device& each : two) CHECK(allocated(each) == 0);
}
