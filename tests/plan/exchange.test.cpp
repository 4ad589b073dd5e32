// SPDX-License-Identifier: MIT
// Proves the exchanges between workgroups of the resident dispatch, and finds each fault that is planted here.
#include "intaglio/plan/exchange.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "paths.hpp"
#include "plan/resident_batch.hpp"
#include "plan/shader_constants.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The error of proving a sequence of a table after a change of its arguments and its resident dispatches.
std::string refused(const plan::table& whole, plan::sequence plan::table::*which, auto&& change) {
  plan::table table = whole;
  plan::sequence& one = table.*which;
  std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
  std::vector<plan::dispatch> all(one.resident.begin(), one.resident.end()),
      longer(one.resident_long.begin(), one.resident_long.end());
  one.arguments = arguments, one.resident = all, one.resident_long = longer;
  change(one, arguments, all[0], longer.empty() ? all[0] : longer[0]);
  return std::string(plan::verify(table).view());
}
std::uint32_t& constant(plan::dispatch& of, std::string_view name) {
  return of.specialization[kernels::interface_of(of.kernel).specialization_index(name)];
}

/// What holds for all of them.
void check_waits(const plan::table& table, plan::sequence plan::table::*which) {
  REQUIRE_FALSE((table.*which).resident.empty());
  CHECK(plan::verify(table).view() == "");
  for (const std::uint32_t turns : {0u, ~0u})
    CHECK_THAT(refused(table, which, [&](auto&, auto&, auto&, auto& last) { constant(last, "spin_limit") = turns; }),
               ContainsSubstring("expected waits of 1 to 1048576 turns"));
  CHECK_THAT(refused(table, which, [](auto&, auto&, auto& all, auto&) { constant(all, "layers") -= 1; }),
             ContainsSubstring("layers of the sequence"));
  CHECK_THAT(refused(table, which, [](auto&, auto&, auto& all, auto&) { all.groups[0] = constant(all, "parts") - 1; }),
             ContainsSubstring("workgroups, as many as share its rows"));
  CHECK_THAT(refused(table, which, [](auto&, auto&, auto& all, auto&) { all.groups[0] += 5; }),
             ContainsSubstring("workgroups, as many as share its rows"));
  // Fitted to a class, it has no more workgroups than run at once there.
  plan::dispatch all = plan::fitted((table.*which).resident[0], plan::classes::h100);
  text<256> out;
  plan::limits limit = plan::limits_of(plan::classes::h100);
  CHECK(plan::verification::keeps_limits(table.*which, all, limit, out));
  limit.resident_workgroups = all.groups[0] - 1;
  CHECK_FALSE(plan::verification::keeps_limits(table.*which, all, limit, out));
  CHECK_THAT(std::string(out.view()), ContainsSubstring("workgroups that wait for each other and so run at once"));
}

/// Checks the waits of a batch's resident dispatch.
void check_batch(const plan::planned& made) {
  const plan::table& table = made.table();
  check_waits(table, &plan::table::resident_batch);
  plan::dispatch all = table.resident_batch.resident[0];
  for (const auto name : {"hidden_size", "intermediate_size"})
    CHECK_THAT(refused(table, &plan::table::resident_batch,
                       [&](auto&, auto&, auto& changed, auto&) { constant(changed, name) *= 2; }),
               ContainsSubstring("bytes a layer for what workgroups exchange"));
  const kernels::exchange_ranges ranges = plan::verification::exchange_of(all);
  for (const kernels::exchange_range& each : ranges.all()) {
    CAPTURE(each.name);
    CHECK(each.bytes % 4 == 0);
    CHECK(each.written <= each.read);
  }
  // A writer after its reader, and a range that ends inside of a word.
  const auto refuses = [&](std::size_t which, auto&& change) {
    kernels::exchange_ranges other;
    for (std::size_t i = 0; i < ranges.all().size(); ++i) {
      kernels::exchange_range its = ranges.all()[i];
      if (i == which) change(its);
      other.add(its);
    }
    text<256> why;
    CHECK_FALSE(plan::verification::has_room(table.resident_batch, all, other, why));
    return std::string(why.view());
  };
  text<256> none;
  CHECK(plan::verification::has_room(table.resident_batch, all, ranges, none));
  for (std::size_t i = 0; i < ranges.all().size(); ++i) {
    const std::string name(ranges.all()[i].name);
    CAPTURE(name);
    if (ranges.all()[i].read != kernels::layer_step::down)
      CHECK_THAT(refuses(i, [](kernels::exchange_range& its) { its.written = kernels::layer_step::down; }),
                 ContainsSubstring("expected " + name + " to be written before it is waited for"));
    CHECK_THAT(refuses(i,
                       [](kernels::exchange_range& its) {
                         its.read = kernels::layer_step::before, its.written = kernels::layer_step::qkv;
                       }),
               ContainsSubstring("expected " + name + " to be written before it is waited for"));
    CHECK_THAT(refuses(i, [](kernels::exchange_range& its) { its.bytes += 2; }),
               ContainsSubstring("expected whole words for " + name));
  }
}

