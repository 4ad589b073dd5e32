// SPDX-License-Identifier: MIT
#include "host_draw.hpp"

#include <intaglio/reference/sample.hpp>

#include <algorithm>
#include <cmath>

namespace intaglio::serve {
namespace {

struct candidate {
  std::uint32_t id;
  std::uint64_t weight;  ///< at temperature 1
  float logit;
};

/// The sampler's order: the largest logit first, of equal ones the lowest id.
bool before(const candidate& a, const candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

}  // namespace

std::uint32_t draw_token(std::vector<float>& logits, std::span<const std::uint32_t> recent,
                         const sampling_options& options, std::uint32_t position) {
  if (options.repeat_penalty != 1) logits = reference::penalised(logits, recent, options.repeat_penalty);
  const auto none = static_cast<std::uint32_t>(logits.size());
  float maximum = -HUGE_VALF;
  std::uint32_t best = none;
  for (std::uint32_t id = 0; id < none; ++id) {
    if (std::isnan(logits[id])) return none;
    if (logits[id] > maximum) maximum = logits[id], best = id;
  }
  if (!std::isfinite(maximum)) return none;
  if (!(options.temperature >= reference::least_temperature)) return best;

  // What weighs nothing at temperature 1 weighs nothing in the sum of top-p, and is never reached by it.
  const bool cut = options.top_p < 1;
  std::vector<candidate> list;
  for (std::uint32_t id = 0; id < none; ++id)
    list.push_back({id, reference::weight(logits[id], maximum, reference::log2_e), logits[id]});
  if (options.top_k && *options.top_k < list.size()) {
    std::nth_element(list.begin(), list.begin() + (*options.top_k - 1), list.end(), before);
    list.resize(*options.top_k);
  }
  if (cut) {
    std::erase_if(list, [](const candidate& each) { return each.weight == 0; });
    std::sort(list.begin(), list.end(), before);
    std::uint64_t total = 0, sum = 0;
    for (const auto& each : list) total += each.weight;
    const auto share =
        static_cast<std::uint32_t>(reference::product(options.top_p > 0 ? options.top_p : 0.0f, 65536.0f) + 0.5f);
    const std::uint64_t need = std::max<std::uint64_t>(1, reference::share_of(total, share));
    std::size_t count = 0;
    while (count < list.size() && sum < need) sum += list[count++].weight;
    list.resize(count);
  }
  const std::uint64_t least =
      reference::least_weight(options.min_p, reference::weight(maximum, maximum, reference::log2_e));
  const float scale = reference::log2_e / options.temperature;
  std::vector<std::uint64_t> weights(none);
  for (const auto& each : list)
    if (each.weight >= least) weights[each.id] = reference::weight(each.logit, maximum, scale);
  const auto random = reference::philox(
      {position, 0, 0, 0}, {static_cast<std::uint32_t>(options.seed), static_cast<std::uint32_t>(options.seed >> 32)});
  return reference::draw(weights, random[0]);
}

double log_sum_exp(std::span<const float> logits) {
  float maximum = -HUGE_VALF;
  for (const float each : logits) maximum = std::max(maximum, each);
  double sum = 0;
  for (const float each : logits) sum += std::exp(static_cast<double>(each) - maximum);
  return maximum + std::log(sum);
}

}  // namespace intaglio::serve
