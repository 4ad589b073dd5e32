// SPDX-License-Identifier: MIT
#include "intaglio/families/planned_family.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
#include <string_view>

#include "intaglio/families/published_models.hpp"
#include "intaglio/plan/bytes_moved.hpp"
#include "intaglio/plan/explain.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using families::planned_of;
using families::weight_types;

namespace {

std::set<std::string_view> compared;  ///< names of the models that check_equal took

/// A plan made from a config has the table that the model's type gives.
template <class Model>
void check_equal(const weight_types& types, const plan::profile& target, std::uint32_t context) {
  const plan::planned typed = plan::planned::of<Model>(target, context);
  const plan::planned made = planned_of(Model::config, types, Model::name, target, context);
  compared.insert(Model::name);
  INFO(Model::name << ' ' << name(types.layers) << ' ' << target.name);
  CHECK(made.table().hash == typed.table().hash);
  CHECK(plan::explain_json(made.table(), "x") == plan::explain_json(typed.table(), "x"));
}

/// A Gemma 4 with narrower heads, of which all kernels of attention take a pass of several tokens.
constexpr decoder_config narrowed(decoder_config c) {
  c.global_head_dim = 256;
  c.head_dim = 128;
  return c;
}
constexpr decoder_config narrow_e2b_config = narrowed(models::gemma4_e2b_config),
                         narrow_31b_config = narrowed(models::gemma4_31b_config);

template <template <dtype> class Model, dtype W>
void check_in() {
  constexpr std::uint32_t hidden = Model<W>::config.hidden_size;
  constexpr dtype head = graph::head_type(W, hidden);
  check_equal<Model<W>>({W, head, head}, plan::profiles::cpu, 512);
  check_equal<Model<W>>({W, head, head}, plan::profiles::portable, 512);
}

}  // namespace

