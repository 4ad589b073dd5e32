// SPDX-License-Identifier: MIT
#include "intaglio/reference/experts.hpp"

#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;
using kernels::prologue;

namespace {

constexpr std::uint32_t tokens = 3, room = 4, used = 2, experts = 5;

/// Tokens of which one has an expert that another has too.
std::vector<std::uint32_t> choices(random_numbers& random) {
  std::vector<std::uint32_t> out(2 * room * used);
  for (std::uint32_t t = 0; t < room; ++t)
    for (std::uint32_t j = 0; j < used; ++j) {
      out[2 * used * t + j] = (4 + 2 * t + 3 * j) % experts;
      out[2 * used * t + used + j] = std::bit_cast<std::uint32_t>(random.between(0, 1));
    }
  return out;
}

/// Which token has which expert: at random, all the same expert, an expert without tokens, and an expert of one token
/// only.
struct spread {
  std::string_view name;
  std::uint32_t tokens, room, of;
  std::vector<std::uint32_t> choice;
};
std::vector<spread> spreads(random_numbers& random) {
  const auto make = [&](std::string_view name, std::uint32_t of_tokens, std::uint32_t of_room, std::uint32_t of,
                        auto expert) {
    spread out{name, of_tokens, of_room, of, std::vector<std::uint32_t>(std::size_t{2} * of_room * of, experts - 1)};
    for (std::uint32_t t = 0; t < of_tokens; ++t)
      for (std::uint32_t j = 0; j < of; ++j) {
        out.choice[std::size_t{2} * of * t + j] = expert(t, j);
        out.choice[std::size_t{2} * of * t + of + j] = std::bit_cast<std::uint32_t>(random.between(0, 1));
      }
    return out;
  };
  const auto any = [&](std::uint32_t, std::uint32_t j) {
    return j == 0 ? random.below(2) : 2 + random.below(experts - 2);
  };
  return {make("at random", 37, 40, 2, any), make("the only one takes all", 20, 20, 1, [](auto, auto) { return 3u; }),
          make("one takes all", 20, 20, 2, [](std::uint32_t t, std::uint32_t j) { return j == 0 ? 3u : t % 3; }),
          make("one takes none", 18, 32, 2, [](std::uint32_t t, std::uint32_t j) { return j == 0 ? 0u : 1 + t % 3; }),
          make("one token", 1, 40, 2, any)};
}
std::vector<std::uint32_t> lists_of(const spread& of, std::uint32_t list_tokens) {
  std::vector<std::uint32_t> out(
      std::size_t{kernels::expert_tile_count(of.room, experts, of.of, list_tokens)} * (list_tokens + 2), 0xa5a5a5a5u);
  reference::expert_tiles(std::span(of.choice).first(std::size_t{2} * of.tokens * of.of), of.of, experts, list_tokens,
                          out);
  return out;
}

}  // namespace

TEST_CASE("route names all experts in order, with parts of 1", "[kernels]") {
  kernel_device on;
  const std::uint32_t many = GENERATE(4u, 20u, 130u);
  const auto choice = on.poisoned(std::size_t{8} * room * many), state = on.filled(fresh_state(0, tokens, room, 8));
  on.run(kernels::kernel::route, 1, {{"experts", many}, {"experts_used", many}, {"stated", 2u}},
         {{"choice", &choice}, {"state", &state}}, {1, room, 1});
  std::vector<std::uint32_t> expected(std::size_t{2} * room * many, 0xa5a5a5a5u);
  for (std::uint32_t t = 0; t < tokens; ++t)
    for (std::uint32_t e = 0; e < many; ++e) {
      expected[2 * t * many + e] = e;
      expected[(2 * t + 1) * many + e] = std::bit_cast<std::uint32_t>(1.f);
    }
  CHECK(choice.read<std::uint32_t>() == expected);
}

