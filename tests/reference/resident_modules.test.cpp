// SPDX-License-Identifier: MIT
// Runs modules of the resident dispatch, instruction for instruction, on the CPU, in several workgroups that wait for
// each other: the stream after the layers has the bits of the chain's reference.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/families/mixes.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/kernels/spirv/layers.hpp"
#include "intaglio/kernels/spirv/layers_coded.hpp"
#include "intaglio/kernels/spirv/layers_dense.hpp"
#include "intaglio/kernels/spirv/layers_experts.hpp"
#include "intaglio/kernels/spirv/layers_long.hpp"
#include "intaglio/kernels/spirv/layers_mixed.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gptoss.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"
#include "reference/interpreted_layers.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace resident_modules {
namespace {
plan::profile with_workgroups(std::uint32_t count) {
  plan::profile out = plan::profiles::portable;
  out.work.layers_parts = count;
  return out;
}
/// Passes at positions, one after the other. @param which 1: the form for long contexts
void agrees(const plan::table& table, std::span<const std::byte> module, std::initializer_list<std::uint32_t> positions,
            std::size_t which = 0) {
  REQUIRE_FALSE(table.resident_decode.resident.empty());
  interpreted::both_ways run(table, module, which);
  for (const std::uint32_t position : positions) {
    CAPTURE(position);
    const auto [chain, one] = run.pass(position, (17 + 91 * position) % table.config->vocab_size);
    CHECK(chain == one);
  }
  CHECK(run.caches_agree());
}
constexpr decoder_config tiny{.model_type = architecture::llama,
                              .hidden_size = 256,
                              .intermediate_size = 320,
                              .num_hidden_layers = 2,
                              .num_attention_heads = 2,
                              .num_key_value_heads = 1,
                              .head_dim = 64,
                              .vocab_size = 128,
                              .max_position_embeddings = 1024,
                              .rope_theta = 10'000.f,
                              .rms_norm_eps = 1e-5f};
constexpr decoder_config with(decoder_config out, auto change) {
  change(out);
  return out;
}
/// Plans a config in one codec, or as a mix has it.
plan::planned planned(const decoder_config& c, dtype codec, std::uint32_t workgroups = 2) {
  return families::planned_of(c, {codec, dtype::f16, dtype::f16}, "tiny", with_workgroups(workgroups), 1024);
}
constexpr decoder_config ternary = with(tiny, [](decoder_config& c) {
  c.model_type = architecture::bitnet, c.hidden_size = 128, c.intermediate_size = 256, c.max_position_embeddings = 2048;
});
constexpr decoder_config ternary_shared =
    with(ternary, [](decoder_config& c) { c.num_attention_heads = 4, c.head_dim = 32, c.num_hidden_layers = 1; });
}  // namespace

TEST_CASE("all layers of ternary weights have the chain's bits", "[reference][machine][unsanitized]") {
  using model = models::bitnet_b158<ternary>;
  agrees(plan::planned::of<model>(with_workgroups(4), 1024).table(), kernels::whole(kernels::spirv::layers_parts),
         {0, 1, 700});
}
TEST_CASE("all layers of ternary weights in long contexts have the chain's bits", "[reference][machine][unsanitized]") {
  using model = models::bitnet_b158<ternary_shared>;
  const auto made = plan::planned::of<model>(with_workgroups(11), 1792);
  REQUIRE_FALSE(made.table().resident_decode.resident_long.empty());
  agrees(made.table(), kernels::whole(kernels::spirv::layers_long_parts), {1500}, 1);
}
constexpr decoder_config wide =
    with(tiny, [](decoder_config& c) { c.intermediate_size = 512, c.num_hidden_layers = 3; });