TEST_CASE("a config's plan is its model type's", "[families]") {
  check_equal<models::fable>({}, plan::profiles::cpu, 512);
  check_equal<models::bitnet_2b_4t>({}, plan::profiles::portable, 4096);
  check_in<models::mistral_7b, dtype::q4_0>();
  check_in<models::mistral_7b_v01, dtype::bf16>();
  check_in<models::mistral_7b_v03, dtype::q5_k>();
  check_in<models::mistral_nemo_12b, dtype::q4_k>();
  check_in<models::mistral_small_24b, dtype::q4_0>();
  check_in<models::llama_3_8b, dtype::q6_k>();
  check_in<models::llama_31_8b, dtype::q8_0>();
  check_in<models::llama_33_70b, dtype::bf16>();
  check_in<models::llama_32_1b, dtype::q4_k>();
  check_in<models::llama_32_3b, dtype::q4_k>();
  check_in<models::tinyllama_11b, dtype::q4_0>();
  check_in<models::smollm2_135m, dtype::q8_0>();
  check_in<models::smollm2_360m, dtype::bf16>();
  check_in<models::smollm2_17b, dtype::q4_k>();
  check_in<models::stories260k, dtype::f32>();
  check_in<models::gemma3_270m, dtype::q8_0>();
  check_in<models::gemma3_1b, dtype::q4_1>();
  check_in<models::gemma3_4b, dtype::f16>();
  check_in<models::gemma3_12b, dtype::q4_0>();
  check_in<models::gemma3_27b, dtype::q4_k>();
  check_in<models::gemma4_e2b, dtype::q4_0>();
  check_in<models::gemma4_31b, dtype::q4_k>();
  check_in<models::gemma3n_e2b, dtype::q8_0>();
  check_in<models::gemma4_26b_a4b, dtype::bf16>();
  check_in<models::mixtral_8x7b, dtype::q4_0>();
  check_in<models::mixtral_8x22b, dtype::q4_k>();
  check_in<models::qwen3_06b, dtype::bf16>();
  check_in<models::qwen3_17b, dtype::q4_k>();
  check_in<models::qwen3_4b, dtype::q8_0>();
  check_in<models::qwen3_4b_2507, dtype::q4_k>();
  check_in<models::qwen3_8b, dtype::q4_0>();
  check_in<models::qwen3_14b, dtype::q4_k>();
  check_in<models::qwen3_32b, dtype::q8_0>();
  check_in<models::qwen3_30b_a3b, dtype::q4_k>();
  check_in<models::qwen3_30b_a3b_2507, dtype::q8_0>();
  check_in<models::qwen3_235b_a22b, dtype::q4_k>();
  check_in<models::qwen35_35b_a3b, dtype::q4_k>();
  check_in<models::qwen35_27b, dtype::q4_k>();
  check_in<models::olmoe_1b_7b, dtype::q8_0>();
  check_in<models::gemma_2b, dtype::bf16>();
  check_in<models::seed_oss_36b, dtype::q4_k>();
  check_in<models::ernie45_03b, dtype::bf16>();
  check_in<models::eurobert_210m, dtype::bf16>();
  check_in<models::eurobert_610m, dtype::q8_0>();
  check_in<models::deepseek_v2_lite, dtype::q8_0>();
  check_in<models::moonlight_16b, dtype::q4_0>();
  check_in<models::glm_47_flash, dtype::bf16>();
  check_in<models::ernie45_21b_a3b, dtype::q4_k>();
  check_in<models::ernie45_300b_a47b, dtype::q8_0>();
  check_in<models::ministral3_8b, dtype::q4_k>();
  check_in<models::exaone4_12b, dtype::q8_0>();
  check_in<models::exaone4_32b, dtype::q4_k>();
  check_in<models::qwen15_moe_a27b, dtype::q8_0>();
  check_in<models::glm_4_9b_chat, dtype::q4_0>();
  check_in<models::exaone3_78b, dtype::q4_k>();
  check_in<models::exaone35_24b, dtype::q8_0>();
  check_in<models::exaone35_78b, dtype::q4_0>();
  check_in<models::exaone35_32b, dtype::q4_k>();
  check_in<models::internlm25_7b, dtype::q4_k>();
  check_in<models::internlm25_20b, dtype::q8_0>();
  check_in<models::deepseek_moe_16b, dtype::q4_0>();
  check_in<models::dots1_142b, dtype::q8_0>();
  check_in<models::trinity_nano, dtype::q4_k>();
  check_in<models::trinity_mini, dtype::q8_0>();
  check_in<models::minimax_m2, dtype::q4_k>();
  check_in<models::hunyuan_a13b, dtype::q4_k>();
  check_in<models::minicpm_1b, dtype::q8_0>();
  check_in<models::minicpm_2b, dtype::q4_0>();
  check_in<models::minicpm4_05b, dtype::bf16>();
  check_in<models::xverse_7b, dtype::q4_0>();
  check_in<models::xverse_13b, dtype::q4_k>();
  check_in<models::apertus_8b, dtype::q4_k>();
  check_in<models::apertus_70b, dtype::q8_0>();
  check_in<models::baichuan_7b, dtype::q8_0>();
  check_in<models::orion_14b, dtype::q4_k>();
  check_in<models::qwen25_05b, dtype::q8_0>();
  check_in<models::qwen25_15b, dtype::bf16>();
  check_in<models::qwen25_3b, dtype::q4_0>();
  check_in<models::qwen25_7b, dtype::q4_k>();
  check_in<models::qwen25_14b, dtype::q4_k>();
  check_in<models::qwen25_32b, dtype::q8_0>();
  check_in<models::qwen25_72b, dtype::q4_0>();
  check_in<models::smollm3_3b, dtype::q8_0>();
  check_in<models::granite_33_2b, dtype::bf16>();
  check_in<models::granite_33_8b, dtype::q4_k>();
  check_in<models::granite_4_micro, dtype::bf16>();
  check_in<models::phi_4, dtype::q8_0>();
  check_equal<models::falcon3_1b_158<>>({}, plan::profiles::cpu, 512);
  check_equal<models::falcon3_3b_158<>>({}, plan::profiles::portable, 512);
  check_equal<models::falcon3_7b_158<>>({}, plan::profiles::cpu, 512);
  check_equal<models::falcon3_10b_158<>>({}, plan::profiles::portable, 512);
  for (const plan::profile& target : {plan::profiles::cpu, plan::profiles::portable}) {
    check_equal<models::falcon_e_1b<>>({}, target, 512);
    check_equal<models::falcon_e_3b<>>({}, target, 512);
    check_equal<models::bitnet_embedding_06b<>>({}, target, 512);
  }
  check_in<models::phi_4_mini, dtype::q4_k>();
  check_in<models::phi_35_mini, dtype::bf16>();
  check_in<models::olmo2_1b, dtype::q8_0>();
  check_in<models::olmo2_7b, dtype::q4_0>();
  check_in<models::olmo2_13b, dtype::q4_k>();
  check_in<models::olmo2_32b, dtype::q8_0>();
  check_in<models::olmo3_7b, dtype::q4_k>();
  check_in<models::olmo3_32b, dtype::q8_0>();
  check_in<models::lfm2_350m, dtype::bf16>();
  check_in<models::lfm2_700m, dtype::q8_0>();
  check_in<models::lfm2_12b, dtype::q4_k>();
  check_in<models::lfm2_26b, dtype::q4_0>();
  check_in<models::lfm2_8b_a1b, dtype::q4_k>();
  check_in<models::glm_4_9b, dtype::q8_0>();
  check_in<models::glm_45_air, dtype::q8_0>();
  check_in<models::glm_45, dtype::q4_k>();
  check_in<models::hunyuan_05b, dtype::bf16>();
  check_in<models::hunyuan_18b, dtype::q8_0>();
  check_in<models::hunyuan_4b, dtype::q4_k>();
  check_in<models::hunyuan_7b, dtype::q4_0>();
  check_in<models::command_r_32b, dtype::q4_k>();
  check_in<models::command_r7b, dtype::bf16>();
  check_in<models::starcoder2_3b, dtype::q8_0>();
  check_in<models::stablelm2_16b, dtype::q4_k>();
  check_in<models::minitron_4b, dtype::bf16>();
  check_in<models::phi_2, dtype::q4_0>();
  check_in<models::pythia_14b, dtype::f16>();
  check_in<models::falcon_7b, dtype::q8_0>();
  check_in<models::gpt2_124m, dtype::q4_k>();
  check_in<models::olmo_1b, dtype::q8_0>();
  check_in<models::starcoderbase_1b, dtype::q4_0>();
  check_in<models::gemma2_2b, dtype::bf16>();
  check_in<models::gemma2_9b, dtype::q8_0>();
  check_in<models::gemma2_27b, dtype::q4_k>();
  check_in<models::gptoss_20b, dtype::bf16>();
  check_in<models::gptoss_120b, dtype::q8_0>();
  for (const plan::profile& target : {plan::profiles::cpu, plan::profiles::portable})
    check_equal<models::embeddinggemma_300m<dtype::q8_0>>(
        {dtype::q8_0, dtype::q8_0, dtype::q8_0, {}, {{"dense_2.weight", dtype::q8_0}, {"dense_3.weight", dtype::q8_0}}},
        target, 512);
  check_in<models::bge_small, dtype::q8_0>();
  check_in<models::bge_base, dtype::f16>();
  check_in<models::bge_large, dtype::q4_k>();
  check_in<models::minilm_l6, dtype::bf16>();
  check_in<models::nomic_embed_v15, dtype::q4_k>();
  check_in<models::modernbert_base, dtype::q8_0>();
  check_in<models::modernbert_large, dtype::f16>();
  check_in<models::bge_m3, dtype::q8_0>();
  check_in<models::multilingual_e5_small, dtype::f16>();
  check_in<models::multilingual_e5_base, dtype::bf16>();
  check_in<models::multilingual_e5_large, dtype::q4_k>();
  check_in<models::roberta_base, dtype::q8_0>();
  check_in<models::all_distilroberta, dtype::f16>();
  check_in<models::qwen3_embedding_06b, dtype::q8_0>();
  check_in<models::granite_4_h_350m, dtype::q8_0>();
  check_in<models::granite_4_h_micro, dtype::q4_k>();
  check_in<models::granite_4_h_tiny, dtype::bf16>();
  check_in<models::nemotron_h_8b, dtype::q8_0>();
  check_in<models::nemotron_nano_9b_v2, dtype::q4_0>();
  check_in<models::nemotron_nano_12b_v2, dtype::bf16>();
  check_in<models::nemotron_3_nano, dtype::q8_0>();
  check_in<models::falcon_h1_05b, dtype::bf16>();
  check_in<models::falcon_h1_15b, dtype::q8_0>();
  check_in<models::falcon_h1_3b, dtype::q4_k>();
  check_in<models::falcon_h1_7b, dtype::q4_0>();
  check_in<models::falcon_h1_34b, dtype::q4_k>();
  check_in<models::qwen35_08b, dtype::q8_0>();
  check_in<models::qwen35_4b, dtype::q4_k>();
  check_in<models::qwen3next_80b_a3b, dtype::q4_k>();
  check_in<models::gemma_7b, dtype::q4_k>();
  check_in<models::gemma3n_e4b, dtype::q8_0>();
  check_in<models::gemma4_e4b, dtype::q4_k>();
  check_in<models::eurobert_21b, dtype::bf16>();
  check_in<models::command_r_35b, dtype::q4_k>();
  check_in<models::aya_expanse_8b, dtype::q8_0>();
  check_in<models::command_a, dtype::q4_k>();
  check_in<models::starcoder_15b, dtype::q8_0>();
  check_in<models::starcoder2_7b, dtype::q4_k>();
  check_in<models::starcoder2_15b, dtype::q8_0>();
  check_in<models::stablelm_3b, dtype::bf16>();
  check_in<models::phi_15, dtype::q8_0>();
  check_in<models::pythia_160m, dtype::f16>();
  check_in<models::pythia_69b, dtype::q4_k>();
  check_in<models::olmo_7b, dtype::q4_k>();
  check_in<models::gpt2_15b, dtype::q8_0>();
  check_in<models::deepseek_v2, dtype::q8_0>();
  check_in<models::deepseek_v3, dtype::q4_0>();
  check_in<models::ling_lite_15, dtype::q8_0>();
  check_in<models::ling_mini_20, dtype::bf16>();
  for (const families::published_model& each : families::published_models) {
    INFO(each.name);
    CHECK(compared.contains(each.name));
  }
}