TEST_CASE("route gives the reference's choice, ties and all, and leaves tokens past the count alone", "[kernels]") {
  kernel_device on;
  random_numbers random(7);
  const std::uint32_t many = GENERATE(4u, 8u, 65u, 128u), of = many == 4 ? 4 : many == 128 ? 8 : 3;
  const bool over_all = GENERATE(false, true), biased = GENERATE(false, true);
  const bool scaled = over_all != biased;  // with either of them, once
  const auto score = GENERATE(expert_score::logit, expert_score::logistic, expert_score::probability);
  const bool of_logits = score == expert_score::logit;
  const float factor = scaled ? 2.5f : 1.f, more = over_all ? 0.f : 0.125f;
  const float least = GENERATE(0.f, 0.75f);  // of probabilities: above the sums of some tokens
  const bool grouped = !of_logits && least == 0.f && many != 4;
  const std::uint32_t groups = !grouped     ? 1
                               : many == 65 ? 13
                               : many == 8  ? 4
                                            : 8,
                      groups_used = !grouped     ? 1
                                    : many == 65 ? 5
                                    : many == 8  ? 2
                                                 : 3;
  const auto bias = random.floats(many, -3, 3), scale = random.floats(many, 0.5f, 2);
  auto logits = random.floats(std::size_t{room} * many, -6, 6);
  logits[many - 1] = logits[1] = 7;
  const auto sums = biased && of_logits ? reference::biased_logits(logits, bias) : logits;
  const std::span<const float> none;
  const reference::routing how{.over_all = over_all,
                               .scale = scaled ? std::span<const float>(scale) : none,
                               .score = score,
                               .choosing = biased && !of_logits ? std::span<const float>(bias) : none,
                               .factor = factor,
                               .added = more,
                               .least = least,
                               .groups = groups,
                               .groups_used = groups_used};
  std::vector<std::uint32_t> expected(2 * of * room, 0xa5a5a5a5u);
  for (std::uint32_t t = 0; t < tokens; ++t)
    reference::route(std::span(sums).subspan(t * many, many), std::span(expected).subspan(2 * of * t, 2 * of), how);
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(logits), added = on.filled(bias), factors = on.filled(scale),
               choice = on.poisoned(4 * expected.size()), state = on.filled(fresh_state(5, tokens, room, 64));
    on.run(kernels::kernel::route, subgroups,
           {{"experts", many},
            {"experts_used", of},
            {"over_all", over_all ? 1u : 0u},
            {"biased", biased ? 1u : 0u},
            {"scaled", scaled ? 1u : 0u},
            {"score", static_cast<std::uint32_t>(score)},
            {"factor", factor},
            {"added", more},
            {"least", least},
            {"groups", groups},
            {"groups_used", groups_used}},
           {{"logits", &in}, {"bias", &added}, {"choice", &choice}, {"state", &state}, {"scale", &factors}},
           {1, room, 1});
    const auto found = choice.read<std::uint32_t>();
    for (std::uint32_t t = 0; t < room; ++t)
      for (std::uint32_t j = 0; j < of; ++j) CHECK(found[2 * of * t + j] == expected[2 * of * t + j]);
    const auto shares = [&](const std::vector<std::uint32_t>& from) {
      std::vector<float> out;
      for (std::uint32_t i = 0; i < tokens * of; ++i)
        out.push_back(std::bit_cast<float>(from[i / of * 2 * of + of + i % of]));
      return out;
    };
    CHECK_SAME(on, shares(found), shares(expected));
  }
}

