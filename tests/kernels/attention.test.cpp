// SPDX-License-Identifier: MIT
#include "intaglio/reference/attention.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;

TEST_CASE("attention: the reference's bits for any number of subgroups, reading no later position") {
  kernel_device on;
  on.wide_loads = on.fixed_width = GENERATE(false, true);
  random_numbers random(5);
  struct sizes {
    reference::attention_shape shape;
    std::uint32_t position;
  };
  using element = kernels::element;
  for (const auto& [shape, position] : {sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 150}, 0}, sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 150}, 140},
                                        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 16, .context = 70, .cache_element = element::f32}, 31},
                                        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 4, .context = 33}, 30}, sizes{{.heads = 4, .kv_heads = 1, .head_dim = 128, .context = 300}, 290},
                                        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 70}, 62}, sizes{{.heads = 1, .kv_heads = 1, .head_dim = 100, .context = 40}, 33}}) {
    const std::uint32_t tokens = 3, room = 4;
    const std::size_t cached = std::size_t{shape.kv_heads} * shape.context * shape.head_dim, width = std::size_t{shape.heads} * shape.head_dim;
    const auto query = random.floats(room * width, -2, 2);
    auto k = random.floats(cached, -2, 2), v = random.floats(cached, -2, 2);
    for (std::size_t i = 0; i < cached; i += 5) k[i] *= 1e-5f, v[i] *= 1e-5f;  // halves without a leading one
    // What lies past the last position would show in any sum.
    for (std::size_t head = 0; head < shape.kv_heads; ++head)
      for (std::size_t i = (head * shape.context + position + tokens) * shape.head_dim; i < (head + 1) * shape.context * shape.head_dim; ++i) k[i] = 60000.f, v[i] = std::nanf("");
    const auto keys = elements_of(k, shape.cache_element), values = elements_of(v, shape.cache_element);
    std::vector<float> expected(room * width, std::bit_cast<float>(0xa5a5a5a5u));
    reference::attention(shape, query, keys, values, position, tokens, expected);
    const auto q_buffer = on.filled(query), k_buffer = on.filled(keys), v_buffer = on.filled(values), state = on.filled(fresh_state(position, tokens, room, shape.context));
    for (const std::uint32_t subgroups : on.widths()) {
      INFO("head_dim " << shape.head_dim << ", position " << position << ", " << subgroups << " subgroups of " << on.subgroup_size());
      const auto output = on.poisoned(expected.size() * 4);
      on.run(kernels::kernel::attention, subgroups, {{"heads", shape.heads}, {"kv_heads", shape.kv_heads}, {"head_dim", shape.head_dim}, {"context", shape.context},
              {"cache_element", static_cast<std::uint32_t>(shape.cache_element)}},
             {{"query", &q_buffer}, {"keys", &k_buffer}, {"values", &v_buffer}, {"output", &output}, {"state", &state}}, {shape.heads, room, 1});
      CHECK_SAME(on, output.read<float>(), expected);
    }
  }
}
