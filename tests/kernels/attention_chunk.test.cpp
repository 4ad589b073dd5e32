// SPDX-License-Identifier: MIT
#include "kernels/attention_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::vector<float> run(kernel_device& on, const attention_problem& p, std::uint32_t subgroups) {
  const auto& s = p.shape;
  const auto sinks = sinks_on(on, s);
  const auto query = on.filled(p.query), keys = on.filled(p.keys), values = on.filled(p.values),
             state = on.filled(fresh_state(p.position, p.tokens, p.room, s.context)),
             output = on.poisoned(p.expected.size() * 4);
  auto constants = attention_constants(s);
  constants.push_back({"max_tokens", p.room});
  constants.push_back({"value_dim", s.value_dim});
  on.run(kernels::kernel::attention_chunk, subgroups, constants,
         {{"query", &query},
          {"keys", &keys},
          {"values", &values},
          {"output", &output},
          {"state", &state},
          {"sinks", &sinks}},
         {s.heads, (p.room + kernels::attention_tile - 1) / kernels::attention_tile, 1});
  return output.read<float>();
}

using element = kernels::element;

}  // namespace

TEST_CASE("attention_chunk: the reference's bits wherever tiles and spans end, reading no later position", "[dear]") {
  kernel_device on;
  random_numbers random(8);
  struct sizes {
    reference::attention_shape shape;
    std::uint32_t position, tokens;
  };
  for (const auto& [shape, position, tokens] :
       {sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 150}, 0, 21},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 128, .context = 300}, 243, 25},
        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 16, .context = 70, .cache_element = element::f32}, 57, 13},
        sizes{{.heads = 1, .kv_heads = 1, .head_dim = 8, .context = 33}, 32, 1},
        sizes{{.heads = 1, .kv_heads = 1, .head_dim = 104, .context = 40}, 30, 10},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 800, .cache_element = element::f32}, 765, 16},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 512, .context = 300}, 243, 25},
        sizes{{.heads = 3, .kv_heads = 1, .head_dim = 576, .context = 40, .value_dim = 512}, 12, 11},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 96, .context = 300, .value_dim = 64}, 250, 16},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 96, .context = 300, .cache_element = element::q8_0}, 250, 16},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 70, .cache_element = element::q4_0}, 51, 16},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 32, .context = 300, .ahead = ir::all_ahead}, 243, 25},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 32, .context = 300, .window = 7, .ahead = 6}, 245, 27}}) {
    const attention_problem p = attention_problem::make(random, shape, position, tokens, 29);
    for (const std::uint32_t subgroups : {1u, 4u, 16u}) {
      INFO("head_dim " << shape.head_dim << ", position " << position << ", " << tokens << " tokens, " << subgroups
                       << " subgroups of " << on.subgroup_size());
      CHECK_SAME(on, run(on, p, subgroups), p.expected);
    }
  }
}

TEST_CASE("attention_chunk: the bits of attention, token for token") {
  kernel_device on;
  random_numbers random(9);
  const attention_problem p =
      attention_problem::make(random, {.heads = 4, .kv_heads = 2, .head_dim = 128, .context = 600}, 505, 11, 11);
  const auto& s = p.shape;
  const auto query = on.filled(p.query), keys = on.filled(p.keys), values = on.filled(p.values),
             state = on.filled(fresh_state(p.position, p.tokens, p.room, s.context)),
             output = on.poisoned(p.expected.size() * 4);
  on.run(kernels::kernel::attention, 4,
         {{"heads", s.heads},
          {"kv_heads", s.kv_heads},
          {"head_dim", s.head_dim},
          {"context", s.context},
          {"cache_element", 0u},
          {"splits", 1u},
          {"heads_together", 1u}},
         {{"query", &query}, {"keys", &keys}, {"values", &values}, {"output", &output}, {"state", &state}},
         {s.heads, p.room, 1});
  CHECK(compare(run(on, p, 4), output.read<float>()).bits == 0);
}

TEST_CASE("attention_chunk: a token whose values are no numbers leaves those before it alone") {
  kernel_device on;
  random_numbers random(10);
  attention_problem p = attention_problem::make(
      random, {.heads = 1, .kv_heads = 1, .head_dim = 16, .context = 64, .cache_element = element::f32}, 20, 8, 8);
  for (std::uint32_t c = 0; c < 16; ++c) {
    const float wrong = std::nanf("");
    std::memcpy(p.values.data() + 4 * kernels::value_cache_index(0, 25, c, 16, 64), &wrong, 4);
  }
  const std::vector<float> found = run(on, p, 4), sound(p.expected.begin(), p.expected.begin() + 5 * 16);
  CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + 5 * 16), sound);
  for (std::size_t i = 5 * 16; i < 8 * 16; ++i) CHECK(std::isnan(found[i]));
}

TEST_CASE("attention_chunk: windows in a ring, and heads of more than 128 channels") {
  kernel_device on;
  random_numbers random(52);
  for (const auto& [shape, position] :
       {std::pair{reference::attention_shape{.heads = 2, .kv_heads = 1, .head_dim = 208, .context = 300}, 250u},
        std::pair{reference::attention_shape{.heads = 2,
        .kv_heads = 1,
        .head_dim = 64,
        .context = 512,
        .scale = 0.0625f,
        .window = 300,
        .ring = true},
                  1270u},
        std::pair{reference::attention_shape{.heads = 2,
        .kv_heads = 1,
        .head_dim = 16,
        .context = 256,
        .cache_element = element::f32,
        .window = 5,
        .ring = true},
                  500u}}) {
    const attention_problem p = attention_problem::make(random, shape, position, 19, 24);
    CHECK_SAME(on, run(on, p, 4), p.expected);
  }
}

// What a softmax has besides, over one span and over several.
TEST_CASE("attention_chunk: bounds of scores and sinks of heads give the reference's bits") {
  kernel_device on;
  random_numbers random(53);
  for (const auto& [shape, position] :
       {std::pair{reference::attention_shape{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 600, .softcap = 3},
                  500u},
        std::pair{
            reference::attention_shape{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 600, .sinks = some_sinks},
            500u},
        std::pair{reference::attention_shape{.heads = 4,
        .kv_heads = 1,
        .head_dim = 256,
        .context = 256,
        .scale = 0.0625f,
        .window = 16,
        .ring = true,
        .softcap = 8,
        .sinks = some_sinks},
                  300u}}) {
    const attention_problem p = attention_problem::make(random, shape, position, 19, 24);
    CHECK_SAME(on, run(on, p, 4), p.expected);
  }
}
