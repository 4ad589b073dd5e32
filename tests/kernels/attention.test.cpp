// SPDX-License-Identifier: MIT
#include "intaglio/kernels/declared_modules.hpp"
#include "intaglio/plan/heads_together.hpp"
#include "kernels/attention_problem.hpp"
#include "kernels/attention_together_emulated.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// All tokens at once, each head's spans by one workgroup or by `splits`; twice, since counters must be left as they
/// were found.
void check(kernel_device& on, const attention_problem& p, std::uint32_t subgroups, std::uint32_t splits,
           std::uint32_t together, bool narrow = false) {
  const auto& s = p.shape;
  INFO("head_dim " << s.head_dim << ", position " << p.position << ", " << subgroups << " subgroups of "
                   << on.subgroup_size() << ", " << splits << " splits, " << together << " heads together");
  const auto query = on.filled(p.query), keys = on.filled(p.keys), values = on.filled(p.values),
             state = on.filled(fresh_state(p.position, p.tokens, p.room, s.context));
  const auto sinks = sinks_on(on, s);
  const auto partials = on.poisoned(kernels::attention_partial_bytes(p.room, s.heads, splits, s.value_width()));
  const auto counters = on.filled(std::vector<std::uint32_t>(std::size_t{p.room} * s.heads));
  auto constants = attention_constants(s);
  constants.insert(
      constants.end(),
      {{"splits", splits}, {"heads_together", together}, {"narrow", narrow ? 1u : 0u}, {"value_dim", s.value_dim}});
  for (int time = 0; time < (splits > 1 ? 2 : 1); ++time) {
    const auto output = on.poisoned(p.expected.size() * 4);
    on.run(kernels::kernel::attention, subgroups, constants,
           {{"query", &query},
            {"keys", &keys},
            {"values", &values},
            {"output", &output},
            {"state", &state},
            {"partials", &partials},
            {"counters", &counters},
            {"sinks", &sinks}},
           {s.heads / together, p.room, splits});
    CHECK_SAME(on, output.read<float>(), p.expected);
    CHECK(counters.read<std::uint32_t>() == std::vector<std::uint32_t>(std::size_t{p.room} * s.heads));
  }
}

using element = kernels::element;

/// attention with subgroups of 32 that are emulated in shared memory.
runtime::program_module with_emulated(kernels::variant which) {
  if (which == kernels::variant::attention) return {kernels::whole(kernels::spirv::attention_together_emulated_parts)};
  return runtime::modules_of<>(which);
}

/// Heads together, as plans have them.
void check_together(kernel_device& on, const attention_problem& p) {
  const auto& s = p.shape;
  plan::dispatch engraved{.kernel = kernels::kernel::attention};
  kernels::attention_kernel::constants c{};
  c.heads = s.heads, c.kv_heads = s.kv_heads, c.head_dim = s.head_dim, c.value_dim = s.value_dim, c.heads_together = 1;
  c.splits = kernels::attention_spans(s.window == 0 ? s.context : std::min(s.context, s.window + 512));
  kernels::store(c, engraved.specialization);
  REQUIRE(plan::attends_together(engraved, plan::classes::nvidia));
  const plan::dispatch call = plan::with_heads_together(engraved);
  const auto together = kernels::constants_of<kernels::attention_kernel>(call.specialization).heads_together;
  INFO("head_dim " << s.head_dim << ", " << s.heads << " heads, " << s.kv_heads << " of keys, position " << p.position);
  const auto query = on.filled(p.query), keys = on.filled(p.keys), values = on.filled(p.values),
             state = on.filled(fresh_state(p.position, 1, 1, s.context)), sinks = sinks_on(on, s),
             partials = on.poisoned(kernels::attention_partial_bytes(1, s.heads, c.splits, s.value_width())),
             counters = on.filled(std::vector<std::uint32_t>(s.heads));
  auto constants = attention_constants(s);
  constants.insert(constants.end(), {{"splits", c.splits}, {"heads_together", together}, {"value_dim", s.value_dim}});
  for (int time = 0; time < 2; ++time) {
    const auto output = on.poisoned(p.expected.size() * 4);
    on.run(kernels::kernel::attention, 128 / on.subgroup_size(), constants,
           {{"query", &query},
            {"keys", &keys},
            {"values", &values},
            {"output", &output},
            {"state", &state},
            {"partials", &partials},
            {"counters", &counters},
            {"sinks", &sinks}},
           {call.groups[0], 1, c.splits});
    CHECK_SAME(on, output.read<float>(), p.expected);
    CHECK(counters.read<std::uint32_t>() == std::vector<std::uint32_t>(s.heads));
  }
}

}  // namespace

