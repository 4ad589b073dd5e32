// SPDX-License-Identifier: MIT
// Keys of config.json that have another name in transformers' configs: a row for each. A config is read as if it had
// transformers' names. Source: the configuration files of zai-org/glm-4-9b-chat, LGAI-EXAONE/EXAONE-3.5-2.4B,
// MiniMaxAI/MiniMax-M2, tencent/Hunyuan-A13B-Instruct, openbmb/MiniCPM-2B-sft-bf16, inclusionAI/Ling-lite-1.5 and
// Ling-mini-2.0.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/hf_keys.hpp"
#include "intaglio/io/strict_json.hpp"

namespace intaglio::io {

/// A key of a model_type, and its name in transformers' configs. A list of equal values, one for each layer, is read as
/// one value.
struct renamed_key {
  std::string_view model_type, folder, usual;
  double times = 0;                 ///< the usual key's number is this multiple of the folder's; 0: it is equal
  const char* per = nullptr;        ///< the usual key's number is the folder's number divided by this key's number
  double power = 1, per_power = 1;  ///< with per: exponents of both numbers
};
/// Keys of config.json that some models name otherwise.
inline constexpr auto renamed_keys = std::to_array<renamed_key>({
    {"afmoe", "num_dense_layers", "first_k_dense_replace"},
    {"afmoe", "num_shared_experts", "n_shared_experts"},
    {"afmoe", "route_norm", "norm_topk_prob"},
    {"afmoe", "route_scale", "routed_scaling_factor"},
    {"afmoe", "global_attn_every_n_layers", "sliding_window_pattern"},
    {"chatglm", "num_layers", "num_hidden_layers"},
    {"chatglm", "padded_vocab_size", "vocab_size"},
    {"chatglm", "ffn_hidden_size", "intermediate_size"},
    {"chatglm", "kv_channels", "head_dim"},
    {"chatglm", "seq_length", "max_position_embeddings"},
    {"chatglm", "layernorm_epsilon", "rms_norm_eps"},
    {"chatglm", "multi_query_group_num", "num_key_value_heads"},
    {"chatglm", "add_qkv_bias", "attention_bias"},
    {"chatglm", "rope_ratio", "rope_theta", 10'000},
    {"exaone", "num_layers", "num_hidden_layers"},
    {"exaone", "layer_norm_epsilon", "rms_norm_eps"},
    {"exaone", "activation_function", "hidden_act"},
    {"minimax_m2", "rotary_dim", "partial_rotary_factor", 0, "head_dim"},
    {"minimax_m2", "use_routing_bias", "use_expert_bias"},
    {"hunyuan_v1_moe", "num_experts", "num_experts"},
    {"hunyuan_v1_moe", "moe_topk", "num_experts_per_tok"},
    {"hunyuan_v1_moe", "num_shared_expert", "n_shared_experts"},
    {"hunyuan_v1_moe", "moe_intermediate_size", "moe_intermediate_size"},
    {"minicpm", "scale_emb", "embedding_multiplier"},
    {"minicpm", "scale_depth", "residual_multiplier", 0, "num_hidden_layers", 1, 0.5},
    {"minicpm", "dim_model_base", "logits_scaling", 0, "hidden_size", -1, -1},
    {"baichuan", "model_max_length", "max_position_embeddings"},
    {"deepseek_v3", "num_mtp_layers", "num_nextn_predict_layers"},
    {"glm4_moe", "num_mtp_layers", "num_nextn_predict_layers"},
    {"bailing_moe", "num_shared_experts", "n_shared_experts"},
    {"bailing_moe_v2", "num_shared_experts", "n_shared_experts"},
});

/// A key that must have one value, or be a list of that value.
struct required_value {
  std::string_view model_type, key;
  std::string_view json;  ///< empty: any value; a text that is no JSON says why the key may not be there
  bool needed = false;    ///< the key must be there
};
/// Keys of config.json whose other values the library does not compute.
inline constexpr auto required_values = std::to_array<required_value>({
    {"afmoe", "mup_enabled", "true", true},  // false: rows of the embedding have no factor
    {"afmoe", "route_norm", "true"},         // transformers does not read it
    {"afmoe", "score_func", R"("sigmoid")"},
    {"afmoe", "num_expert_groups", "1"},
    {"afmoe", "num_limited_groups", "1"},
    {"olmo2", "sliding_window", "none: an OLMo 2 has no windows"},
    {"olmo3", "sliding_window", "", true},
    {"chatglm", "rmsnorm", "true"},                      // false: LayerNorms
    {"chatglm", "post_layer_norm", "true"},              // false: no norm after the last layer
    {"chatglm", "multi_query_attention", "true", true},  // false: another number of key heads
    {"deepseek", "moe_layer_freq", "1"},                 // experts in all layers after the dense ones
    {"deepseek", "scoring_func", R"("softmax")"},
    {"deepseek", "topk_method", R"("greedy")"},
    {"dots1", "moe_layer_freq", "1"},
    {"dots1", "scoring_func", R"("sigmoid")"},
    {"dots1", "topk_method", R"("noaux_tc")"},
    {"minimax_m2", "scoring_func", R"("sigmoid")"},
    {"minimax_m2", "use_qk_norm", "true"},
    {"minimax_m2", "qk_norm_type", R"("per_layer")"},  // of all heads at once
    {"minimax_m2", "attn_type_list", "1"},             // softmax in all layers
    {"hunyuan_v1_moe", "use_mixed_mlp_moe", "true"},   // false: no shared expert
    {"hunyuan_v1_moe", "norm_topk_prob", "true"},
    {"minicpm", "scale_emb", "", true},
    {"minicpm", "scale_depth", "", true},
    {"minicpm", "dim_model_base", "", true},
    {"minicpm", "sparse_config", "none: attention to chosen blocks is not computed"},
    {"apertus", "qk_norm", "true"},     // false: heads of q and k are not normalised
    {"apertus", "post_norm", "false"},  // true: norms after sublayers
    {"baichuan", "z_loss_weight", "none: Baichuan 2 normalises the rows of its head"},
    {"bailing_moe", "num_shared_experts", "", true},
    {"bailing_moe", "norm_head", "false"},     // true: rows of the head are normalised
    {"bailing_moe", "norm_softmax", "false"},  // true: logits are normalised
    {"bailing_moe", "use_qkv_bias", "false"},
    {"bailing_moe_v2", "num_shared_experts", "", true},
    {"bailing_moe_v2", "use_qkv_bias", "false"},
    {"bailing_moe_v2", "n_group", "", true},
    {"bailing_moe_v2", "topk_group", "", true},
    {"bailing_moe_v2", "score_function", R"("sigmoid")"},
    {"bailing_moe_v2", "moe_router_enable_expert_bias", "true"},
    {"bailing_moe_v2", "norm_topk_prob", "true"},
    {"bailing_moe_v2", "use_rmsnorm", "true"},
    {"cohere2", "use_embedding_sharing", "true"},
    {"cohere2", "use_gated_activation", "true"},
    {"cohere2", "use_parallel_block", "true"},
    {"cohere2", "order_of_interleaved_layers", R"("local_attn_first")"},
    {"cohere2", "position_embedding_type", R"("rope_gptj")"},
    {"starcoder2", "use_bias", "true"},
    {"starcoder2", "norm_type", R"("layer_norm")"},
    {"starcoder2", "mlp_type", R"("default")"},
    {"stablelm", "use_parallel_residual", "false"},
    {"gpt_neox", "use_parallel_residual", "true"},
    {"gpt_neox", "attention_bias", "true"},
    {"falcon", "multi_query", "true"},
    {"falcon", "parallel_attn", "true"},
    {"falcon", "new_decoder_architecture", "false"},
    {"falcon", "bias", "false"},
    {"gpt_bigcode", "multi_query", "true"},
    {"gpt_bigcode", "scale_attn_weights", "true"},
    {"gpt2", "scale_attn_weights", "true"},
    {"gpt2", "scale_attn_by_inverse_layer_idx", "false"},
});

/// Whether a family has layers without experts in front of the others, whose number first_k_dense_replace is.
constexpr bool has_dense_in_front(const family& of) { return has_shared_experts(of) && has_scored_router(of); }

/// Rules for keys of these configs, beside hf_key_rules.
inline constexpr config_key_rule renamed_key_rules[] = {
    {"mup_enabled", config_key_use::read, "afmoe"},
    {"score_func", config_key_use::read, "afmoe"},
    {"num_expert_groups", config_key_use::read, "afmoe"},
    {"num_limited_groups", config_key_use::read, "afmoe"},
    {"use_grouped_mm", config_key_use::harmless},      // how experts are computed
    {"load_balance_coeff", config_key_use::harmless},  // for training
    {"rmsnorm", config_key_use::read, "chatglm"},
    {"post_layer_norm", config_key_use::read, "chatglm"},
    {"multi_query_attention", config_key_use::read, "chatglm"},
    {"add_bias_linear", config_key_use::off},
    {"interleaved_qkv", config_key_use::off},
    {"pre_seq_len", config_key_use::off},
    {"prefix_projection", config_key_use::off},
    {"quantization_bit", config_key_use::off},
    {"original_rope", config_key_use::harmless},                  // no code reads it
    {"apply_query_key_layer_scaling", config_key_use::harmless},  // divides scores and multiplies them again
    {"bias_dropout_fusion", config_key_use::harmless},
    {"fp32_residual_connection", config_key_use::harmless},
    {"first_k_dense_replace", config_key_use::read, {}, has_dense_in_front},
    {"moe_layer_freq", config_key_use::read, "deepseek dots1", has_latent_vector},
    {"scoring_func", config_key_use::read, "deepseek dots1 minimax_m2", has_latent_vector},
    {"topk_method", config_key_use::read, "deepseek dots1", has_latent_vector},
    {"qk_norm_type", config_key_use::read, "minimax_m2"},
    {"attn_type_list", config_key_use::read, "minimax_m2"},
    {"norm_head", config_key_use::read, "bailing_moe"},
    {"norm_softmax", config_key_use::read, "bailing_moe"},
    {"score_function", config_key_use::read, "bailing_moe_v2"},
    {"moe_router_enable_expert_bias", config_key_use::read, "bailing_moe_v2"},
    {"use_rmsnorm", config_key_use::read, "bailing_moe_v2"},
    {"router_dtype", config_key_use::harmless},     // routers are f32
    {"shared_moe_mode", config_key_use::harmless},  // of shared experts, which shared_intermediate_size would state
    {"use_mtp", config_key_use::harmless},          // heads that draft tokens
    {"num_mtp_modules", config_key_use::harmless},
    {"mtp_transformer_layers", config_key_use::harmless},
    {"use_mixed_mlp_moe", config_key_use::read, "hunyuan_v1_moe"},
    {"mup_denominator", config_key_use::harmless},  // of MiniCPM's training
    {"max_tokenizer_truncation", config_key_use::harmless},
    {"moe_layer_num_skipped", config_key_use::off},
    {"moe_drop_tokens", config_key_use::off},
    {"moe_random_routing_dropped_token", config_key_use::off},
};

/// A value as text, for messages.
inline std::string json_shown(const nlohmann::json& value) {
  return printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 60);
}

/// The value of a usual key that a row gives. @throws file_error for a list of several values
[[gnu::cold]] inline nlohmann::json usual_value(const strict_json& document, const nlohmann::json& text,
                                                const renamed_key& row) {
  nlohmann::json value = text[std::string(row.folder)];
  if (value.is_array() && !value.empty()) {
    for (const nlohmann::json& each : value)
      if (each != value.front())
        document.refuse(row.folder, "one value for all layers", json_shown(value.front()) + " and " + json_shown(each));
    value = nlohmann::json(value.front());
  }
  if (row.times != 0 && value.is_number()) value = row.times * value.get<double>();
  if (row.per != nullptr && value.is_number()) {
    const located_json whole = located_json(document.path(), "", &text)[row.per];
    if (!(whole.number() > 0)) whole.refuse("a number above 0");
    value = std::pow(value.get<double>(), row.power) / std::pow(whole.number(), row.per_power);
  }
  return value;
}

/// The error with the name that a key has in the file, where it was read by its usual name.
[[gnu::cold]] inline file_error with_folder_name(const file_error& of, const std::vector<renamed_key>& read) {
  const std::string& subject = of.subject();
  for (const renamed_key& row : read) {
    const std::size_t end = row.usual.size();
    if (!subject.starts_with(row.usual) || (subject.size() != end && subject[end] != ' ' && subject[end] != '['))
      continue;
    const bool is_equal = row.times == 0 && row.per == nullptr;
    const std::string name = std::string(row.folder) + (is_equal ? "" : ", read as " + std::string(row.usual));
    return {of.path(), of.offset(), name + subject.substr(end), of.expected(), of.found()};
  }
  return of;
}

/// Gives the keys of a config their usual names. @return the keys that had another name  @throws file_error where both
/// names are there with two values, and for another value than a required one
[[gnu::cold]] inline std::vector<renamed_key> rename_keys(const strict_json& document, nlohmann::json& text,
                                                          std::string_view model_type) {
  for (const required_value& row : required_values) {
    if (row.model_type != model_type) continue;
    const auto found = text.find(std::string(row.key));
    const bool absent = found == text.end() || found->is_null();
    if (absent && row.needed) document.refuse(row.key, row.json.empty() ? "a number" : row.json, "nothing");
    if (absent || row.json.empty()) continue;
    for (const nlohmann::json& each : found->is_array() ? *found : nlohmann::json::array({*found}))
      if (json_shown(each) != row.json) document.refuse(row.key, row.json, json_shown(each));
  }
  std::vector<renamed_key> out;
  for (const renamed_key& row : renamed_keys) {
    const std::string folder(row.folder), usual(row.usual);
    if (row.model_type != model_type || !text.contains(folder)) continue;
    nlohmann::json value = usual_value(document, text, row);
    text.erase(folder);
    if (value.is_null()) continue;
    if (const auto other = text.find(usual); other != text.end() && !other->is_null() && *other != value)
      document.refuse(folder + " and " + usual, "one value", json_shown(value) + " and " + json_shown(*other));
    text[usual] = std::move(value);
    out.push_back(row);
  }
  return out;
}

}  // namespace intaglio::io
