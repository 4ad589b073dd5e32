// SPDX-License-Identifier: MIT
#include "kernels/ternary_product.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::epilogue;

namespace {

ternary_result run(kernel_device& on, const chunk_problem& p, std::uint32_t subgroups, std::uint32_t groups, std::uint32_t tile_tokens) {
  const auto& s = p.product.shape;
  ternary_result out = initial(p.product);
  const auto weight = on.filled(p.product.weight), scales = on.filled(p.product.scales), q = on.filled(p.q), factors = on.filled(p.factors),
             output = on.filled(out.output), keys = on.filled(out.keys), values = on.filled(out.values),
             state = on.filled(fresh_state(p.product.position, p.product.tokens, p.product.room, std::max(1u, s.context)));
  on.run(kernels::kernel::ternary_few, subgroups,
         {{"columns", s.columns}, {"rows", s.rows}, {"epilogue", static_cast<std::uint32_t>(s.epilogue)}, {"tile_tokens", tile_tokens},
          {"head_dim", std::max(4u, s.head_dim)}, {"q_size", s.q_size}, {"kv_size", s.kv_size}, {"context", s.context}, {"rope_theta", s.rope_theta},
          {"cache_element", static_cast<std::uint32_t>(s.cache_element)}, {"activation", s.gate}},
         {{"input", &q}, {"factors", &factors}, {"weight", &weight}, {"scales", &scales}, {"output", &output}, {"state", &state}, {"keys", &keys}, {"values", &values}},
         {groups, (p.product.room + tile_tokens - 1) / tile_tokens, 1});
  out.output = output.read<float>();
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

}  // namespace

TEST_CASE("ternary_few: every epilogue, tile and module gives the reference's bits") {
  kernel_device on;
  on.integer_dot = GENERATE(true, false);
  random_numbers random(6);
  const std::vector<reference::ternary_matmul_shape> shapes{
      {.columns = 16, .rows = 4},
      {.columns = 336, .rows = 40, .epilogue = epilogue::add},
      {.columns = 64, .rows = 96, .epilogue = epilogue::rope_cache, .head_dim = 16, .q_size = 64, .kv_size = 16, .context = 37, .rope_theta = 500000.f, .cache_element = kernels::element::f32},
      {.columns = 256, .rows = 64, .epilogue = epilogue::gated},
  };
  for (const auto& shape : shapes) {
    const chunk_problem p = chunk_problem::make(random, shape, 11, 14);
    const ternary_result expected = expect(p);
    INFO("columns " << shape.columns << ", rows " << shape.rows << ", epilogue " << static_cast<int>(shape.epilogue) << ", dot " << on.integer_dot);
    check(on, run(on, p, 3, 5, 8), expected);
    check(on, run(on, p, 1, shape.rows / 4, 4), expected);
  }
}