/// A writer after its reader: steps of a layer in another order, and one that waits for what a later one writes.
void check_order(const plan::table& table) {
  const plan::sequence& one = table.resident_decode;
  const plan::dispatch& all = one.resident[0];
  const auto found = [&](const std::vector<plan::dispatch>& period) {
    plan::sequence other = one;
    other.period = period;
    text<256> why;
    return plan::verification::exchanges(other, all, why) ? std::string() : std::string(why.view());
  };
  const std::vector<plan::dispatch> period(one.period.begin(), one.period.end());
  CHECK(found(period) == "");
  for (std::size_t i = 0; i + 1 < period.size(); ++i) {
    CAPTURE(i);
    auto swapped = period;
    std::swap(swapped[i], swapped[i + 1]);
    CHECK_THAT(found(swapped), ContainsSubstring("that workgroups wait for"));
  }
  for (std::size_t n = kernels::layers_coded::first_exchanged + 1; n <= kernels::layers_coded::last_exchanged; ++n) {
    CAPTURE(n);
    auto early = period;
    plan::dispatch& first = early[0];
    const plan::operand& what = one.arguments[n];
    REQUIRE(first.access_count < plan::max_accesses);
    first.accesses[first.access_count++] = {what.where, false, what.slot, what.offset, 4, what.layer_stride};
    CHECK_THAT(found(early), ContainsSubstring("to be written before it is waited for, found step 0 that waits"));
  }
  // A second writer of a value, whole or of its last word alone.
  for (std::size_t n = kernels::layers_coded::first_exchanged; n <= kernels::layers_coded::last_exchanged; ++n)
    for (const bool whole : {true, false}) {
      CAPTURE(n, whole);
      const plan::operand& what = one.arguments[n];
      const auto writes = [&](const plan::access& a) {
        return a.write && a.where == what.where && a.offset == what.offset && a.layer_stride == what.layer_stride;
      };
      auto twice = period;
      std::uint64_t bytes = 0;
      std::size_t writer = 0;
      for (std::size_t i = 0; i < twice.size(); ++i)
        for (std::size_t k = 0; k < twice[i].access_count; ++k)
          if (writes(twice[i].accesses[k])) writer = i, bytes = twice[i].accesses[k].bytes;
      REQUIRE(bytes > 4);
      const std::size_t other = writer + 1 == twice.size() ? 0 : twice.size() - 1;
      plan::dispatch& to = twice[other];
      REQUIRE(to.access_count < plan::max_accesses);
      to.accesses[to.access_count++] = {
          what.where, true, what.slot, what.offset + (whole ? 0 : bytes - 4), whole ? bytes : 4, what.layer_stride};
      CHECK_THAT(found(twice), ContainsSubstring("to be written once, found step"));
    }
}

