// SPDX-License-Identifier: MIT
#include "intaglio/plan/in_one.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {
constexpr const plan::table& story = plan::engraved<models::fable, plan::profiles::cpu>::table;
constexpr const plan::sequence& one = story.decode_in_one;

// A rise of these is a slower token.
static_assert(one.dispatch_count() == 4 && one.barrier_count() == 3);
static_assert(story.decode.dispatch_count() == 43);
static_assert(one.arena_bytes <= story.prefill.arena_bytes);
static_assert(one.weight_bytes() == story.decode.weight_bytes());
static_assert(one.arguments.size() == kernels::layers::argument_count);

constexpr plan::profile chain_only = [] {
  plan::profile out = plan::profiles::cpu;
  out.layers_parts = 0;
  return out;
}();
static_assert(plan::engraved<models::fable, chain_only>::table.decode_in_one.in_one.empty());
static_assert(plan::engraved<models::fable, plan::profiles::portable>::table.decode_in_one.in_one.empty());
// Its products take llvmpipe more turns of loops than an invocation may have.
static_assert(plan::engraved<models::bitnet_2b_4t, plan::profiles::cpu>::table.decode_in_one.in_one.empty());

constexpr std::uint32_t constant(std::string_view name) { return one.in_one[0].specialization[kernels::layers_interface.specialization_index(name)]; }
static_assert(constant("layers") == 8 && constant("parts") == 2 && constant("hidden_size") == 256 && constant("intermediate_size") == 1024);
static_assert(constant("heads") == 4 && constant("kv_heads") == 2 && constant("head_dim") == 64 && constant("patience") >= 128);

/// A copy of the sound sequence whose parts can be changed.
struct broken {
  std::vector<plan::dispatch> prologue{one.prologue.begin(), one.prologue.end()}, period{one.period.begin(), one.period.end()},
      epilogue{one.epilogue.begin(), one.epilogue.end()}, in_one{one.in_one.begin(), one.in_one.end()};
  std::vector<plan::placed_value> values{one.values.begin(), one.values.end()};
  std::vector<plan::operand> arguments{one.arguments.begin(), one.arguments.end()};
  plan::table table = story;

  std::string verdict() {
    auto& s = table.decode_in_one;
    s.prologue = prologue, s.period = period, s.epilogue = epilogue, s.in_one = in_one, s.values = values, s.arguments = arguments;
    return std::string(plan::verify(table).view());
  }
  plan::access& arena_write(std::size_t step) {
    auto& d = period[step];
    return *std::find_if(d.accesses.begin(), d.accesses.end(), [](const plan::access& a) { return a.where == plan::region::arena && a.write; });
  }
};
}  // namespace

TEST_CASE("the layers' bytes are those of the steps", "[plan][in_one]") {
  CHECK(broken{}.verdict().empty());
  for (const std::uint32_t position : {0u, 100u, 511u})
    CHECK(plan::bytes_moved(story, one, one.in_one[0], position, 1) + plan::bytes_moved(story, one, one.prologue[0], position, 1) +
              plan::bytes_moved(story, one, one.epilogue[0], position, 1) + plan::bytes_moved(story, one, one.epilogue[1], position, 1) ==
          plan::bytes_moved(story, one, position, 1));
}

TEST_CASE("steps that write the same bytes are refused", "[plan][in_one]") {
  for (std::size_t i = 0; i < one.period.size(); ++i)
    for (std::size_t k = 0; k < one.period.size(); ++k) {
      broken b;
      if (i == k || b.arena_write(i).bytes > b.arena_write(k).layer_stride) continue;
      const plan::access taken = b.arena_write(k);
      auto& moved = b.period[i];
      plan::operand& output = moved.push[kernels::interface_of(moved.kernel).push_index("output")];
      output.offset = b.arena_write(i).offset = taken.offset;
      output.layer_stride = b.arena_write(i).layer_stride = taken.layer_stride;
      CAPTURE(i, k);
      CHECK_FALSE(b.verdict().empty());
    }
  broken b;  // every layer on the same bytes
  auto& output = b.period[3].push[kernels::interface_of(b.period[3].kernel).push_index("output")];
  for (auto& d : b.period)
    for (auto& a : d.accesses)
      if (a.where == plan::region::arena && a.offset == output.offset) a.layer_stride = 0;
  for (auto& d : b.period)
    for (auto& o : d.push)
      if (o.where == plan::region::arena && o.offset == output.offset) o.layer_stride = 0;
  CHECK_THAT(b.verdict(), ContainsSubstring("expected bytes of its own"));
}

TEST_CASE("what the one dispatch lacks is refused", "[plan][in_one]") {
  {
    broken b;
    b.in_one[0].barrier = false;
    CHECK_THAT(b.verdict(), ContainsSubstring("expected a barrier before it"));
  }
  {
    broken b;
    b.epilogue[0].barrier = false;
    CHECK_THAT(b.verdict(), ContainsSubstring("expected a barrier before it"));
  }
  {
    broken b;
    b.arguments[5].offset += 4;
    CHECK_THAT(b.verdict(), ContainsSubstring("expected the bytes behind every argument to be stated"));
  }
  {
    broken b;
    b.table.decode_in_one.arena_bytes -= 256;
    CHECK_FALSE(b.verdict().empty());
  }
  {
    broken b;
    b.values[0].bytes -= 256;  // the stream behind the last layer
    CHECK_THAT(b.verdict(), ContainsSubstring("live value"));
  }
  {
    broken b;
    b.in_one[0].accesses[1].bytes += 4;
    CHECK_THAT(b.verdict(), ContainsSubstring("bytes of state"));
  }
}