TEST_CASE("expert_sum gives the reference's bits", "[kernels]") {
  kernel_device on;
  random_numbers random(8);
  const std::uint32_t width = 76;
  const auto input = random.floats(std::size_t{room} * used * width, -3, 3),
             start = random.floats(std::size_t{room} * width, -3, 3);
  const auto choice = choices(random);
  const bool biased = GENERATE(false, true), stores = GENERATE(false, true);
  const auto biases = random.floats(std::size_t{experts} * width, -2, 2);
  auto expected = start;
  if (stores) std::fill_n(expected.begin(), std::size_t{tokens} * width, 0.f);
  const auto given = biased ? reference::biased_experts(input, choice, used, biases) : input;
  reference::expert_sum(given, choice, used, width, std::span(expected).first(tokens * width));
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(input), chosen = on.filled(choice), out = on.filled(start), bias = on.filled(biases),
               state = on.filled(fresh_state(5, tokens, room, 64));
    on.run(kernels::kernel::expert_sum, subgroups,
           {{"width", width}, {"experts_used", used}, {"biased", biased ? 1u : 0u}, {"stores", stores ? 1u : 0u}},
           {{"input", &in}, {"choice", &chosen}, {"output", &out}, {"state", &state}, {"bias", &bias}}, {1, room, 1});
    CHECK_SAME(on, out.read<float>(), expected);
  }
}

TEST_CASE(
    "matmul by chosen experts gives the reference's bits in every module, with the token's input and with its own",
    "[kernels]") {
  kernel_device on;
  random_numbers random(9);
  const int module = GENERATE(0, 1, 2);
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
  for (const kernels::codec type :
       {kernels::codec::f32, kernels::codec::bf16, kernels::codec::q8_0, kernels::codec::q4_k}) {
    const std::uint32_t columns = type == kernels::codec::q4_k ? 256 : 96;
    const auto choice = choices(random);
    const auto norm = random.floats(columns, 0.5f, 1.5f);
    for (const bool gates : {true, false}) {
      const reference::matmul_shape shape{.columns = columns,
                                          .rows = 24,
                                          .codec = type,
                                          .epilogue = gates ? epilogue::gated : epilogue::store,
                                          .gate = activation::silu};
      const auto order = gates ? kernels::row_order::gate_up(experts * shape.rows / 2)
                               : kernels::row_order::plain(experts * shape.rows);
      const auto weights = random_weight(random, type, order, columns);
      const std::size_t inputs = gates ? room : room * used, width = gates ? 12 : 24;
      const auto x = random.floats(inputs * columns, -2, 2);
      auto y = x;
      if (gates)
        for (std::size_t at = 0; at < x.size(); at += columns)
          reference::rms_norm(std::span(x).subspan(at, columns), norm, 1e-5f, std::span(y).subspan(at, columns));
      std::vector<float> expected(room * used * width, std::bit_cast<float>(0xa5a5a5a5u));
      reference::expert_matmul(shape, used, !gates, y, choice, weights,
                               std::span(expected).first(tokens * used * width));
      for (const std::uint32_t staged : {1u, 0u}) {
        const auto in = on.filled(x), weight = on.filled(weights), norm_weight = on.filled(norm),
                   chosen = on.filled(choice), out = on.poisoned(4 * expected.size()),
                   state = on.filled(fresh_state(5, tokens, room, 64));
        on.run(kernels::kernel::matmul, 2,
               {{"columns", columns},
                {"rows", shape.rows},
                {"codec", static_cast<std::uint32_t>(type)},
                {"prologue", static_cast<std::uint32_t>(gates ? prologue::norm : prologue::plain)},
                {"epilogue", static_cast<std::uint32_t>(shape.epilogue)},
                {"eps", 1e-5f},
                {"tile_tokens", 1u},
                {"staged", staged},
                {"activation", shape.gate},
                {"experts_used", used},
                {"own_input", gates ? 0u : 1u}},
               {{"input", &in},
                {"norm_weight", &norm_weight},
                {"weight", &weight},
                {"output", &out},
                {"state", &state},
                {"choice", &chosen}},
               {2, room * used, 1});
        INFO("codec " << static_cast<int>(type) << ", gated " << gates << ", staged " << staged << ", module "
                      << module);
        const auto found = out.read<float>();
        CHECK_SAME(
            on, std::vector(found.begin(), found.begin() + tokens * used * static_cast<std::ptrdiff_t>(width)),
            std::vector(expected.begin(), expected.begin() + tokens * used * static_cast<std::ptrdiff_t>(width)));
        CHECK(std::bit_cast<std::uint32_t>(found.back()) == 0xa5a5a5a5u);
      }
    }
  }
}

