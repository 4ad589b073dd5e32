// SPDX-License-Identifier: MIT
// Writes the keys of a GGUF file for a model from any form of files, as llama.cpp's convert_hf_to_gguf.py and, for
// BitNet, microsoft/BitNet's convert-hf-to-gguf-bitnet.py do.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/end_of_generation.hpp"
#include "intaglio/io/gguf_keys.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/io/rope_factors.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary_check.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// The value of general.architecture in a GGUF for this config. "bitnet" has SiLU and f32 activations, "bitnet-b1.58"
/// relu2 and int8 ones.
inline std::string gguf_architecture(const decoder_config& c) {
  if (family_of(c.model_type).single_sublayers && c.num_local_experts != 0) return "nemotron_h_moe";
  if (c.model_type != architecture::bitnet) return std::string(name(c.model_type));
  return c.hidden_act == activation::silu ? "bitnet" : "bitnet-b1.58";
}

/// Writes eos_token_id, eot_token_id and eom_token_id, which llama.cpp reads. Where these and the texts that llama.cpp
/// knows are not all ends, all are also written to a key of this library. @return whether llama.cpp will miss one
inline bool write_end_keys(gguf_writer& out, const vocabulary& from) {
  std::array<std::pair<const char*, std::optional<std::int64_t>>, 3> keys{
      {{"eos_token_id", from.eos_id}, {"eot_token_id", from.eot_id}, {"eom_token_id", from.eom_id}}};
  vocabulary plain = from;
  plain.end_ids.clear();
  const auto types = checked_token_types(from);
  const auto known = end_of_generation_tokens(plain, types), all = end_of_generation_tokens(from, types);
  bool misses = false;
  for (const std::int32_t id : all) {
    if (std::binary_search(known.begin(), known.end(), id)) continue;
    const auto vacant = std::find_if(keys.begin(), keys.end(), [](const auto& key) { return !key.second; });
    if (vacant != keys.end()) vacant->second = id;
    else misses = true;
  }
  for (const auto& [key, id] : keys)
    if (id && *id >= 0 && *id <= 0xFFFFFFFFll)
      out.set(std::string("tokenizer.ggml.") + key, static_cast<std::uint32_t>(*id));
  if (misses) out.set_array<std::uint32_t>(end_ids_key, std::vector<std::uint32_t>(all.begin(), all.end()));
  return misses;
}

/// Writes the additional keys of Unigram.
[[gnu::cold]] inline void write_unigram_keys(gguf_writer& out, const vocabulary& from,
                                             std::vector<std::string>& warnings) {
  if (!from.charsmap.empty()) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from.charsmap.data());
    out.set_array<std::uint8_t>("tokenizer.ggml.precompiled_charsmap", std::span(bytes, from.charsmap.size()));
  }
  const unigram_spaces& spaces = from.spaces;
  if (spaces == unigram_spaces{}) return;
  out.set("tokenizer.ggml.remove_extra_whitespaces", spaces.merged || spaces.split);
  if (!spaces.split && !(spaces.merged && spaces.end_stripped))
    warnings.push_back("GGUF takes spaces from both ends of a text or keeps all: the model's tokenizer does otherwise");
}

