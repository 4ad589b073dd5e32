// SPDX-License-Identifier: MIT
// Plans fitted to classes of devices: modules, constants and workgroups of every dispatch, proven for the class.
#include "intaglio/plan/device_plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;
using kernels::variant;

namespace {

constexpr decoder_config one_layer{.model_type = architecture::llama,
                                   .hidden_size = 256,
                                   .intermediate_size = 768,
                                   .num_hidden_layers = 1,
                                   .num_attention_heads = 8,
                                   .num_key_value_heads = 2,
                                   .head_dim = 32,
                                   .vocab_size = 1024,
                                   .max_position_embeddings = 1024,
                                   .rope_theta = 500'000.f,
                                   .hidden_act = activation::silu,
                                   .tie_word_embeddings = false};
/// Devices with the limits of the class nvidia, with matrices and without.
constexpr plan::device_class with = plan::classes::nvidia, without = with.without_matrices();

template <class Kernel>
typename Kernel::constants constants(const plan::dispatch& call) {
  return kernels::constants_of<Kernel>(call.specialization);
}

/// What a recorder reads of every dispatch, in one number.
std::uint64_t launches(const plan::device_plan& of) {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t word) { hash = plan::mixed(hash, word); };
  const auto add = [&](const plan::sequence& s) {
    for (const auto part :
         {s.prologue, s.resident.empty() ? s.period : s.resident, s.resident_long, s.epilogue, s.greedy, s.interim}) {
      mix(part.size());
      for (const plan::dispatch& d : part) {
        for (const char letter : kernels::name(d.variant)) mix(static_cast<std::uint64_t>(letter));
        mix(d.unrolls);
        for (const auto word : d.groups) mix(word);
        const std::size_t constants = kernels::interface_of(d.kernel).specialization_count();
        for (std::size_t i = 0; i < constants; ++i) mix(d.specialization[i]);
      }
    }
  };
  for (const auto which : plan::verified_sequences)
    for (const plan::sequence* each : of.all_of(which)) add(*each);
  return hash;
}

}  // namespace

TEST_CASE("every dispatch of a fitted plan has its module and a workgroup of whole subgroups", "[plan]") {
  const plan::planned made =
      plan::planned::of<models::bitnet_2b_4t>(plan::profiles::portable, 4096, {.slot_count = 32});
  for (const plan::device_class* of : plan::classes::gpus) {
    INFO(of->name);
    const plan::device_plan fitted(made.table(), *of);
    for (const auto which : plan::verified_sequences)
      for (const plan::sequence* each : fitted.all_of(which))
        for (const auto part :
             {each->prologue, each->period, each->epilogue, each->resident, each->greedy, each->interim})
          for (const plan::dispatch& call : part) {
            CHECK(kernels::kernel_of(call.variant) == call.kernel);
            CHECK(call.specialization[0] == call.subgroups * of->subgroup_size);
            CHECK(call.specialization[0] <= of->workgroup_invocations);
          }
    CHECK(fitted.table().resident_decode.resident.empty() == (of->resident_workgroups == 0));
    CHECK(fitted.table().resident_batch.resident.empty() == (of->resident_workgroups == 0));
    CHECK(fitted.table().hash == made.table().hash);
  }
}

TEST_CASE("modules, constants and workgroups stay what they were for each model and class", "[plan]") {
  // What the run time chose by its booleans before plans were fitted: 98,731 dispatches of 12 models on 16 kinds of
  // devices were compared; these are sums over some of them. A change here is another launch on a device.
  const plan::planned story = plan::planned::of<models::fable>(plan::profiles::cpu),
                      bitnet =
                          plan::planned::of<models::bitnet_2b_4t>(plan::profiles::portable, 4096, {.slot_count = 32}),
                      mistral = plan::planned::of<models::mistral_7b_v01<dtype::q4_0>>(plan::profiles::portable, 4096,
                                                                                       {.slot_count = 8}),
                      gemma = plan::planned::of<models::gemma3_4b<dtype::bf16>>(
                          plan::profiles::portable, 4096,
                          {.slot_count = 32, .coded_products = plan::chunk_arithmetic::f16});
  CHECK(launches(plan::device_plan(story.table(), plan::classes::llvmpipe)) == 0x3ac7f3c06ab6a4f6u);
  CHECK(launches(plan::device_plan(bitnet.table(), plan::classes::h100)) == 0x6f9676f0b34904cdu);
  CHECK(launches(plan::device_plan(bitnet.table(), plan::classes::baseline)) == 0xb7c7330424765e6cu);
  CHECK(launches(plan::device_plan(mistral.table(), plan::classes::nvidia)) == 0xc05fa5af5dd09c7eu);
  CHECK(launches(plan::device_plan(gemma.table(), plan::classes::h100)) == 0x47a476ba59454791u);
}

