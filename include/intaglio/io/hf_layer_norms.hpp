// SPDX-License-Identifier: MIT
// The keys of config.json that only decoders with LayerNorms have. Defaults: transformers' configuration classes.
#pragma once

#include <string>

#include "intaglio/io/hf_latent.hpp"
#include "intaglio/io/hf_layer_norm_keys.hpp"

namespace intaglio::io {

/// Reads decoders with LayerNorms.
class hf_layer_norms : public hf_latent {
 public:
  using hf_latent::hf_latent;

 protected:
  /// The epsilon of a decoder's norms. Families with LayerNorms may leave it out.
  float read_eps(const located_json& text) const {
    const family& of = family_of(out_.config.model_type);
    const located_json eps = text[of.eps_key.data()];
    return of.layer_norms && !eps.present() ? 1e-5f : eps.real();
  }

  /// Reads sizes that files leave out or name as GPT-2's. Defaults: transformers' FalconConfig, GPT2Config and
  /// GPTBigCodeConfig.
  [[gnu::cold]] void read_loose_sizes(const located_json& text) {
    decoder_config& c = out_.config;
    const auto size_of = [&](const char* key, const char* other, std::uint32_t absent) {
      expect_same(text[key], text[other]);
      return text[key].present() ? size(text[key]) : text[other].present() ? size(text[other]) : absent;
    };
    const bool positions = family_of(c.model_type).learned_positions;
    c.hidden_size = size_of("hidden_size", "n_embd", positions ? 768 : 4544);
    c.num_hidden_layers = size_of("num_hidden_layers", "n_layer", positions ? 12 : 32);
    c.num_attention_heads = size_of("num_attention_heads", "n_head", positions ? 12 : 71);
    const std::uint32_t key_heads = family_of(c.model_type).one_kv_head ? 1 : c.num_attention_heads;
    c.num_key_value_heads = size_of("num_key_value_heads", "num_kv_heads", key_heads);
    if (c.num_key_value_heads != key_heads)
      document_.refuse("num_kv_heads", std::to_string(key_heads), std::to_string(c.num_key_value_heads));
    c.max_position_embeddings = size_of("max_position_embeddings", "n_positions", positions ? 1024 : 2048);
    c.vocab_size = size_of("vocab_size", "vocab_size", positions ? 50'257 : 65'024);
    if (c.num_attention_heads == 0 || c.hidden_size % c.num_attention_heads != 0)
      document_.refuse("number of heads", "a divisor of the hidden size " + std::to_string(c.hidden_size),
                       std::to_string(c.num_attention_heads));
    if (c.hidden_size > config_limits::hidden_size)
      document_.refuse("hidden_size", "at most " + std::to_string(config_limits::hidden_size),
                       std::to_string(c.hidden_size));
    c.head_dim = c.hidden_size / c.num_attention_heads;
    c.intermediate_size = size_of("n_inner", "ffn_hidden_size", 4 * c.hidden_size);
    c.rms_norm_eps = read_eps(text);
  }

  /// Reads biases, the rotated part of a head, and the factor of logits.
  [[gnu::cold]] void read_layer_norms(const located_json& text) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    if (const located_json biases = text["use_qkv_bias"]; of.optional_biases && biases.present())
      c.attention_bias = biases.boolean_or(false);
    if (const located_json part = text["rotary_pct"]; part.present()) {
      for (const located_json& object : {text, text["rope_scaling"], text["rope_parameters"]})
        expect_same(part, object["partial_rotary_factor"]);
      c.rotary_dim = 0;  // the family's default
      if (part.number() != 1.0) read_partial_rotary(part);
    }
    if (const located_json base = text["rotary_emb_base"]; base.present()) {
      for (const located_json& object : {text, text["rope_scaling"], text["rope_parameters"]})
        expect_same(base, object["rope_theta"]);
      c.rope_theta = base.real();
    }
    const located_json step = text["layer_switch"];
    expect_same(step, text["sliding_window_pattern"]);
    if (c.sliding_window != 0 && of.window_interval != 0 && step.present() && size(step) != c.sliding_window_pattern)
      step.refuse(std::to_string(c.sliding_window_pattern) + ", the interval of layers without a window");
    if (!of.scaled_logits) return;
    const located_json scale = text["logit_scale"];
    const float by = scale.present() ? scale.real() : 0.0625f;
    if (!(by > 0)) scale.refuse("a number above 0");
    c.logits_scaling = 1 / by;
  }
};

}  // namespace intaglio::io
