// SPDX-License-Identifier: MIT
// Compares the resident dispatch with the chain of dispatches: it draws the same tokens and gives the same bits of
// logits, for any number of workgroups and any order in which they run.
#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"

using namespace intaglio;

namespace {
constexpr plan::profile with_parts(std::uint32_t parts) {
  plan::profile out = plan::profiles::cpu;
  out.work.layers_parts = parts;
  out.work.group_weights = 1;
  return out;
}
constexpr plan::profile two = with_parts(2), three = with_parts(3), eight = with_parts(8);
template <const plan::profile& Profile>
constexpr const plan::table& fable_of = plan::engraved<models::fable, Profile>::table;

plan::device_class modules(const gpu::device& on, bool resident) {
  return resident ? first_class(on) : chain_class(on);
}

bool usable(const gpu::device& on) {
  const auto all = runtime::usable_classes(on);
  return !all.empty() && all.front().resident_workgroups != 0;
}

/// Drawn at a high temperature, where nearly every bit of the logits counts.
std::vector<std::uint32_t> drawn(const gpu::device& on, const plan::table& table, bool resident, std::uint32_t position,
                                 std::uint32_t count) {
  runtime::executor run(on, table, runtime::synthetic_weights(on, table), modules(on, resident), nullptr);
  return drawn_tokens(run, position, 17, {.temperature = 4.f, .seed = 5}, count);
}
}  // namespace

TEST_CASE("llvmpipe decodes by the resident dispatch", "[runtime][resident][gpu][wide][second]") {
  const checked_device on;
  on.skip_unless_llvmpipe();
  REQUIRE(usable(on.device));
  runtime::executor run(on.device, fable_table(), runtime::synthetic_weights(on.device, fable_table()),
                        runtime::usable_classes(on.device).front(), nullptr);
  CHECK(run.plan_of(runtime::pass_kind::decode).resident.size() == 1);
  CHECK(run.segments(runtime::pass_kind::decode) == 1);
  CHECK(run.prove().kernel.empty());
}

TEST_CASE("any number of workgroups gives the tokens of the chain", "[runtime][resident][gpu]") {
  const checked_device on;
  REQUIRE(usable(on.device));
  for (const std::uint32_t position : {0u, 250u}) {  // inside a span of attention, and over the end of one
    CAPTURE(position);
    const auto expected = drawn(on.device, fable_of<two>, false, position, 24);
    CHECK(drawn(on.device, fable_of<two>, true, position, 24) == expected);
    CHECK(drawn(on.device, fable_of<three>, true, position, 24) == expected);
    CHECK(drawn(on.device, fable_of<eight>, true, position, 24) == expected);
  }
}

TEST_CASE("the resident dispatch runs a model in f16 of another shape", "[runtime][resident][gpu]") {
  const checked_device on;
  const plan::table& table = bitnet_tiny_table();
  REQUIRE_FALSE(table.resident_decode.resident.empty());
  CHECK(drawn(on.device, table, true, 0, 40) == drawn(on.device, table, false, 0, 40));
}

TEST_CASE("passes from a position on run the form for long contexts", "[runtime][resident][gpu]") {
  const checked_device on;
  std::vector<plan::dispatch> other(fable_table().resident_decode.resident.begin(),
                                    fable_table().resident_decode.resident.end());
  other[0].label = "the other form";
  plan::table table = fable_table();
  table.resident_decode.resident_long = other;
  table.resident_decode.long_from = 7;
  {
    runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), modules(on.device, true),
                          nullptr);
    CHECK(run.prove().kernel.empty());
    const auto runs = [&](std::uint32_t position) {
      const std::uint32_t token = 17;
      std::string out;
      for (const auto& each : run.measure(runtime::pass_kind::decode, position, {&token, 1}))
        if (each.what->kernel == kernels::kernel::layers) out += each.what->label.view();
      return out;
    };
    CHECK(runs(6) == "all layers");
    CHECK(runs(7) == "the other form");
    CHECK(&run.plan_of(runtime::pass_kind::decode, 6) == &run.table().resident_decode);
    CHECK(run.plan_of(runtime::pass_kind::decode, 7).resident.data() ==
          run.table().resident_decode.resident_long.data());
    CHECK(run.table().resident_decode.resident_long.size() == other.size());
    CHECK(&run.plan_of(runtime::pass_kind::prefill, 7) == &run.table().prefill);
  }
  const auto expected = drawn(on.device, fable_table(), false, 0, 24);
  CHECK(drawn(on.device, table, true, 0, 24) == expected);
  // One that computes something else is found when it is proven, and runs from there on and no sooner.
  other[0].specialization[kernels::layers_interface.specialization_index("rope_theta")] =
      std::bit_cast<std::uint32_t>(100.f);
  runtime::executor wrong(on.device, table, runtime::synthetic_weights(on.device, table), modules(on.device, true),
                          nullptr);
  CHECK(wrong.prove().kernel == "layers");
  const auto found = drawn_tokens(wrong, 0, 17, {.temperature = 4.f, .seed = 5}, 24);
  CHECK(std::equal(found.begin(), found.begin() + 7, expected.begin()));
  CHECK(found != expected);
}

TEST_CASE("layers that compute something else are found before they are used", "[runtime][resident][gpu]") {
  const checked_device on;
  struct swap {
    std::size_t argument, other;
  };
  // Keys and values, the stream to come, and weights for others that are at least as large.
  const auto [argument, other] = GENERATE(swap{1, 2}, swap{2, 1}, swap{7, 0}, swap{9, 15}, swap{12, 9}, swap{18, 15});
  std::vector<plan::operand> arguments(fable_table().resident_decode.arguments.begin(),
                                       fable_table().resident_decode.arguments.end());
  arguments[argument] = arguments[other];
  plan::table table = fable_table();
  table.resident_decode.arguments = arguments;
  runtime::executor run(on.device, table, runtime::synthetic_weights(on.device, table), modules(on.device, true),
                        nullptr);
  CAPTURE(argument, other);
  CHECK(run.prove().kernel == "layers");
}
