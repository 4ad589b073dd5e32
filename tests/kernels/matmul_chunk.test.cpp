// SPDX-License-Identifier: MIT
#include "intaglio/reference/matmul_chunk.hpp"
#include "intaglio/reference/experts.hpp"
#include "kernels/matmul_chunk_emulated.hpp"
#include "kernels/matmul_fragments_emulated.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using kernels::codec;
using kernels::epilogue;
using kernels::prologue;

namespace {

std::vector<reference::f16_token> f16_quad(const matmul_problem& p, prologue before) {
  std::vector<reference::f16_token> out;
  const std::size_t columns = p.shape.columns;
  for (std::size_t t = 0; t < p.tokens; ++t) {
    std::vector<float> y(p.x.begin() + static_cast<std::ptrdiff_t>(t * columns),
                         p.x.begin() + static_cast<std::ptrdiff_t>((t + 1) * columns));
    if (before == prologue::norm)
      reference::rms_norm(std::span(p.x).subspan(t * columns, columns), p.norm_weight, 1e-5f, y);
    out.push_back(reference::quantize_f16(y));
  }
  return out;
}

product_result expect_chunk(const matmul_problem& p, prologue before) {
  product_result out = initial(p);
  reference::matmul_chunk(p.shape, f16_quad(p, before), p.weight, out.output, p.position, out.keys, out.values, p.rope);
  return out;
}

struct tile {
  std::uint32_t subgroups, rows, tokens;
};

/// What both kernels leave; checks on the way what quantize_f16 leaves.
product_result run_chunk(kernel_device& on, const matmul_problem& p, prologue before, const tile& by) {
  const auto& s = p.shape;
  product_result out = initial(p);
  const auto input = on.filled(p.x), norm_weight = on.filled(p.norm_weight), weight = on.filled(p.weight),
             output = on.filled(out.output), keys = on.filled(out.keys), values = on.filled(out.values),
             rope = on.filled(p.rope),
             state = on.filled(fresh_state(p.position, p.tokens, p.room, std::max(1u, s.context)));
  const auto halves = on.poisoned(std::size_t{2} * p.room * s.columns), factors = on.poisoned(std::size_t{4} * p.room);
  const kernels::f16_order order = on.narrow_f16       ? kernels::f16_order::tiles
                                   : on.half_fragments ? kernels::fragment_order(s.codec)
                                                       : kernels::f16_order::rows;
  on.run(
      kernels::kernel::quantize_f16, 2,
      {{"width", s.columns},
       {"prologue", static_cast<std::uint32_t>(before)},
       {"eps", 1e-5f},
       {"tiled", static_cast<std::uint32_t>(order)}},
      {{"input", &input}, {"norm_weight", &norm_weight}, {"output", &halves}, {"factors", &factors}, {"state", &state}},
      {1, p.room, 1});
  const auto bits = halves.read<std::uint16_t>();
  const auto found_factors = factors.read<float>();
  const auto expected = f16_quad(p, before);
  for (std::size_t t = 0; t < p.tokens; ++t) {
    if (std::isnan(expected[t].factor)) continue;
    CHECK(found_factors[t] == expected[t].factor);
    double apart = 0;
    for (std::size_t c = 0; c < s.columns; ++c)
      apart = std::max(
          apart, std::abs(static_cast<double>(f32_from_f16(bits[reference::ordered_index(order, t, c, s.columns)])) -
                          static_cast<double>(f32_from_f16(expected[t].bits[c]))));
    CHECK(apart <= (on.device().description().type == gpu::device_type::cpu ? 0 : 16));  // of at least 2^14
  }
  on.run(kernels::kernel::matmul_chunk, by.subgroups,
         {{"columns", s.columns},
          {"rows", s.rows},
          {"codec", static_cast<std::uint32_t>(s.codec)},
          {"epilogue", static_cast<std::uint32_t>(s.epilogue)},
          {"tile_rows", by.rows},
          {"tile_tokens", by.tokens},
          {"head_dim", std::max(4u, s.head_dim)},
          {"q_size", s.q_size},
          {"kv_size", s.kv_size},
          {"context", std::max(1u, s.context)},
          {"ring", s.ring ? 1u : 0u},
          {"cache_element", static_cast<std::uint32_t>(s.cache_element)},
          {"activation", s.gate},
          {"max_tokens", p.room}},
         {{"input", &halves},
          {"factors", &factors},
          {"weight", &weight},
          {"output", &output},
          {"state", &state},
          {"keys", &keys},
          {"values", &values},
          {"rope", &rope}},
         {(p.room + by.tokens - 1) / by.tokens, (s.rows + by.rows - 1) / by.rows, 1});
  out.output = output.read<float>();
  out.keys = keys.read<std::byte>();
  out.values = values.read<std::byte>();
  return out;
}

/// Cooperative matrices sum in an order of their own and round the weights of blocks from factors in f16.
void check_chunk(kernel_device& on, const product_result& found, const product_result& expected) {
  if (!on.half_matrix && !on.narrow_f16 && !on.half_fragments) return check(on, found, expected);
  const auto apart = compare(found.output, expected.output);
  INFO("largest difference: " << apart.relative);
  CHECK(apart.relative < 2e-3);
}

/// matmul_chunk_batch or _fragments with matrices that are emulated in shared memory.
runtime::program_module with_emulated(kernels::variant which) {
  if (which == kernels::variant::matmul_chunk_fragments)
    return {kernels::whole(kernels::spirv::matmul_fragments_emulated_parts)};
  if (which == kernels::variant::matmul_chunk_batch)
    return {kernels::whole(kernels::spirv::matmul_chunk_emulated_parts)};
  return runtime::modules_of<>(which);
}

}  // namespace