TEST_CASE("products by matrices cover all rows and tokens of the pass, others keep the plan's workgroups", "[plan]") {
  for (const std::uint32_t slot_count : {3u, 8u, 16u, 40u}) {
    const plan::planned made = plan::planned::of<models::llama<one_layer, dtype::q8_0, dtype::q8_0, dtype::f32>>(
        plan::profiles::portable, 128, {.slot_count = slot_count});
    const plan::device_plan matrices(made.table(), with), dots(made.table(), without);
    const bool whole = slot_count % 8 == 0;
    for (const plan::sequence* batch : matrices.all_of(&plan::table::batch)) {
      const std::uint32_t tokens = batch->rows != 0 ? batch->rows : slot_count;
      const plan::sequence& plain = dots.over(&plan::table::batch, batch->rows);
      std::size_t products = 0;
      for (std::size_t i = 0; i < batch->period.size(); ++i) {
        const plan::dispatch &call = batch->period[i], &engraved = made.table().batch.period[i];
        CHECK(plain.period[i].groups[0] == engraved.groups[0]);
        CHECK(plain.period[i].groups[1] ==
              (batch->rows == 0 ? engraved.groups[1] : std::max(1u, engraved.groups[1] * tokens / slot_count)));
        if (call.kernel == kernels::kernel::fixed)
          CHECK((constants<kernels::fixed_kernel>(call).tiled != 0) == (whole && tokens <= 16));
        if (call.kernel != kernels::kernel::matmul_batch || !whole) continue;
        ++products;
        const auto c = constants<kernels::matmul_batch_kernel>(call);
        const bool tiled = tokens <= 16;
        CHECK(call.variant == (tiled ? variant::matmul_batch_tiled : variant::matmul_batch_matrix));
        const kernels::batch_tile by =
            tiled ? kernels::tiled_batch_tile(tokens) : kernels::batch_matrix_tile(call.kernel, c.rows, tokens);
        CHECK((c.tile_rows == by.rows && c.tile_tokens == by.tokens && call.subgroups == by.subgroups));
        CHECK(call.groups ==
              std::array<std::uint32_t, 3>{(c.rows + by.rows - 1) / by.rows, (tokens + by.tokens - 1) / by.tokens, 1});
      }
      CHECK(products == (whole ? 4u : 0u));  // of a layer
    }
  }
}

