// SPDX-License-Identifier: MIT
// Kernel sample on the CPU. Probabilities are integers (docs/kernels.md, "Sample"), so no sum depends on its order, and
// the kernel must agree to the bit. This code is the plain reading: it sorts where the shader uses pivots of many
// lists.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

/// The random number generator Philox 4x32 with 10 rounds.
/// @source Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011)
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// The logarithm of e to the base 2.
inline constexpr float log2_e = 1.44269504f;
inline constexpr float least_temperature = 1e-6f;  ///< below it the choice is greedy
/// Range of weights: the smallest is this many powers of two below the largest.
inline constexpr std::uint32_t most_octaves = 24;

/// The weight of the likeliest token.
inline constexpr std::uint32_t full_power = 1u << 24;

/// About 2^24 * 2^(-fraction / 2^20) for fraction < 2^20, to within 5; falls monotonically. It is a polynomial of
/// degree 5 through Chebyshev nodes.
constexpr std::uint32_t power(std::uint32_t fraction) {
  const auto high = [x = fraction << 12](std::uint32_t h) {
    return static_cast<std::uint32_t>((std::uint64_t{h} * x) >> 32);
  };
  std::uint32_t h = 4310560u;
  h = 40133167u - high(h);
  h = 237977951u - high(h);
  h = 1031714237u - high(h);
  h = 2977043459u - high(h);
  return full_power - (high(h) >> 8);
}

/// The binary logarithm of a logit's weight, up to the unit.
inline float exponent(float logit, float scale) {
  const float out =
      std::clamp(product(logit, scale), std::numeric_limits<float>::lowest(), (std::numeric_limits<float>::max)());
  return std::abs(out) < 1e-30f ? 0.0f : out;  // numbers that devices may flush to 0
}

/// The weight of a logit: exp2(logit * scale) with 20 bits. Its unit is 2^44 times smaller than the power of two that
/// bounds the maximum's weight (docs/kernels.md). Apart from the unit a weight does not depend on the maximum, so lists
/// can be summed before the maximum is known.
inline std::uint64_t weight(float logit, float maximum, float scale) {
  const float own = exponent(logit, scale), octave = std::ceil(own),
              below = std::ceil(exponent(maximum, scale)) - octave;
  if (!(below <= static_cast<float>(most_octaves)) || logit == -std::numeric_limits<float>::infinity()) return 0;
  const auto fraction = (std::min)(static_cast<std::uint32_t>((octave - own) * 1048576.0f), 0xFFFFFu);
  return std::uint64_t{power(fraction) >> 4} << (most_octaves - static_cast<std::uint32_t>(below));
}

/// `share` / 2^16 of the sum of weights, rounded up.
constexpr std::uint64_t share_of(std::uint64_t total, std::uint32_t share) {
  return (total >> 16) * share + (((total & 0xFFFF) * share + 0xFFFF) >> 16);
}
/// The smallest weight that min_p keeps, at temperature 1.
inline std::uint64_t least_weight(float min_p, std::uint64_t largest) {
  return min_p > 0.0f
             ? (largest >> most_octaves) * static_cast<std::uint64_t>(std::ceil(std::fmin(min_p, 1.0f) * 16777216.0f))
             : 0;
}

/// The sampler's parameters in the words of kernels/state.hpp. The defaults are greedy.
struct sampling {
  float temperature = 0, top_p = 1, min_p = 0, repeat_penalty = 1;
  std::uint32_t top_k = 0, repeat_last_n = 0;
  std::uint64_t seed = 0;
};

/// The logits after the penalty on every token of `recent`. A token that occurs several times is penalised once.
inline std::vector<float> penalised(std::span<const float> logits, std::span<const std::uint32_t> recent,
                                    float penalty) {
  std::vector<float> out(logits.begin(), logits.end());
  std::vector<bool> seen(out.size());
  for (const std::uint32_t id : recent) {
    if (id >= out.size() || seen[id]) continue;
    seen[id] = true;
    out[id] = out[id] > 0 ? out[id] / penalty : product(out[id], penalty);
  }
  return out;
}

/// A token in the sampler's order: a key that rises with the logit, is equal for equal logits and largest for NaN, then
/// the complement of the id.
struct ranked_token {
  std::uint32_t key = 0, not_id = 0;
  friend auto operator<=>(const ranked_token&, const ranked_token&) = default;
};
/// The entry of a token in the order of the sampler: of equal logits the lowest id comes first.
inline ranked_token ranked(float logit, std::uint32_t id) {
  const auto bits = std::bit_cast<std::uint32_t>(logit == 0 ? 0.0f : logit);
  return {std::isnan(logit) ? 0xFFFFFFFFu : bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u), ~id};
}
/// The first token in the sampler's order.
inline ranked_token first_ranked(std::span<const float> logits) {
  ranked_token out;
  for (std::size_t i = 0; i < logits.size(); ++i)
    out = (std::max)(out, ranked(logits[i], static_cast<std::uint32_t>(i)));
  return out;
}