TEST_CASE("attention with heads together: the bits of the other forms, with one span and with several") {
  kernel_device on;
  on.source = &with_emulated;
  random_numbers random(71);
  for (const auto& [shape, position] :
       {std::pair{reference::attention_shape{.heads = 8, .kv_heads = 2, .head_dim = 128, .context = 600}, 3u},
        std::pair{reference::attention_shape{.heads = 8, .kv_heads = 2, .head_dim = 128, .context = 600}, 300u},
        std::pair{reference::attention_shape{.heads = 4, .kv_heads = 1, .head_dim = 64, .context = 600}, 511u},
        std::pair{reference::attention_shape{.heads = 7, .kv_heads = 1, .head_dim = 64, .context = 600}, 597u},
        std::pair{reference::attention_shape{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 600}, 590u},
        std::pair{reference::attention_shape{.heads = 3, .kv_heads = 1, .head_dim = 160, .context = 300}, 290u},
        std::pair{reference::attention_shape{.heads = 2, .kv_heads = 1, .head_dim = 512, .context = 300}, 290u},
        std::pair{
            reference::attention_shape{.heads = 5, .kv_heads = 1, .head_dim = 576, .context = 600, .value_dim = 512},
            590u},
        std::pair{reference::attention_shape{
                      .heads = 4, .kv_heads = 1, .head_dim = 128, .context = 600, .cache_element = element::q8_0},
                  580u},
        std::pair{reference::attention_shape{
                      .heads = 4, .kv_heads = 2, .head_dim = 64, .context = 300, .cache_element = element::q4_0},
                  290u},
        std::pair{reference::attention_shape{.heads = 4,
        .kv_heads = 1,
        .head_dim = 64,
        .context = 512,
        .scale = 0.0625f,
        .window = 300,
        .ring = true},
                  1277u},
        std::pair{reference::attention_shape{
                      .heads = 4, .kv_heads = 2, .head_dim = 64, .context = 390, .softcap = 3, .sinks = some_sinks},
                  385u}})
    check_together(on, attention_problem::make(random, shape, position, 1, 1));
  // More spans than lanes find factors of at once.
  check_together(
      on, attention_problem::make(random, {.heads = 2, .kv_heads = 1, .head_dim = 32, .context = 9000}, 8990, 1, 1));
}

TEST_CASE("attention: the reference's bits for any number of subgroups, reading no later position", "[dear]") {
  kernel_device on;
  on.wide_loads = on.fixed_width = GENERATE(false, true);
  random_numbers random(5);
  struct sizes {
    reference::attention_shape shape;
    std::uint32_t position;
  };
  std::size_t turn = 0;
  for (const auto& [shape, position] :
       {sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 150}, 0},
        sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 150}, 140},
        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 16, .context = 70, .cache_element = element::f32}, 31},
        sizes{{.heads = 2, .kv_heads = 2, .head_dim = 8, .context = 33}, 30},
        sizes{{.heads = 4, .kv_heads = 1, .head_dim = 128, .context = 300}, 254},
        sizes{{.heads = 14, .kv_heads = 2, .head_dim = 64, .context = 150}, 140},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 70}, 62},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 512, .context = 70}, 62},
        sizes{{.heads = 1, .kv_heads = 1, .head_dim = 104, .context = 40}, 33},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 160, .context = 300, .cache_element = element::f32}, 260},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 600, .cache_element = element::f32}, 597},
        sizes{{.heads = 4, .kv_heads = 2, .head_dim = 128, .context = 300, .cache_element = element::q8_0}, 254},
        sizes{{.heads = 4, .kv_heads = 2, .head_dim = 80, .context = 70, .cache_element = element::q8_0}, 60},
        sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 150, .cache_element = element::q4_0}, 140},
        sizes{{.heads = 2, .kv_heads = 1, .head_dim = 256, .context = 70, .cache_element = element::q4_0}, 62},
        sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 300, .ahead = ir::all_ahead}, 254},
        sizes{{.heads = 4, .kv_heads = 2, .head_dim = 64, .context = 300, .window = 5, .ahead = 1}, 254}}) {
    const attention_problem p = attention_problem::make(random, shape, position, 3, 4);
    // Compiling is the time: all numbers of subgroups at one shape, then one of them in turn.
    const auto widths = on.widths();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (turn < 2 || i == turn % widths.size()) check(on, p, widths[i], 1, 1);
    // Heads are done together by CPU drivers.
    if ((on.wide_loads || turn == 0) && shape.heads / shape.kv_heads % 2 == 0) check(on, p, 1, 1, 2);
    if ((on.wide_loads || turn == 4) && shape.heads / shape.kv_heads == 4) check(on, p, 2, 1, 4);
    ++turn;
  }
}

TEST_CASE("attention: a workgroup of each width that a profile may ask for") {
  kernel_device on;
  random_numbers random(6);
  const attention_problem p =
      attention_problem::make(random, {.heads = 2, .kv_heads = 1, .head_dim = 128, .context = 300}, 250, 2, 2);
  for (const std::uint32_t subgroups : {8u, 12u, 16u, 32u}) check(on, p, subgroups, 1, 1);
}