TEST_CASE("a Gemma 4 has the heads, caches and FFNs of its kinds of layers", "[families]") {
  const auto plan_of = [](const decoder_config& c) {
    return planned_of(c, {dtype::q8_0, dtype::q8_0, dtype::q8_0}, "gemma4", plan::profiles::portable, 4096);
  };
  const plan::planned made = plan_of(narrow_e2b_config), dense = plan_of(narrow_31b_config);
  const plan::table &small = made.table(), &large = dense.table();
  CHECK((plan::verify(small).empty() && plan::verify(large).empty()));
  std::uint64_t cached = 0;  // of what f16 takes: 12 windowed layers and 3 others have caches of their own
  for (std::uint32_t layer = 0; layer < 35; ++layer) {
    const bool global = layer % 5 == 4;
    const std::uint32_t owner = layer < 15 ? layer : global ? 14 : 13;
    CHECK(small.cache_owner(layer) == owner);
    CHECK(small.cache_of(layer).shared == (layer >= 15));
    if (layer < 15) cached += 2ull * 2 * (global ? 256 : 128) * small.cache_of(layer).positions;
  }
  CHECK(small.cache_of(4).positions == 4096);
  CHECK(small.cache_bytes() == cached);
  CHECK(large.cache_of(0).key_bytes / large.cache_of(0).positions == 2 * 16 * 128);
  CHECK(large.cache_of(5).key_bytes / large.cache_of(5).positions == 2 * 4 * 256);
  for (const decoder_config* published : {&models::gemma4_e2b_config, &models::gemma4_e4b_config,
                                          &models::gemma4_31b_config, &models::gemma4_26b_a4b_config}) {
    const plan::planned whole = plan_of(*published);
    CHECK(plan::verify(whole.table()).empty());
    // Passes of several tokens attend to heads of 512 channels by tiles of tokens.
    std::size_t wide = 0;
    for (const plan::dispatch& call : whole.table().prefill.period) {
      CHECK(call.kernel != kernels::kernel::attention);
      if (call.kernel == kernels::kernel::attention_f16)
        wide += kernels::constants_of<kernels::attention_f16_kernel>(call.specialization).head_dim == 512 ? 1 : 0;
    }
    CHECK(wide != 0);
  }
  decoder_config wider = narrow_31b_config;
  wider.global_head_dim = 640;
  CHECK_THROWS_WITH(plan_of(wider), ContainsSubstring("expected heads of at most 576 channels, found 640"));
}

