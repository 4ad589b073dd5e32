// SPDX-License-Identifier: MIT
// The properties in which families of models differ, in their blocks and in their files.
#pragma once

#include <cstdint>
#include <string_view>

#include "intaglio/core/decoder_config.hpp"

namespace intaglio {

/// What GGUF's key of a window means: it is the window of layers (read), llama.cpp does not read it (inert), or the
/// model is not computed (refused).
enum class gguf_window : std::uint8_t { read, inert, refused };

/// Whether blocks are mixtures of experts.
enum class mixtures : std::uint8_t { none, some, all };

/// How files may have q, k and v as one matrix that is split at load and is written as three. blocks: all queries, all
/// keys, all values. groups: for each key head its queries, then the key and the value.
enum class joined_qkv : std::uint8_t { none, blocks, groups };

/// What replaces attention in recurrent layers.
enum class recurrence : std::uint8_t { none, short_conv, delta_net, mamba2 };

/// Names of a family's tensors in safetensors: Llama's, with their variants, or names of their own.
enum class tensor_names : std::uint8_t { llama, starcoder2, phi, gpt_neox, falcon, gpt2 };

/// The properties of a family of models: its names in files, and how its layers differ from a Llama's.
struct family {
  architecture type = architecture::bitnet;
  std::string_view config_names;      ///< model_type of config.json; several names are separated by a space
  std::string_view gguf_names;        ///< general.architecture of GGUF; several names are separated by a space
  std::string_view layers = "llama";  ///< the header of models/ with the family's layers, and the name of their
                                      ///< template in it
  bool ternary = false;               ///< matrices are ternary
  bool may_be_ternary = false;        ///< matrices of some models are ternary, or have a norm each in front of them
  bool head_norms = false;            ///< attn_q_norm, attn_k_norm: norms of each head of q and k
  bool optional_norms = false;        ///< only some models have head_norms (decoder_config::use_qk_norm)
  bool turned_norms = false;          ///< head_norms are after the rotation: query_ and key_layernorm in safetensors
  bool whole_norms = false;           ///< attn_q_norm, attn_k_norm: norms of all heads of q, and of k, at once
  bool qkv_biases = false;            ///< attn_q.bias, attn_k.bias, attn_v.bias: added to q, k and v
  bool optional_biases = false;       ///< only some models have qkv_biases (decoder_config::attention_bias)
  bool usual_biases = false;          ///< with optional_biases: models have them where config.json has no value
  bool block_biases = false;          ///< biases of the projection after attention, of the router and of experts too
  bool latent = false;                ///< keys and values of all heads are made from a latent vector (MLA)
  bool gated_attention = false;       ///< attn_gate: what attention gives is multiplied by a logistic of its product
  bool sinks = false;                 ///< attn_sinks: one more score in each head's softmax
  bool norms_before = true;           ///< attn_norm, ffn_norm: norms of what the sublayers of a block read
  bool norms_after = false;           ///< post_attention_norm, post_ffw_norm: norms of what is added to the stream
  bool norms_by_sublayer = false;     ///< with norms_after: safetensors say post_self_attn_ and post_mlp_layernorm
  bool sub_norms = false;             ///< attn_sub_norm, ffn_sub_norm: norms in front of output projections
  gguf_window window = gguf_window::read;
  bool late_windows = false;          ///< config.json's sliding_window holds for layers from max_window_layers on
  bool windows = false;               ///< config.json's sliding_window is the window of all layers
  std::uint32_t window_interval = 0;  ///< default: every n-th layer sees all positions; 0: none does
  bool needs_window = false;          ///< with window_interval: models without a window are refused
  bool unscaled_windows = false;      ///< the rotation of layers with a window has the model's base and no scaling
  std::uint32_t default_window = 0;   ///< the window of families with window_interval where files have no value
  bool fused = false;                 ///< files have q, k and v as one matrix, and gate and up
  bool fused_qkv = false;             ///< files have q, k and v as one matrix, but not gate and up
  bool loose_qkv = false;             ///< GGUF may have q, k and v as one matrix, or as three, which are written
  bool fused_gate_up = false;         ///< files have gate and up as one matrix, but not q, k and v
  bool alpha_rope = false;            ///< a dynamic rope_scaling has `alpha`, which makes the base a larger constant
  bool partial_rotary = false;        ///< rotation may leave out a head's last channels; longrope has factors
  std::uint32_t default_rotary_part = 0;   ///< with partial_rotary: a head's n-th part is rotated; 0: all
  bool gguf_rows_in_pairs = false;         ///< GGUF has rows i and i + head_dim / 2 of q and k beside each other
  bool hf_rows_in_pairs = false;           ///< safetensors have these rows beside each other too
  joined_qkv joined = joined_qkv::none;    ///< files may have q, k and v as one matrix
  float hf_norm_addend = 0.f;              ///< safetensors hold norm weights less this number
  std::string_view ffn_norm = "ffn_norm";  ///< the tensor of the norm of the FFN's input
  bool bare_ffn_norm = false;              ///< GGUF names this tensor without ".weight"
  mixtures experts = mixtures::none;
  std::uint32_t default_experts = 0, default_experts_used = 0;  ///< mixtures: defaults of config.json
  std::uint32_t default_expert_width = 0;    ///< default of moe_intermediate_size; 0: there is no such key
  bool parts_of_all = false;                 ///< default: a softmax over all experts weighs them
  expert_score score = expert_score::logit;  ///< how routers score experts
  bool softmax_unbiased = false;             ///< routers without a bias of the choice score by the softmax
  float router_added = 0.f;                  ///< not for logits: added to the sum by which scores are divided
  float router_least = 0.f;                  ///< not for logits: the smallest such sum
  bool grouped_experts = false;  ///< not for logits: a token's experts may be chosen in some of several groups
  bool unbiased_router = false;  ///< not for logits: the choice of experts has no bias
  std::uint32_t default_dense_layers = 0;   ///< layers at the front without experts, where files have no value
  bool gated_shared_expert = false;         ///< each layer has a shared expert, which every token uses, with a gate
  std::uint32_t default_shared_width = 0;   ///< width of the shared expert where config.json has no value
  std::uint32_t shared_experts = 0;         ///< shared experts without a gate, if no key states them; 0: none
  bool moe_keys = false;                    ///< config.json's keys of experts begin with moe_
  bool draft_layers = false;                ///< files may have layers that draft tokens (multi-token prediction)
  bool joint_gates = false;                 ///< one matrix gives betas and alphas of delta rules
  recurrence recurrent = recurrence::none;  ///< kind of the config's recurrent_layers
  bool attention_beside = false;            ///< each layer has a state and attention, which read one norm
  bool single_sublayers = false;            ///< a layer is a state, attention or an FFN without a gate
  bool ungated = false;                     ///< FFNs of all layers have no gate
  bool embedding_norm = false;              ///< the last norm is token_embd_norm, not output_norm
  bool weight_multipliers = false;          ///< config.json has factors that GGUF's matrices have in their values
  bool multipliers = false;                 ///< factors of embedding, scores, additions to the stream, and logits
  bool depth_scaled = false;                ///< with multipliers: scores have the usual factor, and GGUF files without
                                            ///< the others have those of MiniCPM-2B
  std::uint32_t alibi_layers = 0;           ///< models with this number of layers have ALiBi and are refused
  bool softcaps = false;                    ///< scores and logits may be bounded by a scaled tanh
  float attn_softcap = 0.f, final_softcap = 0.f;  ///< defaults where files have no value
  bool encoder = false;                           ///< an encoder: tokens see each other; a text gives a vector
  bool layer_norms = false;                       ///< norms are LayerNorms
  bool bare_norms = false;                        ///< LayerNorms have no biases
  bool globals_first = false;      ///< with window_interval: layer 0 and every n-th layer after it see all positions;
                                   ///< attention of layer 0 reads the embedding, which has been normalised
  bool dense_products = false;     ///< two products may be after the last norm of an encoder
  bool learned_positions = false;  ///< position_embd: a row for each position is added to the embedding; there is no
                                   ///< rotation
  bool biases = false;             ///< all matrices have biases; FFNs of such an encoder have no gate
  bool plain_norms = false;        ///< files have no norms: LayerNorms without weights, for which ones are taken
  bool parallel = false;           ///< attention and FFN of a layer read one stream, and both are added to it
  bool joint_norm = false;         ///< with parallel: attn_norm is the norm of both; there is no ffn_norm
  bool head_bias = false;          ///< output.bias: added to logits
  tensor_names names = tensor_names::llama;  ///< names in safetensors of a decoder
  bool loose_sizes = false;                  ///< config.json may leave out sizes, or name them as GPT-2's does
  bool one_kv_head = false;                  ///< with loose_sizes: one head of keys and values
  bool qkv_by_head = false;    ///< safetensors have q, k and v as one matrix: each head's rows of q, of k and of v
  bool transposed = false;     ///< safetensors have matrices of layers transposed: [in, out]
  bool scaled_logits = false;  ///< logit_scale: logits are multiplied by it
  std::string_view eps_key = "rms_norm_eps";  ///< the key of the epsilon in config.json of a decoder; with
                                              ///< layer_norms it may be left out, and 1e-5 is used
  bool kinds_of_layers = false;  ///< layers differ in heads, caches and FFNs, each with a factor; experts beside an FFN
  bool streams = false;          ///< parallel streams, and FFNs that leave features out: Gemma 3n
  std::uint32_t no_rope_interval = 0;  ///< where files have no value: every n-th layer has no rotation
  bool globals_stand = false;          ///< layers that see all positions have no rotation where others have a window
  bool tied = false;                   ///< where config.json does not say it, the head is the embedding (tied)
  float default_theta = 10'000.f;      ///< base of the rotation where config.json has no value
  bool rope_factors = false;           ///< GGUF may have rope_freqs, by which Llama 3.1 scales its frequencies
  bool scaled_queries = false;         ///< queries past the original context have factors; the context ends there
  std::uint32_t default_head_dim = 0;  ///< where config.json has no value; 0: hidden_size / num_attention_heads
  activation act = activation::silu;   ///< where config.json has no value; xielu: no other is computed
};

}  // namespace intaglio
