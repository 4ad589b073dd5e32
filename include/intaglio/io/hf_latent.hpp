// SPDX-License-Identifier: MIT
// The keys of config.json about latent attention (MLA), and about the routers of the families that have it. Facts:
// transformers' DeepseekV2Config, DeepseekV3Config and Glm4MoeLiteConfig, and the published models' own code.
#pragma once

#include <cstdint>
#include <string>

#include "intaglio/io/hf_mixtures.hpp"

namespace intaglio::io {

/// Reads latent attention.
class hf_latent : public hf_mixtures {
 public:
  using hf_mixtures::hf_mixtures;

 protected:
  /// Reads the widths of heads and of the vectors between products. A head's last channels are rotated. transformers
  /// calls their number head_dim.
  [[gnu::cold]] void read_latent(const located_json& text) {
    decoder_config& c = out_.config;
    constexpr auto widest = static_cast<std::uint32_t>(config_limits::head_dim);
    const located_json rotated = text["qk_rope_head_dim"], first = text["qk_nope_head_dim"],
                       query = text["q_lora_rank"];
    expect_same(text["num_key_value_heads"], text["num_attention_heads"]);
    expect_same(text["head_dim"], rotated);
    if (size(first) > widest || size(rotated) > widest)
      first.refuse("numbers up to " + std::to_string(widest) + ", as of qk_rope_head_dim");
    c.rotary_dim = size(rotated);
    c.head_dim = size(first) + c.rotary_dim;
    if (text["qk_head_dim"].present() && size(text["qk_head_dim"]) != c.head_dim)
      text["qk_head_dim"].refuse("qk_nope_head_dim + qk_rope_head_dim, " + std::to_string(c.head_dim));
    c.kv_lora_rank = size(text["kv_lora_rank"]);
    c.v_head_dim = size(text["v_head_dim"]);
    if (!query.is_null()) c.q_lora_rank = size(query);
    c.num_key_value_heads = 1;  // the latent vector, which all heads share
    out_.rotated_halves = !text["rope_interleave"].boolean_or(true);
  }

  /// Reads the factor of scores that belongs to YaRN: mscale(factor, mscale_all_dim)^2 / sqrt(head_dim).
  [[gnu::cold]] void read_latent_scale(const located_json& text) {
    decoder_config& c = out_.config;
    if (c.rope_scaling.type == rope_type::llama3)
      document_.refuse("rope_scaling.rope_type", "default, linear or yarn beside latent attention", "'llama3'");
    if (c.rope_scaling.type != rope_type::yarn) return;
    const located_json scaling = text[text["rope_scaling"].present() ? "rope_scaling" : "rope_parameters"];
    if (const located_json share = scaling["mscale_all_dim"]; share.present() && share.number() != 0)
      c.attention_multiplier = yarn_score_factor(c.head_dim, c.rope_scaling.factor, share.real());
  }
};

}  // namespace intaglio::io