TEST_CASE(
    "a batch's products in f16 cover all rows and tokens of the pass; the columns are shared alike whatever the "
    "pass",
    "[plan]") {
  for (const std::uint32_t slot_count : {3u, 8u, 24u, 40u, 64u}) {
    const plan::planned made = plan::planned::of<models::llama<one_layer, dtype::q8_0, dtype::bf16, dtype::f32>>(
        plan::profiles::portable, 128, {.slot_count = slot_count, .coded_products = plan::chunk_arithmetic::f16});
    const plan::device_plan matrices(made.table(), with), dots(made.table(), without);
    const bool whole = slot_count % 8 == 0;
    for (const plan::sequence* batch : matrices.all_of(&plan::table::batch)) {
      const std::uint32_t tokens = batch->rows != 0 ? batch->rows : slot_count;
      std::size_t products = 0;
      for (std::size_t i = 0; i < batch->period.size(); ++i) {
        const plan::dispatch &call = batch->period[i], &plain = dots.over(&plan::table::batch, batch->rows).period[i];
        const bool many = tokens > kernels::most_batch_tokens;
        if (call.kernel == kernels::kernel::quantize_f16) {
          CHECK(static_cast<kernels::f16_order>(constants<kernels::quantize_f16_kernel>(call).tiled) ==
                (!whole ? kernels::f16_order::rows
                 : many ? kernels::f16_order::blocks
                        : kernels::f16_order::tiles));
          CHECK(constants<kernels::quantize_f16_kernel>(plain).tiled == 0);
        }
        if (call.kernel != kernels::kernel::matmul_chunk) continue;
        CHECK(plain.variant == variant::matmul_chunk);
        CHECK((call.variant == variant::matmul_chunk_batch) == (whole && !many));
        CHECK((call.variant == variant::matmul_chunk_fragments) == (whole && many));
        if (!whole) continue;
        ++products;
        const auto c = constants<kernels::matmul_chunk_kernel>(call);
        if (many) {
          const kernels::batch_tile by = kernels::batch_fragment_tile(c.codec, c.rows, c.columns, tokens);
          CHECK((c.tile_rows == by.rows && c.tile_tokens == by.tokens && call.subgroups == by.subgroups));
          CHECK(call.groups == std::array{(tokens + by.tokens - 1) / by.tokens, (c.rows + by.rows - 1) / by.rows, 1u});
          continue;
        }
        const kernels::batch_tile by = kernels::batch_chunk_tile(c.rows, tokens);
        CHECK(tokens % by.tokens == 0);
        CHECK(by.subgroups * 32 / by.rows ==
              kernels::batch_chunk_tile(c.rows, 8).subgroups * 32 / kernels::batch_chunk_tile(c.rows, 8).rows);
        CHECK(8 * by.rows / 4 <= by.subgroups * 32);  // an invocation for each sum of the tile
        CHECK(call.groups == std::array<std::uint32_t, 3>{tokens / by.tokens, (c.rows + by.rows - 1) / by.rows, 1});
      }
      CHECK(products == (whole ? 4u : 0u));  // of a layer
    }
  }
}

TEST_CASE("attends_in_f16: chunks of integer products attend in f16; nothing else is other than in portable",
          "[plan]") {
  const plan::planned exact = plan::planned::of<models::fable>(plan::profiles::portable, 256),
                      halved = plan::planned::of<models::fable>(plan::profiles::attends_in_f16, 256);
  for (const auto which : plan::verified_sequences) {
    const plan::sequence &of = exact.table().*which, &other = halved.table().*which;
    REQUIRE(of.period.size() == other.period.size());
    for (std::size_t i = 0; i < of.period.size(); ++i) {
      const bool chunks = of.period[i].kernel == kernels::kernel::attention_chunk;
      CHECK(other.period[i].kernel == (chunks ? kernels::kernel::attention_f16 : of.period[i].kernel));
    }
  }
}

