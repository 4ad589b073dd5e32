// SPDX-License-Identifier: MIT
#include "intaglio/io/renamed_keys.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>

#include "files.hpp"
#include "intaglio/io/hf_config.hpp"
#include "intaglio/models/afmoe.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

io::hf_config read(const std::string& text) {
  const temporary_folder folder;
  return io::read_hf_config(write_text(folder / "config.json", text));
}
std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}
/// A ChatGLM's config with more fields.
std::string chatglm(const std::string& fields) {
  return R"({"model_type":"chatglm","num_layers":3,"hidden_size":64,"padded_vocab_size":1000,"ffn_hidden_size":128,)"
         R"("kv_channels":16,"num_attention_heads":4,"multi_query_group_num":2,"seq_length":512,)"
         R"("layernorm_epsilon":1e-5)" +
         fields + "}";
}
/// A mixture's config with more fields.
std::string mixture(const std::string& type, const std::string& fields) {
  return R"({"model_type":")" + type +
         R"(","hidden_size":64,"num_hidden_layers":3,"num_attention_heads":4,"vocab_size":1000,)"
         R"("max_position_embeddings":512,"rms_norm_eps":1e-5,"head_dim":16)" +
         fields + "}";
}

}  // namespace

TEST_CASE("a ChatGLM's keys are read as those of a GLM", "[io]") {
  const std::string stated = R"(,"multi_query_attention":true,"add_qkv_bias":true,"rope_ratio":500)";
  const auto found = read(chatglm(stated + R"(,"num_hidden_layers":3,"vocab_size":1000,"rmsnorm":true)"));
  const decoder_config& c = found.config;
  CHECK(found.warnings.empty());
  CHECK((c.model_type == architecture::chatglm && c.num_hidden_layers == 3 && c.vocab_size == 1000));
  CHECK((c.intermediate_size == 128 && c.head_dim == 16 && c.num_key_value_heads == 2));
  CHECK((c.max_position_embeddings == 512 && c.rms_norm_eps == 1e-5f && c.attention_bias));
  CHECK((c.rope_theta == 5'000'000.f && c.rotary_dim == 8));
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(chatglm(fields)), ContainsSubstring(by));
  };
  refuses("", "multi_query_attention: expected true, found nothing");
  refuses(R"(,"multi_query_attention":false)", "multi_query_attention: expected true, found false");
  refuses(stated + R"(,"num_hidden_layers":4)", "num_layers and num_hidden_layers: expected one value, found 3 and 4");
  refuses(stated + R"(,"rmsnorm":false)", "rmsnorm: expected true, found false");
  refuses(stated + R"(,"post_layer_norm":false)", "post_layer_norm: expected true, found false");
  refuses(stated + R"(,"add_bias_linear":true)", "add_bias_linear: expected none, found true");
  refuses(stated + R"(,"apply_residual_connection_post_layernorm":true)", "expected none, found true");
  refuses(stated + R"(,"pre_seq_len":128)", "pre_seq_len: expected none, found 128");
  refuses(stated + R"(,"quantization_bit":4)", "quantization_bit: expected none, found 4");
  // Errors have the file's own names.
  refuses(R"(,"multi_query_attention":true,"add_qkv_bias":3)", "config.json: add_qkv_bias: expected");
  refuses(R"(,"multi_query_attention":true,"rope_ratio":-1)", "config.json: rope_ratio, read as rope_theta: expected");
}

TEST_CASE("a GLM has biases and turns half of a head unless its config says otherwise", "[io]") {
  const std::string sizes = R"(,"intermediate_size":128)";
  const auto usual = read(mixture("glm", sizes));
  CHECK((usual.config.attention_bias && usual.config.rotary_dim == 8 && usual.warnings.empty()));
  const auto edge = read(mixture("glm", sizes + R"(,"attention_bias":false,"partial_rotary_factor":1.0)"));
  CHECK((!edge.config.attention_bias && edge.config.rotary_dim == 0 && edge.warnings.empty()));
}

