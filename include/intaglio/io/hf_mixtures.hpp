// SPDX-License-Identifier: MIT
// The keys of config.json about mixtures of experts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "intaglio/io/hf_encoder.hpp"

namespace intaglio::io {

/// Reads mixtures of experts.
class hf_mixtures : public hf_encoder {
 public:
  using hf_encoder::hf_encoder;

 protected:
  /// Reads experts. Defaults: transformers' MixtralConfig and Qwen3MoeConfig.
  [[gnu::cold]] void read_experts(const located_json& text) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    const bool mixtral = out_.model_type == "mixtral", all = of.experts == mixtures::all;
    if (may_share_expert(of)) {
      c.num_local_experts = size_or(text["num_local_experts"], of.default_experts);
      const std::uint32_t shared =
          size_or(text["shared_intermediate_size"], out_.model_type == "granitemoe" ? 0 : 1024);
      (c.num_local_experts != 0 ? c.shared_expert_intermediate_size : c.intermediate_size) = shared;
      if (c.num_local_experts != 0)
        c.num_experts_per_tok = size_or(text["num_experts_per_tok"], of.default_experts_used);
    }
    if (mixtral || all) {
      const located_json count = text[of.moe_keys                                               ? "moe_num_experts"
                                      : of.shared_experts && text["n_routed_experts"].present() ? "n_routed_experts"
                                      : mixtral || !text["num_experts"].present()               ? "num_local_experts"
                                                                                                : "num_experts"];
      for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) expect_same(text[key], count);
      c.num_local_experts = size_or(count, mixtral ? 8 : of.default_experts);
      const located_json used = text[of.moe_keys ? "moe_k" : "num_experts_per_tok"];
      c.num_experts_per_tok = size_or(used, mixtral ? 2 : of.default_experts_used);
      if (c.num_local_experts == 0) document_.refuse(count.where(), "a number above 0", "0");
    }
    if (all) {
      const bool all_biased = of.block_biases;
      const std::uint32_t dense = c.intermediate_size;
      if (of.default_expert_width != 0)
        c.intermediate_size = size_or(text["moe_intermediate_size"], of.default_expert_width);
      if (has_scored_router(of)) read_scored_router(text, dense);
      else if (of.shared_experts) read_shared_experts(text, dense);
      const bool parted =
          of.latent ? c.use_expert_bias
                    : (has_scored_router(of) || of.shared_experts || has_shared_expert(of)) && !of.parts_of_all;
      c.norm_topk_prob = text["norm_topk_prob"].boolean_or(all_biased || parted);
      if (has_shared_expert(of))
        c.shared_expert_intermediate_size = size_or(text["shared_expert_intermediate_size"], of.default_shared_width);
      if (const located_json limit = text["swiglu_limit"]; all_biased && limit.present() && limit.number() != 7.0)
        limit.refuse("7");
      if (const located_json slope = text["swiglu_alpha"];
          all_biased && slope.present() && static_cast<float>(slope.number()) != 1.702f)
        slope.refuse("1.702");
      if (all_biased) {
        expect_same(text["experts_per_token"], text["num_experts_per_tok"]);
        for (const char* rope : {"rope_scaling", "rope_parameters"})
          expect_same(text["initial_context_length"], text[rope]["original_max_position_embeddings"]);
      }
      if (text["decoder_sparse_step"].present() && text["decoder_sparse_step"].natural() != 1)
        text["decoder_sparse_step"].refuse("1: experts in all layers");
    }
    for (const char* key : {"num_experts", "num_local_experts"})
      if (c.num_local_experts == 0 && text[key].present() && text[key].natural() != 0)
        document_.refuse(key, "0", std::to_string(text[key].natural()));
  }

 private:
  /// Reads routers with other scores than logits. Defaults: transformers' Lfm2MoeConfig and Glm4MoeConfig. @param dense
  /// the width of FFNs without experts
  [[gnu::cold]] void read_scored_router(const located_json& text, std::uint32_t dense) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    const located_json layers = text[of.moe_keys         ? "moe_layer_start_index"
                                     : of.shared_experts ? "first_k_dense_replace"
                                                         : "num_dense_layers"],
                       factor = text["routed_scaling_factor"];
    c.num_dense_layers = of.latent ? dense_layers(text) : layers.present() ? size(layers) : of.default_dense_layers;
    if (c.num_dense_layers != 0) c.dense_intermediate_size = dense;
    c.use_expert_bias =
        of.latent ? states_bias(text)
                  : text[of.moe_keys ? "moe_use_aux_free" : "use_expert_bias"].boolean_or(!of.unbiased_router);
    if (of.score == expert_score::logistic && factor.present()) c.routed_scaling_factor = factor.real();
    if (of.shared_experts) read_shared_experts(text, c.intermediate_size);
  }

  /// Reads shared experts, which are computed as one that is as wide as all of them. @param width of one of them
  [[gnu::cold]] void read_shared_experts(const located_json& text, std::uint32_t width) {
    decoder_config& c = out_.config;
    const family& of = family_of(c.model_type);
    if (width != c.intermediate_size)
      document_.refuse("intermediate_size", std::to_string(c.intermediate_size) + " as moe_intermediate_size",
                       std::to_string(width));
    const located_json count = text[of.moe_keys ? "moe_num_shared_experts" : "n_shared_experts"];
    const std::uint32_t several = count.present() ? size(count) : count.is_null() ? 0 : of.shared_experts;
    const std::uint64_t shared = std::uint64_t{several} * c.intermediate_size;
    if (shared > config_limits::intermediate_size) count.refuse("experts that are not wider than a model's FFN");
    c.shared_expert_intermediate_size = static_cast<std::uint32_t>(shared);
    if (of.moe_keys) return judge_moe_keys(text);
    if (!of.latent || c.use_expert_bias || text["topk_method"].text_or("greedy") != "greedy") read_groups(text);
  }

  /// Reads groups of experts, unless all groups are used.
  [[gnu::cold]] void read_groups(const located_json& text) {
    decoder_config& c = out_.config;
    const auto number = [&](const char* key) { return text[key].present() ? text[key].natural() : 1; };
    const std::uint64_t groups = number("n_group"), used = number("topk_group");
    if (groups == used) return;
    if (!family_of(c.model_type).grouped_experts)
      text[groups > used ? "n_group" : "topk_group"].refuse("1: experts are chosen among all");
    if (used > groups) text["topk_group"].refuse("at most n_group, " + std::to_string(groups));
    c.n_group = size(text["n_group"]);
    c.topk_group = text["topk_group"].present() ? size(text["topk_group"]) : 1;
  }

  /// Whether experts are chosen with a bias, from the keys of routers of families with latent attention. Such a router
  /// scores by a logistic, and by a softmax without the bias. Keys whose defaults in transformers differ from family to
  /// family are required.
  [[gnu::cold]] bool states_bias(const located_json& text) {
    const bool second = out_.model_type == "deepseek_v2";
    for (const char* key : {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"}) (void)size(text[key]);
    if (!second) (void)text["routed_scaling_factor"].real();
    if (out_.model_type == "deepseek_v3")
      for (const char* key : {"n_group", "topk_group"}) (void)size(text[key]);
    if (const located_json every = text["moe_layer_freq"];
        every.present() && (!every.is_number() || every.number() != 1))
      every.refuse("1: experts in all layers after the dense ones");
    const std::string score = text["scoring_func"].text_or(second ? "softmax" : "sigmoid");
    if (score != "softmax" && score != "sigmoid") text["scoring_func"].refuse("softmax or sigmoid");
    const bool bias = score == "sigmoid";
    const located_json method = text["topk_method"];
    const std::string way = method.text_or(bias ? "noaux_tc" : "greedy");
    if (bias ? way != "noaux_tc" : way != "greedy" && way != "group_limited_greedy")
      method.refuse(bias ? "noaux_tc, which has a bias, beside scoring_func sigmoid"
                         : "greedy or group_limited_greedy beside scoring_func softmax");
    const located_json factor = text["routed_scaling_factor"];
    if (!bias && text["norm_topk_prob"].boolean_or(false) && factor.present() && factor.number() != 1)
      factor.refuse("1 beside scoring_func softmax and norm_topk_prob");
    return bias;
  }

  /// The number of dense layers at the front, from a number or a list of the layers' kinds.
  [[gnu::cold]] std::uint32_t dense_layers(const located_json& text) {
    const located_json list = text["mlp_layer_types"], stated = text["first_k_dense_replace"];
    if (!list.present()) return size(stated);
    const auto kinds = list.elements();
    std::uint32_t dense = 0;
    while (dense < kinds.size() && kinds[dense].text() == "dense") ++dense;
    for (std::size_t i = dense; i < kinds.size(); ++i)
      if (kinds[i].text() != "sparse") kinds[i].refuse("sparse after the dense layers at the front");
    if (kinds.size() != out_.config.num_hidden_layers)
      list.refuse(std::to_string(out_.config.num_hidden_layers) + " kinds, one a layer");
    if (stated.present() && size(stated) != dense)
      stated.refuse(std::to_string(dense) + " as mlp_layer_types has dense layers");
    return dense;
  }

  /// Checks keys of ERNIE 4.5's mixtures that may have only one value. Defaults: transformers' Ernie4_5_MoeConfig.
  [[gnu::cold]] void judge_moe_keys(const located_json& text) {
    const decoder_config& c = out_.config;
    expect_same(text["num_experts_per_tok"], text["moe_k"]);
    if (const located_json step = text["moe_layer_interval"]; step.present() && step.natural() != 1)
      step.refuse("1: experts in all layers from moe_layer_start_index on");
    if (const located_json last = text["moe_layer_end_index"];
        last.present() && last.number() != -1 && last.number() < c.num_hidden_layers - 1.0)
      last.refuse("-1 or the last layer " + std::to_string(c.num_hidden_layers - 1));
    if (const located_json least = text["moe_norm_min"];
        least.present() && static_cast<float>(least.number()) != family_of(c.model_type).router_least)
      least.refuse("1e-12");
    if (const std::string gate = text["moe_gate_act"].text_or("softmax"); gate != "softmax")
      document_.refuse("moe_gate_act", "softmax", "'" + printable(gate, 40) + "'");
    if (!text["moe_norm_gate_logits"].boolean_or(true)) document_.refuse("moe_norm_gate_logits", "true", "false");
  }
};

}  // namespace intaglio::io
