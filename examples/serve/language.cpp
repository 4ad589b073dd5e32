// SPDX-License-Identifier: MIT
#include "token_engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "request_fields.hpp"

namespace intaglio::serve {

namespace {

/// https://github.com/openai/openai-python/blob/v0.28.1/chatml.md, as models of today write it.
constexpr const char* chatml =
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

bool is_family(std::string_view name) {
  return std::any_of(io::chat_family_names.begin(), io::chat_family_names.end(),
                     [&](const auto& each) { return each.first == name; });
}

}  // namespace

bool is_template_name(std::string_view name) { return name == "chatml" || is_family(name); }

language::language(io::vocabulary from, std::uint32_t vocab_size, const io::template_renderer& templates,
                   const std::string& chosen)
    : file(std::move(from)), tokens(file, vocab_size), view(tokens, vocab_size) {
  const bool guessed = chosen.empty() && !file.chat_template && !io::is_bitnet_b158(file.architecture);
  if (guessed)
    template_note =
        "the model has no chat template: conversations are written as ChatML, which it may not know "
        "(--chat-template chooses another)";
  try {
    if (is_family(chosen)) {
      chat.emplace(io::chat_template::named(chosen, file));
    } else if (guessed || !chosen.empty()) {
      file.chat_template = guessed || chosen == "chatml" ? chatml : chosen;
      io::vocabulary of_any_family = file;  // a BitNet's own template would be taken instead
      of_any_family.architecture.clear();
      chat.emplace(io::chat_template::of(of_any_family, templates));
      chat->render(std::vector<io::chat_message>{{"user", "hello"}}, true);
    } else {
      chat.emplace(io::chat_template::of(file, templates));
    }
    look_at_template();
  } catch (const file_error& unknown) {  // an error only for requests with a conversation
    no_chat = unknown.what();
  }
}

namespace {

json function_of(const tool_function& of) {
  json out{{"name", of.name}};
  if (!of.description.empty()) out["description"] = of.description;
  out["parameters"] =
      of.parameters.is_null() ? json{{"type", "object"}, {"properties", json::object()}} : of.parameters;
  return out;
}
std::string tools_of(const conversation& talk, json names) {
  if (!talk.tools.empty() && talk.use != tool_use::none) {
    names["tools"] = json::array();
    for (const tool_function& each : talk.tools)
      names["tools"].push_back({{"type", "function"}, {"function", function_of(each)}});
  }
  return names.empty() ? std::string() : json_text(names);
}
json calls_of(const std::vector<tool_call>& list) {
  json out = json::array();
  for (const tool_call& each : list)
    out.push_back(
        {{"id", each.id}, {"type", "function"}, {"function", {{"name", each.name}, {"arguments", each.arguments}}}});
  return out;
}
/// Describes the tools to models that have learned no format of their own.
std::string description_of(const std::vector<tool_function>& tools) {
  std::string out =
      "You can call functions. To call one, reply with nothing else than a JSON object of this form:\n"
      "{\"name\": \"NAME\", \"parameters\": {\"ARGUMENT\": VALUE}}\nThe functions are:";
  for (const tool_function& each : tools) out += '\n' + json_text(function_of(each));
  return out;
}
/// Whether the text has the name, and not as part of a longer one.
bool has_name(std::string_view text, std::string_view name) {
  const auto is_of_names = [&](std::size_t at) {
    const char c = at < text.size() ? text[at] : ' ';
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
    if (!is_of_names(at - 1) && !is_of_names(at + name.size())) return true;
  return false;
}
std::string_view spelled(std::string_view mark) { return mark.starts_with(control_byte) ? mark.substr(1) : mark; }

}  // namespace

bool language::renders(std::span<const io::chat_message> messages, const std::string& names,
                       std::string_view wanted) const {
  try {
    return chat->render(messages, true, names).text.find(wanted) != std::string::npos;
  } catch (const argument_error&) { return false; }
}

/// Tries what it can write. Templates are run for this with texts that they would not write by themselves.
void language::look_at_template() {
  const std::vector<io::chat_message> system{{"system", "a probing instruction"}, {"user", "hello"}};
  takes_system = renders(system, {}, "a probing instruction");
  const std::string text = chat->mentions("") ? file.chat_template.value_or("") : "";
  const auto is_control = [&](std::string_view mark) {
    const auto id = tokens.special_id(mark);
    return id && tokens.type(*id) == io::token_type::control && is_reply_mark(mark);
  };
  const call_format& format = call_format_of(text);
  if (&format != &prompted_calls && chat->mentions("tools")) {
    conversation talk{.turns = {}, .tools = {{"probing_function", "A probe.", nullptr, {}}}, .use = tool_use::optional};
    const std::string names = tools_of(talk, json::object());
    takes_tools = renders(std::vector<io::chat_message>{{"user", "hello"}}, names, "probing_function");
    const std::vector<io::chat_message> called{
        {"user", "hello"},
        {"assistant", "", json_text({{"tool_calls", calls_of({{"a1b2c3d4e", "probing_function", json::object()}})}})},
        {"tool", "a probing result", json_text({{"tool_call_id", "a1b2c3d4e"}, {"name", "probing_function"}})}};
    takes_calls = renders(std::span(called).first(2), {}, "probing_function");
    takes_results = renders(called, {}, "a probing result");
  }
  layout =
      reply_layout_of(text, takes_tools || format.shape == call_shape::channels ? format : prompted_calls, is_control);
}

/// A call as the model would have written it.
std::string language::call_text(const tool_call& call) const {
  const std::string arguments = json_text(call.arguments), object = "{\"name\": \"" + call.name + "\", \"" +
                                                                    std::string(layout.calls->key) +
                                                                    "\": " + arguments + "}";
  const call_format& format = *layout.calls;
  switch (format.shape) {
    case call_shape::headed:
      return std::string(format.begin) + call.name + std::string(format.middle) + arguments;
    case call_shape::list:
      return std::string(format.begin) + "[" + object + "]" + std::string(format.end);
    default:
      return std::string(format.begin) + object + std::string(format.end);
  }
}

std::vector<io::chat_message> language::messages_of(const conversation& talk) const {
  std::vector<io::chat_message> out;
  bool result_before = false;
  for (const turn& each : talk.turns) {
    io::chat_message next{each.role, each.content};
    json more = json::object();
    if (!each.calls.empty()) {
      if (takes_calls) more["tool_calls"] = calls_of(each.calls);
      else
        for (const tool_call& call : each.calls) next.content += (next.content.empty() ? "" : "\n") + call_text(call);
    }
    if (!each.thought.empty())
      for (const char* const name : {"reasoning_content", "thinking"})
        if (chat->mentions("message." + std::string(name))) more[name] = each.thought;
    const bool result = each.role == "tool";
    if (result && takes_results) {
      more["tool_call_id"] = each.call_id, more["name"] = each.name;
    } else if (result) {
      next.role = "user";
      next.content = "Result of " + each.name + ":\n" + each.content;
      if (result_before) {  // many templates want users and assistants in turn
        out.back().content += "\n\n" + next.content;
        continue;
      }
    }
    result_before = result && !takes_results;
    if (!more.empty()) next.more = json_text(more);
    out.push_back(std::move(next));
  }
  if (talk.use == tool_use::none || takes_tools || talk.tools.empty()) return out;
  const std::string described = description_of(talk.tools);
  const std::string role = takes_system ? "system" : "user";
  if (out.front().role == role)
    out.front().content =
        takes_system ? out.front().content + "\n\n" + described : described + "\n\n" + out.front().content;
  else out.insert(out.begin(), {role, described});
  return out;
}

json language::names_of(const conversation& talk, bool ignore_unknown) const {
  json out = talk.names;
  const std::string text = chat && chat->mentions("") ? file.chat_template.value_or("") : "";
  const auto has = [&](const std::string& name) { return has_name(text, name); };
  if (const auto effort = out.find("reasoning_effort"); effort != out.end() && layout.in_channels()) {
    if (*effort != "low" && *effort != "medium" && *effort != "high")
      refuse_field("reasoning_effort", "'low', 'medium' or 'high' of this model", shown(*effort));
  } else if (effort != out.end() && !has("reasoning_effort")) {
    if (!out.contains("enable_thinking")) out["enable_thinking"] = *effort != "none";
    out.erase("reasoning_effort");
  }
  // Off is what it is where the model has no thoughts.
  if (!has("enable_thinking") && out.contains("enable_thinking") && out["enable_thinking"] == false && !layout.thinks())
    out.erase("enable_thinking");
  for (auto at = out.begin(); at != out.end();) {
    if (has(at.key())) {
      ++at;
      continue;
    }
    if (!ignore_unknown)
      refuse_field(
          talk.names.contains("reasoning_effort") && at.key() == "enable_thinking" ? "reasoning_effort" : at.key(),
          "a name that the model's chat template has", "another", "unsupported_parameter");
    at = out.erase(at);
  }
  return out;
}

language::prompt language::encode(const conversation& talk) const {
  if (!chat)
    throw api_error(400, "messages: the model has no chat template that is known; /v1/completions takes plain text",
                    "messages", "no_chat_template");
  const std::vector<io::chat_message> messages = messages_of(talk);
  const std::string names = takes_tools          ? tools_of(talk, talk.names)
                            : talk.names.empty() ? std::string()
                                                 : json_text(talk.names);
  const io::rendered_chat rendered =
      talk.continued ? chat->render_continued(messages, names) : chat->render(messages, true, names);
  prompt out{rendered.text, io::chat_template::encode(tokens, rendered)};
  const std::string_view text = rendered.text, mark = spelled(layout.thought);
  const std::size_t last = text.find_last_not_of(" \n");
  out.in_thought =
      !talk.continued && !mark.empty() && last != std::string_view::npos && text.substr(0, last + 1).ends_with(mark);
  return out;
}

std::vector<prediction> likeliest(const language& words, std::span<const float> logits, std::uint32_t top) {
  const double all = log_sum_exp(logits);
  std::vector<std::int32_t> order(std::min<std::size_t>(logits.size(), words.tokens.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(top, order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<prediction> out;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const std::int32_t id = order[static_cast<std::size_t>(i)];
    out.push_back({std::string(words.tokens.piece(id)), std::exp(logits[static_cast<std::size_t>(id)] - all)});
  }
  return out;
}

std::vector<std::int32_t> language::encode_gap(std::string_view before, std::string_view after,
                                               const char* field) const {
  static constexpr std::array<std::array<std::string_view, 3>, 3> known{{
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},  // Qwen 2.5 and 3 Coder, CodeGemma
      {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},        // StarCoder, Granite
      {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},  // DeepSeek Coder
  }};
  for (const auto& marks : known) {
    std::array<std::int32_t, 3> ids{};
    bool all = true;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const auto found = tokens.encode(marks[i], {.parse_special = true});
      all = all && found.size() == 1;
      if (all) ids[i] = found[0];
    }
    if (!all) continue;
    std::vector<std::int32_t> out = tokens.encode({}, {.add_bos = tokens.adds_bos()});
    const auto add = [&](std::int32_t mark, std::string_view text) {
      out.push_back(mark);
      const auto more = tokens.encode(text, {});
      out.insert(out.end(), more.begin(), more.end());
    };
    add(ids[0], before);
    add(ids[1], after);
    out.push_back(ids[2]);
    return out;
  }
  throw api_error(400, std::string(field) + ": expected nothing: the model has no tokens around a gap, found a text",
                  field, "unsupported_parameter");
}

}  // namespace intaglio::serve