/// down(norm(gate(x) / (1 + |gate(x)|) * up(x))), of ternary weights.
struct softsign {
  static constexpr std::string_view name = "softsign";
  constexpr shader::real operator()(shader::real gate) const { return gate / (1.0f + abs(gate)); }
};
struct half_step {
  std::string_view gate, up, norm, down;
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id h = t.quantize(x, gate);
    const ir::value_id g = t.matmul(h, gate, ternary.intermediate_size, ternary.hidden_size, dtype::i2_s);
    const ir::value_id u = t.matmul(h, up, ternary.intermediate_size, ternary.hidden_size, dtype::i2_s);
    const ir::value_id y = t.rms_norm(t.gated(g, u, softsign{}), norm, 1e-5f);
    return t.matmul(t.quantize(y, down), down, ternary.hidden_size, ternary.intermediate_size, dtype::i2_s);
  }
};
inline constexpr auto first =
    graph::residual(graph::rms_norm{"first_norm.weight", 1e-5f} |
                    half_step{"first_gate.weight", "first_up.weight", "first_sub_norm.weight", "first_down.weight"});
inline constexpr auto second = graph::residual(
    graph::rms_norm{"second_norm.weight", 1e-5f} |
    half_step{"second_gate.weight", "second_up.weight", "second_sub_norm.weight", "second_down.weight"});
inline constexpr auto third =
    graph::residual(graph::rms_norm{"third_norm.weight", 1e-5f} |
                    half_step{"third_gate.weight", "third_up.weight", "third_sub_norm.weight", "third_down.weight"});
inline constexpr auto attends =
    graph::residual(graph::rms_norm{"attn_norm.weight", 1e-5f} | graph::self_attention<dtype::i2_s>{ternary} |
                    graph::rms_norm{"attn_sub_norm.weight", 1e-5f} |
                    graph::linear<dtype::i2_s>{"attn_output.weight", ternary.q_size(), ternary.hidden_size});
template <const auto& block>
struct of_f16 {
  static constexpr std::string_view name = "f16";
  static constexpr const decoder_config& config = ternary;
  static constexpr auto graph() {
    return graph::embedding{"token_embd.weight", ternary.vocab_size, ternary.hidden_size} |
           graph::repeat(ternary.num_hidden_layers, block) | graph::rms_norm{"output_norm.weight", 1e-5f} |
           graph::lm_head{"token_embd.weight", ternary.vocab_size, ternary.hidden_size};
  }
};
inline constexpr auto around = first | attends | second;
inline constexpr auto two_after = attends | first | second;
inline constexpr auto both = first | attends | second | third;

