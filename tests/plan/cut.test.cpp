// SPDX-License-Identifier: MIT
#include "intaglio/plan/cut.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#include <set>

#include "intaglio/families/planned_family.hpp"
#include "intaglio/models/bert.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

plan::planned plan_of(const decoder_config& c, const plan::profile& target) {
  return families::planned_of(c, {dtype::q8_0, dtype::f16, dtype::f16}, "tiny", target, 128);
}

std::vector<plan::stage> stages(const plan::table& whole, std::vector<std::uint32_t> after) {
  std::vector<plan::stage> out;
  for (const plan::layer_range each : plan::stages_of(whole.config->num_hidden_layers, after))
    out.emplace_back(whole, each);
  return out;
}

}  // namespace

TEST_CASE("the stages of a cut have all layers, weights and caches of the plan once") {
  for (const plan::profile* const target : {&plan::profiles::cpu, &plan::profiles::portable})
    for (const decoder_config* const config : {&llama_tiny, &gemma3_tiny}) {
      const plan::planned made = plan_of(*config, *target);
      const plan::table& whole = made.table();
      for (std::uint32_t at = 1; at + 1 < config->num_hidden_layers; ++at) {
        const auto parts = stages(whole, {at, at + 1});
        REQUIRE(parts.size() == 3);
        std::uint64_t layer_copies = 0, whole_copies = 0, caches = 0;
        for (const plan::weight& w : whole.weights)
          if (w.per_layer) whole_copies += whole.copies(w);
        std::set<std::string> global, whole_global;
        for (const plan::weight& w : whole.weights)
          if (!w.per_layer) whole_global.emplace(w.sources[0].view());
        for (const plan::stage& each : parts) {
          const plan::table& t = each.table();
          CHECK(plan::verify(t).view() == "");
          caches += t.cache_bytes();
          for (const plan::weight& w : t.weights)
            if (w.per_layer) layer_copies += t.copies(w);
            else global.emplace(w.sources[0].view());
          for (std::uint32_t layer = 0; layer < t.config->num_hidden_layers; ++layer)
            CHECK(t.pattern(layer) == whole.pattern(t.first_layer + layer));
          CHECK(t.decode.takes_stream == (each.layers().first != 0));
          CHECK(t.decode.gives_stream == (each.layers().end != config->num_hidden_layers));
          CHECK(plan::crossing_of(t, t.decode).bytes() == 4 * config->hidden_size);
          CHECK(&plan::crossing_of(t, t.decode).way() == &plan::direct_crossing);
          CHECK(&plan::crossing_of(t, t.prefill).way() == &plan::staged_crossing);
        }
        CHECK(layer_copies == whole_copies);
        CHECK(global == whole_global);
        CHECK(caches == whole.cache_bytes());
      }
    }
}

TEST_CASE("a stage has a resident dispatch where the whole plan has one, for one session and for a batch") {
  const auto expect_resident = [](const plan::planned& made, std::uint32_t after) {
    const plan::table& whole = made.table();
    REQUIRE(!whole.resident_decode.resident.empty());
    REQUIRE(!whole.resident_batch.resident.empty());
    const std::uint32_t layers = whole.config->num_hidden_layers;
    for (const plan::layer_range range : {plan::layer_range{0, after}, plan::layer_range{after, layers}}) {
      INFO(whole.model << ", layers " << range.first << " to " << range.end);
      const plan::stage made_stage(whole, range, 2);
      const plan::table& t = made_stage.table();
      CHECK(plan::verify(t).view() == "");
      for (const auto which : {&plan::table::resident_decode, &plan::table::resident_batch}) {
        const plan::sequence& s = t.*which;
        REQUIRE(s.resident.size() == 1);
        const plan::dispatch &all = s.resident.front(), &of_whole = (whole.*which).resident.front();
        const auto& face = kernels::interface_of(all.kernel);
        CHECK(all.kernel == of_whole.kernel);
        CHECK(all.groups == of_whole.groups);
        for (std::size_t i = 0; i < face.specialization_count(); ++i) {
          INFO(face.specialization[i].name.view());
          const bool counts = face.specialization[i].name == "layers";
          CHECK(all.specialization[i] == (counts ? range.size() : of_whole.specialization[i]));
        }
        CHECK(s.layers == range.size());
        CHECK(s.takes_stream == (range.first != 0));
        CHECK(s.blanks_itself() == (range.first == 0));
      }
      CHECK(t.shape.all_slots() == 32);
    }
  };
  constexpr plan::batch_shape shape{.slot_count = 16, .coded_products = plan::chunk_arithmetic::f16};
  expect_resident(plan::planned::of<models::mistral_7b<dtype::q8_0>>(plan::profiles::portable, 512, shape), 16);
  expect_resident(plan::planned::of<models::gemma3_4b<dtype::q8_0>>(plan::profiles::portable, 512, shape), 18);
}