TEST_CASE("the plan of fable is the engraved one", "[families]") {
  const plan::planned made = planned_of(models::fable_config, {}, "fable", plan::profiles::cpu, 512);
  CHECK(made.table().hash == plan::engraved<models::fable, plan::profiles::cpu>::table.hash);
}

namespace {
/// Matrices in several codecs, as a mixed file holds them and `intaglio engrave` writes them down.
struct mixed_story : models::llama<models::stories260k_config, dtype::q8_0, dtype::f16, dtype::f16> {
  static constexpr std::string_view name = "story";
  static constexpr auto held = std::to_array<ir::held_type>({{"attn_q.weight", dtype::q4_0, 0},
                                                             {"attn_k.weight", dtype::q4_0, 0},
                                                             {"attn_v.weight", dtype::q8_0, 0},
                                                             {"attn_output.weight", dtype::iq4_nl, 0},
                                                             {"ffn_gate.weight", dtype::q4_0, 0},
                                                             {"ffn_up.weight", dtype::q4_0, 0},
                                                             {"ffn_down.weight", dtype::f16, 0},
                                                             {"attn_q.weight", dtype::q5_0, 1},
                                                             {"attn_k.weight", dtype::q5_0, 1},
                                                             {"attn_v.weight", dtype::q5_0, 1},
                                                             {"attn_output.weight", dtype::q5_0, 1},
                                                             {"ffn_gate.weight", dtype::q4_1, 1},
                                                             {"ffn_up.weight", dtype::q5_1, 1},
                                                             {"ffn_down.weight", dtype::bf16, 1}});
  static constexpr std::array<std::uint8_t, 5> sets{0, 1, 0, 0, 1};
};
}  // namespace

