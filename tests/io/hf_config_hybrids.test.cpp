// SPDX-License-Identifier: MIT
// What config.json of models with recurrent layers, and of a Granite that is named as one, states.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "hf_config_texts.hpp"
#include "intaglio/models/falcon_h1.hpp"
#include "intaglio/models/nemotron_h.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace hf_config_texts;

TEST_CASE("hf_config: a Granite that is written as a hybrid has attention in all layers") {
  const auto with = [](const std::string& types, const std::string& fields) {
    return R"({"model_type":"granitemoehybrid","hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,)"
           R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5,)"
           R"("shared_intermediate_size":768,"num_local_experts":0,"num_experts_per_tok":0,"mamba_d_conv":4,)"
           R"("layer_types":)" +
           types + (fields.empty() ? "" : "," + fields) + "}";
  };
  const auto dense = read(with(R"(["attention","attention"])", R"("position_embedding_type":"rope")"));
  CHECK((dense.config.model_type == architecture::granite && dense.config.intermediate_size == 768));
  CHECK(dense.warnings.empty());
  CHECK_THAT(refusal(with(R"(["attention","attention"])", "")),
             ContainsSubstring("position_embedding_type: expected rope, found 'none'"));
  CHECK_THAT(refusal(with(R"(["conv","attention"])", R"("position_embedding_type":"rope")")),
             ContainsSubstring("expected mamba or attention, found \"conv\""));
  CHECK_THAT(refusal(with("null", R"("position_embedding_type":"rope")")), ContainsSubstring("layer_types"));
}

TEST_CASE("hf_config: a Granite with experts and without states, under each of its names") {
  const std::string sizes =
      R"("hidden_size":256,"intermediate_size":512,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":1000,)"
      R"("max_position_embeddings":512,"rms_norm_eps":1e-5,"num_local_experts":16,"num_experts_per_tok":4)";
  const auto of = [&](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type + "\"," + sizes + fields + "}";
  };
  const auto alone = read(of("granitemoe", ""));
  CHECK((alone.config.model_type == architecture::granitemoe && alone.warnings.empty()));
  CHECK((alone.config.num_local_experts == 16 && alone.config.num_experts_per_tok == 4));
  CHECK((alone.config.intermediate_size == 512 && alone.config.shared_expert_intermediate_size == 0));
  const auto shared = read(of("granitemoeshared", R"(,"shared_intermediate_size":768)")),
             hybrid = read(of("granitemoehybrid", R"(,"shared_intermediate_size":768,"position_embedding_type":"rope",)"
                                                  R"("layer_types":["attention","attention"])"));
  CHECK((shared.config.shared_expert_intermediate_size == 768 && shared.config == hybrid.config));
  CHECK((shared.warnings.empty() && hybrid.warnings.empty()));
  CHECK_THAT(refusal(of("granitemoeshared", R"(,"shared_intermediate_size":5000000)")),
             ContainsSubstring("shared_intermediate_size: expected 1 to 4194304, found 5000000"));
  CHECK_THAT(refusal(of("olmoe", R"(,"clip_qkv":8.0)")), ContainsSubstring("clip_qkv: expected none, found 8.0"));
}

