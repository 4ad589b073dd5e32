// SPDX-License-Identifier: MIT
// The tensors that a model of a given config has, under GGUF's names (llama.cpp's llama-arch.cpp), with shape and
// accepted types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/io/codec_ternary.hpp"

namespace intaglio::io {

/// The purpose of a tensor, which decides the types that it may have.
enum class tensor_role : std::uint8_t { embedding, norm, bias, matrix, factor, taps, table };

/// Whether a tensor of this role is a vector, without a second dimension.
constexpr bool is_vector(tensor_role role) {
  return role == tensor_role::norm || role == tensor_role::bias || role == tensor_role::factor;
}

/// A tensor that the config requires (or permits): a matrix is [rows, columns], a vector [columns] with one row.
struct tensor_rule {
  std::string name;
  tensor_role role = tensor_role::matrix;
  std::uint64_t rows = 1, columns = 1;
  bool optional = false;      ///< may be absent
  bool unused = false;        ///< may be present and is ignored
  std::uint32_t experts = 0;  ///< number of experts whose matrices the tensor holds, one after the other: it has three
                              ///< dimensions
};

/// Whether a tensor of this role may be stored as `type` in a model of this family.
constexpr bool is_accepted(const decoder_config& config, tensor_role role, dtype type) {
  const bool plain = type == dtype::f32 || type == dtype::f16 || type == dtype::bf16;
  switch (role) {
    case tensor_role::norm:
    case tensor_role::bias:
    case tensor_role::taps:
    case tensor_role::table:
      return plain;
    case tensor_role::factor:
      return type == dtype::f32;
    case tensor_role::embedding:
      return is_decodable(type);
    case tensor_role::matrix:
      break;
  }
  return is_ternary(config) ? is_ternary_source(type) : is_decodable(type) || type == dtype::bcml1;
}

/// The types that is_accepted accepts, for messages.
inline std::string accepted_types(const decoder_config& config, tensor_role role) {
  std::string out;
  for (const auto& row : dtype_table)
    if (is_accepted(config, role, row.type)) out += (out.empty() ? "" : " ") + std::string(row.name);
  return out;
}

/// Rows of a vector of Mamba-2 that GGUF stores as a matrix: one number in each row, or a norm with a row for each
/// group of heads; 0 for other tensors.
inline std::uint64_t mamba2_rows(const decoder_config& c, std::string_view name) {
  if (family_of(c.model_type).recurrent != recurrence::mamba2) return 0;
  if (name.ends_with(".ssm_a") || name.ends_with(".ssm_d")) return c.delta_net.value_heads;
  return name.ends_with(".ssm_norm.weight") ? c.delta_net.key_heads : 0;
}

/// Adds the tensors of a layer with a gated delta rule. @param add as for add_mamba2
template <class Add>
void add_delta_net(const decoder_config& c, const std::string& prefix, std::vector<tensor_rule>& out, const Add& add) {
  using enum tensor_role;
  const delta_net_config& delta = c.delta_net;
  add("attn_qkv", matrix, delta.qkv_size(), c.hidden_size);
  add("attn_gate", matrix, delta.value_size(), c.hidden_size);
  add("ssm_conv1d", taps, delta.qkv_size(), c.conv_taps);
  if (family_of(c.model_type).joint_gates) {
    add("ssm_ba", matrix, 2 * delta.value_heads, c.hidden_size);
  } else {
    add("ssm_beta", matrix, delta.value_heads, c.hidden_size);
    add("ssm_alpha", matrix, delta.value_heads, c.hidden_size);
  }
  out.push_back({prefix + "ssm_a", bias, 1, delta.value_heads});
  add("ssm_dt", bias, 1, delta.value_heads);
  add("ssm_norm", norm, 1, delta.value_dim);
  add("ssm_out", matrix, c.hidden_size, delta.value_size());
}

/// Adds the tensors of a layer of Mamba-2. @param add takes a name, a role, rows and columns
template <class Add>
void add_mamba2(const decoder_config& c, const std::string& prefix, std::vector<tensor_rule>& out, const Add& add) {
  using enum tensor_role;
  const delta_net_config& sizes = c.delta_net;
  for (const auto& [name, rows] : {std::pair{"ssm_in_gate", sizes.value_size()},
                                   {"ssm_in_xbc", sizes.qkv_size()},
                                   {"ssm_in_dt", sizes.value_heads}})
    add(name, matrix, rows, c.hidden_size);
  add("ssm_conv1d", taps, sizes.qkv_size(), c.conv_taps);
  add("ssm_conv1d", bias, 1, sizes.qkv_size());
  add("ssm_dt", bias, 1, sizes.value_heads);
  for (const char* each : {"ssm_a", "ssm_d"}) out.push_back({prefix + each, bias, 1, sizes.value_heads});
  if (c.mamba_rms_norm) add("ssm_norm", norm, 1, sizes.value_size());
  add("ssm_out", matrix, c.hidden_size, sizes.value_size());
}

/// Adds the tensors of a short convolution with its products. @param add as for add_mamba2
template <class Add>
void add_short_conv(const decoder_config& c, const Add& add) {
  using enum tensor_role;
  add("shortconv.in_proj", matrix, 3 * std::uint64_t{c.hidden_size}, c.hidden_size);
  add("shortconv.conv", taps, c.hidden_size, c.conv_taps);
  add("shortconv.out_proj", matrix, c.hidden_size, c.hidden_size);
}

/// Adds the tensors of latent attention. Two of them hold a matrix for each head. @param add as for add_mamba2
template <class Add>
void add_latent(const decoder_config& c, std::vector<tensor_rule>& out, const Add& add) {
  using enum tensor_role;
  const std::uint64_t hidden = c.hidden_size, heads = c.num_attention_heads, latent = c.kv_lora_rank,
                      queries = c.q_lora_rank != 0 ? c.q_lora_rank : hidden;
  if (c.q_lora_rank != 0) {
    add("attn_q_a", matrix, queries, hidden);
    add("attn_q_a_norm", norm, 1, queries);
  }
  add("attn_q_nope", matrix, heads * unrotated_dim(c), queries);
  add("attn_q_rope", matrix, heads * c.rotary_dim, queries);
  add("attn_kv_latent", matrix, latent, hidden);
  add("attn_k_rope", matrix, c.rotary_dim, hidden);
  add("attn_kv_a_norm", norm, 1, latent);
  add("attn_k_b", matrix, heads * latent, unrotated_dim(c));
  out.back().experts = c.num_attention_heads;
  add("attn_v_b", matrix, heads * c.v_head_dim, latent);
  out.back().experts = c.num_attention_heads;
  add("attn_output", matrix, hidden, heads * c.v_head_dim);
}

/// Adds the tensors of a layer that is an FFN without a gate, or a mixture of such FFNs with a shared expert.
/// @param add as for add_mamba2
template <class Add>
void add_ungated(const decoder_config& c, bool mixture, std::vector<tensor_rule>& out, const Add& add) {
  using enum tensor_role;
  const std::uint64_t inner = c.intermediate_size, hidden = c.hidden_size;
  if (!mixture) {
    const std::uint64_t alone = c.has_dense_layers() ? c.dense_intermediate_size : inner;
    add("ffn_up", matrix, alone, hidden);
    add("ffn_down", matrix, hidden, alone);
    return;
  }
  const std::uint64_t experts = c.num_local_experts;
  add("ffn_gate_inp", matrix, experts, hidden);
  if (c.use_expert_bias) add("exp_probs_b", bias, 1, experts);
  add("ffn_up_exps", matrix, experts * inner, hidden);
  out.back().experts = c.num_local_experts;
  add("ffn_down_exps", matrix, experts * hidden, inner);
  out.back().experts = c.num_local_experts;
  add("ffn_up_shexp", matrix, c.shared_expert_intermediate_size, hidden);
  add("ffn_down_shexp", matrix, hidden, c.shared_expert_intermediate_size);
}

/// All tensors of an encoder, layer by layer.
[[gnu::cold]] inline std::vector<tensor_rule> encoder_rules(const decoder_config& c) {
  using enum tensor_role;
  const std::uint64_t hidden = c.hidden_size, q = c.q_size(), inner = c.intermediate_size;
  const family& facts = family_of(c.model_type);
  std::vector<tensor_rule> out;
  const auto add_norm = [&](const std::string& name) {
    out.push_back({name + ".weight", norm, 1, hidden});
    if (!facts.bare_norms) out.push_back({name + ".bias", bias, 1, hidden});
  };
  out.push_back({"token_embd.weight", embedding, c.vocab_size, hidden});
  if (c.type_vocab_size != 0) out.push_back({"token_types.weight", table, c.type_vocab_size, hidden});
  if (facts.learned_positions) out.push_back({"position_embd.weight", table, c.max_position_embeddings, hidden});
  add_norm("token_embd_norm");
  if (facts.learned_positions)  // a cross-encoder's head, which gives one number
    out.insert(out.end(), {{"cls.weight", table, hidden, hidden, true},
                           {"cls.bias", bias, 1, hidden, true},
                           {"cls.output.weight", table, 1, hidden, true},
                           {"cls.output.bias", bias, 1, 1, true}});
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto add = [&](std::string_view name, std::uint64_t rows, std::uint64_t columns) {
      out.push_back({prefix + std::string(name) + ".weight", matrix, rows, columns});
      if (facts.biases) out.push_back({prefix + std::string(name) + ".bias", bias, 1, rows});
    };
    if (facts.norms_before && !(facts.globals_first && layer == 0)) add_norm(prefix + "attn_norm");
    for (const char* each : {"attn_q", "attn_k", "attn_v"}) add(each, q, hidden);
    add("attn_output", hidden, q);
    add_norm(prefix + (facts.norms_before ? "ffn_norm" : "attn_output_norm"));
    if (!facts.biases) add("ffn_gate", inner, hidden);
    add("ffn_up", inner, hidden);
    add("ffn_down", hidden, inner);
    if (!facts.norms_before) add_norm(prefix + "layer_output_norm");
  }
  if (facts.norms_before) add_norm("output_norm");
  return out;
}

