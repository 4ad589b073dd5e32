// SPDX-License-Identifier: MIT
#include "intaglio/plan/resident_layers.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/variants_used.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {
constexpr const plan::table& story = plan::engraved<models::fable, plan::profiles::cpu>::table;
constexpr const plan::sequence& one = story.resident_decode;

// A rise of these is a slower token.
static_assert(one.dispatch_count() == 5 && one.barrier_count() == 4);
static_assert(story.decode.dispatch_count() == 44);
static_assert(one.arena_bytes <= story.prefill.arena_bytes);
static_assert(one.weight_bytes() == story.decode.weight_bytes());
static_assert(one.arguments.size() == kernels::layers::argument_count);

constexpr plan::profile chain_only = [] {
  plan::profile out = plan::profiles::cpu;
  out.work.layers_parts = 0;
  return out;
}();
static_assert(plan::engraved<models::fable, chain_only>::table.resident_decode.resident.empty());
static_assert(one.blank_bytes == 0);  // none waits for good
// Its products take llvmpipe more turns of loops than an invocation may have.
static_assert(plan::engraved<models::bitnet_2b_4t, plan::profiles::cpu>::table.resident_decode.resident.empty());
// Nor may chunks: a workgroup of 4 lanes has two groups of rows a lane at a time, all tiles for each.
constexpr bool ends_in_time(const plan::table& of) {
  for (const plan::dispatch& d : of.prefill.period)
    if (d.kernel == kernels::kernel::ternary_matmul) {
      const auto constant = [&](std::string_view name) {
        return std::uint64_t{d.specialization[kernels::ternary_matmul_interface.specialization_index(name)]};
      };
      if ((constant("rows") / 4 / d.groups[0] / 8 + 1) * (constant("columns") / 16 + 2 + 40) >
          plan::llvmpipe_loop_turns)
        return false;
    }
  return true;
}
constexpr decoder_config wide = [] {
  decoder_config c = models::bitnet_2b_4t::config;
  c.num_hidden_layers = 1, c.hidden_size = 7168, c.intermediate_size = 28672, c.num_attention_heads = 56,
  c.num_key_value_heads = 14;
  return c;
}();
static_assert(ends_in_time(plan::engraved<models::bitnet_2b_4t, plan::profiles::cpu>::table) &&
              ends_in_time(plan::engraved<models::bitnet_b158<wide>, plan::profiles::cpu>::table));
// There norms are dispatches of their own.
static_assert(plan::engraved<models::bitnet_2b_4t, plan::profiles::cpu>::table.decode.dispatch_count() == 30 * 9 + 4);

// On GPUs workgroups wait for what they exchange, which is blank before the pass.
constexpr const plan::table& two_b = plan::engraved<models::bitnet_2b_4t, plan::profiles::portable>::table;
constexpr const plan::sequence& waiting = two_b.resident_decode;
static_assert(waiting.dispatch_count() == 4 && waiting.barrier_count() == 3);
static_assert(two_b.decode.dispatch_count() == 153);
static_assert(waiting.weight_bytes() == two_b.decode.weight_bytes());
static_assert(waiting.resident[0].least_groups > 1 && waiting.resident[0].least_groups <= 128);  // of an RTX 4090
static_assert(waiting.resident[0].groups[0] == 132 &&
              waiting.resident[0].subgroups == kernels::layers::resident_subgroups);
static_assert(waiting.blank_bytes > 0 && waiting.blank_offset + waiting.blank_bytes < waiting.logits_offset + 1);
static_assert(plan::engraved<models::fable, plan::profiles::portable>::table.resident_decode.resident.size() == 1);
constexpr plan::profile exact_portable = [] {
  plan::profile out = plan::profiles::portable;
  out.cache_element = kernels::element::f32;
  return out;
}();
static_assert(plan::engraved<models::fable, exact_portable>::table.resident_decode.resident.empty());
// As many layers as the kernel holds addresses for, within the compilers' default limits on constant expressions.
constexpr decoder_config deep_config = [] {
  decoder_config out = models::bitnet_2b_4t::config;
  out.num_hidden_layers = 90;
  return out;
}();
static_assert(plan::engraved<models::bitnet_b158<deep_config>, plan::profiles::portable>::table.resident_decode.resident
                  .size() == 1);
// Over long contexts there is another form of it, from where workgroups have a second span of a head.
constexpr std::uint32_t heads_together(const plan::dispatch& d) {
  return d.specialization[kernels::layers_interface.specialization_index("heads_together")];
}
static_assert(waiting.resident_long.size() == 1 && waiting.long_from == 6 * kernels::attention_span + 64);
static_assert(heads_together(waiting.resident[0]) == 1 && heads_together(waiting.resident_long[0]) == 4 &&
              waiting.resident_long[0].least_groups == waiting.resident[0].least_groups);
static_assert(plan::variants_used(std::array{&two_b}).has(kernels::variant::layers_long) &&
              !plan::variants_used(std::array{&story}).has(kernels::variant::layers_long));
static_assert(
    plan::engraved<models::bitnet_2b_4t, plan::profiles::portable, 1600>::table.resident_decode.resident_long.empty());
static_assert(plan::engraved<models::bitnet_b158<deep_config>, plan::profiles::portable>::table.resident_decode
                  .resident_long.empty());