TEST_CASE("hf_config: an LFM2 with experts states its router and its dense layers") {
  const auto of = [](const std::string& fields) {
    return R"({"model_type":"lfm2_moe","hidden_size":256,"intermediate_size":512,"moe_intermediate_size":128,)"
           R"("num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":1000,"norm_eps":1e-5,)"
           R"("max_position_embeddings":512,"layer_types":["conv","conv","full_attention","conv"])" +
           fields + "}";
  };
  const auto usual = read(of("")), stated = read(of(R"(,"num_dense_layers":1,"use_expert_bias":false,"num_experts":8,)"
                                                    R"("routed_scaling_factor":2.5,"norm_topk_prob":false)"));
  CHECK((usual.config.model_type == architecture::lfm2moe && usual.warnings.empty() && stated.warnings.empty()));
  CHECK((usual.config.num_local_experts == 32 && usual.config.num_experts_per_tok == 4));
  CHECK((usual.config.intermediate_size == 128 && usual.config.dense_intermediate_size == 512));
  CHECK((usual.config.num_dense_layers == 2 && usual.config.use_expert_bias && usual.config.norm_topk_prob));
  CHECK((usual.config.rope_theta == 1e6f && usual.config.routed_scaling_factor == 1.f));
  CHECK((stated.config.num_dense_layers == 1 && !stated.config.use_expert_bias && !stated.config.norm_topk_prob));
  CHECK((stated.config.routed_scaling_factor == 2.5f && stated.config.num_local_experts == 8));
  CHECK_THAT(refusal(of(R"(,"num_dense_layers":4)")),
             ContainsSubstring("num_dense_layers: expected less than num_hidden_layers 4"));
  CHECK_THAT(refusal(of(R"(,"routed_scaling_factor":0.0)")), ContainsSubstring("routed_scaling_factor: expected"));
}

TEST_CASE("hf_config: a Granite with Mamba-2 states its heads, groups and layers") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"granitemoehybrid","hidden_size":256,"intermediate_size":512,"num_hidden_layers":3,)"
           R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5,)"
           R"("shared_intermediate_size":768,"mamba_n_heads":8,"mamba_d_state":128,"mamba_d_conv":4,)"
           R"("layer_types":["mamba","attention","mamba"],)" +
           fields + "}";
  };
  const std::string dense = R"("num_local_experts":0,"num_experts_per_tok":0)";
  const auto plain = read(with(dense + R"(,"mamba_d_head":64,"time_step_limit":[0.0,{"__float__":"Infinity"}])"));
  CHECK(plain.warnings.empty());
  CHECK(plain.config.model_type == architecture::granitehybrid);
  CHECK((plain.config.delta_net == delta_net_config{1, 8, 128, 64} && plain.config.conv_taps == 4));
  CHECK(plain.config.recurrent_layers == layer_set::all_but(3, 1));
  CHECK((plain.config.intermediate_size == 768 && plain.config.no_rope_layer_interval == 1));
  CHECK(read(with(dense + R"(,"position_embedding_type":"rope")")).config.no_rope_layer_interval == 0);
  const auto mixed = read(with(R"("num_local_experts":4,"num_experts_per_tok":2)")).config;
  CHECK((mixed.num_local_experts == 4 && mixed.num_experts_per_tok == 2 && mixed.intermediate_size == 512 &&
         mixed.shared_expert_intermediate_size == 768));
  CHECK_THAT(refusal(with(dense + R"(,"mamba_d_head":32)")),
             ContainsSubstring("mamba_d_head: expected 64 as mamba_expand * hidden_size / mamba_n_heads, found 32"));
  CHECK_THAT(refusal(with(dense + R"(,"mamba_n_groups":3)")),
             ContainsSubstring("mamba_n_heads: expected a multiple of the groups of heads, 3, found 8"));
  CHECK_THAT(refusal(with(dense + R"(,"mamba_conv_bias":false)")), ContainsSubstring("mamba_conv_bias: expected true"));
  CHECK_THAT(refusal(with(dense + R"(,"time_step_limit":[0.001,0.1])")),
             ContainsSubstring("time_step_limit: expected 0 and Infinity"));
  CHECK(read(with(dense + R"(,"mamba_proj_bias":true)")).states_biases);
}

