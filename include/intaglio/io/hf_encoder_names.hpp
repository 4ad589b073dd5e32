// SPDX-License-Identifier: MIT
// Maps Hugging Face tensor names of encoders to GGUF's (llama.cpp's gguf-py/gguf/tensor_mapping.py).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "intaglio/core/family.hpp"

namespace intaglio::io {

/// A tensor's name in both conventions, without ".weight" and ".bias"; in a layer, the part behind the layer's own.
struct encoder_part {
  std::string_view hf, gguf;
};
/// The names of an encoder family: of the layers, of tensors in them, and of tensors outside of them.
struct encoder_names {
  std::string_view layers;
  std::array<encoder_part, 8> parts;
  std::array<encoder_part, 8> globals;
};
inline const encoder_names& encoder_names_of(const family& of) {
  static constexpr encoder_names bert{"encoder.layer.",
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
  static constexpr encoder_names nomic{"encoder.layers.",
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
  static constexpr encoder_names modern{"layers.",
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

/// Removes the name of the model inside of a model with a head.
constexpr std::string_view without_model(std::string_view name) {
  for (const std::string_view model : {"bert.", "roberta.", "model."})
    if (name.starts_with(model)) return name.substr(model.size());
  return name;
}

/// The GGUF name of an encoder's tensor; absent for other names. Older files call a LayerNorm's weight gamma and its
/// bias beta.
[[gnu::cold]] inline std::optional<std::string> encoder_gguf_name(std::string_view name, const family& of) {
  const encoder_names& names = encoder_names_of(of);
  name = without_model(name);
  const auto dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  std::string end(name.substr(dot));
  if (end == ".gamma") end = ".weight";
  if (end == ".beta") end = ".bias";
  if (end != ".weight" && end != ".bias") return std::nullopt;
  std::string_view part = name.substr(0, dot);
  for (const auto& [hf, gguf] : names.globals)
    if (!hf.empty() && part == hf) return std::string(gguf) + end;
  if (!part.starts_with(names.layers)) return std::nullopt;
  part.remove_prefix(names.layers.size());
  const auto digits = part.find('.');
  if (digits == 0 || digits == part.npos || digits > 6 || part.find_first_not_of("0123456789") != digits ||
      (digits > 1 && part[0] == '0'))
    return std::nullopt;
  for (const auto& [hf, gguf] : names.parts)
    if (!hf.empty() && part.substr(digits + 1) == hf)
      return "blk." + std::string(part.substr(0, digits)) + "." + std::string(gguf) + end;
  return std::nullopt;
}

/// Hugging Face's name of an encoder's tensor; names without one are unchanged.
inline std::string encoder_hf_name(std::string_view name, const family& of) {
  const encoder_names& names = encoder_names_of(of);
  const auto dot = name.rfind('.');
  if (dot == name.npos) return std::string(name);
  const std::string_view end = name.substr(dot), part = name.substr(0, dot);
  for (const auto& [hf, gguf] : names.globals)
    if (!hf.empty() && part == gguf) return std::string(hf) + std::string(end);
  const auto layer = part.find('.', 4);
  if (!part.starts_with("blk.") || layer == part.npos) return std::string(name);
  for (const auto& [hf, gguf] : names.parts)
    if (!hf.empty() && part.substr(layer + 1) == gguf)
      return std::string(names.layers) + std::string(part.substr(4, layer - 4)) + "." + std::string(hf) +
             std::string(end);
  return std::string(name);
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
/// Whether a tensor belongs to a head that embeddings do not need: that of the training, and the pooler in front of it.
constexpr bool is_encoder_head(std::string_view name) {
  name = without_model(name);
  for (const std::string_view prefix : {"pooler.", "cls.", "lm_head.", "classifier.", "dense.", "head.", "decoder."})
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace intaglio::io
