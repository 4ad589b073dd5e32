// SPDX-License-Identifier: MIT
#include "conversation.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "request_fields.hpp"

namespace intaglio::serve {
namespace {

/// Text, as it is or in parts. Parts of thoughts are put where thoughts are.
void read_content(const json& content, const std::string& name, bool ignore, turn& out) {
  if (content.is_string()) {
    out.content = content.get<std::string>();
    return;
  }
  if (!content.is_array()) refuse_field(name, "a string or an array of text parts", shown(content));
  for (std::size_t i = 0; i < content.size(); ++i) {
    const fields part(content[i], index(name, i));
    const std::string type = part.text("type");
    if (type == "thinking" && out.role == "assistant") {
      out.thought += part.text("thinking");
    } else if (type == "refusal" && out.role == "assistant") {
      out.content += part.text("refusal");
    } else if (type == "text" || type == "input_text" || type == "output_text") {
      out.content += part.text("text");
    } else {
      refuse_field(part.name("type"), "'text': this model reads nothing else", "'" + printable(type, 40) + "'",
                   "unsupported_parameter");
    }
    part.without_effect({"cache_control", "annotations", "logprobs", "signature"});
    part.refuse_unknown(ignore);
  }
}

/// Arguments as a text of JSON, or as the object itself.
json read_arguments(const json& from, const std::string& name, const limits& limit) {
  const std::string expected = "a JSON object, or a string with one";
  if (from.is_object()) return from;
  if (!from.is_string()) refuse_field(name, expected, shown(from));
  const auto& text = from.get_ref<const std::string&>();
  if (text.find_first_not_of(" \n\r\t") == std::string::npos) return json::object();
  try {
    json out = parse_json(text, limit);
    if (out.is_object()) return out;
  } catch (const api_error&) {}  // refused below, with its path
  refuse_field(name, expected, "'" + printable(text, 60) + "'");
}

std::vector<tool_call> read_calls(const json& list, const std::string& name, const limits& limit) {
  if (!list.is_array()) refuse_field(name, "an array of calls", shown(list));
  if (list.size() > limit.tools)
    refuse_field(name, "at most " + std::to_string(limit.tools) + " calls", std::to_string(list.size()));
  std::vector<tool_call> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const fields call(list[i], index(name, i));
    if (call.find("type") != nullptr && call.text("type") != "function")
      refuse_field(call.name("type"), "'function'", "'" + printable(call.text("type"), 40) + "'");
    const fields function(call.need("function", "an object"), call.name("function"));
    const json* const arguments = function.find("arguments");
    out.push_back({call.find("id") != nullptr ? call.text("id") : std::string(), function.text("name"),
                   arguments ? read_arguments(*arguments, function.name("arguments"), limit) : json::object()});
    call.without_effect({"index"});
    function.refuse_unknown(limit.ignore_unknown);
    call.refuse_unknown(limit.ignore_unknown);
  }
  return out;
}

/// Clients that do not know of thoughts send them back within the text.
void part_thought(turn& of) {
  for (const auto& [begin, end] : {std::pair{"<think>", "</think>"}, std::pair{"[THINK]", "[/THINK]"}}) {
    const std::size_t first = of.content.find_first_not_of(" \n");
    if (!of.thought.empty() || first == std::string::npos ||
        of.content.compare(first, std::string(begin).size(), begin) != 0)
      continue;
    const std::size_t last = of.content.find(end);
    if (last == std::string::npos) continue;
    const std::size_t inside = first + std::string(begin).size();
    const auto trimmed = [](std::string text) {
      const std::size_t from = text.find_first_not_of(" \n");
      return from == std::string::npos ? std::string() : text.substr(from, text.find_last_not_of(" \n") + 1 - from);
    };
    of.thought = trimmed(of.content.substr(inside, last - inside));
    of.content = of.content.substr(last + std::string(end).size());
    of.content.erase(0, std::min(of.content.find_first_not_of(" \n"), of.content.size()));
  }
}

turn read_message(const json& from, const std::string& name, const limits& limit) {
  const fields message(from, name);
  turn out;
  out.role = message.text("role");
  if (out.role == "developer") out.role = "system";
  if (out.role != "system" && out.role != "user" && out.role != "assistant" && out.role != "tool")
    refuse_field(message.name("role"), "'system', 'developer', 'user', 'assistant' or 'tool'",
                 "'" + printable(out.role, 40) + "'");
  const bool assistant = out.role == "assistant";
  const json* content = message.find("content");
  if (assistant) {
    if (const json* const calls = message.find("tool_calls"))
      out.calls = read_calls(*calls, message.name("tool_calls"), limit);
    for (const char* const each : {"reasoning_content", "reasoning", "thinking"})
      if (message.find(each) != nullptr) out.thought = message.text(each);
  }
  if (content != nullptr) read_content(*content, message.name("content"), limit.ignore_unknown, out);
  else if (!assistant || (out.calls.empty() && out.thought.empty()))
    message.need("content", assistant ? "a string, or tool_calls" : "a string");
  if (assistant) part_thought(out);
  if (out.role == "tool") {
    // Some clients know a result by the name of its function alone.
    if (message.find("tool_name") != nullptr) out.name = message.text("tool_name");
    if (message.find("name") != nullptr) out.name = message.text("name");
    if (out.name.empty() || message.find("tool_call_id") != nullptr) out.call_id = message.text("tool_call_id");
    if (out.name.empty() && out.call_id.empty()) refuse_field(message.name("tool_call_id"), "the id of a call", "''");
  }
  if (!assistant) message.refuse_unless_absent("tool_calls", "calls are the assistant's");
  message.refuse_unless_absent({"function_call", "audio"}, "the server has no such part");
  message.without_effect({"name", "refusal", "annotations"});
  message.refuse_unknown(limit.ignore_unknown);
  return out;
}

bool is_function_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

std::vector<tool_function> read_tool_list(const json& list, const limits& limit) {
  const std::string expected = "an array of at most " + std::to_string(limit.tools) + " functions";
  if (!list.is_array()) refuse_field("tools", expected, shown(list));
  if (list.size() > limit.tools) refuse_field("tools", expected, std::to_string(list.size()));
  std::vector<tool_function> out;
  std::unordered_set<std::string> known;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const fields outer(list[i], index("tools", i));
    if (const std::string type = outer.text("type"); type != "function")
      refuse_field(outer.name("type"), "'function'", "'" + printable(type, 40) + "'", "unsupported_parameter");
    // /v1/responses has the function's fields beside its type.
    const bool flat = outer.find("function") == nullptr;
    const fields function(flat ? list[i] : *outer.find("function"), flat ? index("tools", i) : outer.name("function"));
    tool_function each{function.text("name"), {}, nullptr, function.name("parameters")};
    if (!is_function_name(each.name))
      refuse_field(function.name("name"), "1 .. 128 letters, digits, _, - and .", "'" + printable(each.name, 60) + "'");
    if (!known.insert(each.name).second)
      refuse_field(function.name("name"), "each function once", "'" + printable(each.name, 60) + "' again");
    if (function.find("description") != nullptr) each.description = function.text("description");
    if (const json* const parameters = function.find("parameters")) each.parameters = *parameters;
    check_parameters(each);
    function.without_effect({"strict", "type"});  // calls always hold strictly
    function.refuse_unknown(limit.ignore_unknown);
    if (!flat) outer.refuse_unknown(limit.ignore_unknown);
    out.push_back(std::move(each));
  }
  return out;
}