TEST_CASE("what a stage will take is counted before it is made") {
  const plan::planned made = plan_of(gemma3_tiny, plan::profiles::cpu);
  const plan::stage_costs costs(made.table());
  for (const plan::layer_range range : {plan::layer_range{0, 3}, {3, 5}, {5, 7}, {0, 7}}) {
    const plan::stage made_stage(made.table(), range);
    const plan::table& t = made_stage.table();
    CHECK(costs.of(range).weights == t.weight_bytes());
    CHECK(costs.of(range).caches == t.cache_bytes());
    const plan::row_memory rows = plan::row_memory_of(t, false);
    CHECK(costs.of(range).rest ==
          t.arena_bytes() + t.state_bytes() + kernels::ring_bytes(t.ring_size) + rows.of_device());
    CHECK(plan::stage_costs(made.table(), true).of(range).rest == costs.of(range).rest + rows.of_host());
  }
}

TEST_CASE("stages have longer chunks than a whole model if the profile asks for them") {
  plan::profile target = plan::profiles::portable;
  target.prefill_tokens = 1024;
  const plan::planned made = plan::planned::of<models::mistral_7b<dtype::q4_0>>(target, 4096);
  for (const auto& each : stages(made.table(), {5, 11, 16, 21, 27})) {
    CHECK(each.table().prefill.max_tokens == 1024);
    CHECK(plan::verify(each.table()).view() == "");
  }
}

TEST_CASE("a stage has memory for the rows of its largest pass, once for each slot of the way that they cross") {
  const auto rows_of = [](const plan::table& whole, plan::layer_range layers) {
    return plan::row_memory_of(plan::stage(whole, layers).table(), false);
  };
  const plan::planned made = plan::planned::of<models::mistral_7b<dtype::q4_0>>(plan::profiles::portable, 4096);
  constexpr std::uint64_t slot = 512 * 4096 * 4;
  const plan::row_memory first = rows_of(made.table(), {0, 8}), middle = rows_of(made.table(), {8, 20}),
                         last = rows_of(made.table(), {20, 32});
  CHECK(first.slot == slot);
  CHECK(first.of_device() == 2 * slot);
  CHECK(first.of_host() == 8 * slot);
  CHECK(middle.of_device() == (4 + 2) * slot);
  CHECK(middle.of_host() == (4 + 8) * slot);
  CHECK(last.of_device() == 4 * slot);
  CHECK(last.of_host() == 4 * slot + 4 * 4 * 4096);
  CHECK(plan::row_memory_of(made.table(), false).of_device() + plan::row_memory_of(made.table(), false).of_host() == 0);
}

