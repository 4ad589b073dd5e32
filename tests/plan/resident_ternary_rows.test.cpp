// SPDX-License-Identifier: MIT
// Plans of a batch of a BitNet whose passes run the resident dispatch: their counts, and the plans that are refused.
#include "intaglio/plan/resident_ternary_rows.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/planned.hpp"
#include "plan/resident_batch.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

namespace {
// Planned by the compiler as well, with its default limits.
constexpr plan::batch_shape of_eight{.slot_count = 8};
constexpr const plan::table& engraved = plan::engraved_batch<models::fable, plan::profiles::portable, of_eight>::table;
static_assert(engraved.resident_batch.dispatch_count() == engraved.batch.dispatch_count() - 8 * 9 + 1 &&
              engraved.resident_batch.barrier_count() == engraved.batch.barrier_count() - 8 * 9 + 1);

std::uint32_t constant(const plan::sequence& of, std::string_view name) {
  return of.resident[0].specialization[kernels::layers_ternary_rows_interface.specialization_index(name)];
}
plan::profile with_parts(std::uint32_t parts) {
  auto out = plan::profiles::portable;
  out.work.layers_parts = parts;
  return out;
}
}  // namespace

TEST_CASE("passes over a batch of BitNet 2B run the resident dispatch", "[plan][resident]") {
  for (const std::uint32_t slot_count : {8u, 32u}) {
    CAPTURE(slot_count);
    const auto bitnet = batch_of<models::bitnet_2b_4t>({.slot_count = slot_count});
    const plan::table& t = bitnet.table();
    const plan::sequence& one = t.resident_batch;
    check_one_dispatch(t, slot_count, 9);
    CHECK(one.resident[0].kernel == kernels::kernel::layers_ternary_rows);
    CHECK(one.resident[0].groups[0] == 132);
    CHECK(one.resident[0].least_groups == 108);  // eight tiles of gate and up each
    CHECK(constant(one, "slots") == slot_count);
    CHECK(constant(one, "context") == t.pool(0).positions);
    CHECK(one.blank_bytes ==
          30 * plan::aligned(kernels::layers_ternary_rows::exchange_bytes(slot_count, 2560, 6912, 2560, 640)));
  }
}

TEST_CASE(
    "a batch of a BitNet has one dispatch where every workgroup has rows of each product, and registers for their "
    "weights",
    "[plan][resident]") {
  CHECK(resident(batch_of<models::fable>(of_eight)));
  CHECK(batch_of<models::fable>(of_eight).table().resident_batch.resident[0].groups[0] ==
        16);  // 16 tiles of the stream
  CHECK(resident(batch_of<models::fable>({.slot_count = 16})));
  CHECK_FALSE(resident(batch_of<models::fable>({.slot_count = 24})));  // more rows than workgroups
  CHECK_FALSE(resident(batch_of<models::bitnet_2b_4t>({.slot_count = 40})));
  CHECK(resident(batch_of<models::bitnet_2b_4t>(of_eight, with_parts(108))));
  CHECK_FALSE(resident(batch_of<models::bitnet_2b_4t>(of_eight, with_parts(107))));
  CHECK_FALSE(resident(batch_of<models::bitnet_2b_4t>(of_eight, with_parts(0))));
  CHECK_FALSE(resident(batch_of<models::bitnet_2b_4t>(of_eight, plan::profiles::cpu)));
  auto as_f32 = plan::profiles::portable;
  as_f32.cache_element = kernels::element::f32;
  CHECK_FALSE(resident(batch_of<models::bitnet_2b_4t>(of_eight, as_f32)));
}

TEST_CASE(
    "a batch of a BitNet's one dispatch is refused where what its workgroups exchange is not blank, not stated "
    "or not waited for",
    "[plan][resident]") {
  const auto of = batch_of<models::fable>(of_eight);
  const auto refused = [&](auto&& change) { return refused_resident(of, change); };
  CHECK(refused([](auto&, auto&, auto&) {}).empty());
  CHECK_THAT(refused([](auto&, auto& arguments, auto&) { arguments[0].layer_stride -= 256; }),
             ContainsSubstring("the bytes at every argument"));
  CHECK_THAT(refused([](auto&, auto& arguments, auto&) { arguments[9].slot += 40; }),
             ContainsSubstring("the bytes at every argument"));
  CHECK_THAT(refused([](auto& one, auto&, auto&) { one.blank_offset -= 256; }),
             ContainsSubstring("to be made blank beside the embedding"));
  CHECK_THAT(refused([](auto&, auto&, auto& all) { all.barrier = false; }),
             ContainsSubstring("expected a barrier before it"));
}
