// SPDX-License-Identifier: MIT
// OpenAI's /v1/responses: https://platform.openai.com/docs/api-reference/responses and .../responses-streaming.
#include <array>
#include <chrono>

#include "api.hpp"
#include "other_apis.hpp"
#include "request.hpp"

namespace intaglio::serve {
namespace {

/// A result or a message, as a text or in parts.
json content_of(const json& from, const std::string& name) {
  if (from.is_string()) return from;
  if (!from.is_array()) refuse_field(name, "a string or an array of parts", shown(from));
  return from;
}

/// The message that calls and thoughts of a turn are put into: the assistant's last, where nothing came after it.
json& assistant_at_end(json& messages) {
  if (messages.empty() || messages.back()["role"] != "assistant")
    messages.push_back({{"role", "assistant"}, {"content", nullptr}});
  return messages.back();
}

void add_item(const json& from, const std::string& name, bool ignore, json& to) {
  const fields item(from, name);
  const std::string type = item.find("type") != nullptr ? item.text("type") : "message";
  item.without_effect({"id", "status", "phase"});
  if (type == "message") {
    const std::string role = item.text("role");
    const json content = content_of(item.need("content", "a string or an array of parts"), item.name("content"));
    // A thought before the answer is of the same turn.
    const bool joins = role == "assistant" && !to.empty() && to.back()["role"] == "assistant" &&
                       to.back()["content"].is_null() && !to.back().contains("tool_calls");
    if (joins) to.back()["content"] = content;
    else to.push_back({{"role", role}, {"content", content}});
  } else if (type == "function_call") {
    json& turn = assistant_at_end(to);
    turn["tool_calls"].push_back({{"id", item.text("call_id")},
                                  {"type", "function"},
                                  {"function", {{"name", item.text("name")}, {"arguments", item.text("arguments")}}}});
    item.without_effect({"namespace"});
  } else if (type == "function_call_output") {
    to.push_back({{"role", "tool"},
                  {"tool_call_id", item.text("call_id")},
                  {"content", content_of(item.need("output", "a string or an array of parts"), item.name("output"))}});
  } else if (type == "reasoning") {
    std::string thought;
    if (const json* const content = item.find("content")) {
      if (!content->is_array()) refuse_field(item.name("content"), "an array of parts", shown(*content));
      for (std::size_t i = 0; i < content->size(); ++i) {
        const fields part((*content)[i], index(item.name("content"), i));
        thought += part.text("text");
        part.without_effect({"type"});
        part.refuse_unknown(ignore);
      }
    }
    item.without_effect({"summary", "encrypted_content"});
    if (!thought.empty()) to.push_back({{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", thought}});
  } else {
    refuse_field(item.name("type"), "'message', 'function_call', 'function_call_output' or 'reasoning'",
                 "'" + printable(type, 40) + "'", "unsupported_parameter");
  }
  item.refuse_unknown(ignore);
}

/// The answer has no parts that a client could add to it. @throws api_error 400: log probabilities, or no name of a
/// part
void check_include(const json* list) {
  constexpr std::array<std::string_view, 6> empty{
      "reasoning.encrypted_content",  // thoughts are answered in plain text
      "file_search_call.results",       "web_search_call.results",
      "web_search_call.action.sources", "computer_call_output.output.image_url",
      "code_interpreter_call.outputs"};
  if (list == nullptr) return;
  if (!list->is_array()) refuse_field("include", "an array of names", shown(*list));
  for (std::size_t i = 0; i < list->size(); ++i)
    if (std::none_of(empty.begin(), empty.end(), [&](std::string_view each) { return (*list)[i] == each; }))
      refuse_field(index("include", i), "a part that the server can add", shown((*list)[i]), "unsupported_parameter");
}

/// Fields of the request that its response repeats.
json echoed_fields(const json& body) {
  json out = json::object();
  const auto put = [&](const char* name, json absent) {
    const auto at = body.find(name);
    out[name] = at == body.end() || at->is_null() ? std::move(absent) : *at;
  };
  put("instructions", nullptr), put("max_output_tokens", nullptr), put("metadata", json::object());
  put("parallel_tool_calls", true), put("previous_response_id", nullptr);
  put("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  put("store", true), put("temperature", 1.0), put("text", {{"format", {{"type", "text"}}}});
  put("tool_choice", "auto"), put("tools", json::array()), put("top_p", 1.0), put("truncation", "disabled");
  put("user", nullptr);
  return out;
}

/// What a response needs besides its generation.
struct response_identity {
  std::string model;
  std::int64_t created = 0;
  json echoed;    ///< fields of the request
  json messages;  ///< of the chat, to go on from
  bool stream = false, store = true;
};

class response_reply : public generations_reply {
 public:
  response_reply(response_identity identity, response_store& store, std::vector<std::shared_ptr<generation>> list,
                 metrics& counts)
      : generations_reply(std::move(list), identity.stream, counts), identity_(std::move(identity)), store_(store) {}

 protected:
  std::string first_events() override {
    std::string out = event("response.created", {{"response", whole("in_progress")}});
    return out += event("response.in_progress", {{"response", whole("in_progress")}});
  }
  std::string events(const choice& of, std::size_t, const news& what) override {
    std::string out;
    if (!what.thought.empty()) {
      out += open("reasoning");
      out += part_event("response.reasoning_text.delta", {{"delta", what.thought}});
      text_ += what.thought;
    }
    if (!what.text.empty()) {
      out += open("message");
      out += part_event("response.output_text.delta", {{"delta", what.text}, {"logprobs", json::array()}});
      text_ += what.text;
    }
    for (const call_piece& each : what.calls) {
      if (!each.name.empty()) {
        out += close();
        call_ = of.calls[each.index];
        call_.arguments.clear();
        out += open("function_call");
      }
      if (!each.arguments.empty())
        out += event("response.function_call_arguments.delta",
                     {{"item_id", item_id_}, {"output_index", output_.size()}, {"delta", each.arguments}});
      call_.arguments += each.arguments;
    }
    return out;
  }
  std::string last_events() override {
    std::string out = close();
    const bool cut = choices()[0].finish == "length";
    const json response = whole(cut ? "incomplete" : "completed");
    keep(response);
    return out + event(cut ? "response.incomplete" : "response.completed", {{"response", response}});
  }
  std::string error_events(const api_error& problem) override {
    json response = whole("failed");
    response["error"] = {{"code", "server_error"}, {"message", problem.what()}};
    return event("response.failed", {{"response", std::move(response)}});
  }
  json document() override {
    const choice& of = choices()[0];
    const auto item = [&](const char* kind, const std::string& text) {
      kind_ = kind, item_id_ = random_name(prefix_of(kind_)), text_ = text;
      output_.push_back(entry("completed"));
    };
    if (!of.thought.empty()) item("reasoning", of.thought);
    if (!of.text.empty()) item("message", of.text);
    for (const call_made& each : of.calls) call_ = each, item("function_call", {});
    const json out = whole(of.finish == "length" ? "incomplete" : "completed");
    keep(out);
    return out;
  }

 private:
  static const char* prefix_of(std::string_view kind) {
    return kind == "reasoning" ? "rs_" : kind == "message" ? "msg_" : "fc_";
  }
  std::string event(const char* type, json members) {
    json out{{"type", type}, {"sequence_number", sequence_++}};
    out.update(members);
    return event_text(out, type);
  }
  std::string part_event(const char* type, json members) {
    json all{{"item_id", item_id_}, {"output_index", output_.size()}, {"content_index", 0}};
    all.update(members);
    return event(type, std::move(all));
  }
  json part() const {
    if (kind_ == "reasoning") return {{"type", "reasoning_text"}, {"text", text_}};
    return {{"type", "output_text"}, {"text", text_}, {"annotations", json::array()}, {"logprobs", json::array()}};
  }
  /// The item that is open.
  json entry(const char* status) const {
    json out{{"id", item_id_}, {"type", kind_}, {"status", status}};
    const bool begun = std::string_view(status) != "completed";
    if (kind_ == "reasoning") {
      out["summary"] = json::array();
      out["content"] = begun ? json::array() : json::array({part()});
    } else if (kind_ == "message") {
      out["role"] = "assistant";
      out["content"] = begun ? json::array() : json::array({part()});
    } else {
      out["call_id"] = call_.id, out["name"] = call_.name, out["arguments"] = call_.arguments;
    }
    return out;
  }
  std::string open(const char* kind) {
    if (kind_ == kind) return {};
    std::string out = close();
    kind_ = kind, item_id_ = random_name(prefix_of(kind_)), text_.clear();
    out += event("response.output_item.added", {{"output_index", output_.size()}, {"item", entry("in_progress")}});
    if (kind_ != "function_call") out += part_event("response.content_part.added", {{"part", part()}});
    return out;
  }
  std::string close() {
    if (kind_.empty()) return {};
    std::string out;
    if (kind_ == "function_call") {
      out += event("response.function_call_arguments.done", {{"item_id", item_id_},
                                                             {"output_index", output_.size()},
                                                             {"name", call_.name},
                                                             {"arguments", call_.arguments}});
    } else {
      if (kind_ == "message")
        out += part_event("response.output_text.done", {{"text", text_}, {"logprobs", json::array()}});
      else out += part_event("response.reasoning_text.done", {{"text", text_}});
      out += part_event("response.content_part.done", {{"part", part()}});
    }
    const json done = entry("completed");
    out += event("response.output_item.done", {{"output_index", output_.size()}, {"item", done}});
    output_.push_back(done);
    kind_.clear();
    return out;
  }

  json whole(const char* status) const {
    json out{
        {"id", id_},        {"object", "response"},          {"created_at", identity_.created}, {"status", status},
        {"error", nullptr}, {"incomplete_details", nullptr}, {"model", identity_.model},        {"output", output_}};
    if (std::string_view(status) == "incomplete") out["incomplete_details"] = {{"reason", "max_output_tokens"}};
    out.update(identity_.echoed);
    out["usage"] = nullptr;
    if (std::string_view(status) == "in_progress") return out;
    const token_counts all = counted();
    json details = all.completion_details();
    details["reasoning_tokens"] = all.thought;
    out["usage"] = {{"input_tokens", all.prompt},
                    {"input_tokens_details", all.prompt_details()},
                    {"output_tokens", all.completion},
                    {"output_tokens_details", std::move(details)},
                    {"total_tokens", all.prompt + all.completion}};
    return out;
  }

  void keep(const json& response) {
    if (!identity_.store) return;
    const choice& of = choices()[0];
    json messages = identity_.messages, turn{{"role", "assistant"}, {"content", of.text}};
    if (!of.thought.empty()) turn["reasoning_content"] = of.thought;
    for (const call_made& each : of.calls)
      turn["tool_calls"].push_back(
          {{"id", each.id}, {"type", "function"}, {"function", {{"name", each.name}, {"arguments", each.arguments}}}});
    messages.push_back(std::move(turn));
    store_.put({id_, std::move(messages), response, 0});
  }

  std::string id_ = random_name("resp_", 32);
  response_identity identity_;
  response_store& store_;
  std::size_t sequence_ = 0;
  json output_ = json::array();
  std::string kind_, item_id_, text_;  ///< of the item that is open
  call_made call_;
};

}  // namespace

json messages_of_items(const json& input, bool ignore) {
  if (input.is_string()) return json::array({{{"role", "user"}, {"content", input}}});
  if (!input.is_array() || input.empty()) refuse_field("input", "a string or an array of items", shown(input));
  json out = json::array();
  for (std::size_t i = 0; i < input.size(); ++i) add_item(input[i], index("input", i), ignore, out);
  return out;
}

json chat_of_response(const json& body, const limits& limit) {
  const fields from(body, {});
  const json& input = from.need("input", "a string or an array of items");
  json out{{"messages", messages_of_items(input, limit.ignore_unknown)}};
  take_members(from, out,
               {{"model", "model"},
                {"max_output_tokens", "max_tokens"},
                {"temperature", "temperature"},
                {"top_p", "top_p"},
                {"top_k", "top_k"},
                {"seed", "seed"},
                {"stream", "stream"},
                {"parallel_tool_calls", "parallel_tool_calls"},
                {"tools", "tools"},
                {"tool_choice", "tool_choice"},
                {"truncation", "truncation"},
                {"chat_template_kwargs", "chat_template_kwargs"}});
  take_context_shift(from, out);
  if (const json* const reasoning = from.find("reasoning")) {
    const fields inside(*reasoning, "reasoning");
    take_members(inside, out, {{"effort", "reasoning_effort"}});
    inside.without_effect({"summary", "generate_summary"});  // thoughts are returned as a whole
    inside.refuse_unknown(limit.ignore_unknown);
  }
  if (const json* const text = from.find("text")) {
    const fields inside(*text, "text");
    if (const json* const format = inside.find("format")) {
      const fields of(*format, "text.format");
      const std::string type = of.text("type");
      if (type == "json_schema")
        out["response_format"] = {{"type", type}, {"json_schema", {{"schema", of.need("schema", "a JSON schema")}}}};
      else out["response_format"] = {{"type", type}};
      of.without_effect({"name", "strict", "description"});
      of.refuse_unknown(limit.ignore_unknown);
    }
    inside.without_effect({"verbosity"});
    inside.refuse_unknown(limit.ignore_unknown);
  }
  from.refuse_unless_absent({"background", "conversation", "prompt", "max_tool_calls"}, "the server does not do this");
  if (const json* const alternatives = from.find("top_logprobs"); alternatives != nullptr && *alternatives != 0)
    refuse_field("top_logprobs", "0: the answer has no log probabilities", shown(*alternatives));
  check_include(from.find("include"));
  if (const json* const options = from.find("stream_options")) {
    const fields inside(*options, "stream_options");
    inside.refuse_unless_absent("include_obfuscation", "pieces are sent as they are");
    inside.without_effect({"include_usage"});  // the last event always has it
    inside.refuse_unknown(limit.ignore_unknown);
  }
  from.without_effect({"instructions", "previous_response_id", "store", "metadata", "service_tier", "user",
                       "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  from.refuse_unknown(limit.ignore_unknown);
  return out;
}

http_reply api::responses(const asked& of) try {
  const json& body = of.body;
  json chat = chat_of_response(body, options_.limit);
  const fields from(body, {});
  json messages = json::array();
  if (from.find("previous_response_id") != nullptr) {
    const std::string id = from.text("previous_response_id");
    const auto before = stored_.find(id);
    if (!before)
      throw api_error(404,
                      "previous_response_id: expected a response that is stored, found '" + printable(id, 60) + "'",
                      "previous_response_id", "previous_response_not_found");
    messages = before->messages;
  }
  messages.insert(messages.end(), chat["messages"].begin(), chat["messages"].end());
  // Instructions apply to this response only: they are not part of the stored conversation.
  json all = json::array();
  if (from.find("instructions") != nullptr) all.push_back({{"role", "system"}, {"content", from.text("instructions")}});
  all.insert(all.end(), messages.begin(), messages.end());
  chat["messages"] = std::move(all);
  completion_request wanted = read_chat_request(chat, of.facts(), options_.limit);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  response_identity identity{of.facts().id,       std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                             echoed_fields(body), std::move(messages),
                             wanted.stream,       from.boolean("store", true)};
  http_reply out;
  out.pending = std::make_shared<response_reply>(std::move(identity), stored_, begin(of, wanted), counts_);
  return out;
} catch (const api_error& refusal) {
  constexpr std::array<field_names, 5> names{{{"max_output_tokens", "max_tokens"},
                                              {"input", "messages"},
                                              {"text.format.schema", "response_format.json_schema.schema"},
                                              {"text.format", "response_format"},
                                              {"reasoning.effort", "reasoning_effort"}}};
  throw renamed(refusal, names);
}

http_reply api::stored_response(const asked& of) {
  const std::string id = of.request.path.substr(std::string_view("/v1/responses/").size());
  const auto found = stored_.find(id);
  if (!found)
    throw api_error(404, "response: expected one that is stored, found '" + printable(id, 60) + "'", {}, "not_found");
  if (const auto stream = query_value(of.request.query, "stream"); stream && *stream != "false")
    refuse_field("stream", "false: a stored response comes whole", "'" + printable(*stream, 30) + "'");
  json parts = json::array();
  for (const auto& [name, value] : query_members(of.request.query))
    if (name == "include" || name == "include[]") parts.push_back(value);
  check_include(&parts);
  http_reply out;
  out.body = json_text(found->document);
  if (of.request.method == "DELETE") {
    stored_.remove(id);
    out.body = json_text({{"id", id}, {"object", "response"}, {"deleted", true}});
  }
  return out;
}

}  // namespace intaglio::serve
