// SPDX-License-Identifier: MIT
// What a transformer's checkpoint says of itself, a decoder's or an encoder's, with the keys of transformers'
// config.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/layer_pattern.hpp"

namespace intaglio {

/// Families of models, by the mathematics of their layers (core/family.hpp).
enum class architecture : std::uint8_t {
  bitnet,
  llama,
  gemma3,
  qwen3,
  qwen3moe,
  qwen2,
  smollm3,
  granite,
  olmo2,
  phi3,
  lfm2,
  gemma2,
  gemma4,
  gemma3n,
  gptoss,
  qwen35,
  qwen3next,
  granitehybrid,
  nemotron_h,
  bert,
  nomic_bert,
  granitemoe,
  olmoe,
  qwen35moe,
  lfm2moe,
  gemma,
  arcee,
  seed_oss,
  mistral3,
  exaone4,
  qwen2moe,
  ernie4_5,
  glm4moe,
  glm4,
  gemma_embedding,
  hunyuan_dense,
  modern_bert,
  ernie4_5_moe,
  eurobert
};
/// The last enumerator, for tables by architecture.
inline constexpr architecture last_architecture = architecture::eurobert;
/// Activations of gated feed-forward units that a config.json names.
enum class activation : std::uint8_t { relu_squared, silu, gelu_tanh, gelu };
/// The last enumerator.
inline constexpr activation last_activation = activation::gelu;
/// What a mixture's router makes of an expert's logit.
enum class expert_score : std::uint8_t {
  logit,        ///< the logit: the largest ones are chosen, and an expert counts by a softmax over the chosen ones or
                ///< over all
  logistic,     ///< 1 / (1 + exp(-logit)), to which a bias may be added for the choice alone
  probability,  ///< the softmax over all experts, to which a bias may be added for the choice alone
};
/// How RoPE reaches beyond the positions it was trained with: not at all, every angle divided by a factor, or
/// Llama 3.1's division of the slow angles alone, YaRN's, which grows from pair to pair, or longrope's factor for each
/// pair, of which there are two lists (transformers' modeling_rope_utils.py; Peng et al. 2023).
enum class rope_type : std::uint8_t { plain, linear, llama3, yarn, longrope };

/// config.json's rope_scaling. `factor` belongs to all but longrope, low_ and high_freq_factor to llama3 and yarn.
struct rope_scaling_config {
  /// @{
  /// A key of rope_scaling in config.json.
  rope_type type = rope_type::plain;
  float factor = 1.f;
  float low_freq_factor = 1.f;   ///< turns in the original context below which angles are divided; yarn: beta_slow
  float high_freq_factor = 4.f;  ///< and above which they stay as they are; yarn: beta_fast
  std::uint32_t original_max_position_embeddings = 0;
  float attention_factor = 1.f;  ///< channels that turn are multiplied by it, in q and in k
  bool truncate = true;          ///< yarn: the division grows between whole pairs
  /// @}
  friend constexpr bool operator==(const rope_scaling_config&, const rope_scaling_config&) = default;
};

/// Divisors of the frequencies of the rotary embedding by longrope, one for each pair of channels; 0 behind the last.
struct longrope_factors {
  static constexpr std::size_t most = 64;  ///< pairs of channels
  std::array<float, most> short_factor{};  ///< where a session has no more positions than the original context
  std::array<float, most> long_factor{};   ///< where it has more
  friend constexpr bool operator==(const longrope_factors&, const longrope_factors&) = default;
};

/// Parameters of the rotary embedding of a layer.
struct rope_parameters {
  float theta = 10'000.f;              ///< base of the angles
  rope_scaling_config scaling = {};    ///< how they reach beyond the trained positions
  std::uint32_t no_rope_interval = 0;  ///< layer i does not turn where i + 1 is a multiple of this; 0: all turn
  std::uint32_t rotary_dim = 0;        ///< channels of a head that turn; 0: all
  std::uint32_t turning_pairs = 0;     ///< pairs (i, i + head_dim / 2) that turn, the first ones, with the frequencies
                                       ///< of a head whose pairs all do; 0: all
  bool long_context = false;           ///< of longrope: the factors are long_factor
  friend constexpr bool operator==(const rope_parameters&, const rope_parameters&) = default;
};

/// Heads of recurrent layers with a state: of gated delta rules, config.json's linear_*, or Mamba-2's. There a group
/// of heads is a key head, whose B and C are its key and its query; ssm_state_size is key_dim, and a head is a value
/// head.
struct delta_net_config {
  std::uint32_t key_heads = 0, value_heads = 0;  ///< the latter a multiple of the former
  std::uint32_t key_dim = 0, value_dim = 0;      ///< widths of a head
  bool in_turn = false;  ///< value head h has key head h % key_heads, as GGUF qwen35 orders them; else h / (value_heads
                         ///< / key_heads)
  /// Elements of a token's queries, keys and values.
  constexpr std::uint32_t qkv_size() const { return 2 * key_heads * key_dim + value_size(); }
  /// Elements of a token's values.
  constexpr std::uint32_t value_size() const { return value_heads * value_dim; }
  friend constexpr bool operator==(const delta_net_config&, const delta_net_config&) = default;
};

/// Sizes are in elements. A model type names one constant of this by reference, so that errors show its name.
struct decoder_config {
  /// @{
  /// A key of config.json, with its meaning in transformers.
  architecture model_type = architecture::bitnet;
  std::uint32_t hidden_size = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t num_hidden_layers = 0;
  std::uint32_t num_attention_heads = 0;
  std::uint32_t num_key_value_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t max_position_embeddings = 0;
  float rope_theta = 10'000.f;
  rope_scaling_config rope_scaling = {};
  longrope_factors rope_factors = {};        ///< of rope_type::longrope
  std::uint32_t rotary_dim = 0;              ///< head_dim * partial_rotary_factor; 0: all channels turn
  std::uint32_t no_rope_layer_interval = 0;  ///< as rope_parameters::no_rope_interval
  float rms_norm_eps = 1e-5f;                ///< of encoders: layer_norm_eps
  activation hidden_act = activation::relu_squared;
  bool tie_word_embeddings = true;
  /// @}
  /// Type of the inputs of ternary matrix products: i8 (absmax per token, as BitNet b1.58 was trained) or f32 (GGUF
  /// architecture "bitnet").
  dtype activation_type = dtype::i8;
  bool ternary = false;  ///< linear layers of a family with other ones are ternary (quantization_config), as BitNet's
  std::uint32_t sliding_window = 0;  ///< keys that a query sees, itself included; 0: all. Of encoders halves of it are
                                     ///< before a query and behind it
  std::uint32_t sliding_window_pattern =
      0;  ///< layer i sees all keys where (i + 1) is a multiple of this; 0: no layer does
  float rope_local_base_freq =
      0.f;  ///< RoPE base of the windowed layers, which are not scaled then; 0: they turn as the others
  std::uint32_t query_pre_attn_scalar = 0;  ///< scores are divided by its square root; 0: head_dim
  float embedding_multiplier = 1.f;         ///< of the embedding's rows
  float attention_multiplier = 0.f;         ///< of scores; 0: 1 / sqrt(query_pre_attn_scalar or head_dim)
  float residual_multiplier = 1.f;          ///< of what each half of a block adds to the stream
  float logits_scaling = 1.f;               ///< what logits are divided by
  float attn_logit_softcapping = 0.f;       ///< scores s become this * tanh(s / this); 0: they stay
  float final_logit_softcapping = 0.f;      ///< logits likewise
  std::uint32_t num_local_experts =
      0;  ///< gated units of intermediate_size a layer, of which a router chooses; 0: one, and no router
  std::uint32_t num_experts_per_tok = 0;  ///< how many of them a token has
  layer_set recurrent_layers = {};        ///< with a state in the place of keys and values, whatever the position
  layer_set ffn_layers = {};              ///< that have an FFN alone, neither a state nor attention
  layer_set expert_layers = {};           ///< of these, the layers whose FFN is a mixture of experts
  std::uint32_t conv_taps = 0;            ///< of theirs, tokens that a convolution sees, its own among them
  // Gemma 4's: layers that see all positions are global.
  std::uint32_t global_head_dim = 0;             ///< head_dim of global layers; 0: as the others
  std::uint32_t num_global_key_value_heads = 0;  ///< num_key_value_heads of global layers; 0: as the others
  std::uint32_t global_turning_pairs = 0;        ///< rope_parameters::turning_pairs of global layers
  bool attention_k_eq_v = false;                 ///< global layers have no v: values are k without its norm's weight
  layer_set full_attention_layers = {};          ///< that are global; none: sliding_window_pattern says it
  std::uint32_t num_kv_shared_layers = 0;        ///< layers at the end that use keys and values of the last one of
                                                 ///< their kind before them
  std::uint32_t shared_intermediate_size = 0;    ///< intermediate_size of these; 0: as the others
  std::uint32_t hidden_size_per_layer_input =
      0;  ///< width of what each layer has of a token besides the stream; 0: none
  std::uint32_t vocab_size_per_layer_input = 0;  ///< rows of these embeddings: tokens behind them have row 0; 0: as
                                                 ///< vocab_size
  // Gemma 3n's.
  std::uint32_t altup_num_inputs = 0;  ///< streams beside each other; 0: one
  std::uint32_t laurel_rank = 0;       ///< of the branch beside attention
  layer_set sparse_layers = {};        ///< whose FFNs leave features out
  float sparse_deviations = 0.f;       ///< standard deviations from the mean of gates to where features begin there
  delta_net_config delta_net = {};     ///< of theirs
  std::uint32_t shared_expert_intermediate_size = 0;  ///< a gated unit beside a layer's experts; 0: none
  std::uint32_t type_vocab_size = 0;  ///< of encoders: kinds of texts, a row of token_types each; 0: none
  std::uint32_t dense_features = 0;   ///< of encoders: between two products behind the last norm (Dense of
                                      ///< sentence-transformers); 0: there are none
  bool norm_topk_prob = true;         ///< what a token's experts count adds up to 1; else: softmax over all experts, or
                                      ///< of a logistic router what each one counts by itself
  // Of routers that judge experts by other scores than logits (core/family.hpp).
  float routed_scaling_factor = 1.f;          ///< of what each expert counts
  bool use_expert_bias = false;               ///< experts are chosen with a bias, exp_probs_b
  std::uint32_t num_dense_layers = 0;         ///< layers in front whose FFNs have no experts
  std::uint32_t dense_intermediate_size = 0;  ///< intermediate_size of these, and of ffn_layers without experts
  // Of families of which some models alone have them (core/family.hpp).
  bool use_qk_norm = true;     ///< heads of q and k are normalised
  bool attention_bias = true;  ///< q, k and v have biases

