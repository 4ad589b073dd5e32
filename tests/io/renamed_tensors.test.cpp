// SPDX-License-Identifier: MIT
#include "intaglio/io/renamed_tensors.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/io/hf_names.hpp"

using namespace intaglio;
using io::gguf_name;
using io::hf_name;

TEST_CASE("tensors of renamed families have GGUF's names", "[io]") {
  CHECK(gguf_name("transformer.embedding.word_embeddings.weight", architecture::chatglm) == "token_embd.weight");
  CHECK(gguf_name("transformer.encoder.layers.12.self_attention.query_key_value.bias", architecture::chatglm) ==
        "blk.12.attn_qkv.bias");
  CHECK(gguf_name("model.layers.3.mlp.gate_up_proj.weight", architecture::chatglm) == "blk.3.ffn_up.weight");
  CHECK(gguf_name("transformer.h.0.mlp.c_fc_0.weight", architecture::exaone) == "blk.0.ffn_gate.weight");
  CHECK(gguf_name("model.layers.7.attention.wqkv.weight", architecture::internlm2) == "blk.7.attn_qkv.weight");
  CHECK(gguf_name("model.layers.2.self_attn.W_pack.weight", architecture::baichuan) == "blk.2.attn_qkv.weight");
  CHECK(gguf_name("model.layers.2.self_attn.o_proj.weight", architecture::baichuan) == "blk.2.attn_output.weight");
  CHECK(gguf_name("model.layers.2.attention_layernorm.weight", architecture::apertus) == "blk.2.attn_norm.weight");
  CHECK(gguf_name("model.layers.2.feedforward_layernorm.weight", architecture::apertus) == "blk.2.ffn_norm.weight");
  CHECK(gguf_name("model.layers.2.self_attn.q_norm.weight", architecture::apertus) == "blk.2.attn_q_norm.weight");
  CHECK(gguf_name("model.norm.weight", architecture::xverse) == "output_norm.weight");
  CHECK(gguf_name("model.final_layernorm.weight", architecture::falcon_h1) == "output_norm.weight");
  CHECK(gguf_name("model.layers.7.pre_ff_layernorm.weight", architecture::falcon_h1) == "blk.7.ffn_norm.weight");
  CHECK(gguf_name("model.layers.7.mamba.in_proj.weight", architecture::falcon_h1) == "blk.7.ssm_in.weight");
  CHECK(gguf_name("model.layers.7.self_attn.k_proj.weight", architecture::falcon_h1) == "blk.7.attn_k.weight");
  CHECK(gguf_name("model.layers.7.post_attention_layernorm.weight", architecture::afmoe) ==
        "blk.7.post_attention_norm.weight");
  CHECK(gguf_name("model.layers.7.pre_mlp_layernorm.weight", architecture::afmoe) == "blk.7.ffn_norm.weight");
  CHECK(gguf_name("model.layers.7.post_mlp_layernorm.weight", architecture::afmoe) == "blk.7.post_ffw_norm.weight");
  CHECK(gguf_name("model.layers.7.self_attn.gate_proj.weight", architecture::afmoe) == "blk.7.attn_gate.weight");
  CHECK(gguf_name("model.layers.7.self_attn.q_norm.weight", architecture::afmoe) == "blk.7.attn_q_norm.weight");
  CHECK(gguf_name("model.layers.7.mlp.router.gate.weight", architecture::afmoe) == "blk.7.ffn_gate_inp.weight");
  CHECK(gguf_name("model.layers.7.mlp.shared_experts.up_proj.weight", architecture::afmoe) ==
        "blk.7.ffn_up_shexp.weight");
  CHECK(gguf_name("model.layers.7.mlp.expert_bias", architecture::afmoe) == "blk.7.exp_probs_b.bias");
  CHECK_FALSE(gguf_name("model.layers.7.mlp.expert_bias", architecture::dots1));
  CHECK_FALSE(gguf_name("model.layers.7.mlp.gate.e_score_correction_bias", architecture::afmoe));
  CHECK(hf_name("blk.7.exp_probs_b.bias", architecture::afmoe) == "model.layers.7.mlp.expert_bias");
  CHECK(hf_name("blk.7.ffn_norm.weight", architecture::afmoe) == "model.layers.7.pre_mlp_layernorm.weight");
  CHECK(gguf_name("output.weight", architecture::internlm2) == "output.weight");
  CHECK(gguf_name("model.layers.1.mlp.gate.wg.weight", architecture::hunyuan_moe) == "blk.1.ffn_gate_inp.weight");
  CHECK(gguf_name("model.layers.1.block_sparse_moe.e_score_correction_bias", architecture::minimax_m2) ==
        "blk.1.exp_probs_b.bias");
  CHECK(gguf_name("model.word_embeddings.weight", architecture::bailingmoe) == "token_embd.weight");
  CHECK(gguf_name("model.layers.1.attention.key_layernorm.weight", architecture::bailingmoe2) ==
        "blk.1.attn_k_norm.weight");
  CHECK(gguf_name("model.layers.1.mlp.gate.expert_bias", architecture::bailingmoe2) == "blk.1.exp_probs_b.bias");
  CHECK_FALSE(gguf_name("model.layers.1.mlp.gate.expert_bias", architecture::bailingmoe));
  CHECK(gguf_name("model.layers.1.self_attn.q_proj.weight", architecture::minimax_m2) == "blk.1.attn_q.weight");
}

TEST_CASE("names that a renamed family does not have give nothing", "[io]") {
  for (const char* name : {"transformer.h.0.ln_1", "transformer.h.00.ln_1.weight", "transformer.h..ln_1.weight",
                           "transformer.h.1234567.ln_1.weight", "transformer.h.0.weight", "transformer.h.0..weight",
                           "transformer.h.0.ln_3.weight", "transformer.h.0.ln_1.scale"})
    CHECK_FALSE(gguf_name(name, architecture::exaone));
  CHECK_FALSE(gguf_name("transformer.h.0.ln_1.weight", architecture::llama));
  CHECK_FALSE(gguf_name("model.layers.1.block_sparse_moe.e_score_correction_bias", architecture::dots1));
}

TEST_CASE("an EXAONE's tensors have one name in both directions", "[io]") {
  for (const char* name : {"transformer.wte.weight", "transformer.ln_f.weight", "lm_head.weight",
                           "transformer.h.11.attn.attention.out_proj.weight", "transformer.h.0.ln_2.weight"})
    CHECK(hf_name(*gguf_name(name, architecture::exaone), architecture::exaone) == name);
  CHECK(hf_name("blk.3.attn_q.bias", architecture::chatglm) == "model.layers.3.self_attn.q_proj.bias");
}

TEST_CASE("rows of names are found by model_type", "[io]") {
  CHECK((io::renamed_row("exaone") != nullptr && io::renamed_row("exaone")->written));
  CHECK((io::renamed_row("chatglm") != nullptr && !io::renamed_row("chatglm")->written));
  CHECK((io::renamed_row("glm") == nullptr && io::renamed_row("") == nullptr));
}