TEST_CASE(
    "a prompt's products by fragments: tiles that the shader takes, which cover all; f16 inputs in the product's order",
    "[plan]") {
  const auto look = []<dtype Codec>() {
    const plan::planned made =
        plan::planned::of<models::llama<one_layer, Codec, dtype::bf16, dtype::f32>>(plan::profiles::portable, 512);
    plan::device_class narrow = with;
    narrow.int64 = false;
    const plan::device_plan fragments(made.table(), with), none(made.table(), narrow);
    std::uint32_t order = 0;
    std::size_t products = 0;
    const auto& all = fragments.table().prefill.period;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const plan::dispatch &call = all[i], &plain = none.table().prefill.period[i];
      if (call.kernel == kernels::kernel::quantize_f16) {
        order = constants<kernels::quantize_f16_kernel>(call).tiled;
        CHECK(constants<kernels::quantize_f16_kernel>(plain).tiled == 0);
      }
      if (call.kernel != kernels::kernel::matmul_chunk) continue;
      const auto c = constants<kernels::matmul_chunk_kernel>(call);
      CHECK(call.variant == variant::matmul_chunk_fragments);
      CHECK(plain.variant == variant::matmul_chunk_matrix);
      CHECK(order == static_cast<std::uint32_t>(kernels::fragment_order(c.codec)));
      ++products;
      const kernels::batch_tile by = kernels::fragment_tile(c.codec, c.rows, c.columns, c.max_tokens);
      CHECK(call.groups ==
            std::array{(c.max_tokens + by.tokens - 1) / by.tokens, (c.rows + by.rows - 1) / by.rows, 1u});
    }
    CHECK(products > 0);
  };
  look.operator()<dtype::q8_0>();
  look.operator()<dtype::bf16>();
  for (const std::uint32_t rows : {32u, 68u, 128u, 196u, 256u, 1152u, 2048u, 2560u, 4096u, 6144u, 28672u, 131072u})
    for (const std::uint32_t columns : {64u, 320u, 384u, 1024u, 2560u, 6912u, 14336u})
      for (const std::uint32_t tokens : {64u, 100u, 512u, 2048u}) {
        const auto check = [&](const kernels::batch_tile& by, std::uint32_t parts, std::uint32_t part_columns) {
          INFO(rows << " x " << columns << ", " << tokens << " tokens: " << by.rows << " x " << by.tokens);
          CHECK(by.rows <= rows);
          CHECK(by.subgroups * 32 == by.rows * parts);  // subgroups of 32 rows, all tokens each
          CHECK(by.subgroups <= 16);
          CHECK(columns % (parts * part_columns) == 0);
          CHECK(by.tokens <= by.rows);  // eight pieces of a step for each invocation of a part at most
          CHECK(by.tokens <= 128);      // sums of eight fragments
          CHECK(2 * parts * by.tokens * 144 <= 40960);
        };
        if (rows >= kernels::least_fragment_rows) {
          const std::uint32_t parts = kernels::fragment_parts(rows, columns);
          for (const auto type : {kernels::codec::bf16, kernels::codec::q8_0, kernels::codec::q4_0})
            check(kernels::fragment_tile(type, rows, columns, tokens), parts, parts == 1 ? 64 : 128);
          const std::uint32_t shared = kernels::batch_fragment_parts(rows, columns);
          if (shared != 1)
            for (const auto type : {kernels::codec::bf16, kernels::codec::q8_0, kernels::codec::q4_0})
              check(kernels::batch_fragment_tile(type, rows, columns, tokens), shared, 128);
        }
        const kernels::batch_tile by = kernels::ternary_fragment_tile(rows, columns, tokens);
        check(by, by.subgroups * 32 / by.rows, columns % 128 == 0 ? 128 : 64);
      }
  // Each range of 128 columns once.
  for (const auto order : {kernels::f16_order::octets, kernels::f16_order::blocks}) {
    std::vector<bool> taken(256);
    for (std::size_t from = 0; from < taken.size(); ++from) {
      const std::size_t to = kernels::fragment_index(order, from);
      REQUIRE(to / 128 == from / 128);
      CHECK_FALSE(taken[to]);
      taken[to] = true;
    }
  }
}

