// SPDX-License-Identifier: MIT
// The keys of a GGUF file about mixtures of experts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "intaglio/core/family.hpp"
#include "intaglio/io/gguf_heads.hpp"

namespace intaglio::io {

/// Reads mixtures of experts.
class gguf_mixtures : public gguf_heads {
 public:
  using gguf_heads::gguf_heads;

 protected:
  [[gnu::cold]] void read_experts() {
    const auto experts = value("expert_count"), used = value("expert_used_count");
    const mixtures of = family_of(config_.model_type).experts;
    if (experts.value_or(0) == 0) {
      if (of == mixtures::all) refuse(key("expert_count"), "a number above 0", experts ? "0" : "no such key");
      if (used.value_or(0) != 0) refuse(key("expert_used_count"), "0 without expert_count", std::to_string(*used));
      return;
    }
    if (of == mixtures::none) refuse(key("expert_count"), "0", std::to_string(*experts));
    if (family_of(config_.model_type).single_sublayers)
      if (const auto width = value("expert_feed_forward_length"); width != config_.intermediate_size)
        refuse(key("expert_feed_forward_length"),
               std::to_string(config_.intermediate_size) + " as " + key("feed_forward_length") + " of their layers",
               width ? std::to_string(*width) : "no such key");
    config_.num_local_experts = *experts;
    config_.norm_topk_prob = !family_of(config_.model_type).parts_of_all;
    if (family_of(config_.model_type).recurrent == recurrence::mamba2)
      config_.shared_expert_intermediate_size = required("expert_shared_feed_forward_length");
    else if (has_shared_expert(family_of(config_.model_type)))
      config_.shared_expert_intermediate_size = required("expert_shared_feed_forward_length");
    else if (may_share_expert(family_of(config_.model_type)))
      config_.shared_expert_intermediate_size = value("expert_shared_feed_forward_length").value_or(0);
    const std::uint32_t dense = config_.intermediate_size;
    // Where dense layers have a different width, the width of experts has another key; here all layers have experts.
    if (family_of(config_.model_type).kinds_of_layers)
      config_.shared_expert_intermediate_size =
          std::exchange(config_.intermediate_size, required("expert_feed_forward_length"));
    else if (const auto width = value("expert_feed_forward_length")) config_.intermediate_size = *width;
    else if (const family& facts = family_of(config_.model_type); facts.default_expert_width != 0 || facts.block_biases)
      refuse(key("expert_feed_forward_length"), "a number", "no such key");
    config_.num_experts_per_tok = required("expert_used_count");
    if (has_scored_router(family_of(config_.model_type))) read_scored_router(dense);
    if (family_of(config_.model_type).shared_experts) read_shared_experts();
  }

 private:
  /// Reads the keys of routers with other scores than logits. @param dense the width of FFNs without experts
  [[gnu::cold]] void read_scored_router(std::uint32_t dense) {
    decoder_config& c = config_;
    c.num_dense_layers = value("leading_dense_block_count").value_or(0);
    if (c.num_dense_layers != 0) c.dense_intermediate_size = dense;
    std::uint32_t first = 0;
    while (first < c.num_hidden_layers && !c.has_experts(first)) ++first;
    c.norm_topk_prob = file_.value<bool>(key("expert_weights_norm")).value_or(!family_of(c.model_type).parts_of_all);
    if (const float factor = real("expert_weights_scale").value_or(0.f); factor != 0.f)
      c.routed_scaling_factor = factor;
    c.use_expert_bias = file_.find_tensor("blk." + std::to_string(first) + ".exp_probs_b.bias") != nullptr;
    const std::uint32_t usual = gguf_gating(score_of(c));
    const std::uint32_t groups = value("expert_group_count").value_or(1),
                        of_token = value("expert_group_used_count").value_or(0);
    if ((groups > 1 || of_token > 1) && of_token != groups && family_of(c.model_type).grouped_experts)
      c.n_group = groups, c.topk_group = of_token;
    if (const std::uint32_t by = value("expert_gating_func").value_or(usual); by != usual)
      refuse(key("expert_gating_func"), usual == 2 ? "2, a sigmoid" : "1, a softmax", std::to_string(by));
  }

  /// Reads shared experts without a gate, as one that is as wide as all of them.
  [[gnu::cold]] void read_shared_experts() {
    decoder_config& c = config_;
    const std::uint64_t shared = std::uint64_t{value("expert_shared_count").value_or(0)} * c.intermediate_size;
    if (const auto width = value("expert_shared_feed_forward_length");
        shared > config_limits::intermediate_size || (width && *width != shared))
      refuse(key("expert_shared_count"), "experts that are as wide together as the shared one",
             std::to_string(value("expert_shared_count").value_or(0)));
    c.shared_expert_intermediate_size = static_cast<std::uint32_t>(shared);
  }
};

}  // namespace intaglio::io