TEST_CASE("an EXAONE's keys are read as a Llama's", "[io]") {
  const std::string text = R"({"model_type":"exaone","hidden_size":64,"intermediate_size":128,"num_layers":3,)"
                           R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1000,)"
                           R"("max_position_embeddings":512,"layer_norm_epsilon":1e-5,"rope_theta":1000000)";
  const auto found = read(text + R"(,"activation_function":"silu","embed_dropout":0.0,"attention_dropout":0.0})");
  CHECK(found.warnings.empty());
  CHECK((found.config.num_hidden_layers == 3 && found.config.rms_norm_eps == 1e-5f && found.config.head_dim == 16));
  CHECK_THAT(refusal(text + R"(,"activation_function":"mish"})"), ContainsSubstring("found 'mish'"));
  CHECK_THAT(refusal(text + R"(,"partial_rotary_factor":0.5})"),
             ContainsSubstring("partial_rotary_factor: expected 1"));
}

TEST_CASE("an InternLM2 has no biases, and its context ends where its scaling begins", "[io]") {
  const std::string sizes = R"(,"intermediate_size":128,"bias":false,"rope_scaling":{"type":"dynamic","factor":2.0})";
  for (const char* type : {"internlm2", "internlm3"}) {
    const auto found = read(mixture(type, sizes));
    CHECK((found.warnings.empty() && found.config.max_position_embeddings == 512));
    CHECK(found.config.rope_scaling == rope_scaling_config{});
    CHECK_THAT(refusal(mixture(type, R"(,"intermediate_size":128,"bias":true)")),
               ContainsSubstring("bias: expected none, found true"));
  }
}

TEST_CASE("a DeepSeek's experts count by a softmax over all, without a bias", "[io]") {
  const std::string sizes = R"(,"intermediate_size":128,"moe_intermediate_size":32,"n_routed_experts":8,)"
                            R"("num_experts_per_tok":2,"n_shared_experts":2,"first_k_dense_replace":1)";
  const auto found = read(mixture("deepseek", sizes + R"(,"scoring_func":"softmax","moe_layer_freq":1)"));
  const decoder_config& c = found.config;
  CHECK(found.warnings.empty());
  CHECK((c.num_local_experts == 8 && c.num_experts_per_tok == 2 && c.shared_expert_intermediate_size == 64));
  CHECK((c.num_dense_layers == 1 && c.dense_intermediate_size == 128 && c.intermediate_size == 32));
  CHECK((!c.norm_topk_prob && !c.use_expert_bias));
  CHECK(read(mixture("deepseek", sizes + R"(,"norm_topk_prob":true)")).config.norm_topk_prob);
  CHECK_THAT(refusal(mixture("deepseek", sizes + R"(,"scoring_func":"sigmoid")")),
             ContainsSubstring(R"(scoring_func: expected "softmax", found "sigmoid")"));
  CHECK_THAT(refusal(mixture("deepseek", sizes + R"(,"moe_layer_freq":2)")),
             ContainsSubstring("moe_layer_freq: expected 1, found 2"));
  CHECK_THAT(refusal(mixture("deepseek", sizes + R"(,"n_group":8)")), ContainsSubstring("n_group: expected 1"));
}

