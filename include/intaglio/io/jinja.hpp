// SPDX-License-Identifier: MIT
// Chat templates of no family that the library knows, run as Jinja (jinja_template.hpp). Templates come with models, so
// each runs in a process of its own, with limits.
#pragma once

#include "intaglio/io/chat_template.hpp"
#include "intaglio/io/jinja_template.hpp"
#include "intaglio/io/limited_process.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace intaglio::io {

/// Renders as transformers does: its layout, its globals, and `tools` and `documents` that are None.
/// @throws jinja::template_error
inline std::string render_jinja(const std::string& text, std::span<const chat_message> messages,
                                bool add_generation_prompt, const std::string& bos, const std::string& eos) {
  auto turns = nlohmann::ordered_json::array();
  for (const chat_message& each : messages) turns.push_back({{"role", each.role}, {"content", each.content}});
  return jinja::render(text, {{"messages", turns},
                              {"tools", nullptr},
                              {"documents", nullptr},
                              {"add_generation_prompt", add_generation_prompt},
                              {"bos_token", bos},
                              {"eos_token", eos}});
}

/// What session_options::templates and chat_template::of take.
/// @error of what it gives: argument_error with what the template said, or which limit it passed
inline template_renderer jinja_renderer(const process_limits& limits = {}) {
  return [limits](const std::string& text, std::span<const chat_message> messages, bool add_generation_prompt,
                  const std::string& bos, const std::string& eos) {
    limited_result out =
        run_limited(limits, [&] { return render_jinja(text, messages, add_generation_prompt, bos, eos); });
    if (!out.done)
      throw argument_error("messages", "a conversation that the model's chat template takes",
                           "'" + printable(out.text, 300) + "'");
    return std::move(out.text);
  };
}

}  // namespace intaglio::io
