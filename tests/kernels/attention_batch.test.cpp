// SPDX-License-Identifier: MIT
#include "kernels/attention_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::vector<float> run(kernel_device& on, const attention_problem& p, std::uint32_t subgroups, std::uint32_t together) {
  const auto& s = p.shape;
  const auto sinks = sinks_on(on, s);
  const auto query = on.filled(p.query), keys = on.filled(p.keys), values = on.filled(p.values),
             state = on.filled(fresh_state(p.position, p.tokens, p.room, s.context)),
             output = on.poisoned(p.expected.size() * 4);
  auto constants = attention_constants(s);
  constants.push_back({"heads_together", together});
  on.run(kernels::kernel::attention_batch, subgroups, constants,
         {{"query", &query},
          {"keys", &keys},
          {"values", &values},
          {"output", &output},
          {"state", &state},
          {"sinks", &sinks}},
         {s.heads / together, p.room, 1});
  return output.read<float>();
}

using element = kernels::element;

}  // namespace

TEST_CASE(
    "attention_batch: the reference's bits wherever octets, halves of spans and spans end, windows and rings "
    "included") {
  kernel_device on;
  random_numbers random(61);
  struct sizes {
    reference::attention_shape shape;
    std::uint32_t position, together, subgroups;
  };
  for (const auto& [shape, position, together, subgroups] :
       {sizes{{.heads = 4, .kv_heads = 2, .head_dim = 128, .context = 300}, 126, 2, 4},
        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 64, .context = 900, .cache_element = element::f32}, 766, 2, 8},
        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 128, .context = 300, .cache_element = element::q8_0}, 260, 2, 8},
        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 64, .context = 300, .cache_element = element::q4_0}, 260, 2, 8},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 8, .context = 33}, 0, 1, 1},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 32, .context = 300, .ahead = ir::all_ahead}, 254, 1, 4},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 32, .context = 300, .window = 4, .ahead = 1}, 254, 1, 4},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 208, .context = 300}, 254, 2, 2},
        sizes{{.heads = 3, .kv_heads = 1, .head_dim = 104, .context = 40}, 31, 1, 4},
        sizes{
            {.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 512, .scale = 0.0625f, .window = 300, .ring = true},
            1270,
            2,
            4},
        sizes{{.heads = 2,
        .kv_heads = 1,
        .head_dim = 16,
        .context = 256,
        .cache_element = element::f32,
        .window = 5,
        .ring = true},
              500,
              2,
              4}}) {
    const attention_problem p = attention_problem::make(random, shape, position, 3, 4);
    INFO("head_dim " << shape.head_dim << ", position " << position << ", " << together << " heads together, "
                     << subgroups << " subgroups of " << on.subgroup_size());
    CHECK_SAME(on, run(on, p, subgroups, together), p.expected);
  }
}

TEST_CASE("attention_batch: a token whose values are no numbers leaves those before it alone") {
  kernel_device on;
  random_numbers random(62);
  attention_problem p = attention_problem::make(
      random, {.heads = 1, .kv_heads = 1, .head_dim = 16, .context = 64, .cache_element = element::f32}, 20, 8, 8);
  for (std::uint32_t c = 0; c < 16; ++c) {
    const float wrong = std::nanf("");
    std::memcpy(p.values.data() + 4 * kernels::value_cache_index(0, 25, c, 16, 64), &wrong, 4);
  }
  const std::vector<float> found = run(on, p, 4, 1), sound(p.expected.begin(), p.expected.begin() + 5 * 16);
  CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + 5 * 16), sound);
  for (std::size_t i = 5 * 16; i < 8 * 16; ++i) CHECK(std::isnan(found[i]));
}

// What a softmax has besides, over one span and over several.
TEST_CASE("attention_batch: bounds of scores and sinks of heads give the reference's bits") {
  kernel_device on;
  random_numbers random(53);
  for (const auto& [shape, position] :
       {std::pair{reference::attention_shape{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 600, .softcap = 3},
                  530u},
        std::pair{
            reference::attention_shape{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 600, .sinks = some_sinks},
            530u},
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
    const attention_problem p = attention_problem::make(random, shape, position, 3, 4);
    CHECK_SAME(on, run(on, p, 4, 2), p.expected);
    CHECK_SAME(on, run(on, p, 4, 1), p.expected);
  }
}