TEST_CASE("products by experts have workgroups for every list that a pass can fill, by matrices and without",
          "[plan]") {
  constexpr auto mixture = [] {
    auto out = one_layer;
    out.num_local_experts = 8, out.num_experts_per_tok = 2;
    return out;
  };
  static constexpr decoder_config config = mixture();
  const plan::planned coded = plan::planned::of<models::mixtral<config, dtype::q8_0, dtype::q8_0, dtype::f32>>(
                          plan::profiles::portable, 1024, {.slot_count = 64}),
                      dense = plan::planned::of<models::mixtral<config, dtype::f16>>(plan::profiles::portable, 1024,
                                                                                     {.slot_count = 64});
  for (const plan::planned* made : {&coded, &dense}) {
    const plan::device_plan matrices(made->table(), with), dots(made->table(), without);
    for (const auto which : {&plan::table::prefill, &plan::table::batch})
      for (const plan::sequence* of : dots.all_of(which)) {
        const std::uint32_t all = (made->table().*which).max_tokens, rows = of->rows != 0 ? of->rows : all;
        std::size_t products = 0;
        for (std::size_t i = 0; i < of->period.size(); ++i) {
          const plan::dispatch &call = of->period[i], &engraved = (made->table().*which).period[i],
                               &by_matrices = matrices.over(which, of->rows).period[i];
          const bool small_batch = call.kernel == kernels::kernel::matmul_batch;
          std::uint32_t list = 0, tile = 0, along = 1;
          if (call.kernel == kernels::kernel::matmul_chunk) {
            const auto c = constants<kernels::matmul_chunk_kernel>(engraved);
            if (c.experts_used != 0) list = c.list_tokens, tile = c.tile_tokens, along = 0;
          } else if (small_batch) {
            const auto c = constants<kernels::matmul_batch_kernel>(engraved);
            if (c.experts_used != 0) list = c.list_tokens, tile = c.tile_tokens;
          } else if (call.kernel == kernels::kernel::matmul) {
            const auto c = constants<kernels::matmul_kernel>(engraved);
            if (kernels::matmul_kernel::lists_tokens(c)) list = tile = c.tile_tokens;
          }
          if (list == 0) continue;
          ++products;
          CHECK((along == 0) == (which == &plan::table::prefill));
          CHECK(small_batch == (along == 1 && made == &coded));
          CHECK(engraved.groups[along] == kernels::expert_tile_count(all, 8, 2, list) * (list / tile));
          // The number of lists does not shrink as the number of rows does: each pair may be alone in its list.
          CHECK(call.groups[along] >= kernels::expert_tile_count(rows, 8, 2, list) * (list / tile));
          CHECK(call.groups[along] <= engraved.groups[along]);
          if (small_batch) CHECK(by_matrices.groups[1] == call.groups[1] / (list / tile));
        }
        CHECK(products == 2);
      }
  }
}

TEST_CASE("a subgroup of a product by matrices keeps at most 16 numbers a lane of a tile", "[plan]") {
  for (const auto kernel : {kernels::kernel::matmul_batch, kernels::kernel::ternary_batch})
    for (const std::uint32_t rows : {1024u, 4096u, 6144u, 28672u, 262144u})
      for (const std::uint32_t tokens : {1u, 8u, 16u, 24u, 32u, 256u}) {
        const kernels::batch_tile by = kernels::batch_matrix_tile(kernel, rows, tokens);
        CHECK((by.rows == 0) == (tokens <= 8));
        if (by.rows == 0) continue;
        CHECK(by.rows % 16 == 0);
        CHECK((by.tokens == 16 || by.tokens == 32));
        CHECK(by.subgroups % 8 == 0);
        if (kernel == kernels::kernel::matmul_batch) CHECK(by.rows * 8 / by.subgroups * by.tokens <= 512);
      }
  for (const std::uint32_t tokens : {1u, 8u, 9u, 16u}) {
    const kernels::batch_tile by = kernels::tiled_batch_tile(tokens);
    CHECK(by.tokens == (tokens + 7) / 8 * 8);
    CHECK(by.rows * by.tokens / by.subgroups <= 64);
  }
  CHECK_FALSE(kernels::wants_tiles(kernels::codec::q6_k, 8));
  CHECK_FALSE(kernels::wants_tiles(kernels::codec::q8_0, 17));
  CHECK_FALSE(kernels::wants_tiles(kernels::codec::q5_0, 8));  // the matrices of int8 do not know it
}

