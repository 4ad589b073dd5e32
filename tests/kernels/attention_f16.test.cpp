// SPDX-License-Identifier: MIT
#include "kernels/attention_fragments_emulated.hpp"
#include "kernels/attention_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::vector<float> run(kernel_device& on, const attention_problem& p, std::uint32_t subgroups = 4) {
  const auto& s = p.shape;
  const auto sinks = sinks_on(on, s);
  const auto query = on.filled(p.query), keys = on.filled(p.keys), values = on.filled(p.values),
             state = on.filled(fresh_state(p.position, p.tokens, p.room, s.context)),
             output = on.filled(std::vector<float>(p.expected.size(), std::bit_cast<float>(0xa5a5a5a5u)));
  auto constants = attention_constants(s);
  constants.push_back({"max_tokens", p.room});
  constants.push_back({"value_dim", s.value_dim});
  const std::uint32_t tile = kernels::attention_f16_tile(s.head_dim);
  on.run(kernels::kernel::attention_f16, subgroups, constants,
         {{"query", &query},
          {"keys", &keys},
          {"values", &values},
          {"output", &output},
          {"state", &state},
          {"sinks", &sinks}},
         {s.heads, (p.room + tile - 1) / tile, 1});
  return output.read<float>();
}

/// attention_fragments with matrices that are emulated in shared memory.
runtime::program_module with_emulated(kernels::variant which) {
  if (which == kernels::variant::attention_fragments)
    return {kernels::whole(kernels::spirv::attention_fragments_emulated_parts)};
  return runtime::modules_of<>(which);
}

}  // namespace

TEST_CASE("attention_f16: every module, heads of all sizes, windows, rings and tiles that are not full") {
  kernel_device on;
  for (const auto& each : runtime::usable_classes(on.device())) {
    const kernels::demands offers = each.offers();
    if (!offers.has(kernels::demand::narrow_loads | kernels::demand::integer_dot) || each.resident_workgroups != 0)
      continue;  // the same modules
    on.half_matrix = offers.has(kernels::demand::f16_matrices);
    random_numbers random(61);
    struct sizes {
      reference::attention_shape shape;
      std::uint32_t position, tokens;
    };
    for (
        const auto& [shape, position, tokens] :
        {sizes{{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 390}, 235, 70},
         sizes{{.heads = 2, .kv_heads = 2, .head_dim = 64, .context = 390, .ahead = ir::all_ahead}, 235, 70},
         sizes{{.heads = 2, .kv_heads = 2, .head_dim = 64, .context = 390, .window = 20, .ahead = 19}, 235, 70},
         sizes{{.heads = 2, .kv_heads = 2, .head_dim = 128, .context = 100}, 0, 66},
         sizes{{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 150}, 61, 40},
         sizes{{.heads = 2, .kv_heads = 1, .head_dim = 512, .context = 150}, 61, 40},
         sizes{{.heads = 3, .kv_heads = 1, .head_dim = 576, .context = 90, .value_dim = 512}, 40, 35},
         sizes{{.heads = 2, .kv_heads = 1, .head_dim = 96, .context = 90, .value_dim = 64}, 40, 35},
         sizes{{.heads = 1, .kv_heads = 1, .head_dim = 80, .context = 40, .cache_element = kernels::element::f32},
               30,
               10},
         sizes{{.heads = 2, .kv_heads = 1, .head_dim = 128, .context = 100, .cache_element = kernels::element::q8_0},
               25,
               66},
         sizes{{.heads = 1, .kv_heads = 1, .head_dim = 64, .context = 41, .cache_element = kernels::element::q4_0},
               30,
               10},
         sizes{
             {.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 512, .scale = 0.0625f, .window = 300, .ring = true},
             1270,
             19},
         sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 390, .softcap = 3, .sinks = some_sinks}, 235, 70},
         sizes{{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 150, .softcap = 8, .sinks = some_sinks}, 61, 40},
         sizes{
             {.heads = 2, .kv_heads = 1, .head_dim = 160, .context = 512, .scale = 0.0625f, .window = 50, .ring = true},
             1000,
             50}}) {
      INFO("head_dim " << shape.head_dim << ", position " << position << ", matrix " << on.half_matrix);
      const attention_problem p = attention_problem::make(random, shape, position, tokens, tokens + 3);
      const auto found = run(on, p);
      if (!on.half_matrix) {
        CHECK_SAME(on, found, p.expected);
        continue;
      }
      const auto apart = compare(found, p.expected);
      INFO("largest difference: " << apart.relative);
      CHECK(apart.relative < 3e-3);
    }
  }
}

TEST_CASE(
    "attention_f16 by fragments: heads of 64 to 128 channels, windows, rings, bounds, sinks and tiles that are "
    "not full",
    "[dear]") {
  kernel_device on;
  on.half_fragments = true;
  if (!runtime::usable_classes(on.device()).front().offers().has(kernels::demand::f16_fragments)) {
    if (!on.device().has(gpu::feature::shader_float16))
      SKIP("NOT RUN: needs a device that computes with f16, found " << on.device().label());
    on.source = &with_emulated;
  }
  random_numbers random(62);
  struct sizes {
    reference::attention_shape shape;
    std::uint32_t position, tokens;
  };
  for (const auto& [shape, position, tokens] :
       {sizes{{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 390}, 135, 70},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 64, .context = 390, .window = 20, .ahead = 19}, 235, 70},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 128, .context = 100}, 0, 66},
        sizes{
            {.heads = 1, .kv_heads = 1, .head_dim = 80, .context = 40, .cache_element = kernels::element::f32}, 30, 10},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 512, .scale = 0.0625f, .window = 90, .ring = true},
              1270,
              19},
        sizes{
            {.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 390, .softcap = 3, .sinks = some_sinks}, 65, 70}}) {
    INFO("head_dim " << shape.head_dim << ", position " << position);
    const attention_problem p = attention_problem::make(random, shape, position, tokens, tokens + 3);
    const auto apart = compare(run(on, p, 128 / on.subgroup_size()), p.expected);
    INFO("largest difference: " << apart.relative);
    CHECK(apart.relative < 3e-3);
  }
}