static_assert(plan::engraved<models::fable, plan::profiles::portable>::table.resident_decode.resident_long.empty() &&
              one.resident_long.empty());
constexpr plan::profile few_workgroups = [] {
  plan::profile out = plan::profiles::portable;
  out.work.layers_parts = 64;
  return out;
}();
static_assert(plan::engraved<models::bitnet_2b_4t, few_workgroups>::table.resident_decode.resident.empty());

constexpr std::uint32_t constant(std::string_view name) {
  return one.resident[0].specialization[kernels::layers_interface.specialization_index(name)];
}
static_assert(constant("layers") == 8 && constant("parts") == 2 && constant("hidden_size") == 256 &&
              constant("intermediate_size") == 1024);
static_assert(constant("heads") == 4 && constant("kv_heads") == 2 && constant("head_dim") == 64 &&
              constant("spin_limit") >= 128);

/// A copy of the sound sequence whose parts can be changed.
struct broken {
  plan::table table;
  const plan::sequence sound = table.resident_decode;
  std::vector<plan::dispatch> prologue{sound.prologue.begin(), sound.prologue.end()},
      period{sound.period.begin(), sound.period.end()}, epilogue{sound.epilogue.begin(), sound.epilogue.end()},
      resident{sound.resident.begin(), sound.resident.end()};
  std::vector<plan::placed_value> values{sound.values.begin(), sound.values.end()};
  std::vector<plan::operand> arguments{sound.arguments.begin(), sound.arguments.end()};

  explicit broken(const plan::table& of = story) : table(of) {}

  std::string verdict() {
    auto& s = table.resident_decode;
    s.prologue = prologue, s.period = period, s.epilogue = epilogue, s.resident = resident, s.values = values,
    s.arguments = arguments;
    return std::string(plan::verify(table).view());
  }
  plan::access& arena_write(std::size_t step) {
    auto& d = period[step];
    return *std::find_if(d.accesses.begin(), d.accesses.end(),
                         [](const plan::access& a) { return a.where == plan::region::arena && a.write; });
  }
};
}  // namespace

TEST_CASE("the layers' bytes are those of the steps", "[plan][resident]") {
  CHECK(broken{}.verdict().empty());
  for (const std::uint32_t position : {0u, 100u, 511u})
    CHECK(plan::bytes_moved(story, one, one.resident[0], position, 1) +
              plan::bytes_moved(story, one, one.prologue[0], position, 1) +
              plan::bytes_moved(story, one, one.epilogue[0], position, 1) +
              plan::bytes_moved(story, one, one.epilogue[1], position, 1) +
              plan::bytes_moved(story, one, one.epilogue[2], position, 1) ==
          plan::bytes_moved(story, one, position, 1));
}

TEST_CASE("steps that write the same bytes are refused", "[plan][resident]") {
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

TEST_CASE("what the one dispatch lacks is refused", "[plan][resident]") {
  {
    broken b;
    b.resident[0].barrier = false;
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
    CHECK_THAT(b.verdict(), ContainsSubstring("expected the bytes at every argument to be stated"));
  }
  {
    broken b;
    b.table.resident_decode.arena_bytes -= 256;
    CHECK_FALSE(b.verdict().empty());
  }
  {
    broken b;
    b.values[0].bytes -= 256;  // the stream after the last layer
    CHECK_THAT(b.verdict(), ContainsSubstring("live value"));
  }
  {
    broken b;
    b.resident[0].accesses[1].bytes += 4;
    CHECK_THAT(b.verdict(), ContainsSubstring("bytes of state"));
  }
}

TEST_CASE("what workgroups wait for must be blank", "[plan][resident]") {
  CHECK(broken{two_b}.verdict().empty());
  const auto refused = [](auto change) {
    broken b{two_b};
    change(b, b.table.resident_decode);
    return b.verdict();
  };
  CHECK_THAT(refused([](broken&, plan::sequence& s) { s.blank_bytes = 0; }),
             ContainsSubstring("to be blank before the pass"));
  CHECK_THAT(refused([](broken&, plan::sequence& s) { s.blank_bytes -= 4; }),
             ContainsSubstring("to be blank before the pass"));
  CHECK_THAT(refused([](broken&, plan::sequence& s) { s.blank_offset += 4, s.blank_bytes -= 4; }),
             ContainsSubstring("to be blank before the pass"));
  // What the embedding wrote would be gone.
  CHECK_THAT(refused([](broken&, plan::sequence& s) { s.blank_bytes += s.blank_offset, s.blank_offset = 0; }),
             ContainsSubstring("to be blank before the pass"));
  CHECK_THAT(refused([](broken&, plan::sequence& s) { s.blank_bytes = s.arena_bytes; }),
             ContainsSubstring("blank words inside the arena"));
  CHECK_THAT(refused([](broken&, plan::sequence& s) { s.blank_bytes -= 2; }),
             ContainsSubstring("blank words inside the arena"));
  CHECK_THAT(refused([](broken& b, plan::sequence&) { b.resident[0].subgroups = 64; }),
             ContainsSubstring("invocations a workgroup"));
  CHECK_THAT(refused([](broken& b, plan::sequence&) { b.arguments[20].offset += 4; }),
             ContainsSubstring("expected the bytes at every argument"));
}