  /// Elements of a token's queries.
  constexpr std::uint32_t q_size() const { return num_attention_heads * head_dim; }
  /// Elements of a token's keys, and of its values.
  constexpr std::uint32_t kv_size() const { return num_key_value_heads * head_dim; }
  /// Whether a layer sees the last sliding_window positions alone.
  constexpr bool is_windowed(std::uint32_t layer) const {
    if (!full_attention_layers.empty()) return sliding_window != 0 && !full_attention_layers.has(layer);
    return sliding_window != 0 && (sliding_window_pattern == 0 || (layer + 1) % sliding_window_pattern != 0);
  }
  /// Whether a layer uses keys and values of one before it.
  constexpr bool shares_kv(std::uint32_t layer) const {
    return layer < num_hidden_layers && layer + num_kv_shared_layers >= num_hidden_layers;
  }
  /// Width of a layer's heads.
  constexpr std::uint32_t head_dim_of(bool windowed) const {
    return windowed || global_head_dim == 0 ? head_dim : global_head_dim;
  }
  /// Key and value heads of a layer.
  constexpr std::uint32_t key_value_heads_of(bool windowed) const {
    return windowed || num_global_key_value_heads == 0 ? num_key_value_heads : num_global_key_value_heads;
  }
  /// Whether a layer has a mixture of experts.
  constexpr bool has_experts(std::uint32_t layer) const {
    return num_local_experts != 0 && layer >= num_dense_layers && (expert_layers.empty() || expert_layers.has(layer));
  }
  /// Whether some layers have FFNs without experts beside others with experts.
  constexpr bool has_dense_layers() const {
    return num_dense_layers != 0 || (!expert_layers.empty() && expert_layers != ffn_layers);
  }
  /// Width of a layer's FFN.  @param shares whether the layer has the keys and values of a layer before
  constexpr std::uint32_t intermediate_size_of(bool shares) const {
    return shares && shared_intermediate_size != 0 ? shared_intermediate_size : intermediate_size;
  }
  /// Scores are divided by the square root of this.
  constexpr std::uint32_t attention_scalar() const {
    return query_pre_attn_scalar != 0 ? query_pre_attn_scalar : head_dim;
  }
  /// Rotary embedding of the layers that see all positions.
  constexpr rope_parameters rope() const {
    return {rope_theta, rope_scaling, no_rope_layer_interval, rotary_dim, global_turning_pairs};
  }
  /// Rotary embedding of the windowed layers.
  constexpr rope_parameters local_rope() const {
    return rope_local_base_freq != 0.f ? rope_parameters{rope_local_base_freq} : rope();
  }
  friend constexpr bool operator==(const decoder_config&, const decoder_config&) = default;
};

/// The name of an architecture, as config.json's model_type spells it.
constexpr std::string_view name(architecture value) {
  constexpr std::string_view names[] = {
      "bitnet",        "llama",       "gemma3",       "qwen3",         "qwen3moe",   "qwen2",  "smollm3",
      "granite",       "olmo2",       "phi3",         "lfm2",          "gemma2",     "gemma4", "gemma3n",
      "gpt-oss",       "qwen35",      "qwen3next",    "granitehybrid", "nemotron_h", "bert",   "nomic-bert",
      "granitemoe",    "olmoe",       "qwen35moe",    "lfm2moe",       "gemma",      "arcee",  "seed_oss",
      "mistral3",      "exaone4",     "qwen2moe",     "ernie4_5",      "glm4moe",    "glm4",   "gemma-embedding",
      "hunyuan-dense", "modern-bert", "ernie4_5-moe", "eurobert"};
  static_assert(sizeof(names) / sizeof(names[0]) == static_cast<std::size_t>(last_architecture) + 1);
  return names[static_cast<std::size_t>(value)];
}
/// The name of an activation, as config.json's hidden_act spells it.
constexpr std::string_view name(activation value) {
  constexpr std::string_view names[] = {"relu2", "silu", "gelu_pytorch_tanh", "gelu"};
  static_assert(sizeof(names) / sizeof(names[0]) == static_cast<std::size_t>(last_activation) + 1);
  return names[static_cast<std::size_t>(value)];
}
/// The name of a rope_type, as config.json's rope_type spells it.
constexpr std::string_view name(rope_type value) {
  constexpr std::string_view names[] = {"default", "linear", "llama3", "yarn", "longrope"};
  return names[static_cast<std::size_t>(value)];
}

}  // namespace intaglio