/// All tensors of a decoder with LayerNorms, layer by layer.
[[gnu::cold]] inline std::vector<tensor_rule> layer_norm_rules(const decoder_config& c) {
  using enum tensor_role;
  const std::uint64_t hidden = c.hidden_size, q = c.q_size(), kv = c.kv_size(), inner = c.intermediate_size;
  const family& facts = family_of(c.model_type);
  std::vector<tensor_rule> out;
  const auto add_norm = [&](const std::string& name) {
    out.push_back({name + ".weight", norm, 1, hidden});
    if (!facts.bare_norms) out.push_back({name + ".bias", bias, 1, hidden});
  };
  out.push_back({"token_embd.weight", embedding, c.vocab_size, hidden});
  if (facts.learned_positions) out.push_back({"position_embd.weight", table, c.max_position_embeddings, hidden});
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto add = [&](std::string_view name, std::uint64_t rows, std::uint64_t columns, bool biased) {
      out.push_back({prefix + std::string(name) + ".weight", matrix, rows, columns});
      if (biased) out.push_back({prefix + std::string(name) + ".bias", bias, 1, rows});
    };
    add_norm(prefix + "attn_norm");
    add("attn_q", q, hidden, false), add("attn_k", kv, hidden, false), add("attn_v", kv, hidden, false);
    if (has_qkv_biases(c))
      for (const auto& [name, rows] : {std::pair{"attn_q.bias", q}, {"attn_k.bias", kv}, {"attn_v.bias", kv}})
        out.push_back({prefix + name, bias, 1, rows});
    add("attn_output", hidden, q, facts.biases);
    if (!facts.joint_norm) add_norm(prefix + "ffn_norm");
    if (!facts.ungated) add("ffn_gate", inner, hidden, false);
    add("ffn_up", inner, hidden, facts.biases);
    add("ffn_down", hidden, inner, facts.biases);
  }
  add_norm("output_norm");
  out.push_back({"output.weight", embedding, c.vocab_size, hidden, c.tie_word_embeddings, c.tie_word_embeddings});
  if (facts.head_bias) out.push_back({"output.bias", bias, 1, c.vocab_size});
  return out;
}

