// SPDX-License-Identifier: MIT
#include "intaglio/reference/sample.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::codec;
using kernels::epilogue;
using kernels::prologue;

namespace {

std::vector<named_value> constants(const reference::matmul_shape& s, prologue before, std::uint32_t tile_tokens,
                                   bool staged, bool keeps_firsts) {
  return {{"columns", s.columns},
          {"rows", s.rows},
          {"codec", static_cast<std::uint32_t>(s.codec)},
          {"prologue", static_cast<std::uint32_t>(before)},
          {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
          {"eps", 1e-5f},
          {"tile_tokens", tile_tokens},
          {"staged", staged ? 1u : 0u},
          {"head_dim", std::max(4u, s.head_dim)},
          {"q_size", s.q_size},
          {"kv_size", s.kv_size},
          {"context", std::max(1u, s.context)},
          {"ring", s.ring ? 1u : 0u},
          {"cache_element", static_cast<std::uint32_t>(s.cache_element)},
          {"activation", s.gate},
          {"keeps_firsts", keeps_firsts ? 1u : 0u}};
}

/// How a product is spread: tile_tokens 0 is one pass a token, as decode does it.
struct spread {
  std::uint32_t subgroups = 1, tile_tokens = 0, groups = 2;
  bool staged = true;
};

product_result run(kernel_device& on, const matmul_problem& p, prologue before, const spread& how) {
  const auto& s = p.shape;
  product_result out = initial(p);
  const auto weight = on.filled(p.weight), norm_weight = on.filled(p.norm_weight), keys = on.filled(out.keys),
             values = on.filled(out.values), rope = on.filled(p.rope);
  const auto pass = [&](const std::vector<float>& x, std::span<float> y, std::uint32_t position, std::uint32_t count,
                        std::uint32_t tiles) {
    const auto input = on.filled(x), output = on.filled(std::vector<float>(y.begin(), y.end()));
    const auto state = on.filled(fresh_state(position, count, p.room, std::max(1u, s.context)));
    const bool keeps_firsts = how.tile_tokens == 0 && s.epilogue == epilogue::store;
    const auto firsts = on.poisoned(std::size_t{8} * (how.groups + 1));
    on.run(kernels::kernel::matmul, how.subgroups,
           constants(s, before, std::max(1u, how.tile_tokens), how.staged, keeps_firsts),
           {{"input", &input},
            {"norm_weight", &norm_weight},
            {"weight", &weight},
            {"output", &output},
            {"state", &state},
            {"keys", &keys},
            {"values", &values},
            {"rope", &rope},
            {"firsts", &firsts}},
           {how.groups, tiles, 1});
    const auto found = output.read<float>();
    std::ranges::copy(found, y.begin());
    const auto ranked = firsts.read<reference::ranked_token>();
    CHECK(ranked.back().key == 0xa5a5a5a5u);
    if (keeps_firsts) CHECK(*std::max_element(ranked.begin(), ranked.end() - 1) == reference::first_ranked(found));
    else CHECK(ranked.front().key == 0xa5a5a5a5u);
  };
  if (how.tile_tokens != 0) {
    pass(p.x, out.output, p.position, p.tokens, (p.room + how.tile_tokens - 1) / how.tile_tokens);
  } else {
    for (std::uint32_t t = 0; t < p.tokens; ++t) {
      const auto begin = p.x.begin() + static_cast<std::ptrdiff_t>(std::size_t{t} * s.columns);
      pass({begin, begin + s.columns}, std::span(out.output).subspan(t * p.output_width(), p.output_width()),
           p.position + t, 1, 1);
    }
  }
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

/// Which of the kernel's modules.
void choose(kernel_device& on, int module) {
  on.integer_dot = module == 0;
  on.wide_loads = module == 2;
}

}  // namespace

TEST_CASE("matmul: every codec in every module gives the reference's bits, a token or a tile of tokens at a time",
          "[dear]") {
  kernel_device on;
  const codec type = all_codecs[GENERATE(range(std::size_t{0}, all_codecs.size()))];
  const int module = GENERATE(0, 1, 2);
  choose(on, module);
  random_numbers random(21);
  const std::uint32_t columns = kernels::is_dense(type) ? 1100 : 1536;
  const matmul_problem p = matmul_problem::make(random, {.columns = columns, .rows = 24, .codec = type}, 3, 5);
  INFO(kernels::info(type).name << ", module " << module);
  const product_result normal = expect(p, prologue::norm);
  check(on, run(on, p, prologue::norm, {.subgroups = 2}), normal);
  check(on, run(on, p, prologue::plain, {.tile_tokens = 4, .staged = module == 1}), expect(p, prologue::plain));
}

TEST_CASE("matmul: every epilogue, any number of subgroups", "[dear]") {
  kernel_device on;
  const codec type = GENERATE(codec::f32, codec::q8_0);
  const int module = type == codec::f32 ? 2 : 0;
  choose(on, module);
  on.fixed_width = module != 0;
  random_numbers random(22);
  for (const auto& shape :
       {reference::matmul_shape{.columns = 64, .rows = 10, .codec = type, .epilogue = epilogue::add},
        reference::matmul_shape{.columns = 96,
        .rows = 512,
        .codec = type,
        .epilogue = epilogue::rope_cache,
        .head_dim = 64,
        .q_size = 256,
        .kv_size = 128,
        .context = 40},
        reference::matmul_shape{.columns = 64,
        .rows = 96,
        .codec = type,
        .epilogue = epilogue::rope_cache,
        .head_dim = 16,
        .q_size = 64,
        .kv_size = 16,
        .context = 256,
        .ring = true,
        .cache_element = kernels::element::f32},
        reference::matmul_shape{
            .columns = 128, .rows = 24, .codec = type, .epilogue = epilogue::gated, .gate = activation::silu},
        reference::matmul_shape{
            .columns = 32, .rows = 24, .codec = type, .epilogue = epilogue::gated, .gate = activation::gelu_tanh}}) {
    INFO(kernels::info(type).name << ", module " << module << ", epilogue " << static_cast<int>(shape.epilogue)
                                  << ", rows " << shape.rows);
    const std::uint32_t position = shape.ring ? 1022 : shape.epilogue == epilogue::rope_cache ? shape.context - 3 : 0;
    const matmul_problem p = matmul_problem::make(random, shape, 5, 8, position);
    const product_result normal = expect(p, prologue::norm);
    check(on, run(on, p, prologue::norm, {.tile_tokens = module == 0 ? 2u : 8u, .groups = 1}), normal);
    if (shape.rows != 24) check(on, run(on, p, prologue::norm, {.subgroups = 4, .groups = 3}), normal);
  }
}

TEST_CASE("matmul: columns that are no whole octet, and rows past the last group") {
  kernel_device on;
  choose(on, GENERATE(0, 2));
  random_numbers random(23);
  const codec type = GENERATE(codec::f16, codec::f32, codec::q4_0);
  const matmul_problem p =
      matmul_problem::make(random, {.columns = kernels::is_dense(type) ? 172u : 160u, .rows = 7, .codec = type}, 2, 2);
  check(on, run(on, p, prologue::plain, {}), expect(p, prologue::plain));
}

TEST_CASE("matmul: activations that are no numbers give none, and only in their token") {
  kernel_device on;
  choose(on, GENERATE(0, 2));
  random_numbers random(24);
  matmul_problem p = matmul_problem::make(random, {.columns = 64, .rows = 4, .codec = codec::q8_0}, 2, 2);
  p.x[64 + 40] = std::nanf("");
  const product_result found = run(on, p, prologue::plain, {.tile_tokens = 2}), expected = expect(p, prologue::plain);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(found.output[i] == expected.output[i]);
    CHECK(std::isnan(found.output[4 + i]));
  }
}