TEST_CASE("a config of Trinity Nano is the named one, and its other values are refused", "[io]") {
  const auto nano = [](const std::string& more = "") {
    std::string types;
    for (int layer = 0; layer < 56; ++layer)
      types += std::string(layer != 0 ? "," : "") + (layer % 4 == 3 ? R"("full_attention")" : R"("sliding_attention")");
    return R"({"architectures":["AfmoeForCausalLM"],"attention_dropout":0.0,"auto_map":{},"dtype":"bfloat16",)"
           R"("global_attn_every_n_layers":4,"head_dim":128,"hidden_act":"silu","hidden_size":1024,)"
           R"("initializer_range":0.02,"intermediate_size":3072,"layer_types":[)" +
           types +
           R"(],"max_position_embeddings":131072,"model_type":"afmoe","moe_intermediate_size":256,)"
           R"("mup_enabled":true,"n_group":1,"num_attention_heads":8,"num_dense_layers":2,"num_expert_groups":1,)"
           R"("num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":56,"num_key_value_heads":2,)"
           R"("num_limited_groups":1,"num_shared_experts":1,"rms_norm_eps":1e-05,"rope_scaling":null,)"
           R"("rope_theta":10000,"route_norm":true,"route_scale":2.826,"score_func":"sigmoid",)"
           R"("sliding_window":2048,"tie_word_embeddings":false,"topk_group":1,"transformers_version":"4.57.3",)"
           R"("use_cache":true,"use_grouped_mm":true,"vocab_size":200192)" +
           more + "}";
  };
  const io::hf_config found = read(nano());
  for (const std::string& line : found.warnings) CHECK(line == "none");
  decoder_config stated = found.config;
  stated.tie_word_embeddings = found.tie_word_embeddings.value();
  for (const std::string& line : io::config_differences(models::trinity_nano_config, stated)) CHECK(line == "none");
  CHECK(stated == models::trinity_nano_config);
  CHECK_THAT(refusal(nano(R"(,"first_k_dense_replace":3)")),
             ContainsSubstring("num_dense_layers and first_k_dense_replace: expected one value, found 2 and 3"));
  CHECK_THAT(refusal(mixture("afmoe", R"(,"intermediate_size":64,"sliding_window":32)")),
             ContainsSubstring("mup_enabled: expected true, found nothing"));
  const std::string fields = R"(,"intermediate_size":64,"mup_enabled":true)";
  CHECK_THAT(refusal(mixture("afmoe", fields)),
             ContainsSubstring("sliding_window: expected a number above 0, found 0"));
  const decoder_config usual = read(mixture("afmoe", fields + R"(,"sliding_window":32)")).config;
  CHECK((usual.num_local_experts == 64 && usual.num_experts_per_tok == 6 && usual.intermediate_size == 1408));
  CHECK((usual.shared_expert_intermediate_size == 2816 && usual.num_dense_layers == 1 && usual.norm_topk_prob));
  CHECK((usual.sliding_window_pattern == 4 && usual.routed_scaling_factor == 1.f));
  const auto refuses_windows = [&](const std::string& more, const char* by) {
    CHECK_THAT(refusal(mixture("afmoe", fields + R"(,"sliding_window":32)" + more)), ContainsSubstring(by));
  };
  refuses_windows(R"(,"global_attn_every_n_layers":0)",
                  ": global_attn_every_n_layers: expected a number above 0 beside sliding_window, found 0");
  refuses_windows(
      R"(,"global_attn_every_n_layers":2,"layer_types":["full_attention","full_attention","full_attention"])",
      ": global_attn_every_n_layers and layer_types[0]: expected one kind of layer, found 2 and full");
}

TEST_CASE("a dots.llm1 has windows in no layer", "[io]") {
  const std::string sizes = R"(,"intermediate_size":128,"moe_intermediate_size":32,"n_routed_experts":8,)"
                            R"("num_experts_per_tok":2,"first_k_dense_replace":1,"routed_scaling_factor":2.5)";
  const auto found = read(mixture("dots1", sizes + R"(,"sliding_window":4096,"max_window_layers":62)"));
  CHECK((found.warnings.empty() && found.config.sliding_window == 0 && found.config.use_expert_bias));
  CHECK((found.config.routed_scaling_factor == 2.5f && !found.config.norm_topk_prob));
  CHECK_THAT(refusal(mixture("dots1", sizes + R"(,"sliding_window":4096,"max_window_layers":2)")),
             ContainsSubstring("max_window_layers: expected num_hidden_layers or more"));
  CHECK_THAT(refusal(mixture("dots1", sizes + R"(,"layer_types":["sliding_attention"])")),
             ContainsSubstring("layer_types[0]: expected full_attention"));
}

