// SPDX-License-Identifier: MIT
// Kernels route, expert_tiles and expert_sum, and matmul with the experts that route chose, on the CPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/reference/matmul.hpp"

namespace intaglio::reference {

/// How a token's experts are chosen and weighed.
struct routing {
  bool over_all = false;                     ///< the weights add up to 1 over all experts, not over the chosen ones
  std::span<const float> scale{};            ///< factor of each expert's weight, [experts]; empty: 1
  expert_score score = expert_score::logit;  ///< kind of scores; where they are not logits a weight is the score over
                                             ///< the sum of the chosen ones, or with over_all the score itself
  std::span<const float> choosing{};         ///< for such scores: added only for the choice, [experts]; empty: 0
  float factor = 1.f;                        ///< factor of each weight
  float added = 0.f;                         ///< for such scores: added to the sum by which weights are divided
  float least = 0.f;                         ///< the smallest sum by which weights are divided
  std::size_t groups = 1;                    ///< for such scores: equal groups of neighbouring experts
  std::size_t groups_used = 1;               ///< groups of which experts are chosen: those with the best expert or,
                                             ///< with `choosing`, with the largest sum of two experts
};

/// The scores of a token's experts, [experts], for kinds of scores that are not logits.
inline std::vector<float> expert_scores(std::span<const float> logits, expert_score by) {
  std::vector<float> out;
  if (by == expert_score::logistic) {
    for (const float logit : logits) out.push_back(1.0f / (1.0f + kernels::arithmetic::exp(-logit)));
    return out;
  }
  const float largest = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (const float logit : logits) sum += out.emplace_back(kernels::arithmetic::exp(logit - largest));
  for (float& part : out) part = part / sum;
  return out;
}

/// Which experts are not in the best groups, and are not chosen. @param judged numbers by which experts are chosen
inline std::vector<bool> outside_groups(std::span<const float> judged, const routing& how) {
  std::vector<bool> out(judged.size());
  if (how.groups <= 1) return out;
  const std::size_t size = judged.size() / how.groups;
  std::vector<float> scores;
  for (std::size_t first = 0; first < judged.size(); first += size) {
    float best = -std::numeric_limits<float>::infinity(), second = best;
    for (const float each : judged.subspan(first, size)) {
      second = each > best ? best : (std::max)(second, each);
      best = (std::max)(best, each);
    }
    scores.push_back(how.choosing.empty() ? best : best + second);
  }
  for (std::size_t e = 0; e < judged.size(); ++e) {
    std::size_t ahead = 0;
    for (std::size_t g = 0; g < how.groups; ++g)
      ahead += scores[g] > scores[e / size] || (scores[g] == scores[e / size] && g < e / size) ? 1u : 0u;
    out[e] = ahead >= how.groups_used;
  }
  return out;
}

/// The choice of a token whose experts have scores that are not logits.
inline void scored_route(std::span<const float> logits, std::span<std::uint32_t> choice, const routing& how) {
  const std::size_t used = choice.size() / 2;
  const std::vector<float> parts = expert_scores(logits, how.score);
  std::vector<float> judged;
  for (std::size_t e = 0; e < parts.size(); ++e)
    judged.push_back(how.choosing.empty() ? parts[e] : parts[e] + how.choosing[e]);
  std::vector<bool> taken = outside_groups(judged, how);
  float sum = 0;
  for (std::size_t j = 0; j < used; ++j) {
    std::size_t best = logits.size();
    for (std::size_t e = 0; e < logits.size(); ++e)
      if (!taken[e] && (best == logits.size() || judged[e] > judged[best])) best = e;
    taken[best] = true;
    sum += parts[best];
    choice[j] = static_cast<std::uint32_t>(best);
  }
  for (std::size_t j = 0; j < used; ++j) {
    float part = parts[choice[j]];
    if (!how.over_all) part = part / ((sum < how.least ? how.least : sum) + how.added);
    part = how.factor == 1.f ? part : product(part, how.factor);
    choice[used + j] = std::bit_cast<std::uint32_t>(how.scale.empty() ? part : product(part, how.scale[choice[j]]));
  }
}

/// Kernel route for one token.
/// @shape  logits: [experts], their bias added; choice: [2 * experts used]
inline void route(std::span<const float> logits, std::span<std::uint32_t> choice, const routing& how = {}) {
  if (how.score != expert_score::logit) return scored_route(logits, choice, how);
  const std::size_t used = choice.size() / 2;
  std::vector<bool> taken(logits.size());
  std::vector<float> parts;
  float largest = 0, sum = 0;
  for (std::size_t j = 0; j < used; ++j) {
    std::size_t best = logits.size();
    for (std::size_t e = 0; e < logits.size(); ++e)
      if (!taken[e] && (best == logits.size() || logits[e] > logits[best])) best = e;
    taken[best] = true;
    if (j == 0) largest = logits[best];
    parts.push_back(kernels::arithmetic::exp(logits[best] - largest));
    sum += parts.back();
    choice[j] = static_cast<std::uint32_t>(best);
  }
  if (how.over_all) {
    sum = 0;
    for (const float logit : logits) sum += kernels::arithmetic::exp(logit - largest);
  }
  for (std::size_t j = 0; j < used; ++j) {
    float part = parts[j] / sum;
    part = how.factor == 1.f ? part : product(part, how.factor);
    choice[used + j] = std::bit_cast<std::uint32_t>(how.scale.empty() ? part : product(part, how.scale[choice[j]]));
  }
}

/// Logits of tokens, [tokens, experts], with a bias [experts] added to every row.
inline std::vector<float> biased_logits(std::span<const float> logits, std::span<const float> bias) {
  std::vector<float> out(logits.begin(), logits.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += bias[i % bias.size()];
  return out;
}

/// Results of experts with the bias of each expert added. @shape given: [tokens * used, rows]; choice: [tokens, 2 *
/// used]; bias: [experts, rows]
inline std::vector<float> biased_experts(std::span<const float> given, std::span<const std::uint32_t> choice,
                                         std::size_t used, std::span<const float> bias) {
  std::vector<float> out(given.begin(), given.end());
  const std::size_t pairs = choice.size() / 2, rows = pairs == 0 ? 0 : out.size() / pairs;
  for (std::size_t pair = 0; pair < pairs; ++pair)
    for (std::size_t i = 0; i < rows; ++i)
      out[pair * rows + i] += bias[choice[pair / used * 2 * used + pair % used] * rows + i];
  return out;
}

/// Kernel expert_tiles: lists of the tokens of each expert. After the last list that has tokens, only a count of 0 has
/// a meaning.
/// @shape  choice: [tokens, 2 * used]; tiles: [expert_tile_count, 2 + list_tokens]
inline void expert_tiles(std::span<const std::uint32_t> choice, std::size_t used, std::uint32_t experts,
                         std::uint32_t list_tokens, std::span<std::uint32_t> tiles) {
  std::size_t at = 0;
  const std::size_t pairs = choice.size() / 2, words = list_tokens + std::size_t{2};
  for (std::uint32_t expert = 0; expert < experts; ++expert) {
    std::uint32_t count = 0;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      if (choice[pair / used * 2 * used + pair % used] != expert) continue;
      if (count == list_tokens) at += words, count = 0;
      tiles[at] = expert;
      tiles[at + 1] = ++count;
      tiles[at + 1 + count] = static_cast<std::uint32_t>(pair);
    }
    if (count != 0) at += words;
  }
  for (; at < tiles.size(); at += words) tiles[at + 1] = 0;
}

/// The choice that lists were made from; the weights in `choice` are unchanged.
inline void choice_of_tiles(std::span<const std::uint32_t> tiles, std::uint32_t list_tokens, std::size_t used,
                            std::span<std::uint32_t> choice) {
  const std::size_t words = list_tokens + std::size_t{2};
  for (std::size_t at = 0; at < tiles.size(); at += words)
    for (std::size_t i = 0; i < tiles[at + 1]; ++i)
      choice[tiles[at + 2 + i] / used * 2 * used + tiles[at + 2 + i] % used] = tiles[at];
}

/// Kernel matmul with the experts of each token's choice, for the epilogues store and gated. `shape` belongs to one
/// expert.
/// @shape  input: [tokens, columns], or [tokens * used, columns] where each expert has its own input; output: [tokens *
/// used, rows or rows / 2]
inline void expert_matmul(const matmul_shape& shape, std::size_t used, bool own_input, std::span<const float> input,
                          std::span<const std::uint32_t> choice, std::span<const std::byte> weight,
                          std::span<float> output) {
  const std::size_t bytes =
      static_cast<std::size_t>(kernels::matmul_weight_bytes(shape.codec, shape.rows, shape.columns));
  const std::size_t width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
  for (std::size_t row = 0; row < output.size() / width; ++row) {
    const std::size_t token = row / used, expert = choice[token * 2 * used + row % used];
    matmul(shape, input.subspan((own_input ? row : token) * shape.columns, shape.columns),
           weight.subspan(expert * bytes, bytes), output.subspan(row * width, width));
  }
}

/// Kernel expert_sum: output += the weighted sum of the results of experts.
/// @shape  input: [tokens * used, width]; choice: [tokens, 2 * used]; output: [tokens, width]
inline void expert_sum(std::span<const float> input, std::span<const std::uint32_t> choice, std::size_t used,
                       std::size_t width, std::span<float> output) {
  for (std::size_t token = 0; token < output.size() / width; ++token)
    for (std::size_t i = 0; i < width; ++i) {
      float sum = 0;
      for (std::size_t j = 0; j < used; ++j)
        sum += product(input[(token * used + j) * width + i], std::bit_cast<float>(choice[(2 * token + 1) * used + j]));
      output[token * width + i] += sum;
    }
}

}  // namespace intaglio::reference
