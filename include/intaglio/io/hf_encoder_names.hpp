// SPDX-License-Identifier: MIT
// Maps Hugging Face tensor names of encoders to GGUF's (llama.cpp's gguf-py/gguf/tensor_mapping.py).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <string_view>

#include "intaglio/core/family.hpp"
#include "intaglio/io/hf_own_names.hpp"

namespace intaglio::io {

/// The names of an encoder with LayerNorms.
inline const own_names& encoder_names_of(const family& of) {
  static constexpr own_names bert{"encoder.layer.",
                                  {{{"attention.self.query", "attn_q"},
                                    {"attention.self.key", "attn_k"},
                                    {"attention.self.value", "attn_v"},
                                    {"attention.output.dense", "attn_output"},
                                    {"attention.output.LayerNorm", "attn_output_norm"},
                                    {"intermediate.dense", "ffn_up"},
                                    {"output.dense", "ffn_down"},
                                    {"output.LayerNorm", "layer_output_norm"}}},
                                  {{{"embeddings.word_embeddings", "token_embd"},
                                    {"embeddings.position_embeddings", "position_embd"},
                                    {"embeddings.token_type_embeddings", "token_types"},
                                    {"embeddings.LayerNorm", "token_embd_norm"},
                                    {"pooler.dense", "cls"},
                                    {"classifier", "cls.output"},
                                    {"classifier.dense", "cls"},
                                    {"classifier.out_proj", "cls.output"}}}};
  static constexpr own_names nomic{"encoder.layers.",
                                   {{{"attn.Wqkv", "attn_qkv"},
                                     {"attn.out_proj", "attn_output"},
                                     {"norm1", "attn_output_norm"},
                                     {"mlp.fc11", "ffn_up"},
                                     {"mlp.fc12", "ffn_gate"},
                                     {"mlp.fc2", "ffn_down"},
                                     {"norm2", "layer_output_norm"}}},
                                   {{{"embeddings.word_embeddings", "token_embd"},
                                     {"embeddings.token_type_embeddings", "token_types"},
                                     {"emb_ln", "token_embd_norm"}}}};
  static constexpr own_names modern{"layers.",
                                    {{{"attn_norm", "attn_norm"},
                                      {"attn.Wqkv", "attn_qkv"},
                                      {"attn.Wo", "attn_output"},
                                      {"mlp_norm", "ffn_norm"},
                                      {"mlp.Wi", "ffn_up"},
                                      {"mlp.Wo", "ffn_down"}}},
                                    {{{"embeddings.tok_embeddings", "token_embd"},
                                      {"embeddings.norm", "token_embd_norm"},
                                      {"final_norm", "output_norm"}}}};
  return of.learned_positions ? bert : of.bare_norms ? modern : nomic;
}

/// Whether a tensor is a list of the numbers 0, 1, 2, ... that files of older libraries have.
inline bool is_position_list(std::string_view name) { return name.ends_with("embeddings.position_ids"); }
/// The layers that compute a score from a text's first state: BERT's pooler and classifier, or RoBERTa's classifier of
/// two layers.
enum class score_layers : std::uint8_t { none, pooler_and_classifier, classifier };
/// Whether a tensor belongs to such a head.
constexpr bool is_score_head(std::string_view name, score_layers head) {
  name = without_model(name);
  const bool two = name.starts_with("classifier.dense.") || name.starts_with("classifier.out_proj.");
  if (head == score_layers::classifier) return two;
  return head == score_layers::pooler_and_classifier && !two &&
         (name.starts_with("pooler.dense.") || name.starts_with("classifier."));
}
/// Whether a tensor belongs to a head that embeddings do not need: the head used in training, or its pooler.
constexpr bool is_encoder_head(std::string_view name) {
  name = without_model(name);
  for (const std::string_view prefix : {"pooler.", "cls.", "lm_head.", "classifier.", "dense.", "head.", "decoder."})
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace intaglio::io