TEST_CASE("all layers of f16 in another sequence have the chain's bits", "[reference][machine][unsanitized]") {
  const std::span<const std::byte> module = kernels::whole(kernels::spirv::layers_parts);
  const auto holds = [&](const plan::planned& made, std::uint32_t before, std::uint32_t after) {
    CAPTURE(before, after);
    REQUIRE(plan::verify(made.table()).view() == "");
    REQUIRE_FALSE(made.table().resident_decode.resident.empty());
    const auto c =
        kernels::constants_of<kernels::layers_kernel>(made.table().resident_decode.resident[0].specialization);
    CHECK(c.ffns_before == before);
    CHECK(c.ffns_after == after);
    // What a further FFN exchanges is proven too: a value at the offset of another is seen.
    const plan::sequence& one = made.table().resident_decode;
    REQUIRE(one.arguments.size() == kernels::layers_kernel::argument_count(c));
    for (std::size_t n = kernels::layers::argument_count; n < one.arguments.size();
         n += kernels::layers::arguments_of_ffn) {
      std::vector<plan::operand> arguments(one.arguments.begin(), one.arguments.end());
      std::swap(arguments[n], arguments[n + 1]);
      plan::table broken = made.table();
      broken.resident_decode.arguments = arguments;
      CHECK_THAT(std::string(plan::verify(broken).view()), ContainsSubstring("to be written by a step that follows"));
    }
    agrees(made.table(), module, {300});
  };
  holds(plan::planned::of<of_f16<around>>(with_workgroups(4), 1024), 1, 1);
  holds(plan::planned::of<of_f16<two_after>>(with_workgroups(4), 1024), 0, 2);
  holds(plan::planned::of<of_f16<both>>(with_workgroups(4), 1024), 1, 2);
}
/// down(softsign(gate x) * up x), of weights in a codec.
template <dtype W>
struct coded_step {
  std::string_view gate, up, down;
  constexpr ir::value_id forward(ir::trace& t, ir::value_id x) const {
    const ir::value_id g = t.matmul(x, gate, wide.intermediate_size, wide.hidden_size, W);
    const ir::value_id u = t.matmul(x, up, wide.intermediate_size, wide.hidden_size, W);
    return t.matmul(t.gated(g, u, softsign{}), down, wide.hidden_size, wide.intermediate_size, W);
  }
};
template <dtype W, bool before, bool twice>
struct of_coded_f16 {
  static constexpr std::string_view name = "f16";
  static constexpr const decoder_config& config = wide;
  static constexpr auto graph() {
    using namespace intaglio::graph;
    constexpr auto ffn = [](std::string_view norm, std::string_view gate, std::string_view up, std::string_view down) {
      return residual(rms_norm{norm, 1e-5f} | coded_step<W>{gate, up, down});
    };
    constexpr auto attention = residual(rms_norm{"attn_norm.weight", 1e-5f} | self_attention<W>{wide} |
                                        linear<W>{"attn_output.weight", wide.q_size(), wide.hidden_size});
    constexpr auto early = ffn("first_norm.weight", "first_gate.weight", "first_up.weight", "first_down.weight"),
                   middle = ffn("second_norm.weight", "second_gate.weight", "second_up.weight", "second_down.weight"),
                   last = ffn("third_norm.weight", "third_gate.weight", "third_up.weight", "third_down.weight");
    const auto whole = [&](const auto& block) {
      return embedding{"token_embd.weight", wide.vocab_size, wide.hidden_size} | repeat(wide.num_hidden_layers, block) |
             rms_norm{"output_norm.weight", 1e-5f} | lm_head{"token_embd.weight", wide.vocab_size, wide.hidden_size};
    };
    if constexpr (before && twice) return whole(early | attention | middle | last);
    else if constexpr (before) return whole(early | attention | middle);
    else return whole(attention | middle | last);
  }
};
TEST_CASE("all layers of coded f16 in another sequence have the chain's bits", "[reference][machine][unsanitized]") {
  const auto holds = [&](const plan::planned& made, std::span<const std::byte> module) {
    REQUIRE(plan::verify(made.table()).view() == "");
    agrees(made.table(), module, {300});
  };
  const std::span<const std::byte> coded = kernels::whole(kernels::spirv::layers_coded_parts);
  holds(plan::planned::of<of_coded_f16<dtype::q8_0, true, false>>(with_workgroups(2), 1024), coded);
  holds(plan::planned::of<of_coded_f16<dtype::q4_0, false, true>>(with_workgroups(2), 1024), coded);
  holds(plan::planned::of<of_coded_f16<dtype::bf16, true, true>>(with_workgroups(2), 1024),
        kernels::whole(kernels::spirv::layers_dense_parts));
}
TEST_CASE("all layers of coded weights have the chain's bits", "[reference][machine][unsanitized]") {
  const std::span<const std::byte> coded = kernels::whole(kernels::spirv::layers_coded_parts);
  for (const dtype codec : {dtype::q8_0, dtype::q4_0}) {
    CAPTURE(name(codec));
    agrees(planned(with(tiny, [&](decoder_config& c) { c.intermediate_size = 512; }), codec).table(), coded, {1, 700});
  }
  // One byte of factors for a row, and a table of values.
  for (const dtype codec : {dtype::iq4_xs, dtype::iq3_s}) {
    CAPTURE(name(codec));
    agrees(planned(with(tiny, [&](decoder_config& c) { c.intermediate_size = 512, c.head_dim = 128; }), codec).table(),
           coded, {1});
  }
  agrees(planned(with(tiny, [](decoder_config& c) { c.hidden_size = 320; }), dtype::q8_0).table(), coded, {5});
}
TEST_CASE("all layers of weights of 16 bits have the chain's bits", "[reference][machine][unsanitized]") {
  const std::span<const std::byte> dense = kernels::whole(kernels::spirv::layers_dense_parts);
  agrees(planned(tiny, dtype::bf16).table(), dense, {0, 700});
  agrees(planned(tiny, dtype::f16).table(), dense, {1});
}
TEST_CASE("all layers of weights in several codecs have the chain's bits", "[reference][machine][unsanitized]") {
  const decoder_config c =
      with(tiny, [](decoder_config& d) { d.head_dim = 128, d.intermediate_size = 512, d.num_hidden_layers = 3; });
  const std::span<const std::byte> mixed = kernels::whole(kernels::spirv::layers_mixed_parts);
  for (const std::string_view mix : {"q4_k_m", "q3_k_m"}) {
    CAPTURE(mix);
    agrees(families::planned_of(c, families::mix_of(c, mix).value(), "tiny", with_workgroups(2), 1024).table(), mixed,
           {3});
  }
  // Tables of values beside codecs without one, and two tables in a layer.
  families::weight_types tables = families::mix_of(c, "q4_k_m").value();
  for (families::matrix_type& each : tables.matrices)
    each.type = each.type == dtype::q6_k ? dtype::iq3_s : each.name == "ffn_down.weight" ? each.type : dtype::iq4_xs;
  agrees(families::planned_of(c, tables, "tiny", with_workgroups(2), 1024).table(), mixed, {3});
  // Each matrix in another codec in each layer, four in all.
  families::weight_types all{dtype::q4_k, dtype::f16, dtype::f16};
  const std::array four{dtype::q4_k, dtype::q5_k, dtype::q6_k, dtype::iq4_xs};
  families::layer_types layers(c.num_hidden_layers);
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
    for (const auto& [name, first] : {std::pair{"attn_q", 0u},
                                      {"attn_k", 0u},
                                      {"attn_v", 1u},
                                      {"attn_output", 2u},
                                      {"ffn_gate", 3u},
                                      {"ffn_up", 3u},
                                      {"ffn_down", 1u}})
      layers.add(layer, std::string(name) + ".weight", four[(first + layer) % four.size()]);
  layers.into(all);
  agrees(families::planned_of(c, all, "tiny", with_workgroups(2), 1024).table(), mixed, {3});
  // k and v have a matrix of their own in the first layer, v in the second, none in the third; of the codec of the
  // others, or of one that no other matrix has.
  for (const dtype apart : {dtype::q6_k, dtype::q8_0}) {
    CAPTURE(name(apart));
    families::weight_types forms = families::mix_of(c, "q4_k_s").value();
    families::layer_types of(c.num_hidden_layers);
    for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
      for (const auto& [matrix, last] : {std::pair{"attn_q", -1},
                                         {"attn_k", 0},
                                         {"attn_v", 1},
                                         {"attn_output", -1},
                                         {"ffn_gate", -1},
                                         {"ffn_up", -1},
                                         {"ffn_down", apart == dtype::q6_k ? 2 : -1}})
        of.add(layer, std::string(matrix) + ".weight", static_cast<int>(layer) <= last ? apart : dtype::q4_k);
    of.into(forms);
    const auto made = families::planned_of(c, forms, "tiny", with_workgroups(2), 1024);
    CHECK(plan::verify(made.table()).view() == "");
    agrees(made.table(), mixed, {3, 300});
  }
}
TEST_CASE("all layers with norms after sublayers have the chain's bits", "[reference][machine][unsanitized]") {
  const std::span<const std::byte> coded = kernels::whole(kernels::spirv::layers_coded_parts);
  // Windows of 32 in rings; four workgroups share a head, or one has it.
  const decoder_config gemma = with(gemma3_tiny, [](decoder_config& c) {
    c.num_attention_heads = 1, c.num_hidden_layers = 2, c.sliding_window_pattern = 2, c.head_dim = 128;
  });
  agrees(planned(gemma, dtype::q8_0, 4).table(), coded, {40, 600});
  agrees(planned(gemma, dtype::q8_0, 2).table(), coded, {600});
}
TEST_CASE("all layers with norms of heads and biases have the chain's bits", "[reference][machine][unsanitized]") {
  const std::span<const std::byte> coded = kernels::whole(kernels::spirv::layers_coded_parts);
  const auto of = [](architecture which) {
    return with(tiny, [&](decoder_config& c) { c.model_type = which, c.head_dim = 128, c.num_hidden_layers = 1; });
  };
  for (const architecture each : {architecture::qwen2, architecture::qwen3, architecture::olmo2}) {
    CAPTURE(each);
    agrees(planned(of(each), dtype::q8_0).table(), coded, {2});
  }
}

