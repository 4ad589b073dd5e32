// SPDX-License-Identifier: MIT
// Texts of forms, for the tests of the server's grammars.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "../../examples/serve/json_schema.hpp"
#include "../../examples/serve/text_match.hpp"

namespace intaglio::serve {

inline std::shared_ptr<const grammar> form_of(const std::string& schema) {
  return std::make_shared<const grammar>(grammar_of_schema(parse_json(schema, {}), "schema"));
}

inline bool fits(const std::shared_ptr<const grammar>& form, std::string_view text) {
  text_match match(form);
  if (!match.allows(text, 1'000'000)) return false;
  match.take(text);
  return match.complete();
}

/// A text written byte by byte among what is allowed, which has to end within `most` bytes.
inline std::string written(const std::shared_ptr<const grammar>& form, std::uint32_t most, std::mt19937& random) {
  text_match match(form);
  std::string out;
  while (!match.finished() && out.size() < most && !(match.complete() && random() % 4 == 0)) {
    std::string allowed;
    for (int byte = 0; byte < 256; ++byte)
      if (const char one = static_cast<char>(byte);
          match.allows({&one, 1}, most - static_cast<std::uint32_t>(out.size()) - 1))
        allowed += one;
    if (allowed.empty()) break;
    // Quotes, commas and brackets more often than one byte in 256, so that texts have parts.
    if (random() % 3 == 0) {
      std::string marks;
      for (const char each : allowed)
        if (std::string_view("\",[]{}:").find(each) != std::string_view::npos) marks += each;
      if (!marks.empty()) allowed = marks;
    }
    out += allowed[random() % allowed.size()];
    match.take(std::string_view(out).substr(out.size() - 1));
  }
  CHECK(match.complete());
  return out;
}

}  // namespace intaglio::serve