/// Names of a shader's ranges in their order, those under `normed` alone or not.
std::vector<std::string> names_of(const std::string& shader, bool normed) {
  std::ifstream file(in_source("shaders/" + shader));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t from = text.find("in bytes from its `exchange`");
  REQUIRE(from != std::string::npos);
  const std::size_t end = text.find("\n\n", from);
  std::string block = text.substr(from, end - from);
  if (const auto other = block.find("#else"); other != std::string::npos)
    block = normed ? block.substr(0, other) : block.substr(0, block.find("#ifdef")) + block.substr(other);
  std::vector<std::string> out;
  const std::regex offset("(\\w+)_at = ");
  for (std::sregex_iterator each(block.begin(), block.end(), offset), none; each != none; ++each)
    out.push_back((*each)[1]);
  return out;
}
/// The offsets of the plan's values are those that the shader computes from the same constants.
void check_offsets(const plan::planned& made, const std::string& shader, bool normed) {
  const plan::dispatch& all = made.table().resident_batch.resident[0];
  CAPTURE(shader, normed);
  std::map<std::string, std::uint64_t> constants;
  const kernels::kernel_interface& face = kernels::interface_of(all.kernel);
  for (std::size_t i = 0; i < face.specialization_count(); ++i)
    constants.emplace(face.specialization[i].name, all.specialization[i]);
  shader_constants of(shader, normed ? std::set<std::string>{"INNER_NORMS"} : std::set<std::string>{}, constants);
  std::uint64_t at = 0;
  std::string_view before;
  const kernels::exchange_ranges ranges = plan::verification::exchange_of(all);
  for (const kernels::exchange_range& each : ranges.all()) {
    CAPTURE(each.name);
    if (each.name != before) CHECK(of(std::string(each.name) + "_at") == at);
    at += each.bytes, before = each.name;
  }
}
std::vector<std::string> names_of(const plan::planned& made) {
  std::vector<std::string> out;
  const kernels::exchange_ranges ranges = plan::verification::exchange_of(made.table().resident_batch.resident[0]);
  for (const kernels::exchange_range& each : ranges.all())
    if (out.empty() || out.back() != each.name) out.emplace_back(each.name);
  return out;
}

}  // namespace

TEST_CASE("what a token's workgroups exchange is proven", "[plan][resident]") {
  const auto bitnet = plan::planned::of<models::bitnet_2b_4t>(plan::profiles::portable, 4096);
  REQUIRE_FALSE(bitnet.table().resident_decode.resident_long.empty());
  const auto mistral = plan::planned::of<models::mistral_7b<dtype::q4_0>>(plan::profiles::portable, 4096);
  for (const plan::table* whole : {&bitnet.table(), &mistral.table()}) {
    check_waits(*whole, &plan::table::resident_decode);
    check_order(*whole);
    // Two values at one offset, and at each other's.
    for (std::size_t n = kernels::layers_coded::first_exchanged; n < kernels::layers_coded::last_exchanged; ++n) {
      CAPTURE(n);
      const auto follows = ContainsSubstring("to be written by a step that follows");
      CHECK_THAT(refused(*whole, &plan::table::resident_decode,
                         [&](auto&, auto& arguments, auto&, auto&) { arguments[n + 1] = arguments[n]; }),
                 follows);
      CHECK_THAT(refused(*whole, &plan::table::resident_decode,
                         [&](auto&, auto& arguments, auto&, auto&) { std::swap(arguments[n], arguments[n + 1]); }),
                 follows);
    }
  }
}

TEST_CASE("what a batch's workgroups exchange is proven, in the shader's order and at its offsets",
          "[plan][resident]") {
  const auto f16 = [](std::uint32_t slot_count) {
    return plan::batch_shape{.slot_count = slot_count, .coded_products = plan::chunk_arithmetic::f16};
  };
  const auto few = testing::batch_of<models::mistral_7b<dtype::q8_0>>(f16(8)),
             many = testing::batch_of<models::mistral_7b<dtype::q8_0>>(f16(32)),
             rows_normed = testing::batch_of<models::gemma3_4b<dtype::q8_0>>(f16(8)),
             batch_normed = testing::batch_of<models::gemma3_4b<dtype::q8_0>>(f16(32)),
             ternary = testing::batch_of<models::bitnet_2b_4t>({.slot_count = 32});
  for (const plan::planned* each : {&few, &many, &rows_normed, &batch_normed, &ternary}) {
    CAPTURE(kernels::interface_of(each->table().resident_batch.resident[0].kernel).name);
    check_batch(*each);
  }
  const auto without = [](std::vector<std::string> names, std::size_t count) {
    names.resize(names.size() - count);
    return names;
  };
  CHECK(names_of(rows_normed) == names_of("layers_rows.comp", true));
  CHECK(names_of(few) == without(names_of("layers_rows.comp", false), 2));  // squares of norms after sublayers
  CHECK(names_of(batch_normed) == names_of("layers_batch.comp", true));
  CHECK(names_of(many) == names_of("layers_batch.comp", false));
  CHECK(names_of(ternary) == names_of("layers_ternary_rows.comp", false));
  check_offsets(rows_normed, "layers_rows.comp", true);
  check_offsets(few, "layers_rows.comp", false);
  check_offsets(batch_normed, "layers_batch.comp", true);
  check_offsets(many, "layers_batch.comp", false);
  check_offsets(ternary, "layers_ternary_rows.comp", false);
}
