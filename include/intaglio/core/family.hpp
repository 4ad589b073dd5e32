// SPDX-License-Identifier: MIT
// Questions about the families of models. Readers, writers and planners ask here instead of comparing names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/families_table.hpp"
#include "intaglio/core/message.hpp"

namespace intaglio {

/// The properties of a family of models.
constexpr const family& family_of(architecture type) { return families_table[static_cast<std::size_t>(type)]; }
/// Whether a model's matrices are ternary: the family's are, or the config says it.
constexpr bool is_ternary(const decoder_config& c) { return c.ternary || family_of(c.model_type).ternary; }

/// Whether heads of a model's q and k are normalised.
constexpr bool has_head_norms(const decoder_config& c) { return family_of(c.model_type).head_norms && c.use_qk_norm; }
/// Whether a model's q, k and v have biases.
constexpr bool has_qkv_biases(const decoder_config& c) {
  return family_of(c.model_type).qkv_biases && c.attention_bias;
}
/// Whether the routers of a family use scores that are not logits. Such a family has biases of the choice, a factor,
/// and dense layers at the front.
constexpr bool has_scored_router(const family& of) { return of.score != expert_score::logit; }
/// How the routers of a model score experts.
constexpr expert_score score_of(const decoder_config& c) {
  const family& of = family_of(c.model_type);
  return of.softmax_unbiased && !c.use_expert_bias ? expert_score::probability : of.score;
}
/// Channels of a head that latent attention's products make without a rotation: the first ones.
constexpr std::uint32_t unrotated_dim(const decoder_config& c) { return c.head_dim - c.rotary_dim; }
/// Whether a family's layers have a shared expert, which every token uses, with a gate.
constexpr bool has_shared_expert(const family& of) { return of.gated_shared_expert; }
/// The tensor of the norm of the FFN's input.
constexpr std::string_view ffn_norm_of(const decoder_config& c) {
  return family_of(c.model_type).ffn_norm == "ffn_norm" ? "ffn_norm.weight" : "post_attention_norm.weight";
}
/// Whether mixtures of a family may have a shared expert, which every token uses, without a gate.
constexpr bool may_share_expert(const family& of) { return of.multipliers && of.experts != mixtures::none; }
/// Whether GGUF has the value heads of a family's delta rules in turn (delta_net_config::in_turn).
constexpr bool has_values_in_turn(const family& of) { return of.recurrent == recurrence::delta_net && !of.joint_gates; }
/// Whether files of a family list the layers that have attention; the others have a state or an FFN.
constexpr bool lists_attention(const family& of) {
  return of.recurrent == recurrence::short_conv || (of.recurrent == recurrence::mamba2 && !of.attention_beside);
}
/// Whether files of a family may state a factor of logits (logit_scale).
constexpr bool has_logit_scale(const family& of) { return of.scaled_logits || of.weight_multipliers; }
/// Number of a model's layers that keep a recurrent state.
constexpr std::uint32_t layers_with_state(const decoder_config& c) {
  return family_of(c.model_type).attention_beside ? c.num_hidden_layers : c.recurrent_layers.count(c.num_hidden_layers);
}
/// Number of a model's layers that may keep keys and values: those without a recurrent state, and those that have
/// attention beside it.
constexpr std::uint32_t layers_with_keys(const decoder_config& c) {
  return c.num_hidden_layers - c.recurrent_layers.count(c.num_hidden_layers);
}
/// Whether a model is one of the Gemma families.
constexpr bool is_gemma(architecture type) {
  return type == architecture::gemma || type == architecture::gemma2 || type == architecture::gemma3 ||
         type == architecture::gemma4 || type == architecture::gemma3n || type == architecture::gemma_embedding;
}

/// The family that has this name in `member` (config_names or gguf_names); nullptr where none has it.
constexpr const family* family_with(std::string_view family::*member, std::string_view name) {
  for (const family& each : families_table) {
    std::string_view names = each.*member;
    while (!names.empty()) {
      const std::size_t blank = names.find(' ');
      if (names.substr(0, blank) == name) return &each;
      names = blank == std::string_view::npos ? std::string_view{} : names.substr(blank + 1);
    }
  }
  return nullptr;
}
/// The family that config.json's model_type names; nullptr for another name.
constexpr const family* family_named(std::string_view model_type) {
  return family_with(&family::config_names, model_type);
}

/// The first names of families in config.json or GGUF, for messages, and the page that lists all. Names that end in
/// _text are left out.
constexpr auto family_names(std::string_view family::*member = &family::config_names) {
  constexpr std::size_t room = 150;
  text<192> out;
  for (const family& each : families_table) {
    std::string_view names = each.*member;
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(' '));
      names.remove_prefix(name.size() == names.size() ? names.size() : name.size() + 1);
      if (out.view().size() + name.size() <= room && !name.ends_with("_text"))
        out.append(out.empty() ? "" : ", ", name);
    }
  }
  out.append(" and others (docs/models.md)");
  return out;
}

}  // namespace intaglio