TEST_CASE("matmul_chunk: every codec in every module, a tile of tokens that is not full") {
  kernel_device on;
  const codec type = all_codecs[GENERATE(range(std::size_t{0}, all_codecs.size()))];
  for (const auto& each : runtime::usable_classes(on.device())) {
    const kernels::demands offers = each.offers();
    if (!offers.has(kernels::demand::narrow_loads | kernels::demand::integer_dot) || each.resident_workgroups != 0)
      continue;  // the same modules
    on.half_matrix = offers.has(kernels::demand::f16_matrices);
    random_numbers random(31);
    const matmul_problem p = matmul_problem::make(random, {.columns = 256, .rows = 36, .codec = type}, 37, 40);
    INFO(kernels::info(type).name << ", matrix " << on.half_matrix);
    check_chunk(on, run_chunk(on, p, prologue::plain, {2, 32, 32}), expect_chunk(p, prologue::plain));
    if (on.half_matrix) {
      const matmul_problem wide = matmul_problem::make(random, {.columns = 1536, .rows = 388, .codec = type}, 200, 203);
      const auto expected = expect_chunk(wide, prologue::norm);
      for (const auto& by : {tile{4, 128, 128}, tile{4, 128, 64}, tile{4, 64, 64}, tile{8, 128, 128}, tile{8, 256, 64}})
        check_chunk(on, run_chunk(on, wide, prologue::norm, by), expected);
    }
  }
}

