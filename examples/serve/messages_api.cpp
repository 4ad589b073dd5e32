// SPDX-License-Identifier: MIT
// Anthropic's /v1/messages: https://docs.anthropic.com/en/api/messages and .../streaming.
#include <array>

#include "api.hpp"
#include "other_apis.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

std::string text_of_blocks(const json& content, const std::string& name, bool ignore) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse_field(name, "a string or an array of blocks", shown(content));
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const fields block(content[i], index(name, i));
    if (block.text("type") != "text")
      refuse_field(block.name("type"), "'text': this model reads nothing else",
                   "'" + printable(block.text("type"), 40) + "'", "unsupported_parameter");
    out += block.text("text");
    block.without_effect({"cache_control", "citations"});
    block.refuse_unknown(ignore);
  }
  return out;
}

/// A message, after the results of calls that it holds, which are messages of their own.
void add_message(const json& from, const std::string& name, bool ignore, json& to) {
  const fields message(from, name);
  const std::string role = message.text("role");
  if (role != "user" && role != "assistant")
    refuse_field(message.name("role"), "'user' or 'assistant'", "'" + printable(role, 40) + "'");
  const json& content = message.need("content", "a string or an array of blocks");
  message.refuse_unknown(ignore);
  json out{{"role", role}, {"content", ""}};
  if (content.is_string()) {
    out["content"] = content;
    to.push_back(std::move(out));
    return;
  }
  if (!content.is_array()) refuse_field(message.name("content"), "a string or an array of blocks", shown(content));
  std::string text;
  bool results = false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const fields block(content[i], index(message.name("content"), i));
    const std::string type = block.text("type");
    block.without_effect({"cache_control", "citations", "caller"});
    if (type == "text") {
      text += block.text("text");
    } else if (type == "thinking" && role == "assistant") {
      block.without_effect({"signature"});
      out["reasoning_content"] = out.value("reasoning_content", "") + block.text("thinking");
    } else if (type == "tool_use" && role == "assistant") {
      const json* const input = block.find("input");
      out["tool_calls"].push_back(
          {{"id", block.text("id")},
           {"type", "function"},
           {"function", {{"name", block.text("name")}, {"arguments", input ? *input : json::object()}}}});
    } else if (type == "tool_result" && role == "user") {
      const json* const result = block.find("content");
      const std::string said = result ? text_of_blocks(*result, block.name("content"), ignore) : std::string();
      to.push_back({{"role", "tool"},
                    {"tool_call_id", block.text("tool_use_id")},
                    {"content", (block.boolean("is_error", false) ? "Error: " : "") + said}});
      results = true;
    } else {
      refuse_field(block.name("type"), "'text', 'thinking', 'tool_use' or 'tool_result'",
                   "'" + printable(type, 40) + "'", "unsupported_parameter");
    }
    block.refuse_unknown(ignore);
  }
  if (results && text.empty()) return;
  out["content"] = text.empty() && out.contains("tool_calls") ? json(nullptr) : json(text);
  to.push_back(std::move(out));
}

void take_tools(const fields& from, bool ignore, json& to) {
  if (const json* const list = from.find("tools")) {
    if (!list->is_array()) refuse_field("tools", "an array", shown(*list));
    to["tools"] = json::array();
    for (std::size_t i = 0; i < list->size(); ++i) {
      const fields one((*list)[i], index("tools", i));
      if (one.find("type") != nullptr && one.text("type") != "custom")
        refuse_field(one.name("type"), "'custom'", "'" + printable(one.text("type"), 40) + "'",
                     "unsupported_parameter");
      json function{{"name", one.text("name")}};
      if (one.find("description") != nullptr) function["description"] = one.text("description");
      function["parameters"] = one.need("input_schema", "a JSON schema");
      one.without_effect(
          {"cache_control", "strict", "eager_input_streaming", "defer_loading", "input_examples", "allowed_callers"});
      one.refuse_unknown(ignore);
      to["tools"].push_back({{"type", "function"}, {"function", std::move(function)}});
    }
  }
  if (const json* const choice = from.find("tool_choice")) {
    const fields inside(*choice, "tool_choice");
    const std::string type = inside.text("type");
    if (type == "tool") to["tool_choice"] = {{"type", "function"}, {"function", {{"name", inside.text("name")}}}};
    else if (type == "any") to["tool_choice"] = "required";
    else if (type == "auto" || type == "none") to["tool_choice"] = type;
    else refuse_field("tool_choice.type", "'auto', 'any', 'tool' or 'none'", "'" + printable(type, 40) + "'");
    if (inside.boolean("disable_parallel_tool_use", false)) to["parallel_tool_calls"] = false;
    inside.refuse_unknown(ignore);
  }
}

