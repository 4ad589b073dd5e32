// SPDX-License-Identifier: MIT
// What a rule says of a key of config.json or params.json, and the check of all keys of an object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/core/short_name.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

/// What the library does with a key of config.json.
enum class config_key_use : std::uint8_t {
  read,      ///< by the reader of the file or of the tokenizer
  harmless,  ///< not part of the computation
  training,  ///< has an effect only in training: warned of where it is not 0
  off,       ///< must be false, 0 or empty
  own,       ///< read in families that have the key; in others it must be false, 0 or empty
};

/// A key of config.json, and which models have it.
struct config_key_rule {
  short_name<46> key;
  config_key_use use = config_key_use::read;
  const char* families = nullptr;        ///< model types that have the key, separated by spaces
  bool (*has)(const family&) = nullptr;  ///< families that have the key; if this and `families` are unset, all have

  /// Whether a model type, or a type of RoPE scaling, has the key.
  constexpr bool is_of(std::string_view model_type) const {
    if (families == nullptr && has == nullptr) return true;
    for (std::string_view list = families == nullptr ? "" : families; !list.empty();) {
      const std::string_view first = list.substr(0, list.find(' '));
      if (first == model_type) return true;
      list.remove_prefix((std::min)(list.size(), first.size() + 1));
    }
    const family* const of = has == nullptr ? nullptr : family_named(model_type);
    return of != nullptr && has(*of);
  }
};

/// @{
/// Whether a family has the part that a key describes.
constexpr bool has_kinds_of_layers(const family& of) { return of.kinds_of_layers; }
constexpr bool has_streams(const family& of) { return of.streams; }
constexpr bool has_layer_inputs(const family& of) { return of.kinds_of_layers || of.streams; }
constexpr bool has_multipliers(const family& of) { return of.multipliers; }
constexpr bool has_score_multiplier(const family& of) { return of.multipliers && !of.depth_scaled; }
constexpr bool has_delta_rules(const family& of) { return of.recurrent == recurrence::delta_net; }
constexpr bool has_short_conv(const family& of) { return of.recurrent == recurrence::short_conv; }
constexpr bool has_state_space(const family& of) { return of.recurrent == recurrence::mamba2; }
constexpr bool has_single_sublayers(const family& of) { return of.single_sublayers; }
constexpr bool has_layers_without_rope(const family& of) { return of.no_rope_interval != 0; }
constexpr bool has_biased_experts(const family& of) { return of.block_biases; }
constexpr bool has_experts_alone(const family& of) {
  return of.experts == mixtures::all || may_share_expert(of) || of.single_sublayers;
}
constexpr bool has_logistic_router(const family& of) { return of.score == expert_score::logistic; }
constexpr bool has_optional_norms(const family& of) { return of.optional_norms || of.whole_norms; }
constexpr bool has_shared_experts(const family& of) { return of.shared_experts != 0 && !of.moe_keys; }
constexpr bool has_moe_keys(const family& of) { return of.moe_keys; }
constexpr bool has_draft_layers(const family& of) { return of.draft_layers; }
constexpr bool has_plain_experts(const family& of) { return of.experts == mixtures::all && !of.block_biases; }
constexpr bool has_narrow_experts(const family& of) {
  return of.default_expert_width != 0 || of.kinds_of_layers || of.single_sublayers;
}
constexpr bool has_counted_experts(const family& of) { return has_shared_experts(of) || of.single_sublayers; }
constexpr bool has_stated_parts(const family& of) { return has_plain_experts(of) || has_scored_router(of); }
constexpr bool has_stated_eps(const family& of) { return has_short_conv(of) || of.single_sublayers; }
constexpr bool has_gelu(const family& of) { return of.act == activation::gelu_tanh; }
constexpr bool has_stated_scores(const family& of) { return has_gelu(of) && of.norms_after && !has_layer_inputs(of); }
constexpr bool has_local_rope(const family& of) { return (has_stated_scores(of) || of.streams) && of.head_norms; }
constexpr bool has_window_interval(const family& of) { return has_local_rope(of) || of.globals_stand; }
constexpr bool has_latent_vector(const family& of) { return of.latent; }
constexpr bool has_positions(const family& of) { return of.learned_positions; }
constexpr bool has_rope_theta(const family& of) { return !of.learned_positions && !(of.layer_norms && of.encoder); }
constexpr bool has_kinds_of_texts(const family& of) { return of.layer_norms && of.encoder; }
/// Whether a family has a window, or a key of one that has no effect.
constexpr bool has_window(const family& of) {
  return of.window_interval != 0 || of.windows || of.no_rope_interval != 0 ||
         (of.window == gguf_window::inert && of.recurrent == recurrence::none);
}
/// @}

/// Checks every key of an object against the rules. Keys that nobody reads are added to `warnings` by name. A null
/// counts as an absent value.
/// @param model_type  or the type of a RoPE scaling
/// @throws file_error for a key that must be off and is not
inline void judge_config_keys(const located_json& object, array_view<const config_key_rule> rules,
                              std::string_view model_type, std::vector<std::string>& warnings) {
  constexpr std::size_t most = 16;
  std::size_t named = 0;
  const auto warn = [&](const located_json& value, const std::string& what) {
    if (++named <= most)
      warnings.push_back(in_file(object.file(), "key '" + printable(value.where(), 100) + "' " + what));
  };
  for (const auto& [key, value] : object.members()) {
    if (!value.present()) continue;
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&name = key](const auto& each) { return each.key == name; });
    if (rule == rules.end()) warn(value, "is unknown and not read");
    else if ((rule->use == config_key_use::off || (rule->use == config_key_use::own && !rule->is_of(model_type))) &&
             !value.is_unwritten())
      value.refuse("none");
    else if (rule->use == config_key_use::training && !value.is_unwritten()) warn(value, "acts in training alone");
    else if (!rule->is_of(model_type) && !value.is_unwritten())
      warn(value, "is not used by " + printable(model_type, 40));
  }
  if (named > most)
    warnings.push_back(in_file(object.file(), "and " + std::to_string(named - most) + " more keys are not used"));
}

}  // namespace intaglio::io