/// Writes a tokenizer's keys. Facts that llama.cpp will not read go to `warnings`. @param model tokenizer.ggml.model
/// where it is not the tokenizer's own
inline void write_vocabulary_keys(gguf_writer& out, const vocabulary& from, std::vector<std::string>& warnings,
                                  std::string_view model = {}) {
  out.set("tokenizer.ggml.model", model.empty() ? std::string_view(from.model) : model);
  const bool roberta = from.doubles_separator && from.pre_tokenizer == "gpt-2";  // with other values programs put only
                                                                                 // one EOS between two texts
  if (roberta) out.set("tokenizer.ggml.pre", "roberta-bpe");
  else if (from.pre_tokenizer) out.set("tokenizer.ggml.pre", *from.pre_tokenizer);
  out.set_array<std::string>("tokenizer.ggml.tokens", from.tokens);
  if (!from.scores.empty()) out.set_array<float>("tokenizer.ggml.scores", from.scores);
  out.set_array<std::int32_t>("tokenizer.ggml.token_type", from.token_types);
  if (!from.merges.empty()) out.set_array<std::string>("tokenizer.ggml.merges", from.merges);
  const auto id = [&](const char* key, std::optional<std::int64_t> value) {
    if (value && *value >= 0 && *value <= 0xFFFFFFFFll)
      out.set(std::string("tokenizer.ggml.") + key, static_cast<std::uint32_t>(*value));
  };
  id("bos_token_id", from.bos_id);
  if (write_end_keys(out, from))
    warnings.push_back("the model has more ends of a generation than llama.cpp has keys for: all of them are in " +
                       std::string(end_ids_key) + ", which it does not read");
  id("unknown_token_id", from.unknown_id);
  id("padding_token_id", from.padding_id);
  const auto ruled = std::count_if(from.added.begin(), from.added.end(), [](const added_token& token) {
    return token.single_word || token.lstrip || token.rstrip;
  });
  if (ruled != 0)
    warnings.push_back("GGUF has no key for the rules single_word, lstrip and rstrip, which " + std::to_string(ruled) +
                       " of the model's added tokens have");
  if (from.nfc)
    warnings.push_back("GGUF has no key for Unicode's normalization form C, to which the model's text is brought");
  if (const auto* name = from.pre_tokenizer ? find_pretokenizer(*from.pre_tokenizer) : nullptr;
      name != nullptr && from.ignore_merges.value_or(name->ignore_merges) != name->ignore_merges)
    warnings.push_back("tokenizer.ggml.pre " + *from.pre_tokenizer + " says ignore_merges " +
                       (name->ignore_merges ? "true" : "false") + ", the model's tokenizer has the other");
  if (from.add_bos) out.set("tokenizer.ggml.add_bos_token", *from.add_bos);
  if (from.add_eos) out.set("tokenizer.ggml.add_eos_token", *from.add_eos);
  if (from.add_space_prefix) out.set("tokenizer.ggml.add_space_prefix", *from.add_space_prefix);
  if (from.remove_extra_whitespaces) out.set("tokenizer.ggml.remove_extra_whitespaces", *from.remove_extra_whitespaces);
  if (from.chat_template) out.set("tokenizer.chat_template", *from.chat_template);
  if (from.model == "t5") write_unigram_keys(out, from, warnings);
  if (from.model != "bert") return;
  id("cls_token_id", from.bos_id);
  id("seperator_token_id", from.eos_id);  // llama.cpp's spelling
  if (from.add_eos) out.set("tokenizer.ggml.add_sep_token", *from.add_eos);
  if (from.lowercase) out.set("tokenizer.ggml.normalizer.lowercase", *from.lowercase);
  if (from.strip_accents) out.set("tokenizer.ggml.normalizer.strip_accents", *from.strip_accents);
}