/// Adds the tensors that only layers with parallel streams have. @param add as for add_mamba2
template <class Add>
void add_stream_rules(const decoder_config& c, const Add& add) {
  using enum tensor_role;
  const std::uint64_t hidden = c.hidden_size, streams = c.altup_num_inputs;
  add("altup_router_norm", norm, 1, hidden);
  add("altup_router", table, streams, hidden);
  add("altup_predict_coef", table, streams * streams, streams);
  add("altup_correct_coef", table, streams, streams);
  add("altup_correct_scale", norm, 1, hidden);
  add("laurel_l", matrix, c.laurel_rank, hidden);
  add("laurel_r", matrix, hidden, c.laurel_rank);
  add("laurel_post_norm", norm, 1, hidden);
}

/// Adds the two products between the last norm and a text's vector.
inline void add_dense_products(const decoder_config& c, std::vector<tensor_rule>& out) {
  out.push_back({"dense_2.weight", tensor_role::matrix, c.dense_features, c.hidden_size});
  out.push_back({"dense_3.weight", tensor_role::matrix, c.hidden_size, c.dense_features});
}

/// The matrix of attention's gate; empty where attention has none.
constexpr std::string_view attention_gate(const family& of) {
  if (of.gated_attention) return "attn_gate";
  return of.recurrent == recurrence::delta_net ? "attn_q_gate" : "";
}