TEST_CASE("matmul_chunk: every epilogue after a norm") {
  kernel_device on;
  for (const auto& each : runtime::usable_classes(on.device())) {
    const kernels::demands offers = each.offers();
    if (!offers.has(kernels::demand::narrow_loads | kernels::demand::integer_dot) || each.resident_workgroups != 0)
      continue;  // the same modules
    on.half_matrix = offers.has(kernels::demand::f16_matrices);
    random_numbers random(32);
    for (const auto& shape :
         {reference::matmul_shape{.columns = 64, .rows = 12, .codec = codec::q8_0, .epilogue = epilogue::add},
          reference::matmul_shape{.columns = 64,
          .rows = 512,
          .codec = codec::q4_0,
          .epilogue = epilogue::rope_cache,
          .head_dim = 64,
          .q_size = 256,
          .kv_size = 128,
          .context = 40},
          reference::matmul_shape{.columns = 64,
          .rows = 96,
          .codec = codec::f16,
          .epilogue = epilogue::rope_cache,
          .head_dim = 16,
          .q_size = 64,
          .kv_size = 16,
          .context = 256,
          .ring = true,
          .cache_element = kernels::element::f32},
          reference::matmul_shape{.columns = 128,
          .rows = 24,
          .codec = codec::q8_0,
          .epilogue = epilogue::gated,
          .gate = activation::silu}}) {
      INFO("epilogue " << static_cast<int>(shape.epilogue) << ", rows " << shape.rows << ", matrix " << on.half_matrix);
      const std::uint32_t position = shape.ring ? 1022 : shape.epilogue == epilogue::rope_cache ? shape.context - 3 : 0;
      const matmul_problem p = matmul_problem::make(random, shape, 9, 11, position);
      check_chunk(on, run_chunk(on, p, prologue::norm, {2, 32, 32}), expect_chunk(p, prologue::norm));
    }
  }
}

TEST_CASE("matmul_chunk: activations of any size, and those that are no numbers, only in their token") {
  kernel_device on;
  random_numbers random(33);
  matmul_problem p = matmul_problem::make(random, {.columns = 64, .rows = 4, .codec = codec::f32}, 5, 5);
  for (std::size_t c = 0; c < 64; ++c) p.x[c] *= 1e30f, p.x[64 + c] *= 1e-30f, p.x[128 + c] = 0;
  p.x[192 + 40] = std::nanf("");
  const product_result found = run_chunk(on, p, prologue::plain, {1, 16, 32}),
                       expected = expect_chunk(p, prologue::plain);
  for (std::size_t i = 0; i < 20; ++i)
    CHECK((i / 4 == 3 ? std::isnan(found.output[i]) : found.output[i] == expected.output[i]));
}

TEST_CASE("matmul_chunk of a small batch: every codec, steps that are not full, rows that fill no tile; every epilogue",
          "[dear]") {
  kernel_device on;
  on.narrow_f16 = true;
  if (!runtime::usable_classes(on.device()).front().offers().has(kernels::demand::narrow_f16)) {
    if (!on.device().has(gpu::feature::shader_float16))
      SKIP("NOT RUN: needs a device that computes with f16, found " << on.device().label());
    on.source = &with_emulated;
  }
  // As many steps for each subgroup of the same rows: emulated matrices wait for all of them.
  random_numbers random(35);
  const std::uint32_t each = 32 / on.subgroup_size();
  for (const codec type : unlike_codecs())
    for (const auto& by : {tile{2 * each, 32, 8}, tile{2 * each, 32, 16}, tile{4 * each, 64, 32}}) {
      if (by.tokens == 16 && type != codec::q8_0) continue;
      if (by.tokens == 32 && !kernels::has_own_forms(type)) continue;  // they share the code of those that have
      INFO(kernels::info(type).name << ", tiles of " << by.tokens);
      const std::uint32_t step = kernels::column_step(type), columns = kernels::is_dense(type) || step == 128 ? 512
                                                                       : step == 256                          ? 768
                                                                                                              : 448;
      const matmul_problem p =
          matmul_problem::make(random, {.columns = columns, .rows = 100, .codec = type}, by.tokens + 5, 2 * by.tokens);
      check_chunk(on, run_chunk(on, p, by.rows == 32 ? prologue::plain : prologue::norm, by),
                  expect_chunk(p, by.rows == 32 ? prologue::plain : prologue::norm));
    }
  for (const auto& shape :
       {reference::matmul_shape{.columns = 256, .rows = 12, .codec = codec::q8_0, .epilogue = epilogue::add},
        reference::matmul_shape{.columns = 256,
        .rows = 512,
        .codec = codec::q4_0,
        .epilogue = epilogue::rope_cache,
        .head_dim = 64,
        .q_size = 256,
        .kv_size = 128,
        .context = 40},
        reference::matmul_shape{
            .columns = 256, .rows = 24, .codec = codec::f16, .epilogue = epilogue::gated, .gate = activation::silu}})
    for (const std::uint32_t tokens : {8u, 32u}) {  // 32: what the end wants is asked for before
      INFO("epilogue " << static_cast<int>(shape.epilogue) << ", tiles of " << tokens);
      const matmul_problem p =
          matmul_problem::make(random, shape, 9, 32, shape.epilogue == epilogue::rope_cache ? shape.context - 9 : 0);
      check_chunk(on, run_chunk(on, p, prologue::norm, {2 * each, 32, tokens}), expect_chunk(p, prologue::norm));
    }
}

