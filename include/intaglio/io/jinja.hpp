// SPDX-License-Identifier: MIT
// Runs chat templates of unknown families as Jinja (jinja_template.hpp). Templates come with models, so each runs in a
// child process with limits.
#pragma once

#include "intaglio/io/chat_template.hpp"
#include "intaglio/io/jinja_template.hpp"
#include "intaglio/platform/process.hpp"

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace intaglio::io {

/// Renders a conversation as transformers does: with its layout and globals; `tools` and `documents` are None unless
/// `names` has them.
/// @throws jinja::template_error
inline std::string render_jinja(const std::string& text, std::span<const chat_message> messages,
                                bool add_generation_prompt, const std::string& bos, const std::string& eos,
                                const std::string& names = {}) {
  using json = nlohmann::ordered_json;
  const auto members = [](const std::string& of) {
    json out = of.empty() ? json::object() : json::parse(of, nullptr, false);
    if (!out.is_object()) throw jinja::template_error("expected a JSON object beside a message or the conversation");
    return out;
  };
  auto turns = json::array();
  for (const chat_message& each : messages) {
    json turn{{"role", each.role}, {"content", each.content}};
    turn.update(members(each.more));
    turns.push_back(std::move(turn));
  }
  json all{{"messages", std::move(turns)},
           {"tools", nullptr},
           {"documents", nullptr},
           {"add_generation_prompt", add_generation_prompt},
           {"bos_token", bos},
           {"eos_token", eos}};
  all.update(members(names));
  return jinja::render(text, all);
}

/// A renderer for session_options::templates and chat_template::of.
/// @error of the renderer: argument_error with the template's message, or the limit that it exceeded
inline template_renderer jinja_renderer(const platform::process_limits& limits = {}) {
  return [limits](const std::string& text, std::span<const chat_message> messages, bool add_generation_prompt,
                  const std::string& bos, const std::string& eos, const std::string& names) {
    platform::limited_result out = platform::run_limited(
        limits, [&] { return render_jinja(text, messages, add_generation_prompt, bos, eos, names); });
    if (!out.done)
      throw argument_error("messages", "a conversation that the model's chat template takes",
                           "'" + printable(out.text, 300) + "'");
    return std::move(out.text);
  };
}

}  // namespace intaglio::io