TEST_CASE("hf_config: a Nemotron-H names the kind of each layer") {
  const auto with = [](const std::string& fields) {
    return R"({"model_type":"nemotron_h","hidden_size":256,"intermediate_size":512,"num_attention_heads":4,)"
           R"("num_key_value_heads":2,"attention_head_dim":80,"vocab_size":1000,"max_position_embeddings":512,)"
           R"("layer_norm_epsilon":1e-5,"mlp_hidden_act":"relu2","mamba_num_heads":8,"mamba_head_dim":12,"n_groups":2,)"
           R"("ssm_state_size":16,"conv_kernel":4,"time_step_limit":[0.0, Infinity],)" +
           fields + "}";
  };
  const auto found = read(with(R"("num_hidden_layers":5,"hybrid_override_pattern":"M-*M-")"));
  CHECK(found.warnings.empty());
  const decoder_config& c = found.config;
  CHECK((c.model_type == architecture::nemotron_h && c.head_dim == 80 && c.hidden_act == activation::relu_squared));
  CHECK((c.delta_net == delta_net_config{2, 8, 16, 12} && c.no_rope_layer_interval == 1));
  CHECK((c.recurrent_layers == layer_set::all_but(5, 1, 2, 4) && c.ffn_layers == layer_set::all_but(5, 0, 2, 3)));
  CHECK(read(with(R"("layers_block_type":["mamba","mlp","attention","mamba","mlp"])")).config == c);
  CHECK(read(with(R"("layer_types":["linear_attention","mlp","full_attention","linear_attention","mlp"])")).config ==
        c);
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"MX*M-")")),
             ContainsSubstring("expected M, *, - and E, a letter a layer, found 'X' for layer 1"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M*-","layers_block_type":["mamba","mlp","attention"])")),
             ContainsSubstring("expected the same kinds of layers"));
  CHECK_THAT(refusal(with(R"("num_hidden_layers":4,"hybrid_override_pattern":"M-*M-")")),
             ContainsSubstring("hybrid_override_pattern: expected 4 layers, found 5"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M*M*")")),
             ContainsSubstring("expected recurrent layers, layers of attention and of FFNs, found 2 recurrent of 4"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M-M-")")),
             ContainsSubstring("found 2 recurrent and 2 of FFNs of 4"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M-*","head_dim":64)")), ContainsSubstring("one value"));
  CHECK_THAT(refusal(with(R"("hybrid_override_pattern":"M-*","rms_norm_eps":1e-6)")), ContainsSubstring("one value"));
}