std::string stop_reason(const std::string& finish, const std::string& stopped_by) {
  if (finish == "tool_calls") return "tool_use";
  if (finish == "length") return "max_tokens";
  return stopped_by.empty() ? "end_turn" : "stop_sequence";
}

class messages_reply : public generations_reply {
 public:
  messages_reply(std::string model, bool stream, std::vector<std::shared_ptr<generation>> list, metrics& counts)
      : generations_reply(std::move(list), stream, counts), id_(random_name("msg_")), model_(std::move(model)) {}

 protected:
  std::string first_events() override {
    json message = head();
    message["content"] = json::array();
    message["stop_reason"] = nullptr, message["stop_sequence"] = nullptr;
    message["usage"] = usage();
    return event({{"type", "message_start"}, {"message", std::move(message)}});
  }
  std::string events(const choice& of, std::size_t, const news& what) override {
    std::string out;
    if (!what.thought.empty()) {
      out += open("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
      out += delta({{"type", "thinking_delta"}, {"thinking", what.thought}});
    }
    if (!what.text.empty()) {
      out += open("text", {{"type", "text"}, {"text", ""}});
      out += delta({{"type", "text_delta"}, {"text", what.text}});
    }
    for (const call_piece& each : what.calls) {
      if (!each.name.empty()) {
        out += close();
        out += open(
            "tool_use",
            {{"type", "tool_use"}, {"id", of.calls[each.index].id}, {"name", each.name}, {"input", json::object()}});
      }
      if (!each.arguments.empty()) out += delta({{"type", "input_json_delta"}, {"partial_json", each.arguments}});
    }
    return out;
  }
  std::string last_events() override {
    const choice& of = choices()[0];
    std::string out = close();
    out += event({{"type", "message_delta"},
                  {"delta",
                   {{"stop_reason", stop_reason(of.finish, of.stopped_by)},
                    {"stop_sequence", of.stopped_by.empty() ? json(nullptr) : json(of.stopped_by)}}},
                  {"usage", usage()}});
    return out + event({{"type", "message_stop"}});
  }
  std::string error_events(const api_error& problem) override { return event(messages_error(problem)); }
  json document() override {
    const choice& of = choices()[0];
    json out = head(), content = json::array();
    if (!of.thought.empty()) content.push_back({{"type", "thinking"}, {"thinking", of.thought}, {"signature", ""}});
    if (!of.text.empty()) content.push_back({{"type", "text"}, {"text", of.text}});
    for (const call_made& each : of.calls)
      content.push_back(
          {{"type", "tool_use"}, {"id", each.id}, {"name", each.name}, {"input", json::parse(each.arguments)}});
    out["content"] = std::move(content);
    out["stop_reason"] = stop_reason(of.finish, of.stopped_by);
    out["stop_sequence"] = of.stopped_by.empty() ? json(nullptr) : json(of.stopped_by);
    out["usage"] = usage();
    return out;
  }

 private:
  static std::string event(const json& value) { return event_text(value, value["type"].get<std::string>()); }
  json head() const { return {{"id", id_}, {"type", "message"}, {"role", "assistant"}, {"model", model_}}; }
  json usage() const {
    const token_counts all = counted();
    json out{{"input_tokens", all.prompt - all.cached},
             {"cache_creation_input_tokens", 0},
             {"cache_read_input_tokens", all.cached},
             {"output_tokens", all.completion}};
    all.put_shifts(out);
    return out;
  }
  std::string open(const char* kind, json block) {
    if (open_ == kind) return {};
    std::string out = close();
    open_ = kind;
    return out + event({{"type", "content_block_start"}, {"index", blocks_++}, {"content_block", std::move(block)}});
  }
  std::string delta(json of) const {
    return event({{"type", "content_block_delta"}, {"index", blocks_ - 1}, {"delta", std::move(of)}});
  }
  std::string close() {
    if (open_.empty()) return {};
    open_.clear();
    return event({{"type", "content_block_stop"}, {"index", blocks_ - 1}});
  }

  std::string id_, model_;
  std::string open_;  ///< kind of the block that is open
  std::size_t blocks_ = 0;
};

}  // namespace