TEST_CASE(
    "workgroups of wide subgroups leave an invocation 256 registers, tiles of a small batch of tokens have room in "
    "them",
    "[plan]") {
  plan::device_class vega = plan::classes::baseline, rdna2 = plan::classes::amd_wave32;
  vega.shared_memory_bytes = 65536;
  rdna2.mixed_dot = false, rdna2.matrices = {};
  const plan::planned coded = plan::planned::of<models::llama<one_layer, dtype::q8_0>>(plan::profiles::portable, 1024),
                      dense = plan::planned::of<models::llama<one_layer, dtype::f16>>(plan::profiles::portable, 1024);
  for (const plan::planned* made : {&coded, &dense})
    for (const plan::device_class* of :
         std::initializer_list<const plan::device_class*>{&vega, &rdna2, &plan::classes::nvidia}) {
      const plan::device_plan fitted(made->table(), *of);
      const bool narrows = of != &plan::classes::nvidia;
      for (const auto which : {&plan::table::decode, &plan::table::verify})
        for (const auto part : {(fitted.table().*which).period, (fitted.table().*which).epilogue})
          for (std::size_t i = 0; i < part.size(); ++i) {
            const plan::dispatch& call = part[i];
            INFO(of->name << " " << call.label.view());
            if (of == &vega && (call.kernel == kernels::kernel::attention || call.kernel == kernels::kernel::sample ||
                                call.kernel == kernels::kernel::matmul))
              CHECK(call.specialization[0] <= 256);
            if (which == &plan::table::decode) continue;
            if (call.kernel == kernels::kernel::matmul)
              CHECK(constants<kernels::matmul_kernel>(call).tile_tokens == (narrows ? 4u : 8u));
            if (call.kernel == kernels::kernel::matmul_batch && narrows)
              CHECK(constants<kernels::matmul_batch_kernel>(call).tile_tokens <= 4u);
          }
    }
}

TEST_CASE("a plan that a class has no room for is refused with one sentence", "[plan]") {
  const plan::planned made = plan::planned::of<models::bitnet_2b_4t>(plan::profiles::portable);
  plan::device_class least = plan::classes::baseline;
  least.workgroup_invocations = 128;
  try {
    const plan::device_plan none(made.table(), least);
    FAIL("a workgroup of 256 invocations was not refused");
  } catch (const argument_error& refused) {
    const std::string_view said = refused.what();
    INFO(said);
    CHECK(said.find("expected 1 to 128 invocations a workgroup, found") != std::string_view::npos);
    CHECK(said.size() <= 400);
  }
}

TEST_CASE("what a device falls back to uses less and less of it", "[plan]") {
  using plan::uses;
  const auto words = [](const plan::device_class& of) {
    std::string out;
    for (const plan::device_class& each : plan::fallbacks(of)) out += uses(each) + "\n";
    return out;
  };
  CHECK(words(plan::classes::llvmpipe) == "wide_loads+resident\nwide_loads\ninteger_dot\nportable\n");
  CHECK(words(plan::classes::cpu) == "portable\n");
  CHECK(words(plan::classes::h100) ==
        "integer_dot+resident+matrix+half_matrix+batch_matrix+narrow_f16+half_fragments\n"
        "integer_dot+matrix+half_matrix+batch_matrix+narrow_f16+half_fragments\ninteger_dot+resident\ninteger_"
        "dot\nportable\n");
  CHECK(words(plan::classes::amd_wave32) == "integer_dot+half_matrix\ninteger_dot\nportable\n");
  CHECK(words(plan::classes::baseline) == "portable\n");
}

TEST_CASE("a device meets a class that it has all of", "[plan]") {
  using namespace plan::classes;
  for (const plan::device_class* each : gpus) {
    CHECK(each->meets(*each));
    CHECK(each->meets(baseline));
    CHECK_FALSE(each->meets(cpu));
  }
  CHECK(h100.meets(nvidia));
  CHECK_FALSE(nvidia.meets(h100));
  CHECK_FALSE(amd_wave32.meets(nvidia));
  CHECK(llvmpipe.meets(cpu));
  plan::device_class narrow = llvmpipe;
  narrow.subgroup_size = 4;
  CHECK(narrow.meets(llvmpipe));
  CHECK(plan::strength(h100) > plan::strength(nvidia));
  CHECK(plan::strength(nvidia) > plan::strength(apple));
  CHECK(plan::strength(apple) > plan::strength(baseline));
}