TEST_CASE("a cut follows the devices' rates, and their memory before these") {
  const plan::planned made = plan_of(gemma3_tiny, plan::profiles::cpu);
  const std::vector<plan::stage_costs> costs(2, plan::stage_costs(made.table()));
  const std::uint64_t all = costs[0].of({0, 7}).total();
  const auto cut = [&](plan::stage_device a, plan::stage_device b) {
    return plan::choose_cut(costs, std::array{a, b}).front();
  };
  const std::uint32_t even = cut({all, 1}, {all, 1}), faster = cut({all, 4}, {all, 1});
  CHECK(faster > even);
  const std::uint64_t small = costs[0].of({0, even - 1}).total();
  CHECK(cut({small, 1}, {all, 1}) == even - 1);
  CHECK_THROWS_AS(plan::choose_cut(std::vector(8, costs[0]), std::vector(8, plan::stage_device{all, 1})),
                  argument_error);
}

TEST_CASE("if no cut fits, the one that exceeds the memory by the smallest factor is chosen") {
  const plan::planned made = plan_of(gemma3_tiny, plan::profiles::cpu);
  const std::vector<plan::stage_costs> costs(2, plan::stage_costs(made.table()));
  const auto total = [&](plan::layer_range range) { return costs[0].of(range).total(); };
  const auto cut = [&](std::uint64_t a, std::uint64_t b) {
    const std::vector<std::uint32_t> out =
        plan::choose_cut(costs, std::array{plan::stage_device{a, 1}, plan::stage_device{b, 1}});
    REQUIRE(out.size() == 1);
    return out.front();
  };
  for (std::uint32_t at = 1; at < 7; ++at) {
    INFO("layers before the cut: " << at);
    CHECK(cut(total({0, at}) / 2, total({at, 7}) / 2) == at);
    CHECK(cut(total({0, at}), total({at, 7}) - 1) == at);  // by one byte
  }
  CHECK(cut(0, total({1, 7})) == 1);
  CHECK(cut(total({0, 6}), 0) == 6);
  const plan::stage_device none{0, 1};
  CHECK(plan::choose_cut(array_view<const plan::stage_costs>(costs).first(1), std::array{none}).empty());
}

namespace {

/// Where layers of cost 1 are cut whose embedding and head have costs of their own. @param slow the index of a device
/// with half the rate
constexpr bool cuts(std::uint32_t layers, std::uint32_t count, double embedding, double head,
                    const std::vector<std::uint32_t>& expected, double cost, std::uint32_t slow = 99) {
  const plan::costed_cut found = plan::most_even_cut(layers, count, [&](std::uint32_t d, plan::layer_range range) {
    return (d == slow ? 2 : 1) * (range.size() + (d == 0 ? embedding : 0) + (range.end == layers ? head : 0));
  });
  return found.after == expected && found.cost == cost;
}

static_assert(cuts(8, 1, 0, 0, {}, 8));
static_assert(cuts(8, 8, 0, 0, {1, 2, 3, 4, 5, 6, 7}, 1));
static_assert(cuts(8, 2, 0, 0, {4}, 4));
static_assert(cuts(8, 3, 0, 0, {2, 5}, 3));
static_assert(cuts(10, 4, 0, 0, {2, 4, 7}, 3));
// The first stage is the most expensive one: others share the rest of the layers evenly, not 1 / 1 / 6.
static_assert(cuts(8, 3, 9, 0, {1, 4}, 10));
static_assert(cuts(12, 4, 9, 0, {1, 4, 8}, 10));
static_assert(cuts(8, 3, 0, 9, {3, 7}, 10));
// Both ends are as expensive as they can be: any other cut gives one of them a layer more.
static_assert(cuts(8, 3, 8, 8, {1, 7}, 9));
static_assert(cuts(8, 3, 0.1, 0.1, {2, 5}, 3.1));
static_assert(cuts(8, 3, 0, 0, {3, 4}, 4, 1));  // 3 / 2 / 3 costs 4 too, and the slow device more
static_assert(cuts(9, 3, 0, 0, {4, 5}, 4, 1));
// Costs that are equal but for rounding are equal: 0.1 + 0.2 > 0.3.
static_assert(plan::most_even_cut(3, 2, [](std::uint32_t d, plan::layer_range range) {
                return d == 0 ? (range.size() == 1 ? 0.1 + 0.2 : 0.3) : range.size() == 1 ? 0.2 : 0.1;
              }).after == std::vector<std::uint32_t>{1});
static_assert(plan::most_even_cut(4, 2, [](std::uint32_t d, plan::layer_range range) {
                return d == 0 && range.size() != 3 ? plan::no_stage : 1.0 * range.size();
              }).after == std::vector<std::uint32_t>{3});
static_assert(plan::most_even_cut(4, 2, [](std::uint32_t, plan::layer_range) { return plan::no_stage; }).cost ==
              plan::no_stage);
static_assert(plan::most_even_cut(4, 2, [](std::uint32_t, plan::layer_range) { return 0.0; }).after.size() == 1);

}  // namespace