TEST_CASE("a MiniMax-M2 says how many channels turn and how its heads are normalised", "[io]") {
  const std::string sizes = R"(,"intermediate_size":32,"num_local_experts":8,"num_experts_per_tok":2)";
  const auto found = read(mixture("minimax_m2", sizes + R"(,"rotary_dim":8,"use_routing_bias":true,)"
                                                        R"("use_qk_norm":true,"qk_norm_type":"per_layer",)"
                                                        R"("attn_type_list":[1,1,1],"scoring_func":"sigmoid")"));
  CHECK(found.warnings.empty());
  CHECK((found.config.rotary_dim == 8 && found.config.use_expert_bias && found.config.norm_topk_prob));
  CHECK((found.config.rope_theta == 5e6f && found.config.shared_expert_intermediate_size == 0));
  CHECK(read(mixture("minimax_m2", sizes)).config.rotary_dim == 0);
  CHECK(!read(mixture("minimax_m2", sizes + R"(,"use_routing_bias":false)")).config.use_expert_bias);
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(mixture("minimax_m2", sizes + fields)), ContainsSubstring(by));
  };
  refuses(R"(,"attn_type_list":[1,0,1])", "attn_type_list: expected 1, found 0");
  refuses(R"(,"qk_norm_type":"per_head")", R"(qk_norm_type: expected "per_layer", found "per_head")");
  refuses(R"(,"use_qk_norm":false)", "use_qk_norm: expected true, found false");
  refuses(R"(,"shared_intermediate_size":64)", "shared_intermediate_size");
}

TEST_CASE("a Hunyuan with experts lists a value for each layer, which are all equal", "[io]") {
  const std::string sizes = R"(,"intermediate_size":32,"num_experts":8,"moe_topk":[2,2,2],"num_shared_expert":[1,1,1],)"
                            R"("moe_intermediate_size":[32,32,32],"use_mixed_mlp_moe":true,"use_qk_norm":true)";
  const auto found = read(mixture("hunyuan_v1_moe", sizes));
  const decoder_config& c = found.config;
  CHECK(found.warnings.empty());
  CHECK((c.num_local_experts == 8 && c.num_experts_per_tok == 2 && c.intermediate_size == 32));
  CHECK((c.shared_expert_intermediate_size == 32 && c.use_qk_norm && c.norm_topk_prob));
  CHECK_THAT(refusal(mixture("hunyuan_v1_moe", R"(,"intermediate_size":32,"num_experts":8,"moe_topk":[2,3,2])")),
             ContainsSubstring("moe_topk: expected one value for all layers, found 2 and 3"));
  CHECK_THAT(refusal(mixture("hunyuan_v1_moe", R"(,"intermediate_size":64,"num_experts":8,"moe_topk":2,)"
                                               R"("moe_intermediate_size":32)")),
             ContainsSubstring("intermediate_size: expected 32 as moe_intermediate_size, found 64"));
  for (const char* key : {"moe_drop_tokens", "moe_random_routing_dropped_token", "use_cla"})
    CHECK_THAT(refusal(mixture("hunyuan_v1_moe", sizes + ",\"" + key + "\":true")), ContainsSubstring("expected none"));
  CHECK_THAT(refusal(mixture("hunyuan_v1_moe", sizes + R"(,"moe_layer_num_skipped":1)")),
             ContainsSubstring("moe_layer_num_skipped: expected none, found 1"));
}