TEST_CASE("attention: the same bits in half of the shared memory", "[dear]") {
  kernel_device on;
  random_numbers random(8);
  for (const std::uint32_t head_dim : {64u, 128u, 160u, 256u, 512u}) {
    const std::uint32_t splits = head_dim == 128 ? 3 : 1;
    const attention_problem p = attention_problem::make(
        random, {.heads = 2, .kv_heads = 1, .head_dim = head_dim, .context = 600}, splits == 1 ? 260 : 590, 1, 1);
    for (const std::uint32_t subgroups : {1u, 16u}) check(on, p, subgroups, splits, 1, true);
    CHECK(kernels::shared_memory_bytes("attention",
                                       {kernels::given<&kernels::attention_kernel::constants::workgroup_size>(16 * 16),
                                        kernels::given<&kernels::attention_kernel::constants::head_dim>(head_dim),
                                        kernels::given<&kernels::attention_kernel::constants::subgroup_width>(16),
                                        kernels::given<&kernels::attention_kernel::constants::splits>(splits),
                                        kernels::given<&kernels::attention_kernel::constants::heads_together>(1),
                                        kernels::given<&kernels::attention_kernel::constants::narrow>(1),
                                        kernels::given<&kernels::attention_kernel::constants::value_dim>(0)}) <= 16384);
  }
}

TEST_CASE("attention: spans by workgroups of their own give the same bits, with one span and with several", "[dear]") {
  kernel_device on;
  on.wide_loads = on.fixed_width = GENERATE(false, true);
  random_numbers random(7);
  const element type = GENERATE(element::f16, element::f32);
  for (const std::uint32_t position : {3u, 255u, 256u, 700u})
    for (const std::uint32_t head_dim : {64u, 160u}) {
      const attention_problem p = attention_problem::make(
          random, {.heads = 4, .kv_heads = 2, .head_dim = head_dim, .context = 710, .cache_element = type}, position, 1,
          1);
      for (const std::uint32_t subgroups : {1u, 4u, 16u})
        if ((head_dim == 64) == (type == element::f16) || subgroups == 4) check(on, p, subgroups, 3, 1);
      check(on, p, 2, 3, 2);
    }
  // More spans than are merged at once.
  check(on,
        attention_problem::make(
            random, {.heads = 1, .kv_heads = 1, .head_dim = 16, .context = 2600, .cache_element = type}, 2570, 1, 1),
        2, 11, 1);
}

TEST_CASE("attention: a window of positions, in a cache of all or in a ring, with a scale of its own") {
  kernel_device on;
  on.wide_loads = GENERATE(false, true);
  random_numbers random(51);
  for (const auto& [shape, position] :
       {std::pair{reference::attention_shape{.heads = 2, .kv_heads = 1, .head_dim = 64, .context = 900, .window = 300},
                  640u},
        std::pair{reference::attention_shape{.heads = 2,
        .kv_heads = 1,
        .head_dim = 64,
        .context = 512,
        .scale = 0.0625f,
        .window = 300,
        .ring = true},
                  1277u},
        std::pair{reference::attention_shape{
                      .heads = 2, .kv_heads = 1, .head_dim = 256, .context = 256, .window = 16, .ring = true},
                  3u},
        std::pair{reference::attention_shape{.heads = 4,
        .kv_heads = 1,
        .head_dim = 16,
        .context = 256,
        .cache_element = element::f32,
        .window = 20,
        .ring = true},
                  270u}}) {
    const attention_problem p = attention_problem::make(random, shape, position, 2, 2);
    check(on, p, 4, 1, 1);
    check(on, p, 1, kernels::attention_window_spans(shape.window), 2);
  }
}

// What a softmax has besides, over one span and over several.
TEST_CASE("attention: bounds of scores and sinks of heads give the reference's bits") {
  kernel_device on;
  on.wide_loads = GENERATE(false, true);
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
    const attention_problem p = attention_problem::make(random, shape, position, 2, 2);
    check(on, p, 4, 1, 1);
    if (shape.window == 0) check(on, p, 1, 3, 2);
  }
}

// Latent attention: all heads read one key and its first channels as a value.
TEST_CASE("attention: values with fewer channels than keys give the reference's bits") {
  kernel_device on;
  on.wide_loads = GENERATE(false, true);
  random_numbers random(54);
  for (const auto& [shape, position] :
       {std::pair{reference::attention_shape{
                      .heads = 4, .kv_heads = 1, .head_dim = 80, .context = 300, .scale = 0.25f, .value_dim = 64},
                  255u},
        std::pair{reference::attention_shape{
                      .heads = 2, .kv_heads = 1, .head_dim = 576, .context = 300, .scale = 0.072f, .value_dim = 512},
                  270u},
        std::pair{reference::attention_shape{.heads = 2,
        .kv_heads = 1,
        .head_dim = 576,
        .context = 70,
        .cache_element = element::q8_0,
        .scale = 0.072f,
        .value_dim = 512},
                  60u},
        std::pair{reference::attention_shape{.heads = 2,
        .kv_heads = 1,
        .head_dim = 80,
        .context = 90,
        .cache_element = element::q4_0,
        .scale = 0.25f,
        .value_dim = 64},
                  80u}}) {
    const attention_problem p = attention_problem::make(random, shape, position, 2, 2);
    check(on, p, 4, 1, 1);
    check(on, p, 16, 1, 1, true);
    check(on, p, 1, kernels::attention_spans(shape.context), 2);
  }
}
