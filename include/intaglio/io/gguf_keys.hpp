// SPDX-License-Identifier: MIT
// The meaning of each metadata key under an architecture's prefix: read, harmless, or allowed only with the value that
// changes nothing. Key names: gguf-py's constants.py and llama.cpp's llama-arch.cpp.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "intaglio/core/family.hpp"
#include "intaglio/core/short_name.hpp"

namespace intaglio::io {

/// The key of the input type of a Llama's ternary layers, i8 or f32, where the codec does not determine it.
inline constexpr std::string_view activation_type_key = "intaglio.activation_type";

/// What the library does with a key of GGUF.
enum class gguf_key_use : std::uint8_t {
  read,              ///< by gguf_config
  harmless,          ///< not part of the computation
  layer_norm,        ///< read where norms are LayerNorms; not used in other families
  latent,            ///< read in families with latent attention; not used in other families
  dense_products,    ///< read where products may be after the last norm; not used in other families
  state,             ///< read in families with recurrent states of heads; not used in other families
  delta_net,         ///< read in families with delta rules; not used in other families
  short_conv,        ///< read in families with short convolutions; not used in other families
  rotation,          ///< read where positions are not learned; not used in other families
  yarn,              ///< read where the rotation is scaled by YaRN; not used in other models
  experts,           ///< read where layers have experts; not used in other models
  rms_norm,          ///< read where norms are RMSNorms; the same number as a LayerNorm's epsilon in other families
  neutral,           ///< a number that must be `neutral` or `absent`; both change nothing
  neutral_head_dim,  ///< a number that must be head_dim
  neutral_scale,     ///< a factor of attention scores: 0, or 1 / sqrt(head_dim); read where the family has multipliers
  longrope,          ///< as `yarn_factor`; read where the file has factors of longrope
  yarn_factor,       ///< as `neutral`; with unscaled_windows also YaRN's factor of sines, as converters write it
  streams,           ///< as `neutral`; read in families with parallel streams
  layer_inputs,      ///< as `neutral`; read where layers have kinds, or in families with parallel streams
  multiplier,        ///< as `neutral`; read where the family has multipliers
  logit_scale,       ///< as `multiplier`; read where the family has a factor of logits too
  parallel,          ///< as `neutral`; true where attention and FFN are beside each other; not used where only the
                     ///< tensors show it
  scored_router,     ///< as `neutral`; read where routers have scores that are not logits
  expert_groups,     ///< as `neutral`; read where experts may be chosen in groups
  shared_expert,     ///< as `neutral`; read in families with a shared expert
  shared_experts,    ///< as `neutral`; read in families with several shared experts; 1 in families with one
  draft_layers,      ///< as `neutral`; read in families whose files may have layers that draft tokens
  yarn_share,        ///< as `neutral`; read where YaRN's factor has a share of its own for sines or for scores
  causal,            ///< as `neutral`; false in encoders
  scaled_queries,    ///< as `neutral`; read where queries past the original context are scaled by their position
  softcap,           ///< as `neutral`; read where the family has bounds of scores and logits
};

/// The value of expert_gating_func for a score.
constexpr std::uint32_t gguf_gating(expert_score by) { return by == expert_score::logistic ? 2 : 1; }

/// Whether a model has a use for keys of this kind.
constexpr bool has_use(const decoder_config& c, gguf_key_use use) {
  const family& of = family_of(c.model_type);
  switch (use) {
    case gguf_key_use::layer_norm:
      return of.layer_norms;
    case gguf_key_use::latent:
      return of.latent;
    case gguf_key_use::dense_products:
      return of.dense_products;
    case gguf_key_use::state:
      return of.recurrent == recurrence::delta_net || of.recurrent == recurrence::mamba2;
    case gguf_key_use::delta_net:
      return of.recurrent == recurrence::delta_net;
    case gguf_key_use::short_conv:
      return of.recurrent == recurrence::short_conv;
    case gguf_key_use::rotation:
      return !of.learned_positions;
    case gguf_key_use::yarn:
      return c.rope_scaling.type == rope_type::yarn;
    case gguf_key_use::experts:
      return c.num_local_experts != 0;
    default:
      return true;
  }
}
/// Whether files of a family may state YaRN's share.
constexpr bool has_yarn_share(const family& of) { return of.scaled_queries || of.latent; }

/// One key without its prefix.
struct gguf_key_rule {
  short_name<46> tail;
  gguf_key_use use = gguf_key_use::read;
  float neutral = 0.f, absent = 0.f;
};

/// All rules, in the order of llama.cpp's list. A key that is not in it is unknown, and the loader warns of it by name.
inline constexpr gguf_key_rule gguf_key_rules[] = {
    {"vocab_size"},
    {"context_length"},
    {"embedding_length"},
    {"block_count"},
    {"feed_forward_length"},
    {"attention.head_count"},
    {"attention.head_count_kv"},
    {"attention.key_length"},
    {"attention.value_length"},
    {"attention.q_lora_rank", gguf_key_use::latent},
    {"attention.kv_lora_rank", gguf_key_use::latent},
    {"attention.key_length_mla", gguf_key_use::latent},
    {"attention.value_length_mla", gguf_key_use::latent},
    {"attention.layer_norm_rms_epsilon", gguf_key_use::rms_norm},
    {"attention.layer_norm_epsilon", gguf_key_use::layer_norm},
    {"attention.sliding_window"},
    {"attention.sliding_window_pattern"},
    {"rope.dimension_count"},
    {"rope.freq_base", gguf_key_use::rotation},
    {"rope.freq_base_swa"},
    {"rope.scaling.type", gguf_key_use::rotation},
    {"rope.scaling.factor", gguf_key_use::rotation},
    {"rope.scale_linear", gguf_key_use::rotation},
    {"expert_count"},
    {"expert_used_count"},
    {"expert_feed_forward_length", gguf_key_use::experts},
    {"shortconv.l_cache", gguf_key_use::short_conv},
    {"ssm.conv_kernel", gguf_key_use::state},
    {"ssm.state_size", gguf_key_use::state},
    {"ssm.group_count", gguf_key_use::state},
    {"ssm.time_step_rank", gguf_key_use::state},
    {"ssm.inner_size", gguf_key_use::state},
    {"ssm.has_mup", gguf_key_use::neutral},  // true in files whose matrices lack Falcon-H1's multipliers
    {"attention.recurrent_layers", gguf_key_use::delta_net},
    {"full_attention_interval", gguf_key_use::delta_net},
    {"n_deepstack_layers", gguf_key_use::harmless},       // about images
    {"rope.dimension_sections", gguf_key_use::harmless},  // for text all sections have the same position
    // Keys of YaRN.
    {"rope.scaling.original_context_length"},
    {"rope.scaling.yarn_beta_fast", gguf_key_use::yarn},
    {"rope.scaling.yarn_beta_slow", gguf_key_use::yarn},
    {"rope.scaling.finetuned", gguf_key_use::harmless},  // how the weights were made; read for Granite: false means no
                                                         // rotation
    {"pooling_type"},
    {"dense_2_feat_in", gguf_key_use::dense_products},
    {"dense_2_feat_out", gguf_key_use::dense_products},
    {"dense_3_feat_in", gguf_key_use::dense_products},
    {"dense_3_feat_out", gguf_key_use::dense_products},
    // Keys about the program that wrote the file.
    {"tensor_data_layout", gguf_key_use::harmless},
    {"dropout", gguf_key_use::harmless},
    {"attention.dropout", gguf_key_use::harmless},
    {"use_parallel_residual", gguf_key_use::parallel},
    {"logit_scale", gguf_key_use::logit_scale, 1.f, 0.f},
    {"residual_scale", gguf_key_use::multiplier, 1.f, 0.f},
    {"embedding_scale", gguf_key_use::multiplier, 1.f, 0.f},
    {"attn_logit_softcapping", gguf_key_use::softcap},
    {"final_logit_softcapping", gguf_key_use::softcap},
    {"router_logit_softcapping", gguf_key_use::neutral},
    {"attention.max_alibi_bias", gguf_key_use::neutral},
    {"attention.clamp_kqv", gguf_key_use::neutral},
    {"attention.causal", gguf_key_use::causal, 1.f, 1.f},
    {"attention.scale", gguf_key_use::neutral_scale},
    {"attention.output_scale", gguf_key_use::neutral, 1.f, 0.f},
    {"attention.temperature_length", gguf_key_use::neutral},
    {"attention.temperature_scale", gguf_key_use::scaled_queries},
    {"attention.shared_kv_layers", gguf_key_use::layer_inputs},
    {"attention.key_length_swa", gguf_key_use::neutral_head_dim},
    {"attention.value_length_swa", gguf_key_use::neutral_head_dim},
    {"rope.dimension_count_swa", gguf_key_use::neutral_head_dim},
    {"rope.scaling.attn_factor", gguf_key_use::longrope, 1.f, 0.f},
    {"rope.scaling.alpha", gguf_key_use::neutral, 1.f, 0.f},
    {"rope.scaling.yarn_ext_factor", gguf_key_use::neutral, 0.f, -1.f},
    {"rope.scaling.yarn_attn_factor", gguf_key_use::yarn_factor, 1.f, 0.f},
    {"rope.scaling.yarn_log_multiplier", gguf_key_use::yarn_share},
    {"leading_dense_block_count", gguf_key_use::scored_router},
    {"interleave_moe_layer_step", gguf_key_use::neutral, 1.f, 0.f},
    {"moe_every_n_layers", gguf_key_use::neutral, 1.f, 0.f},
    {"nextn_predict_layers", gguf_key_use::draft_layers},
    {"expert_shared_count", gguf_key_use::shared_experts},
    {"moe_latent_size", gguf_key_use::neutral},
    {"expert_shared_feed_forward_length", gguf_key_use::shared_expert},
    {"expert_group_count", gguf_key_use::expert_groups, 1.f, 0.f},
    {"expert_group_used_count", gguf_key_use::expert_groups, 1.f, 0.f},
    {"expert_weights_scale", gguf_key_use::scored_router, 1.f, 0.f},
    {"expert_weights_norm", gguf_key_use::scored_router, 1.f, 1.f},
    {"expert_gating_func", gguf_key_use::scored_router, 1.f, 0.f},  // 1: softmax, 2: logistic
    {"embedding_length_per_layer_input", gguf_key_use::layer_inputs},
    {"altup.num_inputs", gguf_key_use::streams, 1.f, 0.f},
    {"altup.active_idx", gguf_key_use::streams},
    {"activation_sparsity_scale", gguf_key_use::streams},
    {"swin_norm", gguf_key_use::neutral},
};

/// The rule of a key by its name without the architecture; null for an unknown key.
constexpr const gguf_key_rule* gguf_key_rule_of(std::string_view tail) {
  const auto* const found = std::find_if(std::begin(gguf_key_rules), std::end(gguf_key_rules),
                                         [&](const gguf_key_rule& rule) { return rule.tail == tail; });
  return found == std::end(gguf_key_rules) ? nullptr : found;
}

/// The keys of xIELU's parameters, which have no architecture in front (io/xielu_parameters.hpp).
inline constexpr std::array<std::string_view, 4> xielu_keys{"xielu.alpha_p", "xielu.alpha_n", "xielu.beta",
                                                            "xielu.eps"};
/// Whether a key is one of them.
constexpr bool is_xielu_key(std::string_view key) {
  return std::find(xielu_keys.begin(), xielu_keys.end(), key) != xielu_keys.end();
}

/// Prefixes of keys that do not affect the computation.
inline constexpr std::string_view gguf_free_prefixes[] = {"general.", "tokenizer.", "split.", "quantize.", "imatrix."};

}  // namespace intaglio::io