TEST_CASE(
    "matmul_chunk by fragments: every codec, steps of an odd number, tiles that are not full; every epilogue; the same "
    "bits in every tile",
    "[dear]") {
  kernel_device on;
  on.half_fragments = true;
  if (!runtime::usable_classes(on.device()).front().offers().has(kernels::demand::f16_fragments)) {
    if (!on.device().has(gpu::feature::shader_float16) || !on.device().has(gpu::feature::shader_int64))
      SKIP("NOT RUN: needs a device that computes with f16 and 64-bit integers, found " << on.device().label());
    on.source = &with_emulated;
  }
  random_numbers random(36);
  const std::uint32_t each = 32 / on.subgroup_size();
  for (const codec type : unlike_codecs()) {
    INFO(kernels::info(type).name);
    const std::uint32_t columns = kernels::is_dense(type) ? 320 : kernels::column_step(type) == 256 ? 768 : 384;
    const matmul_problem p = matmul_problem::make(random, {.columns = columns, .rows = 196, .codec = type}, 70, 75);
    check_chunk(on, run_chunk(on, p, prologue::norm, {4 * each, 128, 64}), expect_chunk(p, prologue::norm));
  }
  // Columns in parts.
  for (const codec type : {codec::f16, codec::q6_k}) {
    const matmul_problem p = matmul_problem::make(random, {.columns = 512, .rows = 196, .codec = type}, 70, 75);
    const auto expected = expect_chunk(p, prologue::plain);
    const product_result first = run_chunk(on, p, prologue::plain, {8 * each, 128, 32});
    check_chunk(on, first, expected);
    for (const auto& by : {tile{4 * each, 64, 32}, tile{6 * each, 96, 32}})
      CHECK(run_chunk(on, p, prologue::plain, by).output == first.output);
    const product_result in_four = run_chunk(on, p, prologue::plain, {8 * each, 64, 16});
    check_chunk(on, in_four, expected);
    CHECK(run_chunk(on, p, prologue::plain, {4 * each, 32, 16}).output == in_four.output);
  }
  // Tiles of more subgroups, and of all tokens that there is room for.
  for (const codec type : {codec::f16, codec::q8_0, codec::q4_0}) {
    const matmul_problem p = matmul_problem::make(random, {.columns = 128, .rows = 260, .codec = type}, 101, 128);
    const auto expected = expect_chunk(p, prologue::plain);
    const product_result first = run_chunk(on, p, prologue::plain, {4 * each, 128, 64});
    check_chunk(on, first, expected);
    for (const auto& by : {tile{4 * each, 128, 96}, tile{8 * each, 256, 64}}) {
      INFO(kernels::info(type).name << ", tiles of " << by.rows << " x " << by.tokens);
      CHECK(run_chunk(on, p, prologue::plain, by).output == first.output);
    }
  }
  for (const auto& shape :
       {reference::matmul_shape{.columns = 128, .rows = 140, .codec = codec::q8_0, .epilogue = epilogue::add},
        reference::matmul_shape{.columns = 128,
        .rows = 512,
        .codec = codec::q4_0,
        .epilogue = epilogue::rope_cache,
        .head_dim = 64,
        .q_size = 256,
        .kv_size = 128,
        .context = 40},
        reference::matmul_shape{.columns = 128,
        .rows = 160,
        .codec = codec::f16,
        .epilogue = epilogue::rope_cache,
        .head_dim = 32,
        .q_size = 96,
        .kv_size = 32,
        .context = 256,
        .ring = true,
        .cache_element = kernels::element::f32},
        reference::matmul_shape{.columns = 256,
        .rows = 128,
        .codec = codec::bf16,
        .epilogue = epilogue::gated,
        .gate = activation::silu}}) {
    INFO("epilogue " << static_cast<int>(shape.epilogue) << ", rows " << shape.rows);
    const std::uint32_t position = shape.ring ? 1022 : shape.epilogue == epilogue::rope_cache ? shape.context - 9 : 0;
    const matmul_problem p = matmul_problem::make(random, shape, 19, 21, position);
    check_chunk(on, run_chunk(on, p, prologue::norm, {4 * each, 128, 64}), expect_chunk(p, prologue::norm));
  }
}