/// Writes the sizes that depend on a layer's kind (Gemma 4): one number for each layer where they are not all equal.
[[gnu::cold]] inline void write_kinds_of_layers(gguf_writer& out, const decoder_config& c, const std::string& prefix) {
  std::vector<std::int32_t> heads, inner;
  const auto windowed = std::make_unique<bool[]>(c.num_hidden_layers);
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    windowed[layer] = c.is_windowed(layer);
    heads.push_back(static_cast<std::int32_t>(c.key_value_heads_of(windowed[layer])));
    inner.push_back(static_cast<std::int32_t>(c.num_local_experts != 0 ? c.shared_expert_intermediate_size
                                                                       : c.intermediate_size_of(c.shares_kv(layer))));
  }
  const auto each = [&](const char* key, const std::vector<std::int32_t>& values) {
    if (std::count(values.begin(), values.end(), values.front()) == static_cast<std::ptrdiff_t>(values.size()))
      out.set(prefix + key, static_cast<std::uint32_t>(values.front()));
    else out.set_array<std::int32_t>(prefix + key, values);
  };
  each("attention.head_count_kv", heads);
  each("feed_forward_length", inner);
  out.set_array<bool>(prefix + "attention.sliding_window_pattern", std::span(windowed.get(), c.num_hidden_layers));
  out.set(prefix + "rope.freq_base_swa", c.local_rope().theta);
  out.set(prefix + "attention.shared_kv_layers", c.num_kv_shared_layers);
  out.set(prefix + "embedding_length_per_layer_input", c.hidden_size_per_layer_input);
  for (const auto& [end, wide] : {std::pair{"", c.head_dim_of(false)}, {"_swa", c.head_dim}})
    for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
      out.set(prefix + key + end, wide);
}

/// Writes windows, streams and the sizes that belong to them (Gemma 3n).
[[gnu::cold]] inline void write_streams(gguf_writer& out, const decoder_config& c, const std::string& prefix) {
  const auto windowed = std::make_unique<bool[]>(c.num_hidden_layers);
  std::vector<float> sparsity;
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    windowed[layer] = c.is_windowed(layer);
    sparsity.push_back(c.sparse_layers.has(layer) ? c.sparse_deviations : -(std::numeric_limits<float>::infinity)());
  }
  out.set_array<bool>(prefix + "attention.sliding_window_pattern", std::span(windowed.get(), c.num_hidden_layers));
  out.set(prefix + "rope.freq_base_swa", c.local_rope().theta);
  out.set(prefix + "attention.shared_kv_layers", static_cast<float>(c.num_kv_shared_layers));
  out.set(prefix + "embedding_length_per_layer_input", c.hidden_size_per_layer_input);
  out.set(prefix + "altup.num_inputs", c.altup_num_inputs);
  out.set(prefix + "altup.active_idx", std::uint32_t{0});
  out.set_array<float>(prefix + "activation_sparsity_scale", sparsity);
}

/// Writes sizes of delta rules, and which layers have them.
[[gnu::cold]] inline void write_delta_net(gguf_writer& out, const decoder_config& c, const std::string& prefix) {
  const delta_net_config& delta = c.delta_net;
  out.set(prefix + "ssm.conv_kernel", c.conv_taps);
  out.set(prefix + "ssm.state_size", delta.key_dim);
  out.set(prefix + "ssm.group_count", delta.key_heads);
  out.set(prefix + "ssm.time_step_rank", delta.value_heads);
  out.set(prefix + "ssm.inner_size", delta.value_size());
  const auto recurrent = std::make_unique<bool[]>(c.num_hidden_layers);
  std::uint32_t interval = c.num_hidden_layers;
  for (std::uint32_t layer = c.num_hidden_layers; layer-- > 0;) {
    recurrent[layer] = c.recurrent_layers.has(layer);
    if (!recurrent[layer]) interval = layer + 1;
  }
  out.set_array<bool>(prefix + "attention.recurrent_layers", std::span(recurrent.get(), c.num_hidden_layers));
  out.set(prefix + "full_attention_interval", interval);
  const auto pairs = static_cast<std::int32_t>((c.rotary_dim != 0 ? c.rotary_dim : c.head_dim) / 2);
  if (has_values_in_turn(family_of(c.model_type)))  // sections of images, which llama.cpp requires: about a third each
    out.set_array<std::int32_t>(prefix + "rope.dimension_sections",
                                std::array{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, std::int32_t{0}});
}

/// Number of key heads of each layer; 0 where it has no attention.
[[gnu::cold]] inline std::vector<std::int32_t> heads_of_layers(const decoder_config& c) {
  std::vector<std::int32_t> out;
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const bool attends = !c.recurrent_layers.has(layer) && !c.ffn_layers.has(layer);
    out.push_back(attends ? static_cast<std::int32_t>(c.num_key_value_heads) : 0);
  }
  return out;
}