TEST_CASE("fable on three devices is cut 1 / 6 / 1, since its embedding and its head are larger than five layers") {
  const plan::planned made = plan::planned::of<models::fable>(plan::profiles::cpu, 512);
  const plan::stage_costs costs(made.table());
  const auto weights = [&](std::uint32_t first, std::uint32_t end) { return costs.of({first, end}).weights; };
  const std::uint64_t layer = weights(3, 5) - weights(3, 4);
  CHECK(weights(0, 1) - weights(1, 2) > 5 * layer);
  CHECK(weights(7, 8) - weights(6, 7) > 5 * layer);
  const plan::stage_device enough{std::uint64_t{1} << 40, 1};
  CHECK(plan::choose_cut(std::vector(3, costs), std::vector(3, enough)) == std::vector<std::uint32_t>{1, 7});
  CHECK((std::max)({weights(0, 1), weights(1, 7), weights(7, 8)}) <
        (std::max)({weights(0, 3), weights(3, 6), weights(6, 8)}));
}

TEST_CASE("a cut that is none is refused") {
  const plan::planned made = plan_of(llama_tiny, plan::profiles::cpu);
  for (const auto& after : std::vector<std::vector<std::uint32_t>>{{0}, {3}, {2, 2}, {2, 1}})
    CHECK_THROWS_AS(plan::stages_of(3, after), argument_error);
  CHECK_THROWS_AS(plan::stage(made.table(), {1, 1}), argument_error);
  CHECK_THROWS_AS(plan::stage(made.table(), {1, 4}), argument_error);
  const plan::stage first(made.table(), {0, 1});
  CHECK_THROWS_AS(plan::stage(first.table(), {0, 1}), argument_error);
  const plan::planned encoder = plan_of(models::bge_small_config, plan::profiles::cpu);
  CHECK_THROWS_WITH(plan::stage(encoder.table(), {0, 6}), ContainsSubstring("expected a decoder, found an encoder"));
  plan::adapter_room room{2, 16, dtype::f16, {}};
  room.matrices.emplace_back("attn_q.weight");
  const plan::planned adapted = families::planned_of(llama_tiny, {dtype::q8_0, dtype::f16, dtype::f16}, "tiny",
                                                     plan::profiles::cpu, 128, {}, {}, room);
  CHECK_THROWS_WITH(plan::stage(adapted.table(), {0, 1}),
                    ContainsSubstring("expected a plan without room for adapters, found one with it"));
}

TEST_CASE("verify refuses a crossing without a live value, or without a wait") {
  const plan::planned made = plan_of(llama_tiny, plan::profiles::cpu);
  const plan::stage last(made.table(), {1, 3});
  plan::table t = last.table();
  REQUIRE(plan::verify(t).empty());
  t.decode.stream_in_offset += 256;
  CHECK(std::string(plan::verify(t).view()).find("of the stream that cross at offset") != std::string::npos);
  t = last.table();
  std::vector<plan::dispatch> period(t.decode.period.begin(), t.decode.period.end());
  REQUIRE(period.front().barrier);
  period.front().barrier = false;
  t.decode.period = period;
  CHECK(std::string(plan::verify(t).view()).find("expected a barrier before it") != std::string::npos);
}