TEST_CASE(
    "f16 inputs, tiled: of eight tokens eight columns of each behind the other; in the orders of fragments; later "
    "tokens "
    "untouched") {
  kernel_device on;
  random_numbers random(34);
  for (const prologue before : {prologue::plain, prologue::norm}) {
    const matmul_problem p = matmul_problem::make(random, {.columns = 256, .rows = 4, .codec = codec::f32}, 11, 16);
    const auto input = on.filled(p.x), norm_weight = on.filled(p.norm_weight),
               state = on.filled(fresh_state(0, p.tokens, p.room, 1));
    std::vector<guarded_buffer> bits, factors;
    for (const std::uint32_t tiled : {0u, 1u, 2u, 3u}) {
      bits.push_back(on.poisoned(std::size_t{2} * 16 * 256));
      factors.push_back(on.poisoned(std::size_t{4} * 16));
      on.run(kernels::kernel::quantize_f16, 2,
             {{"width", 256u}, {"prologue", static_cast<std::uint32_t>(before)}, {"eps", 1e-5f}, {"tiled", tiled}},
             {{"input", &input},
              {"norm_weight", &norm_weight},
              {"output", &bits.back()},
              {"factors", &factors.back()},
              {"state", &state}},
             {1, 16, 1});
    }
    const auto plain = bits[0].read<std::uint16_t>();
    for (std::size_t order = 1; order < bits.size(); ++order) {
      const auto ordered = bits[order].read<std::uint16_t>();
      std::size_t differ = 0;
      for (std::size_t t = 0; t < 16; ++t)
        for (std::size_t c = 0; c < 256; ++c)
          differ += ordered[reference::ordered_index(static_cast<kernels::f16_order>(order), t, c, 256)] !=
                    plain[t * 256 + c];
      CHECK(differ == 0);
      CHECK(factors[0].read<std::uint32_t>() == factors[order].read<std::uint32_t>());
    }
  }
}

