// SPDX-License-Identifier: MIT
#include "completion_reply.hpp"

#include <intaglio/io/unicode.hpp>

#include <random>

#include "api_error.hpp"
#include "json_document.hpp"

namespace intaglio::serve {
namespace {

/// Bytes of a token as text: incomplete characters become U+FFFD; the bytes are given beside the text.
std::string as_text(const std::string& bytes) {
  std::string out;
  io::append_replacing_invalid(out, bytes);
  return out;
}
json as_bytes(const std::string& bytes) {
  json out = json::array();
  for (const char each : bytes) out.push_back(static_cast<unsigned char>(each));
  return out;
}
/// JSON has no infinity: what cannot be drawn has a number far below all others.
double finite(double logprob) { return logprob > -9999.0 ? logprob : -9999.0; }

json chat_logprobs(const std::vector<token_logprobs>& tokens) {
  const auto one = [](const token_chance& each) {
    return json{{"token", as_text(each.bytes)}, {"logprob", finite(each.logprob)}, {"bytes", as_bytes(each.bytes)}};
  };
  json content = json::array();
  for (const auto& each : tokens) {
    json entry = one(each.token);
    entry["top_logprobs"] = json::array();
    for (const auto& other : each.alternatives) entry["top_logprobs"].push_back(one(other));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

json text_logprobs(const std::vector<token_logprobs>& tokens, std::size_t offset) {
  json out{{"tokens", json::array()},
           {"token_logprobs", json::array()},
           {"top_logprobs", json::array()},
           {"text_offset", json::array()}};
  for (const auto& each : tokens) {
    const std::string text = as_text(each.token.bytes);
    out["tokens"].push_back(text);
    out["token_logprobs"].push_back(finite(each.token.logprob));
    json top = json::object();
    for (const auto& other : each.alternatives) {
      const std::string name = as_text(other.bytes);
      if (!top.contains(name)) top[name] = finite(other.logprob);  // of equal texts the likelier
    }
    out["top_logprobs"].push_back(std::move(top));
    out["text_offset"].push_back(offset);
    offset += text.size();
  }
  return out;
}

json call_entry(const call_made& of) {
  return {{"id", of.id}, {"type", "function"}, {"function", {{"name", of.name}, {"arguments", of.arguments}}}};
}

}  // namespace

std::string random_name(const char* prefix, int letters) {
  static thread_local std::mt19937_64 random{(std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()};
  constexpr std::string_view all = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string out = prefix;
  for (int i = 0; i < letters; ++i) out += all[random() % all.size()];
  return out;
}

std::string event_text(const json& value, std::string_view name) {
  return (name.empty() ? std::string() : "event: " + std::string(name) + "\n") + "data: " + json_text(value) + "\n\n";
}

json error_body(const api_error& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? json(nullptr) : json(text); };
  return {{"error",
           {{"message", error.what()},
            {"type", error.type()},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

generations_reply::generations_reply(std::vector<std::shared_ptr<generation>> choices, bool stream, metrics& counts)
    : stream_(stream), open_(choices.size()), counts_(counts) {
  for (auto& each : choices) choices_.push_back({std::move(each), {}, {}, {}, {}, {}, {}, true});
}

generations_reply::token_counts generations_reply::counted(std::size_t prompts) const {
  token_counts out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    out.completion += choices_[i].from->completion_tokens();
    out.thought += choices_[i].from->thought_tokens();
    out.drafted += choices_[i].from->drafted, out.accepted += choices_[i].from->accepted;
    out.shifts += choices_[i].from->shift_count, out.discarded += choices_[i].from->discarded;
    if (i % (choices_.size() / prompts) != 0) continue;
    out.prompt += choices_[i].from->prompt().size();
    out.cached += choices_[i].from->cached_tokens;
    out.left_out += choices_[i].from->left_out;
  }
  return out;
}

void generations_reply::keep(choice& of, const news& what) {
  of.thought += what.thought;
  of.text += what.text;
  for (const call_piece& each : what.calls) {
    if (of.calls.size() <= each.index) of.calls.resize(each.index + 1);
    call_made& call = of.calls[each.index];
    if (call.id.empty()) call.id = random_name("", 9);  // as long as some templates want it
    call.name += each.name;
    call.arguments += each.arguments;
  }
  if (!stream_) of.tokens.insert(of.tokens.end(), what.tokens.begin(), what.tokens.end());
}

std::string generations_reply::poll() {
  std::string out;
  if (stream_ && !begun_) out += first_events();
  begun_ = true;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choice& at = choices_[i];
    if (!at.open) continue;
    const news what = at.from->take_news();
    keep(at, what);
    if (!what.finish.empty()) at.finish = what.finish, at.stopped_by = what.stopped_by;
    const bool anything = !what.thought.empty() || !what.text.empty() || !what.calls.empty() || !what.tokens.empty();
    if (stream_ && (anything || !what.finish.empty())) out += events(at, i, what);
    if (!what.done()) continue;
    at.open = false;
    if (error_.empty()) error_ = what.error, error_status_ = what.error_status;
    --open_;
  }
  if (!error_.empty() && open_ != 0) cancel();
  if (open_ != 0 || !stream_) return out;
  return out + (error_.empty() ? last_events() : error_events(error()));
}

http_reply generations_reply::reply() {
  if (!error_.empty()) throw error();
  http_reply out;
  out.body = json_text(document());
  return out;
}

api_error generations_reply::error() const {
  const std::string field = error_.substr(0, error_.find(':'));
  return error_status_ == 400 ? api_error(400, error_, field, "unsupported_schema")
                              : api_error(503, error_, {}, "generation_failed", 1);
}

void generations_reply::cancel() {
  bool any = false;
  for (auto& each : choices_) {
    if (each.open) each.from->cancel(), any = true;
    if (each.open && !error_.empty()) each.open = false, --open_;
  }
  if (any && error_.empty()) counts_.cancelled();
}

json completion_reply::usage_of(const token_counts& all) {
  json out{{"prompt_tokens", all.prompt},
           {"completion_tokens", all.completion},
           {"total_tokens", all.prompt + all.completion},
           {"prompt_tokens_details", all.prompt_details()}};
  if (json details = all.completion_details(); !details.empty()) out["completion_tokens_details"] = std::move(details);
  return out;
}

json completion_reply::head() const {
  const bool chunk = identity_.chat && identity_.stream;
  return {{"id", identity_.id},
          {"object", chunk            ? "chat.completion.chunk"
                     : identity_.chat ? "chat.completion"
                                      : "text_completion"},
          {"created", identity_.created},
          {"model", identity_.model},
          {"system_fingerprint", identity_.fingerprint}};
}

std::string completion_reply::event(json choice) const {
  json out = head();
  out["choices"] = json::array({std::move(choice)});
  const token_counts all = counted(identity_.prompts);
  if (identity_.usage_so_far) out["usage"] = usage_of(all);
  else if (identity_.include_usage) out["usage"] = nullptr;
  return event_text(out);
}

std::string completion_reply::first_events() {
  std::string out;
  for (std::size_t i = 0; i < identity_.echo.size() * (choices().size() / identity_.prompts); ++i)
    out += event({{"index", i}, {"text", echo_of(i)}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
  for (std::size_t i = 0; identity_.chat && i < choices().size(); ++i)
    out += event({{"index", i},
                  {"delta", {{"role", "assistant"}, {"content", ""}}},
                  {"logprobs", nullptr},
                  {"finish_reason", nullptr}});
  return out;
}

std::string completion_reply::events(const choice& of, std::size_t index, const news& what) {
  json choice{{"index", index}};
  json logprobs = nullptr;
  if (identity_.logprobs && !what.tokens.empty())
    logprobs = identity_.chat ? chat_logprobs(what.tokens) : text_logprobs(what.tokens, text_offsets_[index]);
  for (const auto& each : what.tokens) text_offsets_[index] += as_text(each.token.bytes).size();
  if (identity_.chat) {
    json delta = json::object();
    if (!what.thought.empty()) delta["reasoning_content"] = what.thought;
    if (!what.text.empty()) delta["content"] = what.text;
    for (const call_piece& each : what.calls) {
      json call{{"index", each.index}};
      if (!each.name.empty()) {
        call["id"] = of.calls[each.index].id;
        call["type"] = "function";
        call["function"]["name"] = each.name;
      }
      call["function"]["arguments"] = each.arguments;
      delta["tool_calls"].push_back(std::move(call));
    }
    if (delta.empty() && what.finish.empty()) delta["content"] = "";
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = what.text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = what.finish.empty() ? json(nullptr) : json(std::string(what.finish));
  return event(std::move(choice));
}

std::string completion_reply::last_events() {
  std::string out;
  if (identity_.include_usage) {
    json last = head();
    const token_counts all = counted(identity_.prompts);
    last["choices"] = json::array();
    last["usage"] = usage_of(all);
    out += event_text(last);
  }
  return out + "data: [DONE]\n\n";
}

std::string completion_reply::error_events(const api_error& problem) { return event_text(error_body(problem)); }

json completion_reply::document() {
  json list = json::array();
  for (std::size_t i = 0; i < choices().size(); ++i) {
    const choice& at = choices()[i];
    json each{{"index", i}};
    if (identity_.chat) {
      json message{{"role", "assistant"}, {"content", at.text}, {"refusal", nullptr}};
      if (!at.thought.empty()) message["reasoning_content"] = at.thought;
      if (!at.calls.empty() && at.text.empty()) message["content"] = nullptr;
      for (const call_made& call : at.calls) message["tool_calls"].push_back(call_entry(call));
      each["message"] = std::move(message);
    } else {
      each["text"] = echo_of(i) + at.text;
    }
    each["logprobs"] = !identity_.logprobs ? json(nullptr)
                       : identity_.chat    ? chat_logprobs(at.tokens)
                                           : text_logprobs(at.tokens, 0);
    each["finish_reason"] = at.finish;
    list.push_back(std::move(each));
  }
  json out = head();
  const token_counts all = counted(identity_.prompts);
  out["choices"] = std::move(list);
  out["usage"] = usage_of(all);
  return out;
}

}  // namespace intaglio::serve