json messages_error(const api_error& error) {
  const std::string type = error.type();
  return {{"type", "error"},
          {"error",
           {{"type", type == "server_error"                ? "api_error"
                     : type == "service_unavailable_error" ? "overloaded_error"
                                                           : type},
            {"message", error.what()}}}};
}

json chat_of_messages(const json& body, const limits& limit) {
  const fields from(body, {});
  json out{{"messages", json::array()}};
  if (const json* const system = from.find("system"))
    out["messages"].push_back(
        {{"role", "system"}, {"content", text_of_blocks(*system, "system", limit.ignore_unknown)}});
  const json& messages = from.need("messages", "an array");
  if (!messages.is_array() || messages.empty()) refuse_field("messages", "an array of messages", shown(messages));
  for (std::size_t i = 0; i < messages.size(); ++i)
    add_message(messages[i], index("messages", i), limit.ignore_unknown, out["messages"]);
  take_members(from, out,
               {{"model", "model"},
                {"max_tokens", "max_tokens"},
                {"temperature", "temperature"},
                {"top_p", "top_p"},
                {"top_k", "top_k"},
                {"stop_sequences", "stop"},
                {"stream", "stream"}});
  take_context_shift(from, out);
  // A last message of the assistant's is what the answer begins with.
  if (out["messages"].back()["role"] == "assistant") out["continue_final_message"] = true;
  take_tools(from, limit.ignore_unknown, out);
  if (const json* const thinking = from.find("thinking")) {
    const fields inside(*thinking, "thinking");
    const std::string type = inside.text("type");
    if (type != "enabled" && type != "disabled" && type != "adaptive")
      refuse_field("thinking.type", "'enabled', 'disabled' or 'adaptive'", "'" + printable(type, 40) + "'");
    if (type != "adaptive") out["enable_thinking"] = type == "enabled";
    if (const auto budget = inside.natural("budget_tokens", 0, UINT32_MAX)) out["thinking_budget"] = *budget;
    inside.without_effect({"display"});
    inside.refuse_unknown(limit.ignore_unknown);
  }
  from.without_effect({"metadata", "service_tier"});
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

namespace {

/// Fields in Anthropic's words and in those of /v1/chat/completions.
constexpr std::array<field_names, 3> names_of_messages{
    {{"stop_sequences", "stop"}, {"thinking.budget_tokens", "thinking_budget"}, {"thinking.type", "enable_thinking"}}};

}  // namespace

http_reply api::messages(const asked& of) try {
  const json chat = chat_of_messages(of.body, options_.limit);
  if (!chat.contains("max_tokens")) refuse_field("max_tokens", "a number of tokens", "nothing");
  completion_request wanted = read_chat_request(chat, of.facts(), options_.limit);
  http_reply out;
  out.pending = std::make_shared<messages_reply>(of.facts().id, wanted.stream, begin(of, wanted), counts_);
  return out;
} catch (const api_error& refusal) { throw renamed(refusal, names_of_messages); }

http_reply api::count_tokens(const asked& of) try {
  const json chat = chat_of_messages(of.body, options_.limit);
  completion_request wanted = read_chat_request(chat, of.facts(), options_.limit);
  std::uint32_t left_out = 0;
  return json_reply({{"input_tokens", prompts_of(of, wanted, left_out)[0].size()}});
} catch (const api_error& refusal) { throw renamed(refusal, names_of_messages); }

}  // namespace intaglio::serve