const tool_function& tool_named(const conversation& of, const std::string& name, const std::string& field) {
  for (const tool_function& each : of.tools)
    if (each.name == name) return each;
  refuse_field(field, "the name of one of the tools", "'" + printable(name, 60) + "'");
}

void use_word(const std::string& word, const std::string& field, conversation& out) {
  if (word == "none") out.use = tool_use::none;
  else if (word == "auto") out.use = out.tools.empty() ? tool_use::none : tool_use::optional;
  else if (word == "required" || word == "any") out.use = tool_use::required;
  else refuse_field(field, "'none', 'auto', 'required' or a function", "'" + printable(word, 40) + "'");
  if (out.use == tool_use::required && out.tools.empty()) refuse_field(field, "tools beside it", "'" + word + "'");
}

void read_choice(const json& choice, const limits& limit, conversation& out) {
  if (choice.is_string()) return use_word(choice.get<std::string>(), "tool_choice", out);
  const fields inside(choice, "tool_choice");
  const std::string type = inside.text("type");
  if (type == "allowed_tools") {
    const bool flat = inside.find("allowed_tools") == nullptr;
    const fields allowed(flat ? choice : *inside.find("allowed_tools"), "tool_choice.allowed_tools");
    if (flat) allowed.without_effect({"type"});
    else inside.refuse_unknown(limit.ignore_unknown);
    use_word(allowed.text("mode"), "tool_choice.allowed_tools.mode", out);
    const json& list = allowed.need("tools", "an array of functions");
    if (!list.is_array() || list.empty())
      refuse_field("tool_choice.allowed_tools.tools", "an array of functions", shown(list));
    std::vector<tool_function> kept;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const fields one(list[i], index("tool_choice.allowed_tools.tools", i));
      const json* const function = one.find("function");
      kept.push_back(tool_named(out, function ? fields(*function, one.name("function")).text("name") : one.text("name"),
                                one.name("name")));
      one.without_effect({"type"});
      one.refuse_unknown(limit.ignore_unknown);
    }
    allowed.refuse_unknown(limit.ignore_unknown);
    out.tools = std::move(kept);
    return;
  }
  if (type != "function")
    refuse_field("tool_choice.type", "'function' or 'allowed_tools'", "'" + printable(type, 40) + "'");
  const json* const function = inside.find("function");
  const fields named(function ? *function : choice, function ? "tool_choice.function" : "tool_choice");
  out.tools = {tool_function(tool_named(out, named.text("name"), named.name("name")))};
  out.use = tool_use::required, out.named = true, out.several = false;
  if (function) named.refuse_unknown(limit.ignore_unknown);
  inside.without_effect({"name"});
  inside.refuse_unknown(limit.ignore_unknown);
}

}  // namespace