TEST_CASE("a model of several codecs is engraved as it is planned", "[families]") {
  weight_types types{dtype::q8_0, dtype::f16, dtype::f16};
  for (const ir::held_type& each : mixed_story::held)
    types.matrices.push_back({std::string(each.name), each.type, each.set});
  types.sets.assign(mixed_story::sets.begin(), mixed_story::sets.end());
  const plan::planned made = planned_of(models::stories260k_config, types, "story", plan::profiles::cpu, 64);
  constexpr const plan::table& engraved = plan::engraved<mixed_story, plan::profiles::cpu, 64>::table;
  CHECK(made.table().hash == engraved.hash);
  CHECK(plan::explain_json(made.table(), "x") == plan::explain_json(engraved, "x"));
  CHECK(made.table().hash != planned_of(models::stories260k_config, {}, "story", plan::profiles::cpu, 64).table().hash);
}

TEST_CASE("a config's plan owns the config", "[families]") {
  plan::planned made = [] {
    const decoder_config here = models::stories260k_config;
    return planned_of(here, {dtype::f32, dtype::f32, dtype::f32}, std::string("story"), plan::profiles::cpu, 64);
  }();
  const plan::planned moved = std::move(made);
  CHECK(*moved.table().config == models::stories260k_config);
  CHECK(moved.table().model == "story");
  CHECK(plan::verify(moved.table()).empty());
}

TEST_CASE("rows that blocks do not divide are refused in one sentence", "[families]") {
  CHECK_THROWS_WITH(
      planned_of(models::stories260k_config, {dtype::q4_k, dtype::f16, dtype::f16}, "story", plan::profiles::cpu, 64),
      ContainsSubstring("blk.*.attn_q.weight: expected columns in multiples of 256 (q4_k blocks)"));
}

