// SPDX-License-Identifier: MIT
// The config of a transformer's checkpoint, of a decoder or an encoder, with the keys of transformers' config.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/layer_pattern.hpp"

namespace intaglio {

/// Families of models, by the mathematics of their layers (core/families_table.hpp).
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
  eurobert,
  deepseek2,
  chatglm,
  exaone,
  internlm2,
  deepseek,
  dots1,
  afmoe,
  minimax_m2,
  hunyuan_moe,
  minicpm,
  xverse,
  apertus,
  baichuan,
  bailingmoe,
  bailingmoe2,
  falcon_h1,
  command_r,
  cohere2,
  starcoder2,
  stablelm,
  nemotron,
  phi2,
  gptneox,
  falcon,
  gpt2,
  olmo,
  starcoder,
  orion
};
/// The last enumerator, for tables by architecture.
inline constexpr architecture last_architecture = architecture::orion;
/// Activations of feed-forward units that a config.json names. xielu has parameters of each layer, and units with it
/// have no gate.
enum class activation : std::uint8_t { relu_squared, silu, gelu_tanh, gelu, xielu };
/// The last enumerator, for tables by activation.
inline constexpr activation last_activation = activation::xielu;
/// How a mixture's router scores an expert from its logit.
enum class expert_score : std::uint8_t {
  logit,        ///< the logit: the largest ones are chosen, and an expert's weight is a softmax over the chosen ones or
                ///< over all
  logistic,     ///< 1 / (1 + exp(-logit)); a bias may be added to it for the choice of experts only
  probability,  ///< the softmax over all experts; a bias may be added to it for the choice of experts only
};
/// How RoPE reaches beyond the positions it was trained with. plain: it does not. linear: every angle is divided by a
/// factor. llama3: only the slow angles are divided (Llama 3.1). yarn: the divisor grows from pair to pair. longrope:
/// each pair has a factor, of which there are two lists. @source transformers' modeling_rope_utils.py; Peng et al. 2023
enum class rope_type : std::uint8_t { plain, linear, llama3, yarn, longrope };

/// The keys of rope_scaling in a config.json. `factor` belongs to all but longrope, low_ and high_freq_factor to llama3
/// and yarn.
struct rope_scaling_config {
  /// @{
  /// A key of rope_scaling in config.json.
  rope_type type = rope_type::plain;
  float factor = 1.f;
  float low_freq_factor = 1.f;   ///< turns in the original context below which angles are divided; yarn: beta_slow
  float high_freq_factor = 4.f;  ///< turns above which angles stay unchanged; yarn: beta_fast
  std::uint32_t original_max_position_embeddings = 0;
  float attention_factor = 1.f;  ///< multiplies the rotated channels of q and of k
  bool truncate = true;          ///< yarn: the division grows between whole pairs
  /// @}
  friend constexpr bool operator==(const rope_scaling_config&, const rope_scaling_config&) = default;
};

/// Divisors that longrope applies to the rotary embedding's frequencies: one for each pair of channels, then zeros.
struct longrope_factors {
  static constexpr std::size_t most = 64;  ///< pairs of channels
  std::array<float, most> short_factor{};  ///< where a session has at most the positions of the original context
  std::array<float, most> long_factor{};   ///< where a session has more positions
  friend constexpr bool operator==(const longrope_factors&, const longrope_factors&) = default;
};

/// Parameters of a layer's rotary embedding.
struct rope_parameters {
  float theta = 10'000.f;              ///< base of the angles
  rope_scaling_config scaling = {};    ///< how the angles reach beyond the trained positions
  std::uint32_t no_rope_interval = 0;  ///< layer i has no rotation where i + 1 is a multiple of this; 0: all layers
                                       ///< have it
  std::uint32_t rotary_dim = 0;        ///< channels of a head that are rotated; 0: all
  std::uint32_t turning_pairs = 0;     ///< number of pairs (i, i + head_dim / 2) that are rotated: the first ones, with
                                       ///< the frequencies of a head whose pairs all are; 0: all
  bool long_context = false;           ///< longrope: the factors are long_factor
  friend constexpr bool operator==(const rope_parameters&, const rope_parameters&) = default;
};

/// Sizes of the heads of recurrent layers with a state: gated delta rules (config.json's linear_*) or Mamba-2. In
/// Mamba-2 a group of heads is a key head, whose B and C are its key and its query. There ssm_state_size is key_dim,
/// and a head is a value head.
struct delta_net_config {
  std::uint32_t key_heads = 0, value_heads = 0;  ///< numbers of heads; value_heads is a multiple of key_heads
  std::uint32_t key_dim = 0, value_dim = 0;      ///< widths of a head
  bool in_turn = false;  ///< value head h has key head h % key_heads, the order of GGUF qwen35; else key head h /
                         ///< (value_heads / key_heads)
  /// Elements of a token's queries, keys and values.
  constexpr std::uint32_t qkv_size() const { return 2 * key_heads * key_dim + value_size(); }
  /// Elements of a token's values.
  constexpr std::uint32_t value_size() const { return value_heads * value_dim; }
  friend constexpr bool operator==(const delta_net_config&, const delta_net_config&) = default;
};

