// SPDX-License-Identifier: MIT
// Maps tensor names of Meta's and Mistral's own checkpoints (consolidated.*.pth) to GGUF's (llama.cpp's
// gguf-py/gguf/tensor_mapping.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "intaglio/io/hf_names.hpp"

namespace intaglio::io {

/// The GGUF name of a tensor; "layers.0.feed_forward.w3.weight" becomes "blk.0.ffn_up.weight". Absent for other names.
inline std::optional<std::string> gguf_name_of_original(std::string_view name) {
  struct pair {
    std::string_view original, gguf;
  };
  constexpr pair outer[] = {{"tok_embeddings.weight", "token_embd.weight"},
                            {"norm.weight", "output_norm.weight"},
                            {"output.weight", "output.weight"}};
  for (const auto& [original, gguf] : outer)
    if (original == name) return std::string(gguf);
  constexpr std::string_view layers = "layers.";
  if (!name.starts_with(layers)) return std::nullopt;
  name.remove_prefix(layers.size());
  const auto digits = name.find('.');
  if (digits == 0 || digits == std::string_view::npos || digits > 6 || name.find_first_not_of("0123456789") != digits ||
      (digits > 1 && name[0] == '0'))
    return std::nullopt;
  constexpr pair inner[] = {{"attention_norm", "attn_norm"}, {"attention.wq", "attn_q"},
                            {"attention.wk", "attn_k"},      {"attention.wv", "attn_v"},
                            {"attention.wo", "attn_output"}, {"ffn_norm", "ffn_norm"},
                            {"feed_forward.w1", "ffn_gate"}, {"feed_forward.w2", "ffn_down"},
                            {"feed_forward.w3", "ffn_up"},   {"feed_forward.gate", "ffn_gate_inp"}};
  const std::string_view part = name.substr(digits + 1);
  for (const auto& [original, gguf] : inner)
    if (part.starts_with(original) && part.substr(original.size()) == ".weight")
      return "blk." + std::string(name.substr(0, digits)) + "." + std::string(gguf) + ".weight";
  return std::nullopt;
}

/// The expert's matrix that a name of Mixtral's files refers to (mistral-inference, MoeLayer):
/// "layers.3.feed_forward.experts.7.w1.weight" is number 7 of "blk.3.ffn_gate_exps.weight".
inline std::optional<expert_name> expert_of_original(std::string_view name) {
  return expert_of(name, "layers.", ".feed_forward.experts.");
}

/// Whether a tensor is a table of rotary angles, which older checkpoints have and nothing reads.
inline bool is_rotary_table(std::string_view name) {
  return name == "rope.freqs" || name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".rotary_pos_emb.inv_freq") ||
         name.ends_with(".rotary.inv_freq");
}

}  // namespace intaglio::io