TEST_CASE("matmul_chunk by lists of experts: rows of tokens and of pairs, lists that are not full, in every module") {
  kernel_device on;
  const bool fragments = GENERATE(false, true), own_input = GENERATE(false, true);
  on.half_fragments = fragments;
  if (fragments && !runtime::usable_classes(on.device()).front().offers().has(kernels::demand::f16_fragments)) {
    if (!on.device().has(gpu::feature::shader_float16) || !on.device().has(gpu::feature::shader_int64))
      SKIP("NOT RUN: needs a device that computes with f16 and 64-bit integers, found " << on.device().label());
    on.source = &with_emulated;
  }
  random_numbers random(38);
  constexpr std::uint32_t experts = 5, used = 2, tokens = 67, room = 70, columns = 128;
  const std::uint32_t list_tokens = fragments ? 64 : 32, tile_rows = fragments ? 128 : 32,
                      subgroups = fragments ? 4 * (32 / on.subgroup_size()) : 2;
  const codec type = own_input ? codec::q4_0 : codec::bf16;
  const reference::matmul_shape shape{.columns = columns,
                                      .rows = fragments ? 160u : 36u,
                                      .codec = type,
                                      .epilogue = own_input ? epilogue::store : epilogue::gated,
                                      .gate = activation::silu};
  // The first expert has most tokens, one has none.
  std::vector<std::uint32_t> choice(2 * tokens * used);
  for (std::uint32_t t = 0; t < tokens; ++t)
    for (std::uint32_t j = 0; j < used; ++j) choice[2 * used * t + j] = j == 0 ? t % 9 == 0 : 2 + random.below(2);
  const std::uint32_t lists = kernels::expert_tile_count(room, experts, used, list_tokens), rows = lists * list_tokens;
  std::vector<std::uint32_t> tiles(std::size_t{lists} * (list_tokens + 2));
  reference::expert_tiles(choice, used, experts, list_tokens, tiles);
  const auto x = random.floats(std::size_t{own_input ? room * used : room} * columns, -2, 2),
             norm = random.floats(columns, 0.5f, 1.5f);
  const auto weights = random_weight(random, type,
                                     own_input ? kernels::row_order::plain(experts * shape.rows)
                                               : kernels::row_order::gate_up(experts * shape.rows / 2),
                                     columns);
  const std::size_t width = own_input ? shape.rows : shape.rows / 2,
                    matrix = shape.rows / 4 * kernels::matmul_group_bytes(type, columns);
  std::vector<float> expected(std::size_t{room} * used * width, std::bit_cast<float>(0xa5a5a5a5u));
  for (std::size_t pair = 0; pair < std::size_t{tokens} * used; ++pair) {
    std::vector<float> y(columns);
    const auto row = std::span(x).subspan((own_input ? pair : pair / used) * columns, columns);
    reference::rms_norm(row, norm, 1e-5f, y);
    const reference::f16_token one = reference::quantize_f16(y);
    reference::matmul_chunk(
        shape, std::span(&one, 1),
        std::span<const std::byte>(weights).subspan(choice[pair / used * 2 * used + pair % used] * matrix, matrix),
        std::span(expected).subspan(pair * width, width));
  }
  const auto input = on.filled(x), norm_weight = on.filled(norm), weight = on.filled(weights), named = on.filled(tiles),
             state = on.filled(fresh_state(0, tokens, room, 256)),
             halves = on.poisoned(std::size_t{2} * rows * columns), factors = on.poisoned(std::size_t{4} * rows),
             output = on.poisoned(4 * expected.size());
  on.run(kernels::kernel::quantize_f16, 2,
         {{"width", columns},
          {"prologue", static_cast<std::uint32_t>(prologue::norm)},
          {"eps", 1e-5f},
          {"tiled", static_cast<std::uint32_t>(fragments ? kernels::fragment_order(type) : kernels::f16_order::rows)},
          {"experts_used", used},
          {"own_input", own_input ? 1u : 0u},
          {"list_tokens", list_tokens}},
         {{"input", &input},
          {"norm_weight", &norm_weight},
          {"output", &halves},
          {"factors", &factors},
          {"state", &state},
          {"tiles", &named}},
         {1, rows, 1});
  on.run(kernels::kernel::matmul_chunk, subgroups,
         {{"columns", columns},
          {"rows", shape.rows},
          {"codec", static_cast<std::uint32_t>(type)},
          {"epilogue", static_cast<std::uint32_t>(shape.epilogue)},
          {"tile_rows", tile_rows},
          {"tile_tokens", list_tokens},
          {"head_dim", 4u},
          {"context", 1u},
          {"activation", shape.gate},
          {"max_tokens", rows},
          {"experts_used", used},
          {"list_tokens", list_tokens}},
         {{"input", &halves},
          {"factors", &factors},
          {"weight", &weight},
          {"output", &output},
          {"state", &state},
          {"tiles", &named}},
         {lists, (shape.rows + tile_rows - 1) / tile_rows, 1});
  const auto found = output.read<float>();
  const std::size_t written = std::size_t{tokens} * used * width;
  for (std::size_t i = written; i < found.size(); ++i) REQUIRE(std::bit_cast<std::uint32_t>(found[i]) == 0xa5a5a5a5u);
  INFO("fragments " << fragments << ", own input " << own_input);
  const auto apart = compare(std::vector(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(written)),
                             std::vector(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(written)));
  CHECK(apart.relative < (fragments ? 2e-3 : 1e-6));
}
