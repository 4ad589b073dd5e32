// SPDX-License-Identifier: MIT
// Products of weights of blocks over a small batch of one session's tokens, with the output of kernel `fixed`: they
// have the bits of matmul's reference.
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::codec;
using kernels::epilogue;

namespace {

/// Runs a product of plain activations. @param tile tokens of a workgroup
product_result run(kernel_device& on, const matmul_problem& p, std::uint32_t tile, std::uint32_t groups) {
  const auto& s = p.shape;
  product_result out = initial(p);
  std::vector<std::uint32_t> words;
  for (std::size_t t = 0; t < p.room; ++t) {
    const auto of_token = reference::fixed_words(std::span(p.x).subspan(t * s.columns, s.columns));
    words.insert(words.end(), of_token.begin(), of_token.end());
  }
  const auto input = on.filled(words), weight = on.filled(p.weight), output = on.filled(out.output),
             keys = on.filled(out.keys), values = on.filled(out.values), rope = on.filled(p.rope);
  const auto state = on.filled(fresh_state(p.position, p.tokens, p.room, std::max(1u, s.context)));
  on.run(kernels::kernel::matmul_batch, 2,
         {{"columns", s.columns},
          {"rows", s.rows},
          {"codec", static_cast<std::uint32_t>(s.codec)},
          {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
          {"tile_tokens", tile},
          {"tile_rows", 8u},
          {"head_dim", std::max(4u, s.head_dim)},
          {"q_size", s.q_size},
          {"kv_size", s.kv_size},
          {"context", std::max(1u, s.context)},
          {"ring", s.ring ? 1u : 0u},
          {"cache_element", static_cast<std::uint32_t>(s.cache_element)},
          {"activation", s.gate}},
         {{"input", &input},
          {"weight", &weight},
          {"output", &output},
          {"state", &state},
          {"keys", &keys},
          {"values", &values},
          {"rope", &rope}},
         {groups, (p.room + tile - 1) / tile, 1});
  out.output = output.read<float>();
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

}  // namespace

TEST_CASE("matmul_batch: every codec of blocks in both modules gives the reference's bits, in tiles of tokens",
          "[dear]") {
  kernel_device on;
  const codec type = all_codecs[GENERATE(range(std::size_t{3}, all_codecs.size()))];  // after the dense ones
  on.integer_dot = GENERATE(true, false);
  random_numbers random(31);
  const matmul_problem p = matmul_problem::make(random, {.columns = 1536, .rows = 24, .codec = type}, 5, 8);
  INFO(kernels::info(type).name << ", packed dot products " << on.integer_dot);
  check(on, run(on, p, 8, 2), expect(p, kernels::prologue::plain));
}

TEST_CASE("matmul_batch: every epilogue; into a cache past its end nothing is written, into a ring around it") {
  kernel_device on;
  random_numbers random(32);
  for (const auto& shape :
       {reference::matmul_shape{.columns = 64, .rows = 12, .codec = codec::q8_0, .epilogue = epilogue::add},
        reference::matmul_shape{.columns = 96,
        .rows = 512,
        .codec = codec::q8_0,
        .epilogue = epilogue::rope_cache,
        .head_dim = 64,
        .q_size = 256,
        .kv_size = 128,
        .context = 40},
        reference::matmul_shape{.columns = 64,
        .rows = 96,
        .codec = codec::q8_0,
        .epilogue = epilogue::rope_cache,
        .head_dim = 16,
        .q_size = 64,
        .kv_size = 16,
        .context = 256,
        .ring = true,
        .cache_element = kernels::element::f32},
        reference::matmul_shape{
            .columns = 128, .rows = 24, .codec = codec::q8_0, .epilogue = epilogue::gated, .gate = activation::silu}}) {
    INFO("epilogue " << static_cast<int>(shape.epilogue) << ", rows " << shape.rows);
    const std::uint32_t position = shape.ring ? 1022 : shape.epilogue == epilogue::rope_cache ? shape.context - 3 : 0;
    const matmul_problem p = matmul_problem::make(random, shape, 5, 8, position);
    check(on, run(on, p, shape.ring ? 8 : 4, 3), expect(p, kernels::prologue::plain));
  }
}
