// SPDX-License-Identifier: MIT
// A turn of a conversation, and who renders conversations by templates that the library does not know.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <functional>
#include <span>
#include <string>

namespace intaglio::io {

/// One turn. Roles: "system", "user", "assistant".
struct chat_message {
  std::string role, content;
};

/// Renders a conversation by a template in the language that models bring (Jinja).
/// @error argument_error: the template refuses the conversation, or cannot be run
using template_renderer =
    std::function<std::string(const std::string& text, std::span<const chat_message>, bool add_generation_prompt,
                              const std::string& bos, const std::string& eos)>;

}  // namespace intaglio::io
