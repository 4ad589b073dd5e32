// SPDX-License-Identifier: MIT
// Grammars in the notation of llama.cpp (GBNF): https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
#pragma once

#include <string_view>

#include "grammar.hpp"

namespace intaglio::serve {

/// Adds the rules of a text, and returns the rule that is called root.
/// @throws std::invalid_argument: line and column, what was expected, what was found  @throws std::length_error: too
///   large
grammar::rule add_gbnf(grammar& to, std::string_view text);

}  // namespace intaglio::serve