std::size_t leave_out_oldest(std::vector<turn>& turns, const std::function<bool(const std::vector<turn>&)>& fits) {
  std::vector<std::size_t> begins;
  const turn* before = nullptr;  // but for the system's
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].role == "system") continue;
    if (turns[i].role == "user" && (before == nullptr || before->role != "user")) begins.push_back(i);
    before = &turns[i];
  }
  const auto from = [&](std::size_t first) {
    std::vector<turn> out;
    for (std::size_t i = 0; i < turns.size(); ++i)
      if (i >= first || turns[i].role == "system") out.push_back(turns[i]);
    return out;
  };
  if (begins.size() < 2 || fits(turns)) return 0;
  std::size_t least = 1, most = begins.size() - 1;  // turns to leave out
  while (least < most) {
    const std::size_t middle = (least + most) / 2;
    if (fits(from(begins[middle]))) most = middle;
    else least = middle + 1;
  }
  const std::size_t all = turns.size();
  turns = from(begins[least]);
  return all - turns.size();
}

std::vector<turn> read_messages(const json& list, const limits& limit) {
  const std::string expected = "an array of 1 .. " + std::to_string(limit.messages) + " messages";
  if (!list.is_array() || list.empty()) refuse_field("messages", expected, list.is_array() ? "none" : shown(list));
  if (list.size() > limit.messages) refuse_field("messages", expected, std::to_string(list.size()));
  std::vector<turn> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    turn next = read_message(list[i], index("messages", i), limit);
    // A result belongs to a call that was made.
    if (next.role == "tool" && !next.call_id.empty()) {
      const tool_call* of = nullptr;
      for (const turn& each : out)
        for (const tool_call& call : each.calls)
          if (call.id == next.call_id) of = &call;
      if (of == nullptr)
        refuse_field(index("messages", i) + ".tool_call_id", "the id of a call in a message before it",
                     "'" + printable(next.call_id, 60) + "'");
      next.name = of->name;
    }
    out.push_back(std::move(next));
  }
  return out;
}

void read_tools(const fields& from, const limits& limit, conversation& out) {
  if (const json* const list = from.find("tools")) out.tools = read_tool_list(*list, limit);
  if (!out.tools.empty()) out.use = tool_use::optional;
  out.several = from.boolean("parallel_tool_calls", true);
  if (const json* const choice = from.find("tool_choice")) read_choice(*choice, limit, out);
  // What OpenAI had before tools.
  if (const json* const list = from.find("functions"); list != nullptr && *list != json::array())
    refuse_field("functions", "nothing: functions are named by tools", shown(*list), "unsupported_parameter");
  if (const json* const call = from.find("function_call"); call != nullptr && *call != "none" && *call != "auto")
    refuse_field("function_call", "nothing: tools are asked for by tool_choice", shown(*call), "unsupported_parameter");
}

void read_template_names(const fields& from, conversation& out) {
  if (const json* const names = from.find("chat_template_kwargs")) {
    if (!names->is_object()) refuse_field("chat_template_kwargs", "an object", shown(*names));
    constexpr std::array<std::string_view, 6> own{"messages",  "tools",    "documents", "add_generation_prompt",
                                                  "bos_token", "eos_token"};
    for (const auto& [key, value] : names->items())
      if (std::find(own.begin(), own.end(), key) != own.end())
        refuse_field("chat_template_kwargs." + key, "a name that the request does not set otherwise", "this one");
    out.names = *names;
  }
  const auto set = [&](const char* name, json value) {
    if (out.names.contains(name) && out.names[name] != value)
      refuse_field(name, "the same as chat_template_kwargs." + std::string(name), shown(value));
    out.names[name] = std::move(value);
  };
  if (from.find("enable_thinking") != nullptr) set("enable_thinking", from.boolean("enable_thinking", true));
  if (from.find("reasoning_effort") != nullptr) {
    const std::string effort = from.text("reasoning_effort");
    constexpr std::array<std::string_view, 6> known{"none", "minimal", "low", "medium", "high", "xhigh"};
    if (std::find(known.begin(), known.end(), effort) == known.end())
      refuse_field("reasoning_effort", "'none', 'minimal', 'low', 'medium', 'high' or 'xhigh'",
                   "'" + printable(effort, 40) + "'");
    set("reasoning_effort", effort);
  }
  const bool last = !out.turns.empty() && out.turns.back().role == "assistant";
  const bool begins = from.boolean("add_generation_prompt", true);
  out.continued = from.boolean("continue_final_message", !begins && last);
  if (out.continued && !last) refuse_field("continue_final_message", "an assistant's message at the end", "another");
  if (from.find("add_generation_prompt") != nullptr && begins == out.continued)
    refuse_field("add_generation_prompt",
                 out.continued ? "false beside continue_final_message" : "true, or an assistant's message at the end",
                 begins ? "true" : "false");
  if (out.continued && !out.turns.back().calls.empty())
    refuse_field("continue_final_message", "a last message without tool_calls", "one with them");
}

}  // namespace intaglio::serve
