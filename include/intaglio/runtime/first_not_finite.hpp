// SPDX-License-Identifier: MIT
// For debugging: finds where in a model the first value is not finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "intaglio/runtime/session_body.hpp"

namespace intaglio::runtime {

/// A state of the residual stream that is infinite or not a number.
struct not_finite {
  std::uint32_t state = 0;     ///< 0: the embedding's output; n: the output of layer n - 1
  std::uint32_t position = 0;  ///< of the token in the context
  std::uint32_t channel = 0;
  float value = 0;

  std::string text() const {
    return (state == 0 ? "the embedding's output" : "the output of layer " + std::to_string(state - 1)) +
           ", position " + std::to_string(position) + ", channel " + std::to_string(channel) +
           (std::isnan(value) ? ": NaN"
            : value > 0       ? ": infinity"
                              : ": -infinity");
  }
};

/// The first such value of states f32 [states, wide, width], of which `tokens` rows are filled. States are searched in
/// order, then positions.
inline std::optional<not_finite> first_not_finite(std::span<const float> states, std::uint32_t count,
                                                  std::uint32_t wide, std::uint32_t width, std::uint32_t tokens) {
  for (std::uint32_t state = 0; state < count; ++state)
    for (std::uint32_t token = 0; token < tokens; ++token) {
      const auto row = states.subspan((std::size_t{state} * wide + token) * width, width);
      const auto found = std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); });
      if (found != row.end()) return not_finite{state, token, static_cast<std::uint32_t>(found - row.begin()), *found};
    }
  return std::nullopt;
}

/// Feeds the whole history anew, chunk by chunk, and checks every state between layers. Allocates memory and records on
/// its first call.
/// @return the first such state, in the first chunk that has one; none where all states are finite (then only the
///   values of the head are not)
/// @error as basic_session::logits
inline std::optional<not_finite> first_not_finite(session_body& body) {
  const plan::table& table = *body.table;
  const std::uint32_t wide = table.logits.max_tokens;
  return body.recovering([&]() -> std::optional<not_finite> {
    body.run->drain();
    body.cached = 0;
    body.run->prepare_logits(true, body.cache ? &*body.cache : nullptr);
    while (body.cached < body.size()) {
      const std::uint32_t count = (std::min)(wide, body.size() - body.cached);
      body.begin(pass_kind::probe, count);
      body.submit_all();
      body.run->drain();
      auto found = first_not_finite(body.run->hidden(), table.config->num_hidden_layers + 1, wide,
                                    table.config->hidden_size, count);
      if (found) {
        found->position += body.cached;
        return found;
      }
      body.cached += count;
    }
    return std::nullopt;
  });
}

}  // namespace intaglio::runtime
