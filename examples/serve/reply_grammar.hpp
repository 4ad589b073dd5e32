// SPDX-License-Identifier: MIT
// The grammar of a whole reply: a thought, then text with calls of functions after it, calls alone, or a form. Calls
// are always well formed, since the mark that begins one is followed by nothing else than what the function's schema
// allows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "grammar.hpp"
#include "json_document.hpp"
#include "reply_layout.hpp"

namespace intaglio::serve {

class json_rules;

/// A function that the model may call.
struct tool_function {
  std::string name, description;
  json parameters;    ///< JSON schema of an object; null: it takes none
  std::string where;  ///< the schema's path in the request
};

enum class tool_use : std::uint8_t { none, optional, required };

/// Adds the rule of a form to a grammar. The rules of JSON are those of that grammar.
using form_writer = std::function<grammar::rule(grammar&, json_rules&)>;

struct reply_plan {
  bool in_thought = false;  ///< the prompt ends within a thought
  tool_use use = tool_use::none;
  std::vector<tool_function> tools;  ///< that may be called
  bool several = true;               ///< calls, where the format has several
  form_writer form;                  ///< of the text; empty: any text
};

/// @throws api_error 400 naming a tool's schema that no object holds to, or `tools` where all are too large together
grammar reply_grammar(const reply_layout& layout, const reply_plan& wanted);

/// @throws api_error 400: the schema of a tool's parameters cannot be promised
void check_parameters(const tool_function& of);

}  // namespace intaglio::serve