TEST_CASE("all layers with experts have the chain's bits", "[reference][machine][unsanitized]") {
  const std::span<const std::byte> module = kernels::whole(kernels::spirv::layers_experts_parts);
  const auto of = [](std::uint32_t experts, std::uint32_t used, std::uint32_t intermediate, auto change) {
    return with(tiny, [&](decoder_config& c) {
      c.num_local_experts = experts, c.num_experts_per_tok = used, c.intermediate_size = intermediate;
      change(c);
    });
  };
  const auto holds = [&](const plan::planned& made) {
    CHECK(plan::verify(made.table()).view() == "");
    agrees(made.table(), module, {3, 300});
  };
  holds(planned(of(8, 2, 64, [](decoder_config&) {}), dtype::q4_0));
  // More experts than workgroups' subgroups, some of which a quad has alone; parts of a softmax over all of them.
  holds(planned(of(37, 3, 32,
                   [](decoder_config& c) {
                     c.model_type = architecture::qwen3moe, c.head_dim = 128, c.norm_topk_prob = false;
                     c.num_hidden_layers = 1;
                   }),
                dtype::q8_0));
  holds(planned(of(6, 4, 96, [](decoder_config& c) { c.hidden_size = 320; }), dtype::q8_0, 4));
  // Matrices in several codecs, of v and the down projection by layer.
  const decoder_config mixed = of(4, 2, 256, [](decoder_config& c) {
    c.model_type = architecture::qwen3moe, c.head_dim = 128, c.num_hidden_layers = 3;
  });
  holds(families::planned_of(mixed, families::mix_of(mixed, "q4_k_m").value(), "tiny", with_workgroups(2), 1024));
  // With eight experts, k and v are in another codec than q.
  const decoder_config eight = of(8, 2, 256, [](decoder_config& c) { c.num_hidden_layers = 3, c.head_dim = 128; });
  holds(families::planned_of(eight, families::mix_of(eight, "q4_k_m").value(), "tiny", with_workgroups(2), 1024));
  holds(planned(of(4, 2, 64, [](decoder_config&) {}), dtype::mxfp4));
  // gpt-oss: biases of attention, of the router and of experts, sinks, windows of 32 in every other layer.
  const auto biased = [&](std::uint32_t experts, std::uint32_t used, std::uint32_t intermediate) {
    return of(experts, used, intermediate, [](decoder_config& c) {
      c.model_type = architecture::gptoss, c.sliding_window = 32, c.sliding_window_pattern = 2;
      c.rope_scaling = models::gptoss_20b_config.rope_scaling;
    });
  };
  holds(planned(biased(6, 4, 96), dtype::mxfp4));
  holds(planned(biased(5, 2, 192), dtype::q8_0, 4));
  // A mixture in whose layers attention has another codec than the experts.
  holds(families::planned_of(biased(3, 2, 64), {dtype::mxfp4, dtype::q8_0, dtype::q8_0}, "tiny", with_workgroups(2),
                             1024));
  // One expert's input at a time in shared memory.
  holds(planned(of(3, 2, 7200, [](decoder_config& c) { c.hidden_size = 64, c.num_hidden_layers = 1; }), dtype::q4_0));
}

}  // namespace resident_modules