/// The config of a model. Sizes are in elements. A model type names one constant of this type by reference, so that
/// errors show its name.
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
  longrope_factors rope_factors = {};        ///< used by rope_type::longrope
  std::uint32_t rotary_dim = 0;              ///< head_dim * partial_rotary_factor; 0: all channels are rotated
  std::uint32_t no_rope_layer_interval = 0;  ///< as rope_parameters::no_rope_interval
  float rms_norm_eps = 1e-5f;                ///< LayerNorms: layer_norm_eps
  activation hidden_act = activation::relu_squared;
  bool tie_word_embeddings = true;
  /// @}
  /// Type of the inputs of ternary matrix products: i8 (absmax per token, as BitNet b1.58 was trained) or f32 (GGUF
  /// architecture "bitnet").
  dtype activation_type = dtype::i8;
  bool ternary = false;  ///< linear layers are ternary, as BitNet's (quantization_config), in a family whose layers
                         ///< need not be
  std::uint32_t sliding_window = 0;  ///< keys that a query sees, itself included; 0: all. In an encoder half of them
                                     ///< are before a query and half after it
  std::uint32_t sliding_window_pattern =
      0;  ///< layer i sees all keys where (i + 1) is a multiple of this; 0: no layer does
  float rope_local_base_freq =
      0.f;  ///< RoPE base of the windowed layers, which are not scaled then; 0: the base and scaling of all layers
  std::uint32_t query_pre_attn_scalar = 0;  ///< scores are divided by its square root; 0: head_dim
  float embedding_multiplier = 1.f;         ///< factor of the embedding's rows
  float attention_multiplier = 0.f;         ///< factor of scores; 0: 1 / sqrt(query_pre_attn_scalar or head_dim)
  float residual_multiplier = 1.f;          ///< factor of what each sublayer adds to the stream
  float logits_scaling = 1.f;               ///< divisor of logits
  float attn_logit_softcapping = 0.f;       ///< scores s become this * tanh(s / this); 0: they stay unchanged
  float final_logit_softcapping = 0.f;      ///< logits s become this * tanh(s / this); 0: they stay unchanged
  std::uint32_t num_local_experts =
      0;  ///< gated units of intermediate_size in a layer, of which a router chooses; 0: one unit and no router
  std::uint32_t num_experts_per_tok = 0;  ///< number of experts of a token
  layer_set recurrent_layers = {};        ///< layers with a recurrent state instead of keys and values
  layer_set ffn_layers = {};              ///< layers that have only an FFN, neither a state nor attention
  layer_set expert_layers = {};           ///< of ffn_layers, the layers whose FFN is a mixture of experts
  std::uint32_t conv_taps = 0;            ///< recurrent_layers: tokens that a convolution sees, the current one among
                                          ///< them
  // Fields of Gemma 4. Its layers that see all positions are called global.
  std::uint32_t global_head_dim = 0;              ///< head_dim of global layers; 0: head_dim
  std::uint32_t num_global_key_value_heads = 0;   ///< num_key_value_heads of global layers; 0: num_key_value_heads
  std::uint32_t global_turning_pairs = 0;         ///< rope_parameters::turning_pairs of global layers
  bool attention_k_eq_v = false;                  ///< global layers have no v: values are k without the weight of its
                                                  ///< norm
  layer_set full_attention_layers = {};           ///< the global layers; none: sliding_window_pattern says which
  std::uint32_t num_kv_shared_layers = 0;         ///< layers at the end that use the keys and values of the last layer
                                                  ///< of their kind in front of them
  std::uint32_t shared_intermediate_size = 0;     ///< intermediate_size of the num_kv_shared_layers; 0:
                                                  ///< intermediate_size
  std::uint32_t hidden_size_per_layer_input = 0;  ///< width of each layer's own embedding of a token; 0: there is none
  std::uint32_t vocab_size_per_layer_input = 0;   ///< rows of these embeddings; tokens beyond them use row 0; 0:
                                                  ///< vocab_size rows
  // Fields of Gemma 3n.
  std::uint32_t altup_num_inputs = 0;  ///< number of parallel streams (AltUp); 0: one
  std::uint32_t laurel_rank = 0;       ///< rank of the low-rank branch beside attention (LAuReL)
  layer_set sparse_layers = {};        ///< layers whose FFNs leave features out
  float sparse_deviations = 0.f;       ///< sparse_layers: standard deviations above the mean of the gates from which
                                       ///< features are kept
  delta_net_config delta_net = {};     ///< sizes of recurrent_layers with a state
  std::uint32_t shared_expert_intermediate_size = 0;  ///< a gated unit beside a layer's experts; 0: none
  std::uint32_t type_vocab_size = 0;                  ///< encoders: kinds of texts, each a row of token_types; 0: none
  std::uint32_t dense_features = 0;  ///< encoders: width between two products after the last norm (Dense of
                                     ///< sentence-transformers); 0: there are none
  bool norm_topk_prob = true;        ///< the weights of a token's experts add up to 1; else they are a softmax over
                                     ///< all experts or, with a logistic router, the scores themselves
  // Fields for routers whose scores are not logits (core/families_table.hpp).
  float routed_scaling_factor = 1.f;  ///< factor of each expert's weight
  bool use_expert_bias = false;       ///< experts are chosen with the bias exp_probs_b
  std::uint32_t n_group = 0;     ///< equal groups of neighbouring experts; 0: a token's experts are chosen among all
  std::uint32_t topk_group = 0;  ///< groups of which a token's experts are: those with the best expert or, with
                                 ///< use_expert_bias, with the largest sum of two experts
  std::uint32_t num_dense_layers = 0;         ///< layers at the front whose FFNs have no experts
  std::uint32_t dense_intermediate_size = 0;  ///< intermediate_size of these, and of ffn_layers without experts
  // Fields of families in which only some models have these parts (core/families_table.hpp).
  bool use_qk_norm = true;          ///< heads of q and k are normalised
  bool attention_bias = true;       ///< q, k and v have biases
  bool mamba_rms_norm = true;       ///< the output of Mamba-2 is normalised
  float projection_norm_eps = 0.f;  ///< epsilon of the RMSNorm that each matrix of a layer has in front; 0: none has
  std::uint32_t q_lora_rank = 0;    ///< width between the two products that make queries; 0: one product makes them
  std::uint32_t kv_lora_rank = 0;   ///< channels of the latent vector from which all heads' keys and values are made
                                    ///< (latent attention); 0: heads have keys and values of their own
  std::uint32_t v_head_dim = 0;     ///< with kv_lora_rank: channels of a head's values

  /// Elements of a token's queries.
  constexpr std::uint32_t q_size() const { return num_attention_heads * head_dim; }
  /// Elements of a token's keys, and of its values.
  constexpr std::uint32_t kv_size() const { return num_key_value_heads * head_dim; }
  /// Whether a layer sees only the last sliding_window positions.
  constexpr bool is_windowed(std::uint32_t layer) const {
    if (!full_attention_layers.empty()) return sliding_window != 0 && !full_attention_layers.has(layer);
    return sliding_window != 0 && (sliding_window_pattern == 0 || (layer + 1) % sliding_window_pattern != 0);
  }
  /// Whether a layer uses the keys and values of an earlier layer.
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
  /// Width of a layer's FFN. @param shares whether the layer uses the keys and values of an earlier layer
  constexpr std::uint32_t intermediate_size_of(bool shares) const {
    return shares && shared_intermediate_size != 0 ? shared_intermediate_size : intermediate_size;
  }
  /// The number whose square root divides scores.
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
      "bitnet",        "llama",       "gemma3",       "qwen3",         "qwen3moe",    "qwen2",       "smollm3",
      "granite",       "olmo2",       "phi3",         "lfm2",          "gemma2",      "gemma4",      "gemma3n",
      "gpt-oss",       "qwen35",      "qwen3next",    "granitehybrid", "nemotron_h",  "bert",        "nomic-bert",
      "granitemoe",    "olmoe",       "qwen35moe",    "lfm2moe",       "gemma",       "arcee",       "seed_oss",
      "mistral3",      "exaone4",     "qwen2moe",     "ernie4_5",      "glm4moe",     "glm4",        "gemma-embedding",
      "hunyuan-dense", "modern-bert", "ernie4_5-moe", "eurobert",      "deepseek2",   "chatglm",     "exaone",
      "internlm2",     "deepseek",    "dots1",        "afmoe",         "minimax-m2",  "hunyuan-moe", "minicpm",
      "xverse",        "apertus",     "baichuan",     "bailingmoe",    "bailingmoe2", "falcon-h1",   "command-r",
      "cohere2",       "starcoder2",  "stablelm",     "nemotron",      "phi2",        "gptneox",     "falcon",
      "gpt2",          "olmo",        "starcoder",    "orion"};
  static_assert(sizeof(names) / sizeof(names[0]) == static_cast<std::size_t>(last_architecture) + 1);
  return names[static_cast<std::size_t>(value)];
}
/// The name of an activation, as config.json's hidden_act spells it.
constexpr std::string_view name(activation value) {
  constexpr std::string_view names[] = {"relu2", "silu", "gelu_pytorch_tanh", "gelu", "xielu"};
  static_assert(sizeof(names) / sizeof(names[0]) == static_cast<std::size_t>(last_activation) + 1);
  return names[static_cast<std::size_t>(value)];
}
/// The name of a rope_type, as config.json's rope_type spells it.
constexpr std::string_view name(rope_type value) {
  constexpr std::string_view names[] = {"default", "linear", "llama3", "yarn", "longrope"};
  return names[static_cast<std::size_t>(value)];
}

}  // namespace intaglio