/// Adds a tensor of a layer, and what belongs to a matrix: the scale of ternary codes, and a norm of its own.
inline void add_tensor(const decoder_config& c, const std::string& stem, tensor_rule rule,
                       std::vector<tensor_rule>& out) {
  using enum tensor_role;
  rule.name = stem + (rule.role == bias ? ".bias" : ".weight");
  out.push_back(rule);
  if (rule.role != matrix) return;
  if (is_ternary(c)) out.push_back({stem + ".scale", factor, 1, 1, true});
  if (c.projection_norm_eps != 0) out.push_back({stem + "_norm_in.weight", norm, 1, rule.columns});
}

/// Adds the tensors of an FFN without experts. @param width of the FFN  @param add as for add_mamba2
template <class Add>
void add_ffn(const decoder_config& c, std::uint64_t width, const Add& add) {
  using enum tensor_role;
  const family& facts = family_of(c.model_type);
  if (!facts.ungated) add("ffn_gate", matrix, width, c.hidden_size);
  add("ffn_up", matrix, width, c.hidden_size);
  if (c.hidden_act == activation::xielu) add("ffn_act", norm, 1, 4);  // parameters of the activation
  if (facts.sub_norms) add("ffn_sub_norm", norm, 1, width);
  add("ffn_down", matrix, c.hidden_size, width);
}