TEST_CASE(
    "expert_tiles lists the pairs of each expert in their order, however they are spread, and as many lists as the "
    "plan has "
    "room for are enough",
    "[kernels]") {
  kernel_device on;
  random_numbers random(10);
  for (const spread& of : spreads(random))
    for (const std::uint32_t list_tokens : {2u, 8u}) {
      const auto expected = lists_of(of, list_tokens);
      const std::uint32_t words = list_tokens + 2, tiles = static_cast<std::uint32_t>(expected.size()) / words;
      for (const std::uint32_t subgroups : on.widths()) {
        const auto choice = on.filled(of.choice), out = on.poisoned(4 * expected.size()),
                   state = on.filled(fresh_state(5, of.tokens, of.room, 64));
        on.run(kernels::kernel::expert_tiles, subgroups,
               {{"experts", experts},
                {"experts_used", of.of},
                {"list_tokens", list_tokens},
                {"tiles", tiles},
                {"max_tokens", of.room}},
               {{"choice", &choice}, {"output", &out}, {"state", &state}}, {experts, 1, 1});
        const auto found = out.read<std::uint32_t>();
        INFO(of.name << ", lists of " << list_tokens << ", " << subgroups << " subgroups");
        for (std::size_t at = 0; at < found.size(); at += words) {
          REQUIRE(found[at + 1] == expected[at + 1]);
          if (found[at + 1] == 0) continue;
          REQUIRE(found[at] == expected[at]);
          for (std::size_t i = 0; i < found[at + 1]; ++i) REQUIRE(found[at + 2 + i] == expected[at + 2 + i]);
        }
      }
    }
}

TEST_CASE("as many lists are planned for as pairs can fill", "[kernels]") {
  // 16 pairs of 8 experts in lists of 8: where one has 9 and the others one each, 9 lists.
  CHECK(kernels::expert_tile_count(8, 8, 2, 8) == 9);
  CHECK(kernels::expert_tile_count(1, 8, 2, 8) == 2);
  CHECK(kernels::expert_tile_count(512, 8, 2, 32) == 39);
  CHECK(kernels::expert_tile_count(20, 5, 1, 8) == 6);
}

