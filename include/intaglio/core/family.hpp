// SPDX-License-Identifier: MIT
// The differences between model families, in their blocks and their files, as data. Readers, writers and planners ask
// here instead of comparing names. The layers themselves are in models/<family>.hpp.
#pragma once

#include <array>
#include <string_view>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/message.hpp"

namespace intaglio {

/// What GGUF's key of a window means: it is the window of layers (read), llama.cpp does not read it (inert), or the
/// model is not computed (refused).
enum class gguf_window : std::uint8_t { read, inert, refused };

/// Whether blocks are mixtures of experts.
enum class mixtures : std::uint8_t { none, some, all };

/// What replaces attention in recurrent layers.
enum class recurrence : std::uint8_t { none, short_conv, delta_net, mamba2 };

struct family {
  architecture type;
  std::string_view config_names;      ///< model_type of config.json; several names are separated by a space
  std::string_view gguf_names;        ///< general.architecture of GGUF; several names are separated by a space
  std::string_view layers = "llama";  ///< the header of models/ with the family's layers, and the name of their
                                      ///< template in it
  bool ternary = false;               ///< matrices are ternary
  bool may_be_ternary = false;        ///< matrices of some models are ternary, or have a norm each in front of them
  bool head_norms = false;            ///< attn_q_norm, attn_k_norm: norms of each head of q and k
  bool optional_norms = false;        ///< only some models have head_norms (decoder_config::use_qk_norm)
  bool turned_norms = false;          ///< head_norms are behind the rotation: query_ and key_layernorm in safetensors
  bool whole_norms = false;           ///< attn_q_norm, attn_k_norm: norms of all heads of q, and of k, at once
  bool qkv_biases = false;            ///< attn_q.bias, attn_k.bias, attn_v.bias: added to q, k and v
  bool optional_biases = false;       ///< only some models have qkv_biases (decoder_config::attention_bias)
  bool block_biases = false;          ///< biases of the projection behind attention, of the router and of experts too
  bool sinks = false;                 ///< attn_sinks: one more score in each head's softmax
  bool norms_before = true;           ///< attn_norm, ffn_norm: norms of what the sublayers of a block read
  bool norms_behind = false;          ///< post_attention_norm, post_ffw_norm: norms of what is added to the stream
  bool norms_by_sublayer = false;     ///< with norms_behind: safetensors say post_self_attn_ and post_mlp_layernorm
  bool sub_norms = false;             ///< attn_sub_norm, ffn_sub_norm: norms in front of output projections
  gguf_window window = gguf_window::read;
  bool windows = false;               ///< config.json's sliding_window is the window of all layers
  std::uint32_t window_interval = 0;  ///< default: every n-th layer sees all positions; 0: none does
  std::uint32_t default_window = 0;   ///< the window of families with window_interval where files have no value
  bool fused = false;                 ///< files have q, k and v as one matrix, and gate and up
  bool fused_qkv = false;             ///< files have q, k and v as one matrix, but not gate and up
  bool fused_gate_up = false;         ///< files have gate and up as one matrix, but not q, k and v
  bool alpha_rope = false;            ///< a dynamic rope_scaling has `alpha`, which makes the base a larger constant
  bool partial_rotary = false;        ///< rotation may leave out a head's last channels; longrope has factors
  std::uint32_t default_rotary_part = 0;   ///< with partial_rotary: a head's n-th part is rotated; 0: all
  bool gguf_rows_in_pairs = false;         ///< GGUF has rows i and i + head_dim / 2 of q and k beside each other
  bool hf_rows_in_pairs = false;           ///< safetensors have these rows beside each other too
  float hf_norm_addend = 0.f;              ///< safetensors hold norm weights less this number
  std::string_view ffn_norm = "ffn_norm";  ///< the tensor of the norm of the FFN's input
  mixtures experts = mixtures::none;
  std::uint32_t default_experts = 0, default_experts_used = 0;  ///< mixtures: defaults of config.json
  std::uint32_t default_expert_width = 0;    ///< default of moe_intermediate_size; 0: there is no such key
  bool parts_of_all = false;                 ///< default: a softmax over all experts weighs them
  expert_score score = expert_score::logit;  ///< how routers score experts
  float router_added = 0.f;                  ///< not for logits: added to the sum by which scores are divided
  float router_least = 0.f;                  ///< not for logits: the smallest such sum
  std::uint32_t default_dense_layers = 0;    ///< layers at the front without experts, where files have no value
  bool gated_shared_expert = false;          ///< each layer has a shared expert, which every token uses, with a gate
  std::uint32_t default_shared_width = 0;    ///< width of the shared expert where config.json has no value
  std::uint32_t shared_experts = 0;          ///< shared experts without a gate, if no key states them; 0: none
  bool moe_keys = false;                     ///< config.json's keys of experts begin with moe_
  bool draft_layers = false;                 ///< files may have layers that draft tokens (multi-token prediction)
  bool joint_gates = false;                  ///< one matrix gives betas and alphas of delta rules
  recurrence recurrent = recurrence::none;   ///< kind of the config's recurrent_layers
  bool single_sublayers = false;             ///< a layer is a state, attention or an FFN without a gate
  bool ungated = false;                      ///< FFNs of all layers have no gate
  bool embedding_norm = false;               ///< the last norm is token_embd_norm, not output_norm
  bool multipliers = false;                  ///< factors of embedding, scores, additions to the stream, and logits
  bool softcaps = false;                     ///< scores and logits may be bounded by a scaled tanh
  float attn_softcap = 0.f, final_softcap = 0.f;  ///< defaults where files have no value
  bool encoder = false;                           ///< an encoder: tokens see each other; a text gives a vector
  bool layer_norms = false;                       ///< norms are LayerNorms with BERT's names: encoders
  bool bare_norms = false;                        ///< LayerNorms have no biases
  bool globals_first = false;      ///< with window_interval: layer 0 and every n-th layer after it see all positions;
                                   ///< attention of layer 0 reads the embedding, which has been normalised
  bool dense_products = false;     ///< two products may be behind the last norm of an encoder
  bool learned_positions = false;  ///< position_embd: a row for each position is added to the embedding; there is no
                                   ///< rotation
  bool biases = false;             ///< all matrices of an encoder have biases, and its FFN has no gate
  bool kinds_of_layers = false;  ///< layers differ in heads, caches and FFNs, each with a factor; experts beside an FFN
  bool streams = false;          ///< parallel streams, and FFNs that leave features out: Gemma 3n
  std::uint32_t no_rope_interval = 0;  ///< where files have no value: every n-th layer has no rotation
  bool globals_stand = false;          ///< layers that see all positions have no rotation where others have a window
  bool tied = false;                   ///< where config.json does not say it, the head is the embedding (tied)
  float default_theta = 10'000.f;      ///< base of the rotation where config.json has no value
  bool rope_factors = false;           ///< GGUF may have rope_freqs, by which Llama 3.1 scales its frequencies
  bool scaled_queries = false;         ///< queries behind the original context have factors; the context ends there
  std::uint32_t default_head_dim = 0;  ///< where config.json has no value; 0: hidden_size / num_attention_heads
  activation act = activation::silu;   ///< where config.json has no value
};

/// All families, in the order of `architecture`.
inline constexpr std::array<family, 39> families_table{{
    {.type = architecture::bitnet,
     .config_names = "bitnet",
     .gguf_names = "bitnet bitnet-b1.58 bitnet-25",
     .layers = "bitnet_b158",
     .ternary = true,
     .sub_norms = true,
     .window = gguf_window::refused,
     .default_theta = 5e5f,
     .act = activation::relu_squared},
    {.type = architecture::llama,
     .config_names = "llama mistral mixtral",
     .gguf_names = "llama",
     .may_be_ternary = true,
     .gguf_rows_in_pairs = true,
     .experts = mixtures::some,
     .rope_factors = true},
    {.type = architecture::gemma3,
     .config_names = "gemma3 gemma3_text",
     .gguf_names = "gemma3",
     .layers = "gemma3",
     .may_be_ternary = true,
     .head_norms = true,
     .norms_behind = true,
     .window_interval = 6,
     .default_window = 4096,
     .hf_norm_addend = 1.f,
     .default_head_dim = 256,
     .act = activation::gelu_tanh},
    {.type = architecture::qwen3,
     .config_names = "qwen3 qwen3_vl qwen3_vl_text",  // a Qwen3-VL that reads only text is a Qwen3
     .gguf_names = "qwen3 qwen3vl",
     .layers = "qwen3",
     .may_be_ternary = true,
     .head_norms = true,
     .window = gguf_window::inert,
     .default_head_dim = 128},
    {.type = architecture::qwen3moe,
     .config_names = "qwen3_moe",
     .gguf_names = "qwen3moe",
     .layers = "qwen3moe",
     .head_norms = true,
     .window = gguf_window::inert,
     .experts = mixtures::all,
     .default_experts = 128,
     .default_experts_used = 8,
     .default_expert_width = 768,
     .default_head_dim = 128},
    {.type = architecture::qwen2,
     .config_names = "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text",
     .gguf_names = "qwen2 qwen2vl",
     .layers = "qwen2",
     .may_be_ternary = true,
     .qkv_biases = true,
     .window = gguf_window::inert},
    {.type = architecture::smollm3,
     .config_names = "smollm3",
     .gguf_names = "smollm3",
     .gguf_rows_in_pairs = true,
     .no_rope_interval = 4},
    {.type = architecture::granite,
     .config_names = "granite",
     .gguf_names = "granite",
     .gguf_rows_in_pairs = true,
     .multipliers = true},
    {.type = architecture::olmo2,
     .config_names = "olmo2",
     .gguf_names = "olmo2",
     .layers = "olmo2",
     .whole_norms = true,
     .norms_before = false,
     .norms_behind = true,
     .window = gguf_window::refused},
    {.type = architecture::phi3,
     .config_names = "phi3",
     .gguf_names = "phi3",
     .windows = true,
     .fused = true,
     .partial_rotary = true},
    {.type = architecture::lfm2,
     .config_names = "lfm2",
     .gguf_names = "lfm2",
     .layers = "lfm2",
     .head_norms = true,
     .window = gguf_window::refused,
     .recurrent = recurrence::short_conv,
     .embedding_norm = true},
    {.type = architecture::gemma2,
     .config_names = "gemma2",
     .gguf_names = "gemma2",
     .layers = "gemma2",
     .norms_behind = true,
     .window_interval = 2,
     .default_window = 4096,
     .hf_norm_addend = 1.f,
     .softcaps = true,
     .attn_softcap = 50.f,
     .final_softcap = 30.f,
     .default_head_dim = 256,
     .act = activation::gelu_tanh},
    {.type = architecture::gemma4,
     .config_names = "gemma4 gemma4_text",
     .gguf_names = "gemma4",
     .layers = "gemma4",
     .head_norms = true,
     .norms_behind = true,
     .window_interval = 6,
     .default_window = 512,
     .experts = mixtures::some,
     .softcaps = true,
     .kinds_of_layers = true,
     .default_head_dim = 256,
     .act = activation::gelu_tanh},
    {.type = architecture::gemma3n,
     .config_names = "gemma3n gemma3n_text",
     .gguf_names = "gemma3n",
     .layers = "gemma3n",
     .head_norms = true,
     .norms_behind = true,
     .window_interval = 5,
     .default_window = 512,
     .softcaps = true,
     .final_softcap = 30.f,
     .streams = true,
     .default_head_dim = 256,
     .act = activation::gelu_tanh},
    {.type = architecture::gptoss,
     .config_names = "gpt_oss",
     .gguf_names = "gpt-oss",
     .layers = "gptoss",
     .qkv_biases = true,
     .block_biases = true,
     .sinks = true,
     .window_interval = 2,
     .default_window = 128,
     .ffn_norm = "post_attention_norm",
     .experts = mixtures::all,
     .default_experts = 128,
     .default_experts_used = 4,
     .default_head_dim = 64},
    {.type = architecture::qwen35,
     .config_names = "qwen3_5 qwen3_5_text",
     .gguf_names = "qwen35",
     .layers = "qwen35",
     .head_norms = true,
     .window = gguf_window::inert,
     .partial_rotary = true,
     .default_rotary_part = 4,
     .hf_norm_addend = 1.f,
     .ffn_norm = "post_attention_norm",
     .recurrent = recurrence::delta_net,
     .default_head_dim = 256},
    {.type = architecture::qwen3next,
     .config_names = "qwen3_next",
     .gguf_names = "qwen3next",
     .layers = "qwen3next",
     .head_norms = true,
     .window = gguf_window::inert,
     .partial_rotary = true,
     .default_rotary_part = 4,
     .hf_norm_addend = 1.f,
     .ffn_norm = "post_attention_norm",
     .experts = mixtures::all,
     .default_experts = 512,
     .default_experts_used = 10,
     .default_expert_width = 512,
     .gated_shared_expert = true,
     .default_shared_width = 512,
     .joint_gates = true,
     .recurrent = recurrence::delta_net,
     .default_head_dim = 256},
    {.type = architecture::granitehybrid,
     .config_names = "granitemoehybrid",
     .gguf_names = "granitehybrid",
     .layers = "granitehybrid",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .experts = mixtures::some,
     .default_experts = 8,
     .default_experts_used = 2,
     .recurrent = recurrence::mamba2,
     .multipliers = true},
    {.type = architecture::nemotron_h,
     .config_names = "nemotron_h",
     .gguf_names = "nemotron_h nemotron_h_moe",
     .layers = "nemotron_h",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .experts = mixtures::some,
     .score = expert_score::logistic,
     .router_added = 1e-20f,
     .recurrent = recurrence::mamba2,
     .single_sublayers = true,
     .default_head_dim = 128,
     .act = activation::relu_squared},
    {.type = architecture::bert,
     .config_names = "bert xlm-roberta roberta",
     .gguf_names = "bert",
     .layers = "bert",
     .qkv_biases = true,
     .norms_before = false,
     .window = gguf_window::refused,
     .encoder = true,
     .layer_norms = true,
     .learned_positions = true,
     .biases = true,
     .no_rope_interval = 1,
     .act = activation::gelu},
    {.type = architecture::nomic_bert,
     .config_names = "nomic_bert",
     .gguf_names = "nomic-bert",
     .layers = "nomic_bert",
     .norms_before = false,
     .window = gguf_window::refused,
     .fused_qkv = true,
     .encoder = true,
     .layer_norms = true},
    {.type = architecture::granitemoe,
     .config_names = "granitemoe granitemoeshared",
     .gguf_names = "granitemoe",
     .layers = "granitemoe",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .experts = mixtures::some,
     .default_experts = 8,
     .default_experts_used = 2,
     .multipliers = true},
    {.type = architecture::olmoe,
     .config_names = "olmoe",
     .gguf_names = "olmoe",
     .layers = "olmoe",
     .whole_norms = true,
     .window = gguf_window::refused,
     .experts = mixtures::all,
     .default_experts = 64,
     .default_experts_used = 8,
     .parts_of_all = true},
    {.type = architecture::qwen35moe,
     .config_names = "qwen3_5_moe qwen3_5_moe_text",
     .gguf_names = "qwen35moe",
     .layers = "qwen35moe",
     .head_norms = true,
     .window = gguf_window::inert,
     .partial_rotary = true,
     .default_rotary_part = 4,
     .hf_norm_addend = 1.f,
     .ffn_norm = "post_attention_norm",
     .experts = mixtures::all,
     .default_experts = 256,
     .default_experts_used = 8,
     .default_expert_width = 512,
     .gated_shared_expert = true,
     .default_shared_width = 512,
     .recurrent = recurrence::delta_net,
     .default_head_dim = 256},
    {.type = architecture::lfm2moe,
     .config_names = "lfm2_moe",
     .gguf_names = "lfm2moe",
     .layers = "lfm2moe",
     .head_norms = true,
     .window = gguf_window::refused,
     .experts = mixtures::all,
     .default_experts = 32,
     .default_experts_used = 4,
     .default_expert_width = 1792,
     .score = expert_score::logistic,
     .router_added = 1e-6f,
     .default_dense_layers = 2,
     .recurrent = recurrence::short_conv,
     .embedding_norm = true},
    {.type = architecture::gemma,
     .config_names = "gemma",
     .gguf_names = "gemma",
     .layers = "gemma",
     .window = gguf_window::refused,
     .hf_norm_addend = 1.f,
     .default_head_dim = 256,
     .act = activation::gelu_tanh},
    {.type = architecture::arcee,
     .config_names = "arcee",
     .gguf_names = "arcee",
     .layers = "arcee",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .ungated = true,
     .act = activation::relu_squared},
    {.type = architecture::seed_oss,
     .config_names = "seed_oss",
     .gguf_names = "seed_oss",
     .layers = "seed_oss",
     .qkv_biases = true,
     .window = gguf_window::refused,
     .ffn_norm = "post_attention_norm",
     .default_head_dim = 128},
    {.type = architecture::mistral3,
     .config_names = "ministral3",
     .gguf_names = "mistral3",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .scaled_queries = true,
     .default_head_dim = 128},
    {.type = architecture::exaone4,
     .config_names = "exaone4",
     .gguf_names = "exaone4",
     .layers = "exaone4",
     .head_norms = true,
     .norms_before = false,
     .norms_behind = true,
     .window_interval = 4,
     .globals_stand = true,
     .rope_factors = true},
    {.type = architecture::qwen2moe,
     .config_names = "qwen2_moe",
     .gguf_names = "qwen2moe",
     .layers = "qwen2moe",
     .qkv_biases = true,
     .window = gguf_window::inert,
     .experts = mixtures::all,
     .default_experts = 60,
     .default_experts_used = 4,
     .default_expert_width = 1408,
     .parts_of_all = true,
     .gated_shared_expert = true,
     .default_shared_width = 5632},
    {.type = architecture::ernie4_5,
     .config_names = "ernie4_5",
     .gguf_names = "ernie4_5",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .hf_rows_in_pairs = true,
     .tied = true,
     .default_theta = 5e5f},
    {.type = architecture::glm4moe,
     .config_names = "glm4_moe",
     .gguf_names = "glm4moe",
     .layers = "glm4moe",
     .head_norms = true,
     .optional_norms = true,
     .qkv_biases = true,
     .optional_biases = true,
     .window = gguf_window::refused,
     .partial_rotary = true,
     .default_rotary_part = 2,
     .ffn_norm = "post_attention_norm",
     .experts = mixtures::all,
     .default_experts = 128,
     .default_experts_used = 8,
     .default_expert_width = 1408,
     .score = expert_score::logistic,
     .router_added = 1e-20f,
     .default_dense_layers = 1,
     .shared_experts = 1,
     .draft_layers = true},
    {.type = architecture::glm4,
     .config_names = "glm4",
     .gguf_names = "glm4",
     .layers = "glm4",
     .qkv_biases = true,
     .optional_biases = true,
     .norms_behind = true,
     .norms_by_sublayer = true,
     .window = gguf_window::refused,
     .fused_gate_up = true,
     .partial_rotary = true,
     .default_rotary_part = 2,
     .gguf_rows_in_pairs = true,
     .hf_rows_in_pairs = true,
     .default_head_dim = 128},
    {.type = architecture::gemma_embedding,
     .config_names = "",  // a gemma3_text with use_bidirectional_attention
     .gguf_names = "gemma-embedding",
     .layers = "gemma_embedding",
     .head_norms = true,
     .norms_behind = true,
     .window_interval = 6,
     .default_window = 4096,
     .hf_norm_addend = 1.f,
     .encoder = true,
     .dense_products = true,
     .default_head_dim = 256,
     .act = activation::gelu_tanh},
    {.type = architecture::hunyuan_dense,
     .config_names = "hunyuan_v1_dense",
     .gguf_names = "hunyuan-dense",
     .layers = "hunyuan_dense",
     .head_norms = true,
     .optional_norms = true,
     .turned_norms = true,
     .window = gguf_window::refused,
     .alpha_rope = true},
    {.type = architecture::modern_bert,
     .config_names = "modernbert",
     .gguf_names = "modern-bert",
     .layers = "modern_bert",
     .window_interval = 3,
     .default_window = 128,
     .fused = true,
     .encoder = true,
     .layer_norms = true,
     .bare_norms = true,
     .globals_first = true,
     .act = activation::gelu},
    {.type = architecture::ernie4_5_moe,
     .config_names = "ernie4_5_moe",
     .gguf_names = "ernie4_5-moe",
     .layers = "ernie4_5_moe",
     .window = gguf_window::refused,
     .gguf_rows_in_pairs = true,
     .hf_rows_in_pairs = true,
     .experts = mixtures::all,
     .default_experts = 64,
     .default_experts_used = 6,
     .default_expert_width = 1536,
     .score = expert_score::probability,
     .router_least = 1e-12f,
     .default_dense_layers = 1,
     .shared_experts = 2,
     .moe_keys = true,
     .draft_layers = true,
     .tied = true,
     .default_theta = 5e5f},
    {.type = architecture::eurobert,
     .config_names = "eurobert",
     .gguf_names = "eurobert",
     .layers = "eurobert",
     .window = gguf_window::refused,
     .encoder = true},
}};

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
