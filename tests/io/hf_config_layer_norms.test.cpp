// SPDX-License-Identifier: MIT
// What config.json of decoders with LayerNorms and of encoders states.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "hf_config_texts.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace hf_config_texts;

TEST_CASE("hf_config: a EuroBERT is a Llama whose tokens attend to each other") {
  const auto of = [](const std::string& fields) {
    return R"({"model_type":"eurobert","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,)"
           R"("num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512,"rms_norm_eps":1e-5)" +
           fields + "}";
  };
  const auto usual = read(of(R"(,"rope_theta":250000,"rope_scaling":null,"attention_bias":false,"mlp_bias":false,)"
                             R"("hidden_dropout":0.0,"pretraining_tp":1,"mask_token_id":2,"is_decoder":false,)"
                             R"("classifier_pooling":"late","tie_word_embeddings":false)"));
  CHECK((usual.config.model_type == architecture::eurobert && usual.config.rope_theta == 250'000.f));
  CHECK((usual.config.num_key_value_heads == 4 && usual.config.hidden_act == activation::silu));
  CHECK(usual.warnings == std::vector<std::string>{});
  CHECK(read(of(R"(,"use_bidirectional_attention":true)")).warnings.empty());
  CHECK_THAT(refusal(of(R"(,"use_bidirectional_attention":false)")),
             ContainsSubstring("use_bidirectional_attention: expected true, found false"));
  CHECK_THAT(refusal(of(R"(,"hidden_act":"gelu")")), ContainsSubstring("hidden_act: expected"));
}

TEST_CASE("hf_config: decoders with LayerNorms state the form of their layers") {
  const auto of = [](const std::string& type, const std::string& fields) {
    return R"({"model_type":")" + type +
           R"(","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,"num_attention_heads":4,)"
           R"("vocab_size":1000,"max_position_embeddings":512)" +
           fields + "}";
  };
  const auto cohere =
      read(of("cohere", R"(,"rope_theta":10000,"layer_norm_eps":1e-6,"logit_scale":0.125,"use_qk_norm":false)"));
  CHECK((cohere.config.rms_norm_eps == 1e-6f && cohere.config.logits_scaling == 8.f && cohere.tie_word_embeddings));
  CHECK(cohere.warnings.empty());
  CHECK_THAT(refusal(of("cohere", R"(,"rope_theta":10000,"use_qk_norm":true)")),
             ContainsSubstring("use_qk_norm: expected none"));
  CHECK_THAT(refusal(of("cohere", R"(,"rope_theta":10000,"logit_scale":0)")),
             ContainsSubstring("logit_scale: expected a number above 0"));
  const auto cohere2 = read(of("cohere2", R"(,"sliding_window":32,"layer_switch":4,"rotary_pct":1.0)"));
  CHECK((cohere2.config.sliding_window == 32 && cohere2.config.sliding_window_pattern == 4));
  CHECK((cohere2.config.rms_norm_eps == 1e-5f && cohere2.config.logits_scaling == 16.f && cohere2.warnings.empty()));
  for (const auto& [fields, by] :
       {std::pair{R"(,"use_parallel_block":false)", "use_parallel_block: expected true, found false"},
        {R"(,"use_gated_activation":false)", "use_gated_activation: expected true"},
        {R"(,"order_of_interleaved_layers":"other")", R"(order_of_interleaved_layers: expected "local_attn_first")"},
        {R"(,"sliding_window_pattern":4,"layer_switch":3)", "layer_switch and sliding_window_pattern"},
        {R"(,"sliding_window":32,"layer_switch":3)", "layer_switch: expected 4, the interval of layers"},
        {R"(,"rotary_pct":0.5)", "rotary_pct: expected 1"}})
    CHECK_THAT(refusal(of("cohere2", fields)), ContainsSubstring(by));
  const auto starcoder2 = read(of("starcoder2", R"(,"sliding_window":32,"norm_epsilon":1e-6,"use_bias":true)"));
  CHECK((starcoder2.config.sliding_window == 32 && starcoder2.config.sliding_window_pattern == 0));
  CHECK((starcoder2.config.rms_norm_eps == 1e-6f && starcoder2.config.hidden_act == activation::gelu_tanh));
  CHECK(starcoder2.warnings.empty());
  CHECK_THAT(refusal(of("starcoder2", R"(,"use_bias":false)")), ContainsSubstring("use_bias: expected true"));
  CHECK_THAT(refusal(of("starcoder2", R"(,"norm_type":"rms")")),
             ContainsSubstring(R"(norm_type: expected "layer_norm")"));
  const auto stablelm = read(of("stablelm", ""));
  CHECK((stablelm.config.rotary_dim == 4 && !stablelm.config.attention_bias && stablelm.warnings.empty()));
  CHECK(read(of("stablelm", R"(,"use_qkv_bias":true)")).config.attention_bias);
  CHECK_THAT(refusal(of("stablelm", R"(,"use_parallel_residual":true)")), ContainsSubstring("expected false"));
  CHECK_THAT(refusal(of("stablelm", R"(,"qk_layernorm":true)")), ContainsSubstring("qk_layernorm: expected none"));
  CHECK(read(of("nemotron", "")).config.rotary_dim == 8);
  CHECK(read(of("phi", R"(,"hidden_act":"gelu_new")")).config.hidden_act == activation::gelu_tanh);
  const auto neox = read(of("gpt_neox", R"(,"rotary_pct":0.5,"rotary_emb_base":20000)")),
             usual = read(of("gpt_neox", ""));
  CHECK((neox.config.rotary_dim == 8 && neox.config.rope_theta == 20'000.f && neox.warnings.empty()));
  CHECK((usual.config.rotary_dim == 4 && usual.config.hidden_act == activation::gelu));
  CHECK_THAT(refusal(of("gpt_neox", R"(,"use_parallel_residual":false)")), ContainsSubstring("expected true"));
  CHECK_THAT(refusal(of("gpt_neox", R"(,"rotary_emb_base":20000,"rope_parameters":{"rope_theta":10000})")),
             ContainsSubstring("rotary_emb_base and rope_parameters.rope_theta: expected one value"));
  CHECK_THAT(refusal(of("gpt_neox", R"(,"rotary_pct":0.5,"rope_parameters":{"partial_rotary_factor":0.25})")),
             ContainsSubstring("rotary_pct and rope_parameters.partial_rotary_factor: expected one value"));
  CHECK_THAT(refusal(of("olmo", R"(,"clip_qkv":8.0)")), ContainsSubstring("clip_qkv: expected none"));
}

TEST_CASE("hf_config: a Falcon and a GPT-2 may leave out sizes") {
  const auto falcon = read(R"({"model_type":"falcon","alibi":false,"multi_query":true})");
  CHECK((falcon.config.hidden_size == 4544 && falcon.config.head_dim == 64 && falcon.config.num_key_value_heads == 1));
  CHECK((falcon.config.intermediate_size == 18'176 && falcon.config.vocab_size == 65'024 && falcon.warnings.empty()));
  for (const auto& [fields, by] : {std::pair{R"("alibi":true)", "alibi: expected none"},
                                   {R"("new_decoder_architecture":true)", "expected false, found true"},
                                   {R"("multi_query":false)", "multi_query: expected true"},
                                   {R"("bias":true)", "bias: expected false"}})
    CHECK_THAT(refusal(R"({"model_type":"falcon",)" + std::string(fields) + "}"), ContainsSubstring(by));
  const auto gpt2 =
      read(R"({"model_type":"gpt2","n_embd":64,"n_head":4,"n_layer":2,"n_positions":128,"n_inner":null})");
  CHECK((gpt2.config.hidden_size == 64 && gpt2.config.intermediate_size == 256 && gpt2.config.head_dim == 16));
  CHECK((gpt2.config.max_position_embeddings == 128 && gpt2.config.vocab_size == 50'257 && gpt2.warnings.empty()));
  CHECK((gpt2.config.no_rope_layer_interval == 1 && gpt2.tie_word_embeddings));
  CHECK_THAT(refusal(R"({"model_type":"gpt2","scale_attn_by_inverse_layer_idx":true})"),
             ContainsSubstring("scale_attn_by_inverse_layer_idx: expected false"));
  CHECK_THAT(refusal(R"({"model_type":"gpt2","n_embd":100,"n_head":3})"), ContainsSubstring("a divisor"));
}

TEST_CASE("hf_config: encoders state what BERT and Nomic's BERT are made of") {
  const std::string bert =
      R"({"model_type":"bert","hidden_size":64,"num_attention_heads":4,"intermediate_size":128,"num_hidden_layers":3,)"
      R"("vocab_size":100,"type_vocab_size":2,"max_position_embeddings":320,"layer_norm_eps":1e-12,)"
      R"("hidden_act":"gelu")";
  const auto found = read(bert + "}");
  CHECK(found.warnings.empty());
  CHECK((found.config.model_type == architecture::bert && found.config.head_dim == 16 &&
         found.config.num_key_value_heads == 4 && found.config.type_vocab_size == 2 &&
         found.config.rms_norm_eps == 1e-12f && found.config.hidden_act == activation::gelu &&
         found.config.no_rope_layer_interval == 1));
  CHECK_THAT(refusal(bert + R"(,"position_embedding_type":"relative_key"})"),
             ContainsSubstring("position_embedding_type: expected absolute, found"));
  CHECK_THAT(refusal(bert + R"(,"is_decoder":true})"), ContainsSubstring("is_decoder: expected false, found true"));
  for (const char* name : {"xlm-roberta", "roberta"}) {
    std::string own = bert;
    own.replace(own.find(R"("bert")") + 1, 4, name);
    const auto after = read(own + R"(,"pad_token_id":3})"), usual = read(own + "}");
    CHECK((after.warnings.empty() && after.config.model_type == architecture::bert));
    CHECK((after.position_offset == 4 && after.config.max_position_embeddings == 316));
    CHECK((usual.position_offset == 2 && usual.config.max_position_embeddings == 318));
    CHECK_THAT(refusal(own + R"(,"pad_token_id":319})"), ContainsSubstring("pad_token_id: expected an id whose"));
  }
  const std::string nomic =
      R"({"model_type":"nomic_bert","n_embd":64,"n_head":4,"n_inner":128,"n_layer":3,"vocab_size":100,)"
      R"("n_positions":8192,"max_trained_positions":2048,"layer_norm_epsilon":1e-12,"rotary_emb_base":1000)";
  const auto other = read(nomic + "}");
  CHECK(other.warnings.empty());
  CHECK((other.config.model_type == architecture::nomic_bert && other.config.max_position_embeddings == 2048 &&
         other.config.rope_theta == 1000.f && other.config.hidden_act == activation::silu &&
         other.config.type_vocab_size == 2 && other.config.no_rope_layer_interval == 0));
  for (const char* key : {"causal", "prenorm", "use_rms_norm", "qkv_proj_bias", "moe_every_n_layers"})
    CHECK_THAT(refusal(nomic + ",\"" + key + "\":" + (key[0] == 'm' ? "2" : "true") + "}"),
               ContainsSubstring(std::string(key) + ": expected none, found"));
  CHECK_THAT(refusal(nomic + R"(,"activation_function":"geglu"})"),
             ContainsSubstring("activation_function: expected swiglu, found"));
}

TEST_CASE("hf_config: a ModernBERT states its windows, its two bases and that it has no biases") {
  const std::string start =
      R"({"model_type":"modernbert","hidden_size":64,"num_attention_heads":4,"num_hidden_layers":7,"vocab_size":100)";
  const auto refuses = [&](const std::string& fields, const char* by) {
    CHECK_THAT(refusal(start + fields + "}"), ContainsSubstring(by));
  };
  const auto plain = read(start + "}"), stated = read(start + R"(,"global_rope_theta":80000.0,"local_attention":64,)"
                                                              R"("local_rope_theta":5000.0,"norm_eps":1e-6,)"
                                                              R"("global_attn_every_n_layers":2,"norm_bias":false})");
  const decoder_config& c = plain.config;
  CHECK((c.model_type == architecture::modern_bert && plain.warnings.empty() && c.intermediate_size == 1152));
  CHECK((c.rope_theta == 160'000.f && c.rope_local_base_freq == 10'000.f && c.sliding_window == 128));
  CHECK((c.hidden_act == activation::gelu && c.type_vocab_size == 0 && c.max_position_embeddings == 8192));
  for (std::uint32_t layer = 0; layer < 7; ++layer) CHECK(c.is_windowed(layer) == (layer % 3 != 0));
  CHECK((stated.config.rope_theta == 80'000.f && stated.config.rope_local_base_freq == 5'000.f));
  CHECK((stated.config.sliding_window == 64 && stated.config.rms_norm_eps == 1e-6f && stated.warnings.empty()));
  CHECK((!stated.config.is_windowed(2) && stated.config.is_windowed(3)));
  const auto fifth = read(start + R"(,"rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":7000},)"
                                  R"("sliding_attention":{"rope_type":"default","rope_theta":6000}}})");
  CHECK((fifth.config.rope_theta == 7000.f && fifth.config.rope_local_base_freq == 6000.f && fifth.warnings.empty()));
  CHECK(read(start + R"(,"global_attn_every_n_layers":1})").config.sliding_window == 0);
  for (const char* key : {"norm_bias", "attention_bias", "mlp_bias"})
    refuses(",\"" + std::string(key) + "\":true", (std::string(key) + ": expected false, found true").c_str());
  refuses(R"(,"global_attn_every_n_layers":0)", "global_attn_every_n_layers: expected a number from 1");
  refuses(R"(,"hidden_activation":"relu")", "hidden_activation: expected gelu");
  refuses(R"(,"sliding_window":128)", "sliding_window: expected half of local_attention, 64");
  refuses(R"(,"layer_types":["full_attention"])", "layer_types: expected 7 values as num_hidden_layers");
}
