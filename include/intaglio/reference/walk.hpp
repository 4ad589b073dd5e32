// SPDX-License-Identifier: MIT
// Walks through an FFN's features (docs/walk.md) in f32 on the CPU: gate scores, the nearest features, and the sum over
// the chosen features. The oracle of full and sparse walks. Sums are in the order of docs/kernels.md, over chosen
// features as over columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/reference/activation.hpp"
#include "intaglio/reference/canonical.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::reference {

/// The vectors of a layer's features, each [features, hidden_size], row by row.
struct walked_layer {
  std::size_t hidden_size = 0;
  std::span<const float> gate, up, down;
  std::size_t features() const { return gate.size() / hidden_size; }
  static std::span<const float> row(std::span<const float> of, std::size_t feature, std::size_t width) {
    return of.subspan(feature * width, width);
  }
};

/// gate_f . x of every feature. @shape gate: [features, width]; x: [width]
inline std::vector<float> gate_scores(std::span<const float> gate, std::span<const float> x) {
  std::vector<float> out(gate.size() / x.size());
  for (std::size_t f = 0; f < out.size(); ++f) out[f] = dot(gate.subspan(f * x.size(), x.size()), x);
  return out;
}

/// A feature and its gate score.
struct scored_feature {
  std::uint32_t feature = 0;
  float score = 0;
  friend bool operator==(const scored_feature&, const scored_feature&) = default;
};

/// The `count` features (or all) with the largest |score|, the largest first, the lowest first where several are equal.
/// Only features in [first, last), those of an expert, take part.
/// @throws argument_error for a score that is NaN
inline std::vector<scored_feature> nearest_features(std::span<const float> scores, std::size_t count,
                                                    std::size_t first = 0, std::size_t last = ~std::size_t{0}) {
  last = (std::min)(last, scores.size());
  std::vector<scored_feature> out;
  for (std::size_t f = first; f < last; ++f) {
    if (std::isnan(scores[f])) throw argument_error("scores", "numbers", "NaN of feature " + std::to_string(f));
    out.push_back({static_cast<std::uint32_t>(f), scores[f]});
  }
  const auto before = [](const scored_feature& a, const scored_feature& b) {
    return std::fabs(a.score) != std::fabs(b.score) ? std::fabs(a.score) > std::fabs(b.score) : a.feature < b.feature;
  };
  count = (std::min)(count, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end(), before);
  out.resize(count);
  return out;
}

/// The features of several lists, each once, in rising order.
inline std::vector<std::uint32_t> rising_union(array_view<const std::vector<scored_feature>> lists) {
  std::vector<std::uint32_t> out;
  for (const auto& list : lists)
    for (const scored_feature& each : list) out.push_back(each.feature);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Features whose gate is active: for squared ReLU those with a score above 0, for other activations all except exact
/// zeros.
inline std::vector<std::uint32_t> active_features(shader::activation_function act, std::span<const float> scores) {
  std::vector<std::uint32_t> out;
  const bool relu = act == shader::activation_function(activation::relu_squared);
  for (std::size_t f = 0; f < scores.size(); ++f)
    if (relu ? !(scores[f] <= 0) : scores[f] != 0) out.push_back(static_cast<std::uint32_t>(f));
  return out;
}

/// act(gate_f . x) * (up_f . x) of each chosen feature: the factor of its down vector. @param scores gate_scores of the
/// layer for x
inline std::vector<float> walk_values(const walked_layer& layer, shader::activation_function act,
                                      std::span<const float> scores, std::span<const float> x,
                                      std::span<const std::uint32_t> chosen) {
  std::vector<float> out(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i)
    out[i] = evaluate(*act, scores[chosen[i]], dot(walked_layer::row(layer.up, chosen[i], layer.hidden_size), x));
  return out;
}
/// The number of slots that share a sum over features, as in kernel walk_sum.
inline constexpr std::size_t feature_slots = kernels::walk_sum_slots;
/// The sum of the slots by halving, lower + higher.
inline float halved(std::array<float, feature_slots>& slot_count) {
  for (std::size_t step = feature_slots / 2; step != 0; step /= 2)
    for (std::size_t s = 0; s < step; ++s) slot_count[s] += slot_count[s + step];
  return slot_count[0];
}
/// The sum over `chosen` of their values times their down vectors: slot s takes the chosen features s, s + 128, ... in
/// order; then the slots are summed by halving.
inline std::vector<float> accumulate_features(const walked_layer& layer, std::span<const std::uint32_t> chosen,
                                              std::span<const float> values) {
  const std::size_t width = layer.hidden_size;
  std::vector<std::array<float, feature_slots>> sums(width);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto down = walked_layer::row(layer.down, chosen[i], width);
    for (std::size_t c = 0; c < width; ++c) sums[c][i % feature_slots] += product(values[i], down[c]);
  }
  std::vector<float> out(width);
  for (std::size_t c = 0; c < width; ++c) out[c] = halved(sums[c]);
  return out;
}
/// The sum of the chosen features. All features are the full walk, which is dense. Leaving out features that are not
/// active changes no value.
inline std::vector<float> walk(const walked_layer& layer, shader::activation_function act,
                               std::span<const float> scores, std::span<const float> x,
                               std::span<const std::uint32_t> chosen) {
  return accumulate_features(layer, chosen, walk_values(layer, act, scores, x, chosen));
}
/// The output of an FFN from all of its features.
inline std::vector<float> full_walk(const walked_layer& layer, shader::activation_function act,
                                    std::span<const float> x) {
  std::vector<std::uint32_t> all(layer.features());
  std::iota(all.begin(), all.end(), 0u);
  return walk(layer, act, gate_scores(layer.gate, x), x, all);
}
/// The walk through only the active features.
inline std::vector<float> exact_walk(const walked_layer& layer, shader::activation_function act,
                                     std::span<const float> x) {
  const std::vector<float> scores = gate_scores(layer.gate, x);
  return walk(layer, act, scores, x, active_features(act, scores));
}
/// The walk through the `count` features with the largest |score|, added in rising order.
inline std::vector<float> sparse_walk(const walked_layer& layer, shader::activation_function act,
                                      std::span<const float> x, std::size_t count) {
  const std::vector<float> scores = gate_scores(layer.gate, x);
  const std::vector<scored_feature> nearest[] = {nearest_features(scores, count)};
  return walk(layer, act, scores, x, rising_union(nearest));
}

}  // namespace intaglio::reference