/// Integer probabilities of all ids after top-k, top-p, min-p and temperature; 0 for ids that these leave out. No logit
/// may be NaN, and the largest must be finite.
[[gnu::cold]] inline std::vector<std::uint64_t> sampling_weights(std::span<const float> logits, const sampling& s) {
  std::vector<std::uint32_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  const float maximum = logits[order[0]];
  const auto likely = [&](std::uint32_t id) { return weight(logits[id], maximum, log2_e); };
  if (s.top_k != 0 && s.top_k < order.size()) order.resize(s.top_k);
  if (s.top_p < 1.0f) {
    std::uint64_t total = 0, sum = 0;
    for (const std::uint32_t id : order) total += likely(id);
    const auto share = static_cast<std::uint32_t>(product(s.top_p > 0 ? s.top_p : 0.0f, 65536.0f) + 0.5f);
    const std::uint64_t need = (std::max<std::uint64_t>)(1, share_of(total, share));
    std::size_t count = 0;
    while (count < order.size() && sum < need) sum += likely(order[count++]);
    order.resize(count);
  }
  const std::uint64_t least = least_weight(s.min_p, weight(maximum, maximum, log2_e));
  const float scale = log2_e / s.temperature;
  std::vector<std::uint64_t> out(logits.size());
  for (const std::uint32_t id : order)
    if (likely(id) >= least) out[id] = weight(logits[id], maximum, scale);
  return out;
}

/// The token at `random` / 2^32 of the sum of the weights, in rising order of ids.
inline std::uint32_t draw(std::span<const std::uint64_t> weights, std::uint32_t random) {
  std::uint64_t total = 0, sum = 0;
  for (const std::uint64_t w : weights) total += w;
  const std::uint64_t target = random * (total >> 32) + ((random * (total & 0xFFFFFFFFu)) >> 32);
  std::uint32_t id = 0;
  while (id + 1 < weights.size() && (sum += weights[id]) <= target) ++id;
  return id;
}

/// Draws the token after the one at `position`. Where a logit is NaN or the largest is not finite the result is
/// logits.size(), which is no token.
inline std::uint32_t choose(std::span<const float> logits, std::span<const std::uint32_t> recent, const sampling& s,
                            std::uint32_t position) {
  const std::vector<float> l = penalised(logits, recent, s.repeat_penalty);
  for (const float value : l)
    if (std::isnan(value)) return static_cast<std::uint32_t>(l.size());
  const auto best = std::max_element(l.begin(), l.end());
  if (!std::isfinite(*best)) return static_cast<std::uint32_t>(l.size());
  if (!(s.temperature >= least_temperature)) return static_cast<std::uint32_t>(best - l.begin());
  const auto random =
      philox({position, 0, 0, 0}, {static_cast<std::uint32_t>(s.seed), static_cast<std::uint32_t>(s.seed >> 32)});
  return draw(sampling_weights(l, s), random[0]);
}

/// The parameters that a state's words hold.
inline sampling sampling_of(std::span<const std::uint32_t> state) {
  namespace at = kernels::state;
  const auto real = [&](std::uint32_t word) { return std::bit_cast<float>(state[word]); };
  return {real(at::temperature),
          real(at::top_p),
          real(at::min_p),
          real(at::repeat_penalty),
          state[at::top_k],
          state[at::repeat_last_n],
          std::uint64_t{state[at::seed_high]} << 32 | state[at::seed_low]};
}

/// The token that follows token `index` of the pass, from its logits and the state's parameters, without regard to
/// later tokens.
inline std::uint32_t successor(std::span<const float> logits, std::uint32_t max_tokens, std::uint32_t context,
                               std::span<const std::uint32_t> state, std::uint32_t index) {
  namespace at = kernels::state;
  const sampling s = sampling_of(state);
  const std::uint32_t next = state[at::position] + index + 1;
  const std::uint32_t begin = next - (std::min)(s.repeat_last_n, next), end = (std::min)(next, context);
  std::span<const std::uint32_t> recent;
  if (begin < end) recent = state.subspan(at::history(max_tokens) + begin, end - begin);
  return choose(logits, recent, s, next - 1);
}

/// Accepts tokens of `drawn` as far as the drafts of the pass were right: writes history and ring, and advances the
/// state.
/// @return the number of accepted tokens
inline std::uint32_t accept(std::span<const std::uint32_t> drawn, std::uint32_t max_tokens, std::uint32_t context,
                            std::span<std::uint32_t> state, std::span<std::uint32_t> ring) {
  namespace at = kernels::state;
  const std::uint32_t count = (std::min)(state[at::count], static_cast<std::uint32_t>(drawn.size())),
                      position = state[at::position];
  std::uint32_t taken = 0;
  while (taken < count && (taken == 0 || state[at::tokens + taken] == drawn[taken - 1])) {
    ring[(state[at::generated] + taken) % ring.size()] = drawn[taken];
    ++taken;
    if (position + taken < context) state[at::history(max_tokens) + position + taken] = drawn[taken - 1];
  }
  if (taken == 0) return 0;
  state[at::tokens] = drawn[taken - 1];
  state[at::position] = position + taken;
  state[at::count] = 1;
  state[at::generated] += taken;
  return taken;
}

/// The whole kernel with one draw: reads the parameters from `state`, writes token, history and ring, and advances the
/// state. Does nothing where count is 0.
/// @shape logits: [vocab_size] of the pass's last token; state: state::words(max_tokens, context) words; ring:
/// [ring_size]
inline void sample(std::span<const float> logits, std::uint32_t max_tokens, std::uint32_t context,
                   std::span<std::uint32_t> state, std::span<std::uint32_t> ring) {
  namespace at = kernels::state;
  if (state[at::count] == 0) return;
  const std::uint32_t token = successor(logits, max_tokens, context, state, state[at::count] - 1);
  state[at::position] += state[at::count] - 1;
  state[at::count] = 1;
  accept(std::span(&token, 1), max_tokens, context, state, ring);
}

}  // namespace intaglio::reference
