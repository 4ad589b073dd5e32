// SPDX-License-Identifier: MIT
// Chat templates that the library does not know, run by minja (https://github.com/google/minja, header-only), which the
// program must have: nothing else includes this. Templates come with models, so each runs in a process of its own, with
// limits.
#pragma once

#include "intaglio/core/compiler.hpp"

#if !__has_include(<minja/minja.hpp>)
#error "intaglio/io/jinja.hpp needs minja (Debian: libminja-dev): see docs/packaging.md"
#endif
#include <minja/minja.hpp>

#include <ctime>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "intaglio/io/chat_template.hpp"
#include "intaglio/io/limited_process.hpp"

namespace intaglio::io {

/// Renders as transformers does: trim_blocks, lstrip_blocks, raise_exception and strftime_now.
inline std::string render_jinja(const std::string& text, std::span<const chat_message> messages,
                                bool add_generation_prompt, const std::string& bos, const std::string& eos) {
  auto turns = nlohmann::ordered_json::array();
  for (const chat_message& each : messages) turns.push_back({{"role", each.role}, {"content", each.content}});
  const auto root =
      minja::Parser::parse(text, {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false});
  const auto context = minja::Context::make(minja::Value(nlohmann::ordered_json{
      {"messages", turns}, {"add_generation_prompt", add_generation_prompt}, {"bos_token", bos}, {"eos_token", eos}}));
  context->set("raise_exception", minja::Value::callable([](const std::shared_ptr<minja::Context>&,
                                                            minja::ArgumentsValue& arguments) -> minja::Value {
                 throw std::runtime_error(arguments.args.empty() ? "refused" : arguments.args.front().to_str());
               }));
  context->set("strftime_now", minja::Value::callable([](const std::shared_ptr<minja::Context>&,
                                                         minja::ArgumentsValue& arguments) -> minja::Value {
                 char out[256] = "";
                 const std::time_t now = std::time(nullptr);
                 std::tm local{};
                 if (!arguments.args.empty() && ::localtime_r(&now, &local) != nullptr)
                   std::strftime(out, sizeof out, arguments.args.front().to_str().c_str(), &local);
                 return minja::Value(std::string(out));
               }));
  // Filters of Jinja that minja lacks.
  const auto filter = [&](const char* name, auto&& apply) {
    context->set(name, minja::Value::callable([name, apply](const std::shared_ptr<minja::Context>&,
                                                            minja::ArgumentsValue& arguments) -> minja::Value {
                   if (arguments.args.size() != 1)
                     throw std::runtime_error(std::string(name) + ": expected one argument");
                   return apply(arguments.args.front());
                 }));
  };
  filter("capitalize", [](const minja::Value& value) {
    std::string out = value.to_str();
    for (std::size_t i = 0; i < out.size(); ++i)
      if (const char c = out[i]; i == 0 ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z')
        out[i] = static_cast<char>(c ^ 0x20);
    return minja::Value(out);
  });
  filter("first", [](minja::Value& value) { return value.size() == 0 ? minja::Value() : value.at(0); });
  return root->render(context);
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
