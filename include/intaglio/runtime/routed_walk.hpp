// SPDX-License-Identifier: MIT
// Runs a model on the CPU reference with FFNs that are walked by routers (io/feature_router.hpp): for each layer and
// token only the features of some experts. Counts how often each expert was chosen. For a mixture of experts the
// experts are the model's own, and their features are weighted by the experts' shares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "intaglio/io/feature_router.hpp"
#include "intaglio/runtime/walked_model.hpp"

namespace intaglio::runtime {

/// The choices of routers, over all tokens that were fed.
struct router_statistics {
  /// The choices of one layer's router.
  struct of_layer {
    std::vector<std::uint64_t> chosen;  ///< [experts]: number of tokens that chose it
    std::vector<double> shares;         ///< [experts]: sum of its softmax shares
    std::uint64_t features = 0;         ///< features that were walked, summed over tokens
    std::uint64_t all_features = 0;     ///< features of all experts, summed over tokens
  };
  std::uint64_t tokens = 0;
  std::vector<of_layer> layers;

  /// Share of the features that were walked.
  double walked() const {
    std::uint64_t some = 0, all = 0;
    for (const of_layer& each : layers) some += each.features, all += each.all_features;
    return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
  }
};

/// A choice of features by routers that counts the chosen experts. The router and the statistics must outlive it.
/// @param top_k experts of a layer and token; with at least the number of experts the walk is full; for a mixture it
///   then uses all of its experts  @param active_only use only features that are active
/// @param weighs multiply each feature by its expert's share, as in a mixture
inline reference::walk_choice routed_choice(const io::feature_router& router, std::size_t top_k, bool active_only,
                                            router_statistics& statistics, bool weighs = false) {
  if (top_k == 0) throw argument_error("top_k", "at least 1 expert", "0");
  statistics = {};
  for (std::uint32_t layer = 0; layer < router.layers(); ++layer) {
    auto& of = statistics.layers.emplace_back();
    of.chosen.resize(router.layer(layer).experts());
    of.shares.resize(of.chosen.size());
  }
  reference::walk_choice out{.active_only = active_only};
  out.route = [&router, &statistics, top_k, weighs](std::uint32_t layer, std::span<const float> x,
                                                    std::size_t features) -> reference::routed_features {
    const auto experts = router.route(layer, x, top_k);
    auto& of = statistics.layers[layer];
    for (const io::routed_expert& each : experts) {
      of.chosen[each.expert] += 1;
      of.shares[each.expert] += static_cast<double>(each.share);
    }
    auto walked = router.features(layer, experts, features);
    of.features += walked.size();
    of.all_features += features;
    if (!weighs) return walked;
    std::vector<float> share_of(router.layer(layer).experts()), weights;
    for (const io::routed_expert& each : experts) share_of[each.expert] = each.share;
    for (const std::uint32_t f : walked) weights.push_back(share_of[router.layer(layer).expert_of[f]]);
    return {std::move(walked), std::move(weights)};
  };
  return out;
}

/// Whether a router groups features as a mixture's layers do: expert after expert.
inline bool is_mixture_router(const io::feature_router& router, const decoder_config& of) {
  for (std::uint32_t layer = 0; layer < router.layers(); ++layer) {
    const auto& expert_of = router.layer(layer).expert_of;
    if (router.layer(layer).experts() != of.num_local_experts) return false;
    for (std::size_t f = 0; f < expert_of.size(); ++f)
      if (expert_of[f] != f / of.intermediate_size) return false;
  }
  return true;
}

/// Tokens and logits of a prompt that routed walks continued.
struct routed_prediction {
  std::vector<std::uint32_t> ids;  ///< the prompt and the greedy tokens that follow it
  std::vector<float> logits;       ///< of the last token that was fed, [vocab_size]
  router_statistics statistics;
};

/// Continues a prompt by `tokens` tokens with routed walks. @error argument_error: no prompt, a prompt that does not
/// fit, routers of another model, or for a mixture other routers than its own
inline routed_prediction predict_with_router(walked_model& model, const io::feature_router& router,
                                             std::span<const std::uint32_t> prompt, std::uint32_t tokens,
                                             std::size_t top_k, bool active_only = false) {
  if (prompt.empty()) throw argument_error("prompt", "at least one token", "none");
  if (router.layers() != model.config().num_hidden_layers)
    throw argument_error("router", std::to_string(model.config().num_hidden_layers) + " layers",
                         std::to_string(router.layers()));
  const bool mixture = model.config().num_local_experts != 0;
  if (mixture && !is_mixture_router(router, model.config()))
    throw argument_error(
        "router",
        "the mixture's own, whose experts have " + std::to_string(model.config().intermediate_size) + " features each",
        "another");
  routed_prediction out;
  out.ids.assign(prompt.begin(), prompt.end());
  const reference::walk_choice choice = routed_choice(router, top_k, active_only, out.statistics, mixture);
  const std::size_t whole = (std::min<std::size_t>)(prompt.size() + tokens, model.table().context);
  model.restart();
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    const auto logits = model.feed(out.ids[i], &choice);
    out.statistics.tokens += 1;
    out.logits.assign(logits.begin(), logits.end());
    if (i + 1 == out.ids.size() && out.ids.size() < whole)
      out.ids.push_back(static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  return out;
}

}  // namespace intaglio::runtime