/// Writes sizes of Mamba-2, and which layers have it, attention, or only an FFN.
[[gnu::cold]] inline void write_state_space(gguf_writer& out, const decoder_config& c, const std::string& prefix) {
  out.set(prefix + "ssm.conv_kernel", c.conv_taps);
  out.set(prefix + "ssm.state_size", c.delta_net.key_dim);
  out.set(prefix + "ssm.group_count", c.delta_net.key_heads);
  out.set(prefix + "ssm.time_step_rank", c.delta_net.value_heads);
  out.set(prefix + "ssm.inner_size", c.delta_net.value_size());
  std::vector<std::int32_t> inner;
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer)
    inner.push_back(static_cast<std::int32_t>(!c.ffn_layers.has(layer) ? 0
                                              : c.has_dense_layers() && !c.has_experts(layer)
                                                  ? c.dense_intermediate_size
                                                  : c.intermediate_size));
  if (family_of(c.model_type).single_sublayers) out.set_array<std::int32_t>(prefix + "feed_forward_length", inner);
  else out.set(prefix + "feed_forward_length", c.intermediate_size);
  if (!family_of(c.model_type).attention_beside)
    out.set(prefix + "rope.scaling.finetuned", c.no_rope_layer_interval == 0);
}

/// Writes the kind of norms, whether tokens see each other, and how states become a vector.
[[gnu::cold]] inline void write_norms_and_pooling(gguf_writer& out, const checkpoint& model,
                                                  const std::string& prefix) {
  const decoder_config& c = model.config();
  if (family_of(c.model_type).encoder) out.set(prefix + "attention.causal", false);
  if (const family& of = family_of(c.model_type);
      of.scaled_logits || (of.weight_multipliers && c.logits_scaling != 1.f))
    out.set(prefix + "logit_scale", 1 / c.logits_scaling);
  if (family_of(c.model_type).layer_norms && !family_of(c.model_type).encoder)
    out.set(prefix + "use_parallel_residual", family_of(c.model_type).parallel);
  if (family_of(c.model_type).layer_norms) {
    out.set(prefix + "attention.layer_norm_epsilon", c.rms_norm_eps);
    if (c.type_vocab_size != 0) out.set("tokenizer.ggml.token_type_count", c.type_vocab_size);
  } else {
    out.set(prefix + "attention.layer_norm_rms_epsilon", c.rms_norm_eps);
  }
  if (c.dense_features != 0)
    for (const auto& [key, features] : {std::pair{"dense_2_feat_in", c.hidden_size},
                                        {"dense_2_feat_out", c.dense_features},
                                        {"dense_3_feat_in", c.dense_features},
                                        {"dense_3_feat_out", c.hidden_size}})
      out.set(prefix + key, features);
  if (const auto how = model.pooling())
    out.set(prefix + "pooling_type", *how == pooling::mean ? 1u : *how == pooling::first ? 2u : 3u);
}

