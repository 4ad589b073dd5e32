// SPDX-License-Identifier: MIT
// Names of tensors in folders that do not have transformers' usual names: a row for each spelling. Source: the modeling
// files of zai-org/glm-4-9b-chat, LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct and internlm/internlm2_5-7b; transformers,
// models/minimax_m2 and models/hunyuan_v1_moe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "intaglio/core/family.hpp"

namespace intaglio::io {

/// The name of a tensor in a folder and in GGUF.
struct renamed_part {
  std::string_view folder, gguf;
};

/// The names of one model_type.
struct renamed_tensors {
  architecture type;
  std::string_view model_type;               ///< of config.json
  bool written;                              ///< `convert` can write a folder's tensors under these names
  std::string_view layers;                   ///< the text in front of a layer's number
  std::array<renamed_part, 3> globals = {};  ///< embedding, last norm and head, without ".weight"; empty: usual names
  std::array<renamed_part, 9> parts = {};    ///< tensors of a layer that have other names, without their endings
};
inline constexpr auto renamed_rows = std::to_array<renamed_tensors>({
    {.type = architecture::chatglm,
     .model_type = "chatglm",
     .written = false,  // q, k and v are one matrix
     .layers = "transformer.encoder.layers.",
     .globals = {{{"transformer.embedding.word_embeddings", "token_embd"},
                  {"transformer.encoder.final_layernorm", "output_norm"},
                  {"transformer.output_layer", "output"}}},
     .parts = {{{"input_layernorm", "attn_norm"},
                {"self_attention.query_key_value", "attn_qkv"},
                {"self_attention.dense", "attn_output"},
                {"post_attention_layernorm", "ffn_norm"},
                {"mlp.dense_h_to_4h", "ffn_up"},
                {"mlp.dense_4h_to_h", "ffn_down"}}}},
    {.type = architecture::exaone,
     .model_type = "exaone",
     .written = true,
     .layers = "transformer.h.",
     .globals = {{{"transformer.wte", "token_embd"}, {"transformer.ln_f", "output_norm"}, {"lm_head", "output"}}},
     .parts = {{{"ln_1", "attn_norm"},
                {"attn.attention.q_proj", "attn_q"},
                {"attn.attention.k_proj", "attn_k"},
                {"attn.attention.v_proj", "attn_v"},
                {"attn.attention.out_proj", "attn_output"},
                {"ln_2", "ffn_norm"},
                {"mlp.c_fc_0", "ffn_gate"},
                {"mlp.c_fc_1", "ffn_up"},
                {"mlp.c_proj", "ffn_down"}}}},
    {.type = architecture::internlm2,
     .model_type = "internlm2",
     .written = false,  // q, k and v are one matrix
     .layers = "model.layers.",
     .globals = {{{"model.tok_embeddings", "token_embd"}, {"model.norm", "output_norm"}, {"output", "output"}}},
     .parts = {{{"attention_norm", "attn_norm"},
                {"attention.wqkv", "attn_qkv"},
                {"attention.wo", "attn_output"},
                {"ffn_norm", "ffn_norm"},
                {"feed_forward.w1", "ffn_gate"},
                {"feed_forward.w3", "ffn_up"},
                {"feed_forward.w2", "ffn_down"}}}},
    {.type = architecture::minimax_m2,
     .model_type = "minimax_m2",
     .written = true,
     .layers = "model.layers.",
     .parts = {{{"block_sparse_moe.gate", "ffn_gate_inp"}}}},
    {.type = architecture::hunyuan_moe,
     .model_type = "hunyuan_v1_moe",
     .written = true,
     .layers = "model.layers.",
     .parts = {{{"mlp.gate.wg", "ffn_gate_inp"},
                {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
                {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
                {"mlp.shared_mlp.down_proj", "ffn_down_shexp"}}}},
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
  const std::size_t end = name.rfind('.');
  if (end == name.npos || (name.substr(end) != ".weight" && name.substr(end) != ".bias")) return std::nullopt;
  const std::string ending(name.substr(end));
  name = name.substr(0, end);
  for (const renamed_tensors& row : renamed_rows) {
    if (row.type != type) continue;
    for (const auto& [folder, gguf] : row.globals)
      if (!folder.empty() && name == folder) return std::string(gguf) + ending;
    if (!name.starts_with(row.layers)) continue;
    const std::string_view rest = name.substr(row.layers.size());
    const std::size_t dot = rest.find('.');
    if (dot == 0 || dot == rest.npos || dot > 6 || rest.find_first_not_of("0123456789") != dot ||
        (dot > 1 && rest[0] == '0'))
      continue;
    for (const auto& [folder, gguf] : row.parts)
      if (!folder.empty() && rest.substr(dot + 1) == folder)
        return "blk." + std::string(rest.substr(0, dot)) + "." + std::string(gguf) + ending;
  }
  return std::nullopt;
}

/// The folder's name of a tensor with a GGUF name, in families whose renamed tensors are written; absent for others.
[[gnu::cold]] inline std::optional<std::string> renamed_hf_name(std::string_view name, architecture type) {
  const std::size_t end = name.rfind('.');
  if (end == name.npos) return std::nullopt;
  const std::string ending(name.substr(end));
  const std::string_view stem = name.substr(0, end);
  const std::size_t dot = stem.starts_with("blk.") ? stem.find('.', 4) : stem.npos;
  for (const renamed_tensors& row : renamed_rows) {
    if (row.type != type || !row.written) continue;
    for (const auto& [folder, gguf] : row.globals)
      if (!folder.empty() && stem == gguf) return std::string(folder) + ending;
    for (const auto& [folder, gguf] : row.parts)
      if (!folder.empty() && dot != stem.npos && stem.substr(dot + 1) == gguf)
        return std::string(row.layers) + std::string(stem.substr(4, dot - 4)) + "." + std::string(folder) + ending;
  }
  return std::nullopt;
}

/// Whether folders of a model may have tables of rotary angles among the tensors.
constexpr bool has_rotary_tables(const family& of, std::string_view model_type) {
  return of.type == architecture::llama || of.latent || renamed_row(model_type) != nullptr;
}

}  // namespace intaglio::io
