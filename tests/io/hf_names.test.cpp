// SPDX-License-Identifier: MIT
#include "intaglio/io/hf_names.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <utility>

using namespace intaglio::io;
using intaglio::architecture;

TEST_CASE("hf_names: tensors of a model, whatever prefix they have") {
  CHECK(gguf_name("model.embed_tokens.weight", architecture::bitnet) == "token_embd.weight");
  CHECK(gguf_name("model.norm.weight", architecture::bitnet) == "output_norm.weight");
  CHECK(gguf_name("lm_head.weight", architecture::llama) == "output.weight");
  CHECK(gguf_name("model.layers.29.mlp.down_proj.weight_scale", architecture::bitnet) ==
        "blk.29.ffn_down.weight_scale");
  CHECK(gguf_name("model.layers.0.self_attn.attn_sub_norm.weight", architecture::bitnet) ==
        "blk.0.attn_sub_norm.weight");
  CHECK(gguf_name("language_model.model.layers.3.self_attn.q_norm.weight", architecture::gemma3) ==
        "blk.3.attn_q_norm.weight");
  CHECK(gguf_name("model.language_model.layers.3.mlp.up_proj.weight", architecture::gemma3) == "blk.3.ffn_up.weight");
  CHECK(gguf_name("model.text_model.layers.3.mlp.up_proj.weight", architecture::llama) == "blk.3.ffn_up.weight");
  CHECK(gguf_name("model.text_model.norm.weight", architecture::llama) == "output_norm.weight");
  CHECK((is_vision_name("model.vision_model.post_layernorm.weight") &&
         is_vision_name("model.connector.modality_projection.proj.weight")));
  CHECK(gguf_name("layers.3.mlp.up_proj.weight", architecture::qwen3) == "blk.3.ffn_up.weight");
  CHECK(gguf_name("embed_tokens.weight", architecture::qwen3) == "token_embd.weight");
}

TEST_CASE("hf_names: one name means two norms") {
  const char* const name = "model.layers.1.post_attention_layernorm.weight";
  CHECK(gguf_name(name, architecture::llama) == "blk.1.ffn_norm.weight");
  CHECK(gguf_name(name, architecture::gemma3) == "blk.1.post_attention_norm.weight");
}

