// SPDX-License-Identifier: MIT
// The keys of a GGUF file about the widths of heads, also of latent attention (MLA). Facts of the latter: llama.cpp's
// src/models/deepseek2.cpp, llama-context.cpp and its converter.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "intaglio/io/gguf_layers.hpp"

namespace intaglio::io {

/// Reads the widths of heads.
class gguf_heads : public gguf_layers {
 public:
  using gguf_layers::gguf_layers;

 protected:
  /// Reads the width of heads, and how many of its channels are rotated.
  [[gnu::cold]] void read_head_dim() {
    const std::uint32_t heads = config_.num_attention_heads;
    const auto length = value("attention.key_length"), values = value("attention.value_length");
    if (length) {
      config_.head_dim = *length;
    } else {
      if (heads == 0 || config_.hidden_size % heads != 0)
        refuse(key("attention.head_count"), "a divisor of embedding_length " + std::to_string(config_.hidden_size),
               std::to_string(heads));
      config_.head_dim = config_.hidden_size / heads;
    }
    const std::string wide = std::to_string(config_.head_dim);
    if (values && *values != config_.head_dim)
      refuse(key("attention.value_length"),
             wide + (length ? " as attention.key_length" : " as embedding_length / attention.head_count"),
             std::to_string(*values));
    if (config_.no_rope_layer_interval == 1) return;  // no channel is rotated
    if (const auto rotated = value("rope.dimension_count");
        rotated && *rotated < config_.head_dim && family_of(config_.model_type).partial_rotary)
      config_.rotary_dim = *rotated;
    else if (rotated && *rotated != config_.head_dim)
      refuse(key("rope.dimension_count"), wide + " as the heads are wide", std::to_string(*rotated));
  }

  /// Reads Mamba-2 beside attention. Only some models normalise its output, which the tensors show. A tied head may
  /// have a factor; llama.cpp has no key for it.
  [[gnu::cold]] void read_attention_beside() {
    read_state_sizes();
    config_.num_key_value_heads = required_for_layers("attention.head_count_kv");
    config_.mamba_rms_norm = file_.find_tensor("blk.0.ssm_norm.weight") != nullptr;
    const float scale = real("logit_scale").value_or(1.f);
    if (!(scale > 0.f)) refuse(key("logit_scale"), "a number above 0", number_text(scale));
    config_.logits_scaling = 1 / scale;
  }

  /// Reads the widths of heads and of the vectors between products. Older files state a head's widths as key_length and
  /// value_length; in newer ones these are the widths of the cache's rows, and heads have keys of their own.
  [[gnu::cold]] void read_latent() {
    decoder_config& c = config_;
    c.q_lora_rank = value("attention.q_lora_rank").value_or(0);
    c.kv_lora_rank = required("attention.kv_lora_rank");
    c.rotary_dim = required("rope.dimension_count");
    const bool apart = value("attention.key_length_mla").has_value();
    c.head_dim = required(apart ? "attention.key_length_mla" : "attention.key_length");
    c.v_head_dim = required(apart ? "attention.value_length_mla" : "attention.value_length");
    if (apart) {
      expect("attention.key_length", c.kv_lora_rank + c.rotary_dim, " as the cache's rows are wide");
      expect("attention.value_length", c.kv_lora_rank, " as the cache's rows are wide");
    }
    if (c.num_key_value_heads != 1 && c.num_key_value_heads != c.num_attention_heads)
      refuse(key("attention.head_count_kv"),
             "1 or " + std::to_string(c.num_attention_heads) + " as attention.head_count",
             std::to_string(c.num_key_value_heads));
    c.num_key_value_heads = 1;  // the latent vector, which all heads share
  }

  /// Reads the factor of scores that belongs to YaRN. The key has a tenth of config.json's mscale_all_dim. llama.cpp
  /// takes mscale to be equal to it, so sines and cosines have the factor 1. Without the key llama.cpp multiplies
  /// scores by a factor that transformers does not have.
  [[gnu::cold]] void read_latent_scale() {
    decoder_config& c = config_;
    const auto tenth = real("rope.scaling.yarn_log_multiplier");
    if (c.rope_scaling.type != rope_type::yarn)
      return not_used({"rope.scaling.yarn_log_multiplier"}, "rope.scaling.type is not yarn");
    if (!tenth || !(*tenth > 0.f))
      refuse(key("rope.scaling.yarn_log_multiplier"), "a number above 0 beside rope.scaling.type yarn",
             tenth ? number_text(*tenth) : "no such key");
    const double share = std::round(1e6 * static_cast<double>(*tenth)) / 1e5;  // of few digits in config.json
    c.rope_scaling.attention_factor = 1.f;
    c.attention_multiplier = yarn_score_factor(c.head_dim, c.rope_scaling.factor, static_cast<float>(share));
  }

  /// Expects a number where the file states the key. @param as  why it is that number
  [[gnu::cold]] void expect(std::string_view tail, std::uint32_t wanted, const char* as) const {
    if (const auto stated = value(tail); stated && *stated != wanted)
      refuse(key(tail), std::to_string(wanted) + as, std::to_string(*stated));
  }
};

}  // namespace intaglio::io