/// All tensors of a model, layer by layer.
[[gnu::cold]] inline std::vector<tensor_rule> tensor_rules(const decoder_config& c) {
  if (const family& of = family_of(c.model_type); of.layer_norms)
    return of.encoder ? encoder_rules(c) : layer_norm_rules(c);
  using enum tensor_role;
  const std::uint64_t hidden = c.hidden_size, input = c.hidden_size_per_layer_input;
  const family& facts = family_of(c.model_type);
  std::vector<tensor_rule> out;
  out.push_back({"token_embd.weight", embedding, c.vocab_size, hidden});
  if (input != 0) {
    out.push_back({"per_layer_token_embd.weight", embedding,
                   c.vocab_size_per_layer_input != 0 ? c.vocab_size_per_layer_input : c.vocab_size,
                   c.num_hidden_layers * input});
    out.push_back({"per_layer_model_proj.weight", matrix, c.num_hidden_layers * input, hidden});
    out.push_back({"per_layer_proj_norm.weight", norm, 1, input});
  }
  for (const char* each : {"altup_proj.", "altup_unembd_proj."})
    for (std::uint32_t i = 1; i < c.altup_num_inputs; ++i)
      out.push_back({each + std::to_string(i - 1) + ".weight", matrix, hidden, hidden});
  for (std::uint32_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    const bool windowed = c.is_windowed(layer), shares = c.shares_kv(layer);
    const std::uint64_t wide = c.head_dim_of(windowed), q = c.num_attention_heads * wide,
                        kv = c.key_value_heads_of(windowed) * wide, inner = c.intermediate_size_of(shares),
                        dense = layer < c.num_dense_layers ? c.dense_intermediate_size : inner;
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const auto add = [&](std::string_view name, tensor_role role, std::uint64_t rows, std::uint64_t columns) {
      add_tensor(c, prefix + std::string(name), {{}, role, rows, columns}, out);
    };
    if (facts.norms_before) add("attn_norm", norm, 1, hidden);
    const auto add_own = [&](std::string_view name, tensor_role role, std::uint64_t rows, std::uint64_t columns) {
      const std::size_t before = out.size();
      add(name, role, rows, columns);
      for (std::size_t i = before; shares && i < out.size(); ++i)
        out[i].optional = out[i].unused = true;  // files may have tensors that nobody reads
    };
    if (facts.attention_beside) add_mamba2(c, prefix, out, add);
    if (c.recurrent_layers.has(layer) && facts.recurrent == recurrence::mamba2) {
      add_mamba2(c, prefix, out, add);
    } else if (c.ffn_layers.has(layer)) {
      add_ungated(c, c.has_experts(layer), out, add);
    } else if (c.recurrent_layers.has(layer) && facts.recurrent == recurrence::delta_net) {
      add_delta_net(c, prefix, out, add);
    } else if (c.recurrent_layers.has(layer)) {
      add_short_conv(c, add);
    } else if (facts.latent) {
      add_latent(c, out, add);
    } else {
      add("attn_q", matrix, q, hidden);
      if (const std::string_view gate = attention_gate(facts); !gate.empty()) add(gate, matrix, q, hidden);
      add_own("attn_k", matrix, kv, hidden);
      if (!c.attention_k_eq_v || windowed) add_own("attn_v", matrix, kv, hidden);
      if (has_qkv_biases(c)) {
        add("attn_q", bias, 1, q);
        add("attn_k", bias, 1, kv);
        add("attn_v", bias, 1, kv);
      }
      if (has_head_norms(c) || facts.whole_norms) {
        add("attn_q_norm", norm, 1, facts.whole_norms ? q : wide);
        add_own("attn_k_norm", norm, 1, facts.whole_norms ? kv : wide);
      }
      if (facts.sub_norms) add("attn_sub_norm", norm, 1, q);
      add("attn_output", matrix, hidden, q);
      if (facts.block_biases) add("attn_output", bias, 1, hidden);
      if (facts.sinks) add("attn_sinks", norm, 1, c.num_attention_heads);
    }
    if (facts.streams) add_stream_rules(c, add);
    if (facts.single_sublayers) continue;
    if (facts.norms_after) add("post_attention_norm", norm, 1, hidden);
    if (facts.norms_before) add(facts.ffn_norm, norm, 1, hidden);
    if (const std::uint64_t experts = c.num_local_experts; c.has_experts(layer)) {
      add("ffn_gate_inp", matrix, experts, hidden);
      if (c.use_expert_bias) add("exp_probs_b", bias, 1, experts);
      if (facts.block_biases) add("ffn_gate_inp", bias, 1, experts);
      for (const auto& [name, rows, columns] : {std::tuple{"ffn_gate_exps", inner, hidden},
                                                {"ffn_up_exps", inner, hidden},
                                                {"ffn_down_exps", hidden, inner}}) {
        add(name, matrix, experts * rows, columns);
        out.back().experts = c.num_local_experts;
        if (facts.block_biases) add(name, bias, 1, experts * rows);
      }
      const std::uint64_t shared = c.shared_expert_intermediate_size;
      if (facts.kinds_of_layers) {
        out.push_back({prefix + "ffn_gate_inp.scale", norm, 1, hidden});
        out.push_back({prefix + "ffn_down_exps.scale", norm, 1, experts});
        add("ffn_gate", matrix, shared, hidden);
        add("ffn_up", matrix, shared, hidden);
        add("ffn_down", matrix, hidden, shared);
        for (const char* each : {"pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"}) add(each, norm, 1, hidden);
      } else if (shared != 0) {
        if (has_shared_expert(facts)) add("ffn_gate_inp_shexp", matrix, 1, hidden);
        add("ffn_gate_shexp", matrix, shared, hidden);
        add("ffn_up_shexp", matrix, shared, hidden);
        add("ffn_down_shexp", matrix, hidden, shared);
      }
    } else {
      add_ffn(c, dense, add);
    }
    if (facts.norms_after) add("post_ffw_norm", norm, 1, hidden);
    if (input != 0) {
      add("inp_gate", matrix, input, hidden);
      add("proj", matrix, hidden, input);
      add("post_norm", norm, 1, hidden);
    }
    if (facts.kinds_of_layers) add("layer_output_scale", norm, 1, 1);
  }
  out.push_back({facts.embedding_norm ? "token_embd_norm.weight" : "output_norm.weight", norm, 1, hidden});
  if (c.dense_features != 0) add_dense_products(c, out);
  // A tied model may have its head again (bitnet-25 does); the embedding is used all the same.
  out.push_back({"output.weight", embedding, c.vocab_size, hidden, c.tie_word_embeddings, c.tie_word_embeddings});
  // The config's rope_scaling has the same factors.
  for (const char* factors : {"rope_factors_long.weight", "rope_factors_short.weight"})
    if (c.rope_scaling.type == rope_type::longrope)
      out.push_back({factors, norm, 1, (c.rotary_dim != 0 ? c.rotary_dim : c.head_dim) / 2, true});
  if (facts.kinds_of_layers && c.head_dim_of(false) > 1)  // global_turning_pairs has the same content
    out.push_back({"rope_freqs.weight", norm, 1, c.head_dim_of(false) / 2, true, true});
  if (facts.rope_factors) out.push_back({"rope_freqs.weight", norm, 1, c.head_dim / 2, true});
  return out;
}

}  // namespace intaglio::io
