// SPDX-License-Identifier: MIT
// Plans broken on purpose: verify must refuse each, in words.
#include "intaglio/plan/verify.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {
constexpr const plan::table& sound = plan::engraved<models::fable, plan::profiles::cpu>::table;

/// A copy of the sound plan whose parts can be changed.
struct broken {
  std::vector<plan::dispatch> prologue, period, epilogue;
  std::vector<plan::placed_value> values;
  std::vector<plan::weight> weights;
  plan::table table = sound;

  constexpr broken() {
    for (const auto& d : sound.decode.prologue) prologue.push_back(d);
    for (const auto& d : sound.decode.period) period.push_back(d);
    for (const auto& d : sound.decode.epilogue) epilogue.push_back(d);
    for (const auto& v : sound.decode.values) values.push_back(v);
    for (const auto& w : sound.weights) weights.push_back(w);
  }
  constexpr text<256> verdict(const plan::limits& limit = {}) {
    table.decode.prologue = prologue, table.decode.period = period, table.decode.epilogue = epilogue;
    table.decode.values = values, table.weights = weights;
    return plan::verify(table, limit);
  }
};

static_assert(broken{}.verdict().empty(), "the copy itself is sound");
// In constant expressions too: this is what engraved asserts.
static_assert([] {
  broken b;
  b.period[1].barrier = false;
  return !b.verdict().empty();
}());
static_assert([] {
  broken b;
  b.values[1].offset = b.values[0].offset;
  return !b.verdict().empty();
}());
}  // namespace

TEST_CASE("each barrier of the plan is needed", "[plan][verify]") {
  for (std::size_t i = 0; i < sound.decode.period.size(); ++i) {
    broken b;
    b.period[i].barrier = false;
    CAPTURE(i);
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("expected a barrier before it"));
  }
  for (std::size_t i = 0; i < sound.decode.epilogue.size(); ++i) {
    broken b;
    b.epilogue[i].barrier = false;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("expected a barrier before it"));
  }
}

TEST_CASE("a hazard between the last dispatch of a layer and the first of the next is seen", "[plan][verify]") {
  broken b;
  b.period[0].barrier = false;
  b.prologue[0].access_count = 0;  // the prologue no longer explains the barrier
  for (auto& o : b.prologue[0].push) o = {};
  CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("attn_q+attn_k+attn_v"));
}

TEST_CASE("two live values on the same bytes are refused", "[plan][verify]") {
  for (std::size_t i = 0; i < sound.decode.values.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const auto &a = sound.decode.values[i], &c = sound.decode.values[k];
      if (a.first > c.last || c.first > a.last) continue;
      broken b;
      b.values[i].offset = b.values[k].offset;
      CAPTURE(a.name.view(), c.name.view());
      CHECK_FALSE(b.verdict().empty());
    }
}

TEST_CASE("accesses past their allocation are refused", "[plan][verify]") {
  {
    broken b;
    b.table.decode.arena_bytes -= 256;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("arena"));
  }
  {
    broken b;
    b.table.caches[0].key_bytes -= 1;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("bytes of keys"));
  }
  {
    broken b;
    b.table.caches[0].value_bytes -= 1;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("bytes of values"));
  }
  {
    broken b;
    b.weights[2].bytes -= 16;
    CHECK_FALSE(b.verdict().empty());
  }
  {
    broken b;
    b.weights[3].offset = b.weights[2].offset;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("bytes of its own"));
  }
  {
    broken b;
    b.table.context +=
        1;  // the state is sized by it, the sampler's access is not; counters and progress are after that
    b.epilogue.back().accesses[2].bytes +=
        4 + b.table.state_bytes() - 4 * kernels::state::words(b.table.max_tokens, b.table.context) + 4;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("bytes of state"));
  }
  {
    broken b;
    b.period[0].accesses[0].offset = ~0ull - 3;  // must not wrap into range
    CHECK_FALSE(b.verdict().empty());
  }
}

TEST_CASE("an address without a stated size is refused", "[plan][verify]") {
  broken b;
  b.period[1].push[0] = {plan::region::arena, 0, 0x100000};
  CHECK_THAT(std::string(b.verdict().view()),
             ContainsSubstring("expected the bytes at every address to be stated, found none for query"));
}

TEST_CASE("an access to a dead value is refused", "[plan][verify]") {
  broken b;
  b.values[2].last = b.values[2].first;  // the attention's output dies before the output projection reads it
  CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("expected a live value"));
}

TEST_CASE("limits of the device are kept", "[plan][verify]") {
  {
    broken b;
    CHECK_THAT(std::string(b.verdict({.push_constant_bytes = 64}).view()),
               ContainsSubstring("push constant bytes, found 72"));
  }
  {
    broken b;
    CHECK_THAT(std::string(b.verdict({.shared_memory_bytes = 1024}).view()),
               ContainsSubstring("bytes of shared memory, found "));
  }
  {
    broken b;
    b.period[0].groups[0] = 65536;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("expected 1 to 65535 workgroups, found 65536"));
  }
  {
    broken b;
    b.period[0].groups[1] = 0;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("workgroups, found 0"));
  }
  {
    broken b;
    b.period[0].subgroups = 17;
    CHECK_THAT(std::string(b.verdict().view()), ContainsSubstring("invocations a workgroup, found 1088"));
  }
}

TEST_CASE("a coded cache is written by the kernel that has whole heads", "[plan][verify]") {
  broken b;
  b.table.cache_element = kernels::element::q8_0;  // its first product rotates and writes pairs of channels
  CHECK_THAT(std::string(b.verdict().view()),
             ContainsSubstring("expected a cache of q8_0 to be written by turn, which has whole heads, or by pages"));
}
