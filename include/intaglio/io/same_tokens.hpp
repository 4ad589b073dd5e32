// SPDX-License-Identifier: MIT
// Compares whether the ids of two models mean the same texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/io/tokenizer.hpp"

namespace intaglio::io {

/// The first token that differs in its text, or that only one of both has. Tokens without a text may be missing at the
/// end.
/// @return "token 17: 'cat' and 'dog'"; empty where there is none
[[gnu::cold]] inline std::string first_other_token(const tokenizer& a, const tokenizer& b) {
  constexpr std::size_t shown = 40;
  const auto means = [](const tokenizer& of, std::size_t at) {
    return at < of.size() && of.type(static_cast<std::int32_t>(at)) != token_type::unused;
  };
  const auto text = [&](const tokenizer& of, std::size_t at) {
    return means(of, at) ? "'" + printable(of.piece(static_cast<std::int32_t>(at)), shown) + "'" : std::string("none");
  };
  for (std::size_t at = 0; at < (std::max)(a.size(), b.size()); ++at) {
    const bool in_a = means(a, at), in_b = means(b, at);
    const auto id = static_cast<std::int32_t>(at);
    if (in_a == in_b && (!in_a || a.piece(id) == b.piece(id))) continue;
    return "token " + std::to_string(at) + ": " + text(a, at) + " and " + text(b, at);
  }
  return {};
}

}  // namespace intaglio::io