TEST_CASE("a Qwen3 decodes by the resident dispatch", "[families]") {
  const auto resident = [](const decoder_config& c, dtype codec) {
    const dtype head = graph::head_type(codec, c.hidden_size);
    const plan::planned made = planned_of(c, {codec, head, head}, "qwen3", plan::profiles::portable, 4096);
    CHECK(plan::verify(made.table()).empty());
    return !made.table().resident_decode.resident.empty();
  };
  CHECK(resident(models::qwen3_06b_config, dtype::bf16));
  CHECK(resident(models::qwen3_06b_config, dtype::q4_0));
  CHECK(resident(models::qwen3_17b_config, dtype::bf16));
  CHECK(resident(models::qwen3_4b_config, dtype::bf16));
  CHECK(resident(models::qwen3_4b_config, dtype::q8_0));
  CHECK(resident(models::qwen3_8b_config, dtype::q8_0));
  CHECK(resident(models::qwen3_8b_config, dtype::q4_0));
}

namespace {

constexpr std::array<std::string_view, 7> llama_matrices{"attn_q.weight",      "attn_k.weight",   "attn_v.weight",
                                                         "attn_output.weight", "ffn_gate.weight", "ffn_up.weight",
                                                         "ffn_down.weight"};
void add_set(weight_types& types, dtype all, dtype down) {
  const auto set = static_cast<std::uint8_t>(types.matrices.size() / llama_matrices.size());
  for (const auto name : llama_matrices)
    types.matrices.push_back({std::string(name), name == "ffn_down.weight" ? down : all, set});
}

const plan::weight& weight_of(const plan::table& of, std::string_view name, kernels::codec codec) {
  for (const plan::weight& each : of.weights)
    if (each.sources[0] == name && each.codec == codec) return each;
  FAIL("no such weight");
  return of.weights[0];
}

}  // namespace

TEST_CASE("layers of several types are kinds in any sequence", "[families]") {
  decoder_config c = models::mistral_7b_v02_config;
  c.num_hidden_layers = 128;
  weight_types types{dtype::q4_k, dtype::q4_k, dtype::q6_k};
  constexpr std::array downs{dtype::q4_k, dtype::q6_k, dtype::q8_0, dtype::q4_0,
                             dtype::q4_1, dtype::bf16, dtype::f16,  dtype::f32};
  for (const dtype all : {dtype::q4_k, dtype::q6_k})
    for (const dtype down : downs) add_set(types, all, down);
  std::array<std::uint32_t, 16> layers{};
  for (std::uint32_t layer = 0; layer < 128; ++layer) {
    types.sets.push_back(static_cast<std::uint8_t>(layer < 16 ? layer : layer * layer * 7 % 16));
    ++layers[types.sets.back()];
  }
  for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
    const plan::planned made = planned_of(c, types, "any", *target, 512);
    const plan::table& t = made.table();
    CHECK(t.pattern.kinds() == 16);
    CHECK(t.pattern.period == 128);
    for (std::uint32_t layer = 0; layer < 128; ++layer) CHECK(t.pattern(layer) == types.sets[layer]);
    const plan::weight& norm = t.weights[t.decode.block(0)[0].accesses[1].slot];
    CHECK(norm.sources[0] == std::string_view("attn_norm.weight"));
    CHECK((t.copies(norm) == 128 && t.copy_of(norm, 77) == 77));
    const plan::weight& down = weight_of(t, "ffn_down.weight", kernels::codec::q8_0);
    CHECK(t.copies(down) == layers[2] + layers[10]);
    CHECK((t.has(down, 2) && t.has(down, 10) && !t.has(down, 3) && t.copy_of(down, 10) == 1));
    std::uint64_t bytes = t.global_weight_bytes;
    for (const plan::weight& each : t.weights) bytes += each.per_layer ? t.copies(each) * plan::aligned(each.bytes) : 0;
    CHECK(t.weight_bytes() == bytes);
    std::uint64_t read = 0;
    for (const plan::dispatch& each : t.decode.period) read += t.decode.times(each) * each.weight_bytes;
    CHECK(read < bytes);
    CHECK(bytes - read < t.global_weight_bytes + (std::uint64_t{64} << 10) * 128);
  }
}

