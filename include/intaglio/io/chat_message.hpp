// SPDX-License-Identifier: MIT
// A message of a conversation, and the interface of renderers for templates that the library does not know.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <functional>
#include <span>
#include <string>

namespace intaglio::io {

/// One message. Roles: "system", "user", "assistant", and "tool" where the model's own template is run.
struct chat_message {
  std::string role, content;  ///< who speaks; the text
  std::string more{};  ///< further fields that a template may read (tool_calls, name ...), a JSON object; empty: none
};

/// A function that renders a conversation by a template in the language that models bring (Jinja).
/// @param names further variables of the template (tools, enable_thinking ...): a JSON object; empty: none
/// @error argument_error: the template refuses the conversation, or cannot be run
using template_renderer =
    std::function<std::string(const std::string& text, std::span<const chat_message>, bool add_generation_prompt,
                              const std::string& bos, const std::string& eos, const std::string& names)>;

}  // namespace intaglio::io