/// Writes sizes of mixtures, and how experts are weighed.
[[gnu::cold]] inline void write_experts(gguf_writer& out, const decoder_config& c, const std::string& prefix,
                                        std::vector<std::string>& warnings) {
  const bool kinds = family_of(c.model_type).kinds_of_layers;
  out.set(prefix + "expert_count", c.num_local_experts);
  out.set(prefix + "expert_used_count", c.num_experts_per_tok);
  const bool sublayers = family_of(c.model_type).single_sublayers;
  if (kinds || sublayers || family_of(c.model_type).experts == mixtures::all)
    out.set(prefix + "expert_feed_forward_length", c.intermediate_size);
  if (family_of(c.model_type).shared_experts)
    out.set(prefix + "expert_shared_count", c.shared_expert_intermediate_size / c.intermediate_size);
  if (const family& of = family_of(c.model_type);
      !kinds && (!of.shared_experts || of.moe_keys || !has_scored_router(of)) && c.shared_expert_intermediate_size != 0)
    out.set(prefix + "expert_shared_feed_forward_length", c.shared_expert_intermediate_size);
  if (has_scored_router(family_of(c.model_type))) {
    out.set(prefix + "expert_gating_func", gguf_gating(score_of(c)));
    out.set(prefix + "expert_weights_norm", c.norm_topk_prob);
    out.set(prefix + "expert_weights_scale", c.routed_scaling_factor);
    if (sublayers) out.set(prefix + "expert_shared_count", 1u), out.set(prefix + "expert_group_count", 1u);
    else out.set(prefix + "leading_dense_block_count", c.num_dense_layers);
    if (c.n_group != 0) {
      out.set(prefix + "expert_group_count", c.n_group);
      out.set(prefix + "expert_group_used_count", c.topk_group);
    }
    if (family_of(c.model_type).moe_keys) out.set(prefix + "interleave_moe_layer_step", 1u);
    return;
  }
  if (const bool usual = !family_of(c.model_type).parts_of_all; c.norm_topk_prob != usual)
    warnings.push_back(usual ? "GGUF has no norm_topk_prob, and programs take true; the model's is false"
                             : "GGUF has no norm_topk_prob, and programs take false; the model's is true");
}

/// The keys of latent attention whose values depend on how a file holds matrices of keys and values.
inline constexpr std::array<std::string_view, 5> latent_width_keys{"attention.head_count_kv", "attention.key_length",
                                                                   "attention.value_length", "attention.key_length_mla",
                                                                   "attention.value_length_mla"};
/// Writes these keys, for a file with a matrix of keys and one of values for each head. @param from index of the first
[[gnu::cold]] inline void write_latent_widths(gguf_writer& out, const decoder_config& c, const std::string& prefix,
                                              std::size_t from = 0) {
  const std::array<std::uint32_t, 5> widths{1, c.kv_lora_rank + c.rotary_dim, c.kv_lora_rank, c.head_dim, c.v_head_dim};
  for (std::size_t i = from; i < widths.size(); ++i) out.set(prefix + std::string(latent_width_keys[i]), widths[i]);
}
/// Writes the widths of latent attention except attention.head_count_kv, which is written with the number of heads.
[[gnu::cold]] inline void write_latent(gguf_writer& out, const decoder_config& c, const std::string& prefix) {
  if (c.q_lora_rank != 0) out.set(prefix + "attention.q_lora_rank", c.q_lora_rank);
  out.set(prefix + "attention.kv_lora_rank", c.kv_lora_rank);
  write_latent_widths(out, c, prefix, 1);
}

/// Writes YaRN. Facts that GGUF cannot express go to `warnings`.
[[gnu::cold]] inline void write_yarn(gguf_writer& out, const decoder_config& c, const std::string& prefix,
                                     std::vector<std::string>& warnings) {
  const rope_scaling_config& yarn = c.rope_scaling;
  out.set(prefix + "rope.scaling.type", "yarn");
  out.set(prefix + "rope.scaling.factor", yarn.factor);
  out.set(prefix + "rope.scaling.original_context_length", yarn.original_max_position_embeddings);
  if (yarn.high_freq_factor != 32.f) out.set(prefix + "rope.scaling.yarn_beta_fast", yarn.high_freq_factor);
  if (yarn.low_freq_factor != 1.f) out.set(prefix + "rope.scaling.yarn_beta_slow", yarn.low_freq_factor);
  const bool latent = family_of(c.model_type).latent;
  const bool shared = (family_of(c.model_type).scaled_queries || latent) && yarn.attention_factor == 1.f;
  const float share = latent ? yarn_score_share(c.head_dim, yarn.factor, c.attention_multiplier) : 10.f;
  if (shared) out.set(prefix + "rope.scaling.yarn_log_multiplier", static_cast<float>(0.1 * double{share}));
  if (!yarn.truncate || (latent && share == 0.f) ||
      (!shared && (latent || yarn.attention_factor != yarn_attention_factor(yarn.factor))))
    warnings.push_back("GGUF has no key for all of the model's rope_scaling (" + scaling_text(yarn) + ")");
}

