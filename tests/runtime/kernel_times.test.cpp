// SPDX-License-Identifier: MIT
// Time by kernel, taken all along, and the share of time that a device is left idle: neither changes a token.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/planned.hpp"
#include "intaglio/runtime/basic_batch.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"

using namespace intaglio;

TEST_CASE("time by kernel is taken all along, and rests between submissions are kept") {
  checked_device on;
  const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const std::array<const plan::table*, 2> tables{&fable_table(), &fable_portable_table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  runtime::executor& run = const_cast<runtime::executor&>(session.executor());
  const auto ids = session.encode("Once upon a time, there was a little fox who lived in a big, dark forest with his");
  const generate_options drawn{.temperature = 0.8f, .seed = 4, .max_tokens = 150, .stop_at_end = false};
  run.take_times(false);
  const auto untimed = session.generate(ids, drawn).ids;
  CHECK(run.times(runtime::pass_kind::decode).timed == 0);
  run.take_times(true);
  session.reset();
  CHECK(session.generate(ids, drawn).ids == untimed);
  // A pass is timed where it fits into half of a submission's time; on a machine that stood still a while that is a
  // later one.
  for (int i = 0; i < 20 && run.times(runtime::pass_kind::prefill).timed == 0; ++i) {
    session.reset();
    session.prefill(ids);
    if (on.device.limits().timestamp_bits == 0) break;
  }
  for (const runtime::pass_kind kind : {runtime::pass_kind::decode, runtime::pass_kind::prefill}) {
    const runtime::pass_times& times = run.times(kind);
    if (on.device.limits().timestamp_bits == 0) {
      CHECK(times.timed == 0);
      continue;
    }
    CAPTURE(static_cast<int>(kind), times.passes);
    CHECK(times.timed >= 1);
    CHECK(times.timed <= times.passes / 16 + 1);
    CHECK(times.nanoseconds() > 0);
    const plan::sequence& plan = run.plan_of(kind);
    std::uint64_t expected = plan.prologue.size() + plan.epilogue.size(), found = 0;
    for (std::uint32_t layer = 0; layer < plan.repeats(); ++layer) expected += plan.stretch(layer).size();
    for (const auto& each : times.kernels) found += each.dispatches;
    CHECK(found == expected * times.timed);
    CHECK(times.kernels[static_cast<std::size_t>(kernels::kernel::embed)].dispatches == times.timed);
  }

  session.reset();
  auto rested = drawn;
  rested.gpu_idle = 0.75f, rested.tokens_per_submit = 1, rested.max_tokens = 40;
  const auto from = std::chrono::steady_clock::now();
  const generation slow = session.generate(ids, rested);
  const double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
  CHECK(std::equal(slow.ids.begin(), slow.ids.end(), untimed.begin()));
  CHECK(slow.timings.busy_ms > 0);
  CHECK(slow.timings.busy_ms <= 0.28 * took);  // the last submission has no rest after it
  for (const float wrong : {-0.1f, 1.0f}) CHECK_THROWS_AS(session.begin({.gpu_idle = wrong}), argument_error);
}

TEST_CASE("time by kernel is taken of a batch too") {
  checked_device on;
  const io::checkpoint file = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const plan::planned made =
      plan::planned::of<models::fable>(plan::profiles::cpu, 128, {.slot_count = 2, .page_size = 8});
  const std::array<const plan::table*, 1> tables{&made.table()};
  basic_batch batch(on.device, tables, file, {.cache_folder = ""});
  const auto ids = batch.encode("Once upon a time, there was a little fox");
  batch.join(ids, {.max_tokens = 20});
  batch.join(ids, {.max_tokens = 20});
  while (batch.active() != 0) batch.step(4);
  for (const auto& [kind, plan] : {std::pair{runtime::pass_kind::decode, &made.table().batch},
                                   std::pair{runtime::pass_kind::prefill, &made.table().prefill}}) {
    const runtime::pass_times& times = batch.executor().times(kind);
    CAPTURE(static_cast<int>(kind), times.passes);
    CHECK(times.passes >= 1);
    CHECK(times.timed == (on.device.limits().timestamp_bits == 0 ? 0 : 1));
    std::uint64_t expected = plan->prologue.size() + plan->epilogue.size(), found = 0;
    for (std::uint32_t layer = 0; layer < plan->repeats(); ++layer) expected += plan->stretch(layer).size();
    for (const auto& each : times.kernels) found += each.dispatches;
    CHECK(found == expected * times.timed);
  }
}
