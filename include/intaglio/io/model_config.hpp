// SPDX-License-Identifier: MIT
// The relations between a model's hyperparameters, in one table for all forms of files, the check of a config, and the
// differences between two configs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/io/config_ranges.hpp"

namespace intaglio::io {

/// A relation between two numbers of a config.
struct number_relation {
  std::string_view key;
  bool (*holds)(const decoder_config&);
  std::string (*expected)(const decoder_config&);
  std::string (*found)(const decoder_config&);
};
/// The expected value of num_key_value_heads, for messages.
inline std::string divisor_of_heads(const decoder_config& c) {
  return "a divisor of num_attention_heads " + std::to_string(c.num_attention_heads);
}
/// The relations that the numbers of a config must have.
inline constexpr number_relation number_relations[] = {
    {"num_key_value_heads", [](const decoder_config& c) { return c.num_key_value_heads <= c.num_attention_heads; },
     [](const decoder_config& c) { return "1 to " + std::to_string(c.num_attention_heads); },
     [](const decoder_config& c) { return std::to_string(c.num_key_value_heads); }},
    {"num_key_value_heads", [](const decoder_config& c) { return c.num_attention_heads % c.num_key_value_heads == 0; },
     divisor_of_heads, [](const decoder_config& c) { return std::to_string(c.num_key_value_heads); }},
    {"linear_num_value_heads",
     [](const decoder_config& c) {
       return c.delta_net.key_heads == 0 || c.delta_net.value_heads % c.delta_net.key_heads == 0;
     },
     [](const decoder_config& c) {
       return "a multiple of linear_num_key_heads " + std::to_string(c.delta_net.key_heads);
     },
     [](const decoder_config& c) { return std::to_string(c.delta_net.value_heads); }},
    {"layer_types",
     [](const decoder_config& c) {
       const std::uint32_t layers = c.num_hidden_layers, recurrent = c.recurrent_layers.count(layers);
       const std::uint32_t alone = c.ffn_layers.count(layers);
       if (family_of(c.model_type).single_sublayers == c.ffn_layers.empty()) return false;
       const family& of = family_of(c.model_type);
       return of.recurrent == recurrence::none || of.attention_beside ? c.recurrent_layers.empty()
                                                                      : recurrent != 0 && recurrent + alone < layers;
     },
     [](const decoder_config& c) {
       return std::string(family_of(c.model_type).single_sublayers ? "recurrent layers, layers of attention and of FFNs"
                                                                   : "recurrent layers and layers of attention");
     },
     [](const decoder_config& c) {
       const std::uint32_t alone = c.ffn_layers.count(c.num_hidden_layers);
       return std::to_string(c.recurrent_layers.count(c.num_hidden_layers)) + " recurrent " +
              (alone != 0 ? "and " + std::to_string(alone) + " of FFNs " : "") + "of " +
              std::to_string(c.num_hidden_layers);
     }},
    {"expert_layers",
     [](const decoder_config& c) {
       for (std::uint32_t layer = 0; layer < layer_pattern::max_period; ++layer)
         if (c.expert_layers.has(layer) && !c.ffn_layers.has(layer)) return false;
       return !family_of(c.model_type).single_sublayers || (c.num_local_experts != 0) != c.expert_layers.empty();
     },
     [](const decoder_config& c) {
       return std::string(c.num_local_experts != 0 ? "layers of FFNs, some with experts" : "none without experts");
     },
     [](const decoder_config& c) { return std::to_string(c.expert_layers.count(c.num_hidden_layers)) + " layers"; }},
    {"head_dim", [](const decoder_config& c) { return c.head_dim % 2 == 0; },
     [](const decoder_config&) { return std::string("an even number"); },
     [](const decoder_config& c) { return std::to_string(c.head_dim); }},
    {"rotary_dim", [](const decoder_config& c) { return c.rotary_dim % 2 == 0 && c.rotary_dim <= c.head_dim; },
     [](const decoder_config& c) { return "an even number up to head_dim " + std::to_string(c.head_dim); },
     [](const decoder_config& c) { return std::to_string(c.rotary_dim); }},
    {"num_attention_heads * head_dim",
     [](const decoder_config& c) {
       return std::uint64_t{c.num_attention_heads} * widest_head(c) <= config_limits::hidden_size;
     },
     [](const decoder_config&) { return "at most " + std::to_string(config_limits::hidden_size); },
     [](const decoder_config& c) { return std::to_string(std::uint64_t{c.num_attention_heads} * widest_head(c)); }},
    {"qk_rope_head_dim",
     [](const decoder_config& c) { return !has_latent(c) || (c.rotary_dim != 0 && c.rotary_dim < c.head_dim); },
     [](const decoder_config& c) { return "1 to " + std::to_string(c.head_dim - 1) + ", less than the head is wide"; },
     [](const decoder_config& c) { return std::to_string(c.rotary_dim); }},
    {"attn_logit_softcapping",
     [](const decoder_config& c) {
       return !(family_of(c.model_type).kinds_of_layers || family_of(c.model_type).streams) ||
              c.attn_logit_softcapping == 0.f;
     },
     [](const decoder_config& c) { return "none for " + std::string(name(c.model_type)); },
     [](const decoder_config& c) { return number_text(c.attn_logit_softcapping); }},
    {"sliding_window",
     [](const decoder_config& c) { return !family_of(c.model_type).needs_window || c.sliding_window != 0; },
     [](const decoder_config&) { return std::string("a number above 0"); },
     [](const decoder_config& c) { return std::to_string(c.sliding_window); }},
    {"num_global_key_value_heads",
     [](const decoder_config& c) { return c.num_attention_heads % c.key_value_heads_of(false) == 0; }, divisor_of_heads,
     [](const decoder_config& c) { return std::to_string(c.num_global_key_value_heads); }},
    {"global_head_dim",
     [](const decoder_config& c) {
       return c.global_head_dim % 2 == 0 && c.global_turning_pairs <= c.head_dim_of(false) / 2 &&
              std::uint64_t{c.num_attention_heads} * c.global_head_dim <= config_limits::hidden_size;
     },
     [](const decoder_config& c) {
       return "an even number from " + std::to_string(2 * std::uint64_t{c.global_turning_pairs}) +
              ", with num_attention_heads at most " + std::to_string(config_limits::hidden_size);
     },
     [](const decoder_config& c) { return std::to_string(c.global_head_dim); }},
    {"num_kv_shared_layers", [](const decoder_config& c) { return c.num_kv_shared_layers < c.num_hidden_layers; },
     [](const decoder_config& c) { return "less than num_hidden_layers " + std::to_string(c.num_hidden_layers); },
     [](const decoder_config& c) { return std::to_string(c.num_kv_shared_layers); }},
    {"hidden_size_per_layer_input",
     [](const decoder_config& c) {
       return std::uint64_t{c.hidden_size_per_layer_input} * c.num_hidden_layers <= config_limits::intermediate_size &&
              c.hidden_size_per_layer_input % 4 == 0 && c.shared_intermediate_size <= config_limits::intermediate_size;
     },
     [](const decoder_config&) {
       return "a multiple of 4, of all layers at most " + std::to_string(config_limits::intermediate_size);
     },
     [](const decoder_config& c) { return std::to_string(c.hidden_size_per_layer_input); }},
    {"hidden_size_per_layer_input",
     [](const decoder_config& c) {
       return !family_of(c.model_type).streams || (c.hidden_size_per_layer_input != 0 && c.hidden_size % 4 == 0);
     },
     [](const decoder_config&) {
       return std::string("a number above 0, beside a hidden_size that is a multiple of 4");
     },
     [](const decoder_config& c) {
       return std::to_string(c.hidden_size_per_layer_input) + " beside " + std::to_string(c.hidden_size);
     }},
    {"vocab_size_per_layer_input", [](const decoder_config& c) { return c.vocab_size_per_layer_input <= c.vocab_size; },
     [](const decoder_config& c) { return "at most vocab_size " + std::to_string(c.vocab_size); },
     [](const decoder_config& c) { return std::to_string(c.vocab_size_per_layer_input); }},
    {"num_dense_layers", [](const decoder_config& c) { return c.num_dense_layers < c.num_hidden_layers; },
     [](const decoder_config& c) { return "less than num_hidden_layers " + std::to_string(c.num_hidden_layers); },
     [](const decoder_config& c) { return std::to_string(c.num_dense_layers); }},
    {"num_experts_per_tok",
     [](const decoder_config& c) { return c.num_local_experts == 0 || c.num_experts_per_tok <= c.num_local_experts; },
     [](const decoder_config& c) { return "1 to " + std::to_string(c.num_local_experts); },
     [](const decoder_config& c) { return std::to_string(c.num_experts_per_tok); }},
    {"n_group",
     [](const decoder_config& c) {
       return c.n_group == 0 || (c.num_local_experts % c.n_group == 0 && c.num_local_experts / c.n_group >= 2);
     },
     [](const decoder_config& c) {
       return "a number of equal groups, each with at least 2 of " + std::to_string(c.num_local_experts) + " experts";
     },
     [](const decoder_config& c) { return std::to_string(c.n_group); }},
    {"topk_group",
     [](const decoder_config& c) {
       return c.n_group == 0 ? c.topk_group == 0
                             : c.topk_group >= 1 && c.topk_group < c.n_group &&
                                   c.num_local_experts / c.n_group * c.topk_group >= c.num_experts_per_tok;
     },
     [](const decoder_config& c) {
       return c.n_group == 0 ? std::string("0 beside n_group 0")
                             : "less than n_group " + std::to_string(c.n_group) + ", groups with at least " +
                                   std::to_string(c.num_experts_per_tok) + " experts in all";
     },
     [](const decoder_config& c) { return std::to_string(c.topk_group); }},
    {"rope_scaling.high_freq_factor",
     [](const decoder_config& c) {
       return !divides_slow_angles(c) || (std::isfinite(c.rope_scaling.high_freq_factor) &&
                                          c.rope_scaling.high_freq_factor > c.rope_scaling.low_freq_factor);
     },
     [](const decoder_config& c) {
       return "a finite number above low_freq_factor " + number_text(c.rope_scaling.low_freq_factor);
     },
     [](const decoder_config& c) { return number_text(c.rope_scaling.high_freq_factor); }},
};

/// Text of a range for messages: "1 to 4096", "above 0, at most 1", "a finite number from 1".
inline std::string range_text(const number_range& range) {
  const auto text = [](double value) { return std::to_string(static_cast<std::int64_t>(value)); };
  if (range.most == 0) return "a finite number " + std::string(range.above ? "above " : "from ") + text(range.least);
  return range.above ? "above " + text(range.least) + ", at most " + text(range.most)
                     : text(range.least) + " to " + text(range.most);
}

/// Checks a config against number_ranges and number_relations. @param path the file that the error names
/// @throws file_error with the key in config.json's spelling, its range and its value
inline void check_config(const decoder_config& c, const std::string& path) {
  for (const number_range& range : number_ranges) {
    const double value = range.value(c);
    if ((range.applies != nullptr && !range.applies(c)) || (range.zero_is_none && value == 0)) continue;
    const bool inside = std::isfinite(value) && (range.above ? value > range.least : value >= range.least) &&
                        (range.most == 0 || value <= range.most);
    if (!inside)
      throw file_error(path, std::nullopt, std::string(range.key), range_text(range),
                       value == std::floor(value) && std::fabs(value) < 1e15
                           ? std::to_string(static_cast<std::int64_t>(value))
                           : number_text(static_cast<float>(value)));
  }
  if (c.num_hidden_layers == family_of(c.model_type).alibi_layers)
    throw file_error(
        path, std::nullopt, "num_hidden_layers",
        "another number: a " + std::string(name(c.model_type)) + " with it has ALiBi, which is not computed",
        std::to_string(c.num_hidden_layers));
  for (const number_relation& relation : number_relations)
    if (!relation.holds(c))
      throw file_error(path, std::nullopt, std::string(relation.key), relation.expected(c), relation.found(c));
}

/// sliding_window_pattern for layers of which `windowed` have the window: n where every n-th layer sees all keys, 0
/// where none does. Absent for any other order.
inline std::optional<std::uint32_t> window_pattern_of(const std::vector<bool>& windowed) {
  const auto all = std::find(windowed.begin(), windowed.end(), false);
  if (all == windowed.end()) return 0;
  const auto every = static_cast<std::size_t>(all - windowed.begin()) + 1;
  for (std::size_t layer = 0; layer < windowed.size(); ++layer)
    if (windowed[layer] != ((layer + 1) % every != 0)) return std::nullopt;
  return static_cast<std::uint32_t>(every);
}

/// Writes which layers have the window: as a pattern or, in families whose layers have kinds, one by one.
/// @return false for an order that the config cannot express
inline bool set_windows(decoder_config& c, const std::vector<bool>& windowed) {
  if (const auto pattern = window_pattern_of(windowed)) {
    c.sliding_window_pattern = *pattern;
    return true;
  }
  const bool kinds = family_of(c.model_type).kinds_of_layers || family_of(c.model_type).streams;
  if (!kinds || windowed.size() > layer_pattern::max_period) return false;
  c.sliding_window_pattern = 0;
  for (std::size_t layer = 0; layer < windowed.size(); ++layer)
    if (!windowed[layer]) c.full_attention_layers.add(static_cast<std::uint32_t>(layer));
  return true;
}

/// Writes that layer 0 and every n-th layer after it see all positions, and the others a window.
/// @param every n, above 0; 1: there is no window
inline void set_windows_from_first(decoder_config& c, std::uint32_t window, std::uint32_t every) {
  if (every == 1) {
    c.rope_local_base_freq = 0;  // no layer uses it
    return;
  }
  c.sliding_window = window;
  c.full_attention_layers = layer_set::first_and_every(every, c.num_hidden_layers);
}
/// The n of such layers. A model with at most n layers has several equivalent numbers.
inline std::uint32_t windows_from_first(const decoder_config& c) {
  std::uint32_t every = 1;
  while (every < c.num_hidden_layers && !c.full_attention_layers.has(every)) ++every;
  return c.sliding_window == 0 ? 1 : every;
}

/// A scaling as text: "linear by 8", "llama3 by 8, low 1, high 4, from 8192", "yarn by 4, low 1, high 32, from 32768,
/// sines by 1.13863"; "default" for none.
inline std::string scaling_text(const rope_scaling_config& scaling) {
  std::string out(name(scaling.type));
  if (scaling.type == rope_type::plain) return out;
  if (scaling.type == rope_type::longrope)
    return out + " from " + std::to_string(scaling.original_max_position_embeddings) + ", times " +
           number_text(scaling.attention_factor);
  out += " by " + number_text(scaling.factor);
  if (scaling.type != rope_type::linear)
    out += ", low " + number_text(scaling.low_freq_factor) + ", high " + number_text(scaling.high_freq_factor) +
           ", from " + std::to_string(scaling.original_max_position_embeddings);
  if (scaling.type == rope_type::yarn)
    out += ", sines by " + number_text(scaling.attention_factor) + (scaling.truncate ? "" : ", between pairs");
  return out;
}

/// Heads as text: "16 key heads of 128, 32 value heads of 128 in turn".
inline std::string heads_text(const delta_net_config& of) {
  return std::to_string(of.key_heads) + " key heads of " + std::to_string(of.key_dim) + ", " +
         std::to_string(of.value_heads) + " value heads of " + std::to_string(of.value_dim) +
         (of.in_turn ? " in turn" : "");
}

/// Compares mixtures of experts and their routers. @param compare takes a key, both values and their texts
template <class Compare>
[[gnu::cold]] void compare_mixtures(const decoder_config& engraved, const decoder_config& file,
                                    const Compare& compare) {
  const auto number = [](std::uint32_t value) { return std::to_string(value); };
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  compare("num_local_experts", engraved.num_local_experts, file.num_local_experts, number);
  compare("num_experts_per_tok", engraved.num_experts_per_tok, file.num_experts_per_tok, number);
  compare("norm_topk_prob", engraved.norm_topk_prob, file.norm_topk_prob, truth);
  compare("routed_scaling_factor", engraved.routed_scaling_factor, file.routed_scaling_factor, number_text);
  compare("use_expert_bias", engraved.use_expert_bias, file.use_expert_bias, truth);
  compare("n_group", engraved.n_group, file.n_group, number);
  compare("topk_group", engraved.topk_group, file.topk_group, number);
  compare("num_dense_layers", engraved.num_dense_layers, file.num_dense_layers, number);
  compare("dense_intermediate_size", engraved.dense_intermediate_size, file.dense_intermediate_size, number);
  compare("dense_features", engraved.dense_features, file.dense_features, number);
}

/// Compares parts that only some models of a family have.
template <class Compare>
[[gnu::cold]] void compare_parts(const decoder_config& engraved, const decoder_config& file, const Compare& compare) {
  for (const auto& [key, of] : {std::pair{"use_qk_norm", &decoder_config::use_qk_norm},
                                {"attention_bias", &decoder_config::attention_bias},
                                {"mamba_rms_norm", &decoder_config::mamba_rms_norm}})
    compare(key, engraved.*of, file.*of, [](bool value) { return value ? "true" : "false"; });
}

/// Compares the numbers by which a model's values are multiplied, and the epsilon of norms of single matrices.
template <class Compare>
[[gnu::cold]] void compare_factors(const decoder_config& engraved, const decoder_config& file, const Compare& compare) {
  for (const auto& [key, of] : {std::pair{"embedding_multiplier", &decoder_config::embedding_multiplier},
                                {"attention_multiplier", &decoder_config::attention_multiplier},
                                {"residual_multiplier", &decoder_config::residual_multiplier},
                                {"logits_scaling", &decoder_config::logits_scaling},
                                {"projection_norm_eps", &decoder_config::projection_norm_eps}})
    compare(key, engraved.*of, file.*of, number_text);
}

/// The differences, one line for each field: "num_hidden_layers: engraved 30, file 24".
[[gnu::cold]] inline std::vector<std::string> config_differences(const decoder_config& engraved,
                                                                 const decoder_config& file) {
  std::vector<std::string> out;
  const auto compare = [&](std::string_view key, const auto& wanted, const auto& found, auto&& text) {
    if (!(wanted == found))
      out.push_back(std::string(key) + ": engraved " + std::string(text(wanted)) + ", file " +
                    std::string(text(found)));
  };
  const auto number = [](std::uint32_t value) { return std::to_string(value); };
  const auto named = [](auto value) { return name(value); };
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  const auto layers = [](const layer_set& of) {
    std::string text;
    for (std::uint32_t layer = 0; layer < layer_pattern::max_period; ++layer)
      if (of.has(layer)) text += (text.empty() ? "" : " ") + std::to_string(layer);
    return text.empty() ? std::string("none") : text;
  };
  compare("model_type", engraved.model_type, file.model_type, named);
  compare("hidden_size", engraved.hidden_size, file.hidden_size, number);
  compare("intermediate_size", engraved.intermediate_size, file.intermediate_size, number);
  compare("num_hidden_layers", engraved.num_hidden_layers, file.num_hidden_layers, number);
  compare("num_attention_heads", engraved.num_attention_heads, file.num_attention_heads, number);
  compare("num_key_value_heads", engraved.num_key_value_heads, file.num_key_value_heads, number);
  compare("head_dim", engraved.head_dim, file.head_dim, number);
  compare("vocab_size", engraved.vocab_size, file.vocab_size, number);
  compare("max_position_embeddings", engraved.max_position_embeddings, file.max_position_embeddings, number);
  compare("rope_theta", engraved.rope_theta, file.rope_theta, number_text);
  compare("rope_scaling", engraved.rope_scaling, file.rope_scaling,
          [](const rope_scaling_config& scaling) { return scaling_text(scaling); });
  compare("rms_norm_eps", engraved.rms_norm_eps, file.rms_norm_eps, number_text);
  compare("hidden_act", engraved.hidden_act, file.hidden_act, named);
  compare("tie_word_embeddings", engraved.tie_word_embeddings, file.tie_word_embeddings, truth);
  compare("activation_type", engraved.activation_type, file.activation_type, named);
  compare("ternary", engraved.ternary, file.ternary, truth);
  compare("sliding_window", engraved.sliding_window, file.sliding_window, number);
  if (engraved.sliding_window != 0 && file.sliding_window != 0) {
    compare("sliding_window_pattern", engraved.sliding_window_pattern, file.sliding_window_pattern, number);
    compare("rope_local_base_freq", engraved.rope_local_base_freq, file.rope_local_base_freq, number_text);
  }
  compare("global_head_dim", engraved.global_head_dim, file.global_head_dim, number);
  compare("num_global_key_value_heads", engraved.num_global_key_value_heads, file.num_global_key_value_heads, number);
  compare("global_turning_pairs", engraved.global_turning_pairs, file.global_turning_pairs, number);
  compare("attention_k_eq_v", engraved.attention_k_eq_v, file.attention_k_eq_v, truth);
  compare("num_kv_shared_layers", engraved.num_kv_shared_layers, file.num_kv_shared_layers, number);
  compare("shared_intermediate_size", engraved.shared_intermediate_size, file.shared_intermediate_size, number);
  compare_mixtures(engraved, file, compare);
  compare("rotary_dim", engraved.rotary_dim, file.rotary_dim, number);
  compare_parts(engraved, file, compare);
  compare("rope_factors", engraved.rope_factors, file.rope_factors, [](const longrope_factors& factors) {
    std::string text = "long";
    for (std::size_t i = 0; i < 3; ++i) text += " " + number_text(factors.long_factor[i]);
    return text + " ...";
  });
  compare("recurrent_layers", engraved.recurrent_layers, file.recurrent_layers, layers);
  compare("ffn_layers", engraved.ffn_layers, file.ffn_layers, layers);
  compare("expert_layers", engraved.expert_layers, file.expert_layers, layers);
  compare("full_attention_layers", engraved.full_attention_layers, file.full_attention_layers, layers);
  compare("sparse_layers", engraved.sparse_layers, file.sparse_layers, layers);
  compare("activation_sparsity_scale", engraved.sparse_deviations, file.sparse_deviations, number_text);
  compare("linear_attention", engraved.delta_net, file.delta_net, heads_text);
  for (const auto& [key, of] :
       {std::pair{"shared_expert_intermediate_size", &decoder_config::shared_expert_intermediate_size},
        {"hidden_size_per_layer_input", &decoder_config::hidden_size_per_layer_input},
        {"vocab_size_per_layer_input", &decoder_config::vocab_size_per_layer_input},
        {"altup_num_inputs", &decoder_config::altup_num_inputs},
        {"laurel_rank", &decoder_config::laurel_rank},
        {"q_lora_rank", &decoder_config::q_lora_rank},
        {"kv_lora_rank", &decoder_config::kv_lora_rank},
        {"v_head_dim", &decoder_config::v_head_dim}})
    compare(key, engraved.*of, file.*of, number);
  compare("conv_L_cache", engraved.conv_taps, file.conv_taps, number);
  compare("type_vocab_size", engraved.type_vocab_size, file.type_vocab_size, number);
  compare("no_rope_layer_interval", engraved.no_rope_layer_interval, file.no_rope_layer_interval, number);
  compare_factors(engraved, file, compare);
  compare("attn_logit_softcapping", engraved.attn_logit_softcapping, file.attn_logit_softcapping, number_text);
  compare("final_logit_softcapping", engraved.final_logit_softcapping, file.final_logit_softcapping, number_text);
  compare("query_pre_attn_scalar", engraved.attention_scalar(), file.attention_scalar(), number);
  return out;
}

}  // namespace intaglio::io