TEST_CASE("hf_config: a Nemotron-H with experts states their widths, their number and the router's factor") {
  // As nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 has it.
  const std::string published =
      R"({"architectures":["NemotronHForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":1,)"
      R"("chunk_size":128,"conv_kernel":4,"eos_token_id":2,"expand":2,"head_dim":128,"hidden_dropout":0.0,)"
      R"("hidden_size":2688,"initializer_range":0.02,"intermediate_size":1856,"layer_norm_epsilon":1e-05,)"
      R"("mamba_head_dim":64,"mamba_hidden_act":"silu","mamba_num_heads":64,"mamba_proj_bias":false,)"
      R"("mamba_ssm_cache_dtype":"float32","max_position_embeddings":262144,"mlp_bias":false,)"
      R"("mlp_hidden_act":"relu2","model_type":"nemotron_h","moe_shared_expert_intermediate_size":3712,)"
      R"("n_groups":8,"norm_eps":1e-05,"norm_topk_prob":true,"num_attention_heads":32,"num_experts_per_tok":6,)"
      R"("num_key_value_heads":2,"num_logits_to_keep":1,"pad_token_id":0,"partial_rotary_factor":1.0,)"
      R"("rescale_prenorm_residual":true,"residual_in_fp32":false,"rope_theta":10000,"routed_scaling_factor":2.5,)"
      R"("sliding_window":null,"ssm_state_size":128,"tie_word_embeddings":false,"time_step_floor":0.0001,)"
      R"("time_step_max":0.1,"time_step_min":0.001,"topk_group":1,"torch_dtype":"bfloat16","use_bias":false,)"
      R"("use_cache":true,"use_conv_bias":true,"use_mamba_kernels":true,"vocab_size":131072)";
  const std::string experts = R"(,"moe_intermediate_size":1856,"n_routed_experts":128)",
                    one = R"(,"n_group":1,"n_shared_experts":1)",
                    letters = R"(,"num_hidden_layers":52,"hybrid_override_pattern":)"
                              R"("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME")";
  const auto found = read(published + experts + one + letters + "}");
  CHECK((found.warnings.empty() && found.tie_word_embeddings == false));
  decoder_config named = models::nemotron_3_nano_config;
  named.tie_word_embeddings = found.config.tie_word_embeddings;
  CHECK(found.config == named);

  const auto few = [&](const std::string& pattern) { return R"(,"hybrid_override_pattern":")" + pattern + "\"}"; };
  const decoder_config both = read(published + experts + one + few("M-*E")).config;
  CHECK((both.ffn_layers == layer_set::all_but(4, 0, 2) && both.expert_layers == layer_set::all_but(4, 0, 1, 2)));
  CHECK((both.has_experts(3) && !both.has_experts(1) && both.dense_intermediate_size == 1856));
  CHECK(read(published + experts + one + R"(,"layers_block_type":["mamba","mlp","attention","moe"]})").config == both);
  // Without such a layer its keys say nothing: Nemotron-H 4B states them.
  const auto dense = read(published + experts + one + few("M-*"));
  CHECK((dense.config.num_local_experts == 0 && dense.config.expert_layers.empty() && dense.warnings.empty()));

  CHECK_THAT(refusal(published + experts + R"(,"n_group":2)" + few("M*E")),
             ContainsSubstring("n_group: expected 1, found 2"));
  CHECK_THAT(refusal(published + experts + R"(,"n_shared_experts":2)" + few("M*E")),
             ContainsSubstring("n_shared_experts: expected 1, found 2"));
  CHECK_THAT(refusal(published + experts + R"(,"moe_latent_size":1024)" + few("M*E")),
             ContainsSubstring("moe_latent_size: expected none, found 1024"));
  CHECK_THAT(refusal(published + R"(,"n_routed_experts":128)" + few("M*E")),
             ContainsSubstring("moe_intermediate_size"));
  CHECK_THAT(refusal(published + R"(,"moe_intermediate_size":64,"n_routed_experts":4)" + few("M*E")),
             ContainsSubstring("num_experts_per_tok: expected 1 to 4, found 6"));
}

TEST_CASE("hf_config: a config of Falcon-H1 0.5B, and its multipliers as factors of matrices") {
  const std::string text =
      R"({"architectures":["FalconH1ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,)"
      R"("attention_in_multiplier":1.0,"attention_out_multiplier":0.9375,"attn_layer_indices":null,"bos_token_id":1,)"
      R"("embedding_multiplier":5.656854249492381,"eos_token_id":11,"head_dim":64,"hidden_act":"silu",)"
      R"("hidden_size":1024,"initializer_range":0.02,"intermediate_size":2048,"key_multiplier":0.39062499999999994,)"
      R"("lm_head_multiplier":0.0390625,"mamba_chunk_size":128,"mamba_conv_bias":true,"mamba_d_conv":4,)"
      R"("mamba_d_head":64,"mamba_d_ssm":1536,"mamba_d_state":128,"mamba_expand":2,"mamba_n_groups":1,)"
      R"("mamba_n_heads":24,"mamba_norm_before_gate":false,"mamba_proj_bias":false,"mamba_rms_norm":false,)"
      R"("mamba_use_mlp":true,"max_position_embeddings":16384,"mlp_bias":false,"mlp_expansion_factor":8,)"
      R"("mlp_multipliers":[0.8838834764831844,0.5859375],"model_type":"falcon_h1","num_attention_heads":8,)"
      R"("num_hidden_layers":36,"num_key_value_heads":2,"num_logits_to_keep":1,"pad_token_id":0,)"
      R"("projectors_bias":false,"rms_norm_eps":1e-05,"rope_scaling":null,"rope_theta":100000000000.0,)"
      R"("ssm_in_multiplier":1.25,"ssm_multipliers":[0.3535533905932738,0.25,0.3535533905932738,0.5,)"
      R"(0.3535533905932738],"ssm_out_multiplier":0.23570226039551587,"tie_word_embeddings":false,)"
      R"("torch_dtype":"bfloat16","transformers_version":"4.52.0","use_cache":true,"vocab_size":32784})";
  const io::hf_config found = read(text);
  for (const std::string& line : found.warnings) CHECK(line == "none");
  decoder_config stated = found.config;
  stated.tie_word_embeddings = found.tie_word_embeddings.value();
  for (const std::string& line : io::config_differences(models::falcon_h1_05b_config, stated)) CHECK(line == "none");
  const auto of = [&](std::string_view name) { return io::factors_of(found.factors, name); };
  CHECK(of("blk.35.attn_k.weight") == std::vector<io::row_factor>{{0, 0.390625f}});
  CHECK(of("blk.0.ssm_in_xbc.weight") ==
        std::vector<io::row_factor>{{1536, 0.3125f}, {128, 0.44194174f}, {128, 0.625f}});
  CHECK(of("output.weight") == std::vector<io::row_factor>{{0, 0.0390625f}});
  CHECK(of("blk.0.attn_q.weight").empty());  // the factor is 1
  CHECK((of("blk.0.ffn_up.weight").empty() && of("blk.0.attn_norm.weight").empty()));
}