/// Adds what GGUF has no key for to the warnings.
[[gnu::cold]] inline void warn_of_keys(const decoder_config& c, std::vector<std::string>& warnings) {
  if (c.projection_norm_eps != 0 && c.projection_norm_eps != c.rms_norm_eps)
    warnings.push_back("GGUF has no epsilon for norms of single matrices; the model's is " +
                       number_text(c.projection_norm_eps) + ", not its rms_norm_eps " + number_text(c.rms_norm_eps));
  if (family_of(c.model_type).weight_multipliers && c.logits_scaling != 1.f)
    warnings.push_back("programs that read no logit_scale of this architecture multiply logits by " +
                       number_text(c.logits_scaling));
  if (const family& of = family_of(c.model_type); of.unbiased_router && of.parts_of_all && c.norm_topk_prob)
    warnings.push_back(
        "programs that read no expert_weights_norm of this architecture take false; the model's is true");
  if (c.query_pre_attn_scalar != 0)
    warnings.push_back("GGUF has no query_pre_attn_scalar; the model's is " + std::to_string(c.query_pre_attn_scalar) +
                       ", not its head_dim " + std::to_string(c.head_dim));
}

/// Writes config, vocabulary and pooling of a model. Facts that GGUF cannot express go to `warnings`.
/// @throws argument_error for a model without an architecture in GGUF
inline void write_model_keys(gguf_writer& out, const checkpoint& model, std::vector<std::string>& warnings) {
  const decoder_config& c = model.config();
  const bool bitnet = c.model_type == architecture::bitnet, gemma = is_gemma(c.model_type),
             llama = c.model_type == architecture::llama, kinds = family_of(c.model_type).kinds_of_layers,
             streams = family_of(c.model_type).streams;
  const activation expected = bitnet ? activation::silu : family_of(c.model_type).act;
  if (c.hidden_act != expected && !(bitnet && c.hidden_act == activation::relu_squared))
    throw argument_error("model",
                         "a model with " + std::string(bitnet ? "relu2 or " : "") + std::string(name(expected)),
                         printable(model.stated_architecture()) + " with " + std::string(name(c.hidden_act)));
  if (bitnet && c.hidden_act == activation::silu && c.activation_type != dtype::f32)
    warnings.push_back("GGUF has SiLU only with f32 activations (architecture bitnet); the folder's are " +
                       std::string(name(c.activation_type)));
  const std::string stated = gguf_architecture(c), prefix = stated + ".";
  out.set("general.architecture", stated);
  std::filesystem::path folder = platform::path_of(model.path());
  if (!folder.has_filename()) folder = folder.parent_path();
  out.set("general.name", is_utf8(folder.filename().string()) ? folder.filename().string() : std::string("model"));
  out.set("general.quantization_version", std::uint32_t{2});
  out.set(prefix + "vocab_size", c.vocab_size);
  out.set(prefix + "context_length", c.max_position_embeddings);
  out.set(prefix + "embedding_length", c.hidden_size);
  out.set(prefix + "block_count", c.num_hidden_layers);
  if (family_of(c.model_type).recurrent == recurrence::delta_net) write_delta_net(out, c, prefix);
  const bool scans = family_of(c.model_type).recurrent == recurrence::mamba2;
  if (scans) write_state_space(out, c, prefix);
  else if (kinds) write_kinds_of_layers(out, c, prefix);
  else
    out.set(prefix + "feed_forward_length", c.num_dense_layers != 0 ? c.dense_intermediate_size : c.intermediate_size);
  if (streams) write_streams(out, c, prefix);
  if (!kinds) out.set(prefix + "rope.dimension_count", c.rotary_dim != 0 ? c.rotary_dim : c.head_dim);
  out.set(prefix + "attention.head_count", c.num_attention_heads);
  if (lists_attention(family_of(c.model_type))) {
    out.set_array<std::int32_t>(prefix + "attention.head_count_kv", heads_of_layers(c));
    if (!scans) out.set(prefix + "shortconv.l_cache", c.conv_taps);
  } else if (!kinds) {
    out.set(prefix + "attention.head_count_kv", c.num_key_value_heads);
  }
  write_norms_and_pooling(out, model, prefix);
  if (!family_of(c.model_type).learned_positions) out.set(prefix + "rope.freq_base", c.rope_theta);
  if (c.ternary) out.set(std::string(activation_type_key), std::string(name(c.activation_type)));
  if (c.kv_lora_rank != 0) write_latent(out, c, prefix);
  else if (!kinds && (gemma || c.head_dim * c.num_attention_heads != c.hidden_size))
    for (const char* each : {"attention.key_length", "attention.value_length"}) out.set(prefix + each, c.head_dim);
  if (c.num_local_experts != 0) write_experts(out, c, prefix, warnings);
  if (family_of(c.model_type).multipliers) {
    out.set(prefix + "embedding_scale", c.embedding_multiplier);
    if (c.attention_multiplier != 0.f) out.set(prefix + "attention.scale", c.attention_multiplier);
    out.set(prefix + "residual_scale", c.residual_multiplier);
    out.set(prefix + "logit_scale", c.logits_scaling);
  }
  if (family_of(c.model_type).softcaps) {
    if (!kinds && !streams) out.set(prefix + "attn_logit_softcapping", c.attn_logit_softcapping);
    out.set(prefix + "final_logit_softcapping", c.final_logit_softcapping);
  }
  if (const std::uint32_t usual = family_of(c.model_type).no_rope_interval; !scans && c.no_rope_layer_interval != usual)
    warnings.push_back("GGUF has no key for layers without rotation, and programs take every " + std::to_string(usual) +
                       "th; the model's interval is " + std::to_string(c.no_rope_layer_interval));
  if (c.rope_scaling.type == rope_type::yarn) write_yarn(out, c, prefix, warnings);
  if (c.rope_scaling.type == rope_type::longrope) {
    out.set(prefix + "rope.scaling.original_context_length", c.rope_scaling.original_max_position_embeddings);
    out.set(prefix + "rope.scaling.attn_factor", c.rope_scaling.attention_factor);
  }
  if (c.rope_scaling.type == rope_type::linear) {
    out.set(prefix + "rope.scaling.type", "linear");
    out.set(prefix + "rope.scaling.factor", c.rope_scaling.factor);
  }
  if (family_of(c.model_type).default_window != 0 || c.sliding_window != 0)
    out.set(prefix + "attention.sliding_window", c.sliding_window);
  if (llama && c.sliding_window != 0)
    warnings.push_back(
        "programs that know no sliding window in GGUF's architecture llama will run the model without its own, " +
        std::to_string(c.sliding_window));
  const bool from_first = family_of(c.model_type).globals_first;
  if (from_first || (!kinds && !streams && c.sliding_window != 0 && c.sliding_window_pattern != 0)) {
    out.set(prefix + "attention.sliding_window_pattern", from_first ? windows_from_first(c) : c.sliding_window_pattern);
    if (c.rope_local_base_freq != 0.f) out.set(prefix + "rope.freq_base_swa", c.rope_local_base_freq);
  }
  warn_of_keys(c, warnings);
  if (const auto& words = model.vocabulary())  // for llama.cpp, merges in their order are a separate tokenizer model
    write_vocabulary_keys(out, *words, warnings, kinds && !words->merges.empty() ? stated : std::string());
}

}  // namespace intaglio::io