TEST_CASE("products by lists of an expert's tokens have the bits of those token by token, in every module",
          "[kernels][dear]") {
  kernel_device on;
  random_numbers random(11);
  const int module = GENERATE(0, 1, 2);
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
  auto all = spreads(random);
  std::erase_if(all, [](const spread& each) {
    return each.of != used;
  });  // another number is another pipeline, of which there are many here
  for (const kernels::codec type :
       module == 1 ? std::vector{kernels::codec::q4_k} : std::vector{kernels::codec::bf16, kernels::codec::q8_0}) {
    const bool dense = kernels::is_dense(type);
    const std::uint32_t columns = dense || type == kernels::codec::q8_0 ? 96 : 256;
    const auto norm = random.floats(columns, 0.5f, 1.5f);
    for (const bool gates : {true, false}) {
      const reference::matmul_shape shape{.columns = columns,
                                          .rows = 24,
                                          .codec = type,
                                          .epilogue = gates ? epilogue::gated : epilogue::store,
                                          .gate = activation::silu};
      const auto order = gates ? kernels::row_order::gate_up(experts * shape.rows / 2)
                               : kernels::row_order::plain(experts * shape.rows);
      const auto weights = random_weight(random, type, order, columns);
      const std::size_t width = gates ? 12 : 24;
      for (const spread& of : all) {
        const std::uint32_t list_tokens = 8, row_count = of.tokens * of.of, rows_per_token = gates ? 1 : of.of;
        const auto x = random.floats(std::size_t{of.room} * rows_per_token * columns, -2, 2);
        auto y = x;
        if (gates)
          for (std::size_t at = 0; at < x.size(); at += columns)
            reference::rms_norm(std::span(x).subspan(at, columns), norm, 1e-5f, std::span(y).subspan(at, columns));
        std::vector<float> expected(row_count * width);
        reference::expert_matmul(shape, of.of, !gates, y, of.choice, weights, expected);
        const auto lists = lists_of(of, list_tokens);
        const std::uint32_t tiles = static_cast<std::uint32_t>(lists.size()) / (list_tokens + 2);
        const auto in = on.filled(x), weight = on.filled(weights), norm_weight = on.filled(norm),
                   chosen = on.filled(lists), state = on.filled(fresh_state(5, of.tokens, of.room, 64));
        const auto check = [&](const guarded_buffer& out) {
          INFO("codec " << static_cast<int>(type) << ", gated " << gates << ", " << of.name << ", module " << module);
          const auto found = out.read<float>();
          CHECK_SAME(on, std::vector(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(expected.size())),
                     expected);
          if (of.tokens < of.room) CHECK(std::bit_cast<std::uint32_t>(found.back()) == 0xa5a5a5a5u);
        };
        const auto out_bytes = 4 * std::size_t{of.room} * of.of * width;
        const bool own_input = !gates;
        {
          const std::uint32_t staged = gates ? 1u : 0u;
          const auto out = on.poisoned(out_bytes);
          on.run(kernels::kernel::matmul, 2,
                 {{"columns", columns},
                  {"rows", shape.rows},
                  {"codec", static_cast<std::uint32_t>(type)},
                  {"prologue", static_cast<std::uint32_t>(gates ? prologue::norm : prologue::plain)},
                  {"epilogue", static_cast<std::uint32_t>(shape.epilogue)},
                  {"eps", 1e-5f},
                  {"tile_tokens", list_tokens},
                  {"staged", staged},
                  {"activation", shape.gate},
                  {"experts_used", of.of},
                  {"own_input", own_input ? 1u : 0u}},
                 {{"input", &in},
                  {"norm_weight", &norm_weight},
                  {"weight", &weight},
                  {"output", &out},
                  {"state", &state},
                  {"choice", &chosen}},
                 {2, tiles, 1});
          check(out);
        }
        if (dense || module == 2) continue;
        const auto prepared = on.poisoned(std::size_t{4} * of.room * rows_per_token * kernels::fixed_words(columns));
        on.run(kernels::kernel::fixed, 2,
               {{"width", columns},
                {"prologue", static_cast<std::uint32_t>(gates ? prologue::norm : prologue::plain)},
                {"eps", 1e-5f},
                {"rows_per_token", rows_per_token}},
               {{"input", &in}, {"norm_weight", &norm_weight}, {"output", &prepared}, {"state", &state}},
               {1, of.room * rows_per_token, 1});
        const std::uint32_t tile = gates ? 4u : 8u;
        {
          const auto out = on.poisoned(out_bytes);
          on.run(kernels::kernel::matmul_batch, 2,
                 {{"columns", columns},
                  {"rows", shape.rows},
                  {"codec", static_cast<std::uint32_t>(type)},
                  {"epilogue", static_cast<std::uint32_t>(shape.epilogue)},
                  {"tile_tokens", tile},
                  {"tile_rows", 8u},
                  {"activation", shape.gate},
                  {"experts_used", of.of},
                  {"own_input", own_input ? 1u : 0u},
                  {"list_tokens", list_tokens}},
                 {{"input", &prepared}, {"weight", &weight}, {"output", &out}, {"state", &state}, {"tiles", &chosen}},
                 {2, tiles * (list_tokens / tile), 1});
          check(out);
        }
      }
    }
  }
}