TEST_CASE("a Ling has groups from 2.0 on, whose folders state the first one's model_type", "[io]") {
  const std::string sizes = R"(,"intermediate_size":128,"moe_intermediate_size":32,"num_experts":8,)"
                            R"("num_experts_per_tok":2,"norm_topk_prob":true)";
  const std::string first =
                        sizes + R"(,"num_shared_experts":2,"norm_head":false,"norm_softmax":false,"use_bias":false)",
                    second = sizes + R"(,"architectures":["BailingMoeV2ForCausalLM"],"num_shared_experts":1,)"
                                     R"("score_function":"sigmoid","moe_router_enable_expert_bias":true,)"
                                     R"("use_qk_norm":true,"partial_rotary_factor":0.5,"first_k_dense_replace":1,)"
                                     R"("routed_scaling_factor":2.5)",
                    groups = R"(,"n_group":4,"topk_group":2)";
  const auto one = read(mixture("bailing_moe", first)), two = read(mixture("bailing_moe", second + groups));
  CHECK((one.warnings.empty() && two.warnings.empty()));
  CHECK((one.config.model_type == architecture::bailingmoe && two.config.model_type == architecture::bailingmoe2));
  CHECK((one.config.shared_expert_intermediate_size == 64 && one.config.num_dense_layers == 0));
  CHECK((one.config.norm_topk_prob && !one.config.use_expert_bias && one.config.n_group == 0));
  CHECK((two.config.n_group == 4 && two.config.topk_group == 2 && two.config.rotary_dim == 8));
  CHECK((two.config.use_expert_bias && two.config.use_qk_norm && two.config.routed_scaling_factor == 2.5f));
  CHECK_THAT(refusal(mixture("bailing_moe", sizes)), ContainsSubstring("num_shared_experts: expected a number"));
  CHECK_THAT(refusal(mixture("bailing_moe", sizes + R"(,"num_shared_experts":2,"norm_head":true)")),
             ContainsSubstring("norm_head: expected false, found true"));
  CHECK_THAT(refusal(mixture("bailing_moe", second)), ContainsSubstring("n_group: expected a number, found nothing"));
  CHECK_THAT(refusal(mixture("bailing_moe", second + groups + R"(,"use_qkv_bias":true)")),
             ContainsSubstring("use_qkv_bias: expected false, found true"));
}

TEST_CASE("a MiniCPM's factors follow its width and depth", "[io]") {
  const std::string sizes = R"(,"intermediate_size":128)",
                    stated = sizes + R"(,"scale_emb":12,"scale_depth":1.4,"dim_model_base":16)";
  const auto found = read(mixture("minicpm", stated + R"(,"mup_denominator":32)"));
  const decoder_config& c = found.config;
  CHECK(found.warnings.empty());
  CHECK((c.embedding_multiplier == 12 && c.logits_scaling == 4 && c.attention_multiplier == 0));
  CHECK(c.residual_multiplier == static_cast<float>(1.4 / std::sqrt(3.0)));
  CHECK(*found.tie_word_embeddings);
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(mixture("minicpm", fields)), ContainsSubstring(by));
  };
  refuses(sizes, "scale_emb: expected a number, found nothing");
  refuses(sizes + R"(,"scale_emb":12,"scale_depth":1.4)", "dim_model_base: expected a number, found nothing");
  refuses(sizes + R"(,"scale_emb":12,"scale_depth":1.4,"dim_model_base":0)", "logits_scaling");
  refuses(sizes + R"(,"scale_emb":12,"scale_depth":0,"dim_model_base":16)", "expected a number above 0, found 0");
  refuses(sizes + R"(,"scale_emb":"12","scale_depth":1.4,"dim_model_base":16)", "scale_emb: expected");
  refuses(stated + R"(,"sparse_config":{"topk":64})", "attention to chosen blocks is not computed");
  refuses(stated + R"(,"num_experts":8)", "num_experts");
  refuses(stated + R"(,"hidden_act":"fatrelu")", "found 'fatrelu'");
}

TEST_CASE("a Baichuan's context has another name, and other generations are refused", "[io]") {
  const std::string text = R"({"model_type":"baichuan","hidden_size":64,"num_attention_heads":4,"vocab_size":1000,)"
                           R"("intermediate_size":128,"model_max_length":512,"rms_norm_eps":1e-6,)";
  const auto found = read(text + R"("num_hidden_layers":3})");
  CHECK((found.warnings.empty() && found.config.max_position_embeddings == 512));
  CHECK_THAT(refusal(text + R"("num_hidden_layers":40})"),
             ContainsSubstring("num_hidden_layers: expected another number: a baichuan with it has ALiBi"));
  CHECK_THAT(refusal(text + R"("num_hidden_layers":3,"z_loss_weight":0})"),
             ContainsSubstring("Baichuan 2 normalises the rows of its head"));
}