TEST_CASE("a sequence that repeats is planned as the short list that it is", "[families]") {
  weight_types types{dtype::q4_0, dtype::q4_0, dtype::q4_0};
  add_set(types, dtype::q4_0, dtype::q8_0);
  add_set(types, dtype::q4_0, dtype::q4_0);
  for (std::uint32_t layer = 0; layer < 32; ++layer) types.sets.push_back(layer % 3 == 2 ? 1 : 0);
  const plan::planned made = planned_of(models::mistral_7b_v02_config, types, "x", plan::profiles::portable, 512);
  CHECK(made.table().pattern == layer_pattern{3, {0, 0, 1}});
  CHECK_FALSE(made.table().resident_decode.resident.empty());  // by the kernel of several codecs
}

TEST_CASE("windows and types make kinds together", "[families]") {
  weight_types types{dtype::q4_0, dtype::q4_0, dtype::q4_0};
  add_set(types, dtype::q4_0, dtype::q8_0);
  add_set(types, dtype::q4_0, dtype::q4_0);
  const decoder_config& c = models::gemma3_1b_config;
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) types.sets.push_back(layer % 2);
  const plan::planned made = planned_of(c, types, "x", plan::profiles::portable, 2048);
  const plan::table& t = made.table();
  CHECK(t.pattern == layer_pattern{6, {0, 1, 0, 1, 0, 2}});
  CHECK((t.caches[0].window == 512 && t.caches[1].window == 512 && t.caches[2].window == 0));
}

TEST_CASE("as many types as layers have kinds for", "[families]") {
  decoder_config c = models::stories260k_config;
  c.num_hidden_layers = 65;
  weight_types types{dtype::f32, dtype::f32, dtype::f32};
  for (std::uint32_t layer = 0; layer < 65; ++layer) {
    add_set(types, dtype::f32, dtype::f32);
    types.sets.push_back(static_cast<std::uint8_t>(layer));
  }
  CHECK_THROWS_WITH(planned_of(c, types, "x", plan::profiles::cpu, 64),
                    ContainsSubstring("at most 64 kinds, found 65"));
  types.sets.pop_back();
  CHECK_THROWS_WITH(planned_of(c, types, "x", plan::profiles::cpu, 64),
                    ContainsSubstring("a set of types for each layer, 65, found 64"));
}

// What llama-quantize writes of Mistral 7B (llama.cpp, llama-quant.cpp, use_more_bits): 4.37 GB.
TEST_CASE("a 7B in Q4_K_M takes the bytes of its file", "[families]") {
  weight_types types{dtype::q4_k, dtype::q4_k, dtype::q6_k};
  add_set(types, dtype::q4_k, dtype::q6_k);
  types.matrices[2].type = dtype::q6_k;
  REQUIRE(types.matrices[2].name == "attn_v.weight");
  add_set(types, dtype::q4_k, dtype::q4_k);
  constexpr std::uint32_t n = 32;
  for (std::uint32_t layer = 0; layer < n; ++layer)
    types.sets.push_back(layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2 ? 0 : 1);
  for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
    INFO(target->name);
    const plan::planned made = planned_of(models::mistral_7b_v02_config, types, "mistral_7b", *target, 4096);
    const plan::table& t = made.table();
    CHECK(t.weight_bytes() > 4'350'000'000);
    CHECK(t.weight_bytes() < 4'400'000'000);
    const std::uint64_t read = plan::bytes_moved(t, t.decode, 0, 1);
    CHECK(read > 4'260'000'000);
    CHECK(read < 4'320'000'000);
    // In a layer whose v has another codec, q and k are one product and v is another; a prompt prepares their input
    // once.
    std::size_t prepared = 0, products = 0;
    for (const plan::dispatch& each : t.prefill.block(t.pattern(0))) {
      prepared += each.kernel == kernels::kernel::quantize_f16;
      products += each.kernel == kernels::kernel::matmul_chunk || each.kernel == kernels::kernel::matmul;
    }
    CHECK(products == 5);
    CHECK(prepared == (target == &plan::profiles::portable ? 4u : 0u));
  }
}
