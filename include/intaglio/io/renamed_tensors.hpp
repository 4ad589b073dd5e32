// SPDX-License-Identifier: MIT
// Names of tensors in folders that do not have transformers' usual names: a row for each spelling. Source: the modeling
// files of zai-org/glm-4-9b-chat, LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct, internlm/internlm2_5-7b and
// baichuan-inc/Baichuan-7B, inclusionAI/Ling-lite and Ling-mini-2.0; transformers, models/minimax_m2,
// models/afmoe, models/hunyuan_v1_moe, models/falcon_h1 and models/apertus.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_own_names.hpp"

namespace intaglio::io {

/// The names of one model_type.
struct renamed_tensors {
  architecture type;
  std::string_view model_type;  ///< of config.json
  bool written;                 ///< `convert` can write a folder's tensors under these names
  own_names names;              ///< tensors that have other names
};
/// The model_types whose tensors have names of their own.
inline constexpr auto renamed_rows = std::to_array<renamed_tensors>({
    {.type = architecture::afmoe,
     .model_type = "afmoe",
     .written = true,
     .names = {"layers.",
               {{{"self_attn.gate_proj", "attn_gate"},
                 {"post_attention_layernorm", "post_attention_norm"},
                 {"pre_mlp_layernorm", "ffn_norm"},
                 {"post_mlp_layernorm", "post_ffw_norm"},
                 {"mlp.router.gate", "ffn_gate_inp"}}},
               {},
               "model."}},
    {.type = architecture::chatglm,
     .model_type = "chatglm",
     .written = false,  // q, k and v are one matrix
     .names = {"encoder.layers.",
               {{{"input_layernorm", "attn_norm"},
                 {"self_attention.query_key_value", "attn_qkv"},
                 {"self_attention.dense", "attn_output"},
                 {"post_attention_layernorm", "ffn_norm"},
                 {"mlp.dense_h_to_4h", "ffn_up"},
                 {"mlp.dense_4h_to_h", "ffn_down"}}},
               {{{"embedding.word_embeddings", "token_embd"},
                 {"encoder.final_layernorm", "output_norm"},
                 {"output_layer", "output"}}},
               "transformer."}},
    {.type = architecture::exaone,
     .model_type = "exaone",
     .written = true,
     .names = {"h.",
               {{{"ln_1", "attn_norm"},
                 {"attn.attention.q_proj", "attn_q"},
                 {"attn.attention.k_proj", "attn_k"},
                 {"attn.attention.v_proj", "attn_v"},
                 {"attn.attention.out_proj", "attn_output"},
                 {"ln_2", "ffn_norm"},
                 {"mlp.c_fc_0", "ffn_gate"},
                 {"mlp.c_fc_1", "ffn_up"},
                 {"mlp.c_proj", "ffn_down"}}},
               {{{"wte", "token_embd"}, {"ln_f", "output_norm"}, {"lm_head", "output"}}},
               "transformer."}},
    {.type = architecture::internlm2,
     .model_type = "internlm2",
     .written = false,  // q, k and v are one matrix
     .names = {"layers.",
               {{{"attention_norm", "attn_norm"},
                 {"attention.wqkv", "attn_qkv"},
                 {"attention.wo", "attn_output"},
                 {"ffn_norm", "ffn_norm"},
                 {"feed_forward.w1", "ffn_gate"},
                 {"feed_forward.w3", "ffn_up"},
                 {"feed_forward.w2", "ffn_down"}}},
               {{{"tok_embeddings", "token_embd"}, {"norm", "output_norm"}, {"output", "output"}}},
               "model."}},
    {.type = architecture::minimax_m2,
     .model_type = "minimax_m2",
     .written = true,
     .names = {"layers.", {{{"block_sparse_moe.gate", "ffn_gate_inp"}}}, {}, "model."}},
    {.type = architecture::hunyuan_moe,
     .model_type = "hunyuan_v1_moe",
     .written = true,
     .names = {"layers.",
               {{{"mlp.gate.wg", "ffn_gate_inp"},
                 {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
                 {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
                 {"mlp.shared_mlp.down_proj", "ffn_down_shexp"}}},
               {},
               "model."}},
    {.type = architecture::xverse,  // usual names, and tables of angles
     .model_type = "xverse",
     .written = true,
     .names = {}},
    {.type = architecture::apertus,
     .model_type = "apertus",
     .written = true,
     .names =
         {"layers.", {{{"attention_layernorm", "attn_norm"}, {"feedforward_layernorm", "ffn_norm"}}}, {}, "model."}},
    {.type = architecture::baichuan,
     .model_type = "baichuan",
     .written = false,  // q, k and v are one matrix
     .names = {"layers.", {{{"self_attn.W_pack", "attn_qkv"}}}, {}, "model."}},
    {.type = architecture::bailingmoe,
     .model_type = "bailing_moe",
     .written = false,  // q, k and v are one matrix
     .names = {"layers.",
               {{{"attention.query_key_value", "attn_qkv"}, {"attention.dense", "attn_output"}}},
               {{{"word_embeddings", "token_embd"}}},
               "model."}},
    {.type = architecture::bailingmoe2,
     .model_type = "bailing_moe_v2",
     .written = false,  // q, k and v are one matrix
     .names = {"layers.",
               {{{"attention.query_key_value", "attn_qkv"},
                 {"attention.query_layernorm", "attn_q_norm"},
                 {"attention.key_layernorm", "attn_k_norm"},
                 {"attention.dense", "attn_output"}}},
               {{{"word_embeddings", "token_embd"}}},
               "model."}},
    {.type = architecture::falcon_h1,
     .model_type = "falcon_h1",
     .written = false,  // matrices have factors
     .names = {"layers.",
               {{{"pre_ff_layernorm", "ffn_norm"},
                 {"feed_forward.gate_proj", "ffn_gate"},
                 {"feed_forward.up_proj", "ffn_up"},
                 {"feed_forward.down_proj", "ffn_down"}}},
               {{{"final_layernorm", "output_norm"}}},
               "model."}},
});

/// The row of a model_type; nullptr where its folders have the usual names.
constexpr const renamed_tensors* renamed_row(std::string_view model_type) {
  for (const renamed_tensors& row : renamed_rows)
    if (row.model_type == model_type) return &row;
  return nullptr;
}

/// The GGUF name of a renamed tensor: "transformer.h.0.ln_1.weight" becomes "blk.0.attn_norm.weight". Absent for other
/// names.
[[gnu::cold]] inline std::optional<std::string> renamed_gguf_name(std::string_view name, architecture type) {
  for (const renamed_tensors& row : renamed_rows)
    if (row.type == type) return own_gguf_name(name, row.names);
  return std::nullopt;
}

/// The folder's name of a tensor with a GGUF name, in families whose renamed tensors are written; absent for others.
[[gnu::cold]] inline std::optional<std::string> renamed_hf_name(std::string_view name, architecture type) {
  for (const renamed_tensors& row : renamed_rows)
    if (row.type == type && row.written) return own_hf_name(name, row.names);
  return std::nullopt;
}

/// Whether folders of a model may have tables of rotary angles among the tensors.
constexpr bool has_rotary_tables(const family& of, std::string_view model_type) {
  return of.type == architecture::llama || of.latent || renamed_row(model_type) != nullptr;
}

}  // namespace intaglio::io