TEST_CASE("hf_names: an expert's matrices have Mixtral's names or those of a gated unit") {
  const auto mixtral = expert_of("model.layers.3.block_sparse_moe.experts.7.w2.weight");
  REQUIRE(mixtral);
  CHECK((mixtral->gguf == "blk.3.ffn_down_exps.weight" && mixtral->number == 7));
  const auto qwen = expert_of("model.layers.0.mlp.experts.127.gate_proj.weight", "model.layers.", own_experts);
  REQUIRE(qwen);
  CHECK((qwen->gguf == "blk.0.ffn_gate_exps.weight" && qwen->number == 127));
  CHECK(expert_of("model.layers.0.mlp.experts.1.up_proj.weight", "model.layers.", own_experts)->gguf ==
        "blk.0.ffn_up_exps.weight");
  CHECK_FALSE(expert_of("model.layers.0.mlp.experts.1.w1.weight", "model.layers.", own_experts));
  CHECK_FALSE(expert_of("model.layers.0.block_sparse_moe.experts.1.up_proj.weight"));
  CHECK(gguf_name("model.layers.2.mlp.gate.weight", architecture::qwen3moe) == "blk.2.ffn_gate_inp.weight");
  const std::string choosing = "model.layers.2.mlp.moe_statics.e_score_correction_bias";
  CHECK(gguf_name(choosing, architecture::ernie4_5_moe) == "blk.2.exp_probs_b.bias");
  CHECK(hf_name("blk.2.exp_probs_b.bias", architecture::ernie4_5_moe) == choosing);
  CHECK_FALSE(gguf_name(choosing, architecture::glm4moe));
  CHECK(hf_name("blk.2.exp_probs_b.bias", architecture::glm4moe) == "model.layers.2.mlp.gate.e_score_correction_bias");
  CHECK((is_draft_head("model.mtp_emb_norm.0.weight") && !is_draft_head("model.layers.0.mtp_emb_norm.weight")));
  for (const auto& [hf, gguf] : {std::pair{"router.proj.weight", "ffn_gate_inp.weight"},
                                 {"router.scale", "ffn_gate_inp.scale"},
                                 {"router.per_expert_scale", "ffn_down_exps.scale"},
                                 {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
                                 {"experts.down_proj", "ffn_down_exps.weight"},
                                 {"post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"},
                                 {"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"},
                                 {"layer_scalar", "layer_output_scale.weight"}}) {
    CHECK(gguf_name("model.language_model.layers.2." + std::string(hf), architecture::gemma4) ==
          "blk.2." + std::string(gguf));
    CHECK(hf_name("blk.2." + std::string(gguf), architecture::gemma4) == "model.layers.2." + std::string(hf));
  }
  for (const auto& [hf, gguf] : {std::pair{"layers.2.altup.correct_output_scale", "blk.2.altup_correct_scale.weight"},
                                 {"layers.2.altup.modality_router.weight", "blk.2.altup_router.weight"},
                                 {"layers.2.laurel.linear_left.weight", "blk.2.laurel_l.weight"},
                                 {"altup_projections.2.weight", "altup_proj.2.weight"},
                                 {"altup_unembed_projections.0.weight", "altup_unembd_proj.0.weight"}}) {
    CHECK(gguf_name("model.language_model." + std::string(hf), architecture::gemma3n) == gguf);
    CHECK(hf_name(gguf, architecture::gemma3n) == "model." + std::string(hf));
  }
  CHECK_FALSE(gguf_name("model.layers.2.altup.correct_output_scale", architecture::gemma4));
  CHECK_FALSE(gguf_name("model.altup_projections.2.weight", architecture::gemma4));
  CHECK_FALSE(gguf_name("model.layers.2.mlp.gate.weight", architecture::llama));
}

TEST_CASE("hf_names: encoders' tensors, with older names of norms and the prefix of a classifier's") {
  CHECK(gguf_name("bert.encoder.layer.2.attention.self.query.bias", architecture::bert) == "blk.2.attn_q.bias");
  CHECK(gguf_name("embeddings.LayerNorm.gamma", architecture::bert) == "token_embd_norm.weight");
  CHECK(gguf_name("encoder.layer.0.output.LayerNorm.beta", architecture::bert) == "blk.0.layer_output_norm.bias");
  CHECK(gguf_name("encoder.layers.11.attn.Wqkv.weight", architecture::nomic_bert) == "blk.11.attn_qkv.weight");
  CHECK(gguf_name("encoder.layers.1.mlp.fc12.weight", architecture::nomic_bert) == "blk.1.ffn_gate.weight");
  CHECK(gguf_name("model.layers.21.mlp.Wi.weight", architecture::modern_bert) == "blk.21.ffn_up.weight");
  CHECK(gguf_name("layers.1.attn_norm.weight", architecture::modern_bert) == "blk.1.attn_norm.weight");
  CHECK(gguf_name("model.final_norm.weight", architecture::modern_bert) == "output_norm.weight");
  CHECK((is_encoder_head("head.dense.weight") && is_encoder_head("decoder.bias")));
  for (const char* name :
       {"encoder.layer.x.output.dense.weight", "encoder.layer.01.output.dense.weight", "encoder.layer.1.output.dense",
        "encoder.layer.1.other.weight", "encoder.layer..weight", "bert."})
    CHECK_FALSE(gguf_name(name, architecture::bert));
  CHECK((is_encoder_head("bert.pooler.dense.weight") && is_encoder_head("cls.predictions.bias")));
  using enum score_layers;
  CHECK((is_score_head("bert.pooler.dense.weight", pooler_and_classifier) &&
         is_score_head("classifier.bias", pooler_and_classifier)));
  CHECK_FALSE(is_score_head("cls.predictions.bias", pooler_and_classifier));
  CHECK_FALSE(is_score_head("classifier.out_proj.bias", pooler_and_classifier));
  CHECK(
      (is_score_head("classifier.dense.weight", classifier) && is_score_head("classifier.out_proj.bias", classifier)));
  CHECK_FALSE(is_score_head("roberta.pooler.dense.weight", classifier));
  CHECK_FALSE(is_score_head("classifier.bias", none));
  CHECK((is_encoder_head("roberta.pooler.dense.weight") && is_encoder_head("lm_head.dense.bias")));
  CHECK(gguf_name("roberta.encoder.layer.2.output.dense.bias", architecture::bert) == "blk.2.ffn_down.bias");
  CHECK(gguf_name("classifier.dense.weight", architecture::bert) == "cls.weight");
  CHECK(gguf_name("classifier.out_proj.bias", architecture::bert) == "cls.output.bias");
  CHECK(is_position_list("bert.embeddings.position_ids"));
}

TEST_CASE("hf_names: other names are no tensors of the model") {
  for (const char* name :
       {"", "model.", "model.layers.", "model.layers..mlp.up_proj.weight", "model.layers.01.mlp.up_proj.weight",
        "model.layers.-1.mlp.up_proj.weight", "model.layers.1234567.mlp.up_proj.weight", "model.layers.1.weight",
        "model.layers.1.mlp.up_proj", "model.layers.1.mlp.up_proj.other", "model.layers.1.mlp.side_proj.weight",
        "model.layers.1x.mlp.up_proj.weight", "transformer.wte.weight", "layers.0"}) {
    CAPTURE(name);
    CHECK_FALSE(gguf_name(name, architecture::bitnet));
  }
  CHECK(is_vision_name("vision_tower.encoder.weight"));
  CHECK(is_vision_name("model.multi_modal_projector.weight"));
  CHECK_FALSE(is_vision_name("model.layers.0.mlp.up_proj.weight"));
}

namespace {

/// A usual name goes back to itself, or to the name that the family's folders have instead.
void check_back(const std::string& name, architecture family) {
  const std::string gguf = gguf_name(name, family).value();
  CHECK(hf_name(gguf, family) == renamed_hf_name(gguf, family).value_or(name));
}

}  // namespace

TEST_CASE("hf_names: a GGUF name goes back to the one it came from") {
  for (const intaglio::family& of : intaglio::families_table) {
    const architecture family = of.type;
    if (const own_names* const own = own_names_of(of); own != nullptr) {
      const own_names& names = *own;
      for (const char* end : {".weight", ".bias"}) {
        for (const auto& [hf, gguf] : names.parts)
          if (const std::string name =
                  std::string(names.model) + std::string(names.layers) + "17." + std::string(hf) + end;
              !hf.empty() && hf != "attention.query_key_value")  // q, k and v by head are not written
            CHECK(hf_name(gguf_name(name, family).value(), family) == name);
        for (const auto& [hf, gguf] :
             names.globals)  // a RoBERTa's head, which has BERT's names in GGUF, is not written
          if (const std::string name = std::string(gguf == "output" ? "" : names.model) + std::string(hf) + end;
              !hf.empty() && !hf.starts_with("classifier."))
            CHECK(hf_name(gguf_name(name, family).value(), family) == name);
      }
      continue;
    }
    for (const auto& [hf, gguf] : hf_parts(of)) {
      if (!of.norms_after && hf == "pre_feedforward_layernorm") continue;  // read as the same, written otherwise
      for (const char* end : {".weight", ".bias"}) { check_back("model.layers.17." + std::string(hf) + end, family); }
    }
    const char* const last_norm = of.embedding_norm ? "model.embedding_norm.weight" : "model.norm.weight";
    for (const char* name : {"model.embed_tokens.weight", last_norm, "lm_head.weight"}) check_back(name, family);
  }
  for (const char* name : {"rope_freqs.weight", "blk.1", "blk.1.attn_q.biases", "blk.1.attn_qq.weight", ""})
    CHECK(hf_name(name, architecture::llama) == name);
}

TEST_CASE("hf_names: decoders with names of their own, and buffers of older files") {
  CHECK(gguf_name("model.layers.3.mlp.c_fc.bias", architecture::starcoder2) == "blk.3.ffn_up.bias");
  CHECK(gguf_name("model.final_layernorm.bias", architecture::phi2) == "output_norm.bias");
  CHECK(gguf_name("lm_head.bias", architecture::phi2) == "output.bias");
  CHECK(gguf_name("model.norm.bias", architecture::stablelm) == "output_norm.bias");
  CHECK(gguf_name("gpt_neox.layers.1.attention.dense.weight", architecture::gptneox) == "blk.1.attn_output.weight");
  CHECK(gguf_name("embed_out.weight", architecture::gptneox) == "output.weight");
  for (const char* name : {"h.0.attn.c_attn.bias", "transformer.h.0.attn.c_attn.bias"})
    CHECK(gguf_name(name, architecture::gpt2) == "blk.0.attn_qkv.bias");
  CHECK(hf_name("blk.0.attn_qkv.bias", architecture::gpt2) == "transformer.h.0.attn.c_attn.bias");
  const auto& gpt2 = intaglio::family_of(architecture::gpt2);
  CHECK((is_decoder_buffer("h.0.attn.bias", gpt2) && !is_decoder_buffer("h.0.attn.c_attn.bias", gpt2)));
  const auto& neox = intaglio::family_of(architecture::gptneox);
  CHECK(is_decoder_buffer("gpt_neox.layers.0.attention.rotary_emb.inv_freq", neox));
  CHECK(!is_decoder_buffer("gpt_neox.layers.0.attention.dense.bias", neox));
}
