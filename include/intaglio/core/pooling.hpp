// SPDX-License-Identifier: MIT
// How the states of a text's tokens become one vector (pooling).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <string_view>

namespace intaglio {

/// Which tokens' states an embedding is made of, as pooling_mode_* of sentence-transformers.
enum class pooling : std::uint8_t {
  last,   ///< the last token's (lasttoken)
  mean,   ///< the mean over all tokens (mean_tokens)
  first,  ///< the first token's (cls_token)
};
/// The last enumerator.
inline constexpr pooling last_pooling = pooling::first;

/// The name of a pooling: "last", "mean" or "first".
constexpr std::string_view name(pooling value) {
  return value == pooling::last ? "last" : value == pooling::mean ? "mean" : "first";
}

}  // namespace intaglio