TEST_CASE("hf_config: two keys that say which layers are recurrent agree, or the file is refused") {
  const auto delta = [](const std::string& fields) {
    return of_family("qwen3_5_text", R"("head_dim":16,"num_key_value_heads":4)" + fields);
  };
  const std::string second = R"(,"layer_types":["linear_attention","full_attention","linear_attention"])";
  CHECK(read(delta(second)).config.recurrent_layers == layer_set::all_but(3, 1));
  CHECK(read(delta(R"(,"full_attention_interval":2)" + second)).config == read(delta(second)).config);
  CHECK(read(delta(R"(,"full_attention_interval":2)")).config == read(delta(second)).config);
  CHECK_THAT(refusal(delta(R"(,"full_attention_interval":3)" + second)),
             ContainsSubstring("full_attention_interval and layer_types[1]: expected one kind of layer, found "
                               "linear_attention by 3 and full_attention"));
  CHECK_THAT(refusal(delta(R"(,"full_attention_interval":1)" + second)),
             ContainsSubstring("full_attention_interval and layer_types[0]: expected one kind of layer, found "
                               "full_attention by 1 and linear_attention"));
  CHECK_THAT(refusal(delta(R"(,"full_attention_interval":0)" + second)),
             ContainsSubstring("full_attention_interval: expected a number above 0, found 0"));
  const auto convolved = [](const std::string& fields) {
    return of_family("lfm2", R"("norm_eps":1e-5,"block_auto_adjust_ff_dim":false,)" + fields);
  };
  const std::string types = R"("layer_types":["conv","conv","full_attention"])";
  const auto by_types = read(convolved(types)).config;
  CHECK((by_types.recurrent_layers == layer_set::all_but(3, 2)));
  CHECK(read(convolved(R"("full_attn_idxs":[2])")).config == by_types);
  CHECK(read(convolved(R"("full_attn_idxs":[2],)" + types)).config == by_types);
  CHECK_THAT(refusal(convolved(R"("full_attn_idxs":[1],)" + types)),
             ContainsSubstring("full_attn_idxs and layer_types[1]: expected one kind of layer, found full_attention "
                               "and conv"));
  const auto mamba = [](const std::string& older) {
    return of_family("granitemoehybrid", R"("mamba_n_heads":8,"mamba_d_head":64,"shared_intermediate_size":768,)"
                                         R"("layer_types":["mamba","attention","mamba"],"layers_block_type":)" +
                                             older);
  };
  CHECK(read(mamba(R"(["mamba","attention","mamba"])")).config.recurrent_layers == layer_set::all_but(3, 1));
  CHECK_THAT(refusal(mamba(R"(["attention","mamba","mamba"])")),
             ContainsSubstring("layers_block_type and layer_types: expected the same kinds of layers, found others"));
}
