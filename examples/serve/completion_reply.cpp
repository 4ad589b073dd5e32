// SPDX-License-Identifier: MIT
#include "completion_reply.hpp"

#include <intaglio/io/unicode.hpp>

#include "api_error.hpp"
#include "json_document.hpp"

namespace intaglio::serve {
namespace {

/// Bytes of a token as text: what is no whole character is U+FFFD, beside it stand the bytes.
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

json chat_logprobs(const std::vector<token_told>& tokens) {
  const auto one = [](const token_chance& each) {
    return json{{"token", as_text(each.bytes)}, {"logprob", finite(each.logprob)}, {"bytes", as_bytes(each.bytes)}};
  };
  json content = json::array();
  for (const auto& each : tokens) {
    json told = one(each.token);
    told["top_logprobs"] = json::array();
    for (const auto& other : each.alternatives) told["top_logprobs"].push_back(one(other));
    content.push_back(std::move(told));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

json text_logprobs(const std::vector<token_told>& tokens, std::size_t offset) {
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

std::string event_text(const json& value) { return "data: " + json_text(value) + "\n\n"; }

template <class Counts>
json usage_of(const Counts& of) {
  return {{"prompt_tokens", of.prompt},
          {"completion_tokens", of.completion},
          {"total_tokens", of.prompt + of.completion},
          {"prompt_tokens_details", {{"cached_tokens", of.cached}}}};
}

}  // namespace

completion_reply::completion_reply(completion_identity identity, std::vector<std::shared_ptr<generation>> choices,
                                   metrics& counts)
    : identity_(std::move(identity)), open_(choices.size()), counts_(counts) {
  for (auto& each : choices) choices_.push_back({std::move(each), {}, {}, {}, 0, true});
}

completion_reply::token_counts completion_reply::counted() const {
  token_counts out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    out.completion += choices_[i].from->completion_tokens();
    if (i % (choices_.size() / identity_.prompts) != 0) continue;  // a prompt counts once
    out.prompt += choices_[i].from->prompt().size();
    out.cached += choices_[i].from->cached_tokens;
  }
  return out;
}

std::string completion_reply::event(const choice& of, std::size_t index, const news& what, bool first) const {
  json choice{{"index", index}};
  json logprobs = nullptr;
  if (identity_.logprobs && !what.tokens.empty())
    logprobs = identity_.chat ? chat_logprobs(what.tokens) : text_logprobs(what.tokens, of.text_offset);
  const json finish = what.finish.empty() ? json(nullptr) : json(std::string(what.finish));
  if (identity_.chat) {
    choice["delta"] = json::object();
    if (first) choice["delta"] = {{"role", "assistant"}, {"content", ""}};
    else if (!what.text.empty() || what.finish.empty()) choice["delta"]["content"] = what.text;
  } else {
    choice["text"] = what.text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = finish;
  json out{{"id", identity_.id},
           {"object", identity_.chat ? "chat.completion.chunk" : "text_completion"},
           {"created", identity_.created},
           {"model", identity_.model},
           {"system_fingerprint", identity_.fingerprint},
           {"choices", json::array({std::move(choice)})}};
  if (identity_.usage_so_far) out["usage"] = usage_of(counted());
  else if (identity_.include_usage) out["usage"] = nullptr;
  return event_text(out);
}

std::string completion_reply::poll() {
  std::string out;
  if (identity_.stream && !begun_ && identity_.chat)
    for (std::size_t i = 0; i < choices_.size(); ++i) out += event(choices_[i], i, {}, true);
  begun_ = true;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choice& at = choices_[i];
    if (!at.open) continue;
    news what = at.from->take_news();
    if (identity_.stream) {
      if (!what.text.empty() || !what.tokens.empty() || !what.finish.empty()) out += event(at, i, what, false);
      for (const auto& each : what.tokens) at.text_offset += as_text(each.token.bytes).size();
    } else {
      at.text += what.text;
      for (auto& each : what.tokens) at.tokens.push_back(std::move(each));
    }
    if (!what.done()) continue;
    at.open = false;
    at.finish = what.finish;
    if (error_.empty()) error_ = what.error, error_status_ = what.error_status;
    --open_;
  }
  if (!error_.empty() && open_ != 0) cancel();
  if (open_ != 0 || !identity_.stream) return out;
  if (!error_.empty())
    return out + event_text({{"error",
                              {{"message", error_},
                               {"type", error_status_ == 400 ? error().type() : "server_error"},
                               {"param", nullptr},
                               {"code", error().code}}}});
  if (identity_.include_usage) {
    out += event_text({{"id", identity_.id},
                       {"object", identity_.chat ? "chat.completion.chunk" : "text_completion"},
                       {"created", identity_.created},
                       {"model", identity_.model},
                       {"system_fingerprint", identity_.fingerprint},
                       {"choices", json::array()},
                       {"usage", usage_of(counted())}});
  }
  return out + "data: [DONE]\n\n";
}

http_reply completion_reply::reply() {
  http_reply out;
  if (!error_.empty()) throw error();
  json list = json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const choice& at = choices_[i];
    json each{{"index", i}};
    if (identity_.chat) each["message"] = {{"role", "assistant"}, {"content", at.text}, {"refusal", nullptr}};
    else each["text"] = at.text;
    each["logprobs"] = !identity_.logprobs ? json(nullptr)
                       : identity_.chat    ? chat_logprobs(at.tokens)
                                           : text_logprobs(at.tokens, 0);
    each["finish_reason"] = at.finish;
    list.push_back(std::move(each));
  }
  out.body = json_text({{"id", identity_.id},
                        {"object", identity_.chat ? "chat.completion" : "text_completion"},
                        {"created", identity_.created},
                        {"model", identity_.model},
                        {"system_fingerprint", identity_.fingerprint},
                        {"choices", std::move(list)},
                        {"usage", usage_of(counted())}});
  return out;
}

api_error completion_reply::error() const {
  return error_status_ == 400 ? api_error(400, error_, "response_format", "unsupported_schema")
                              : api_error(503, error_, {}, "generation_failed", 1);
}

void completion_reply::cancel() {
  bool any = false;
  for (auto& each : choices_) {
    if (each.open) each.from->cancel(), any = true;
    if (each.open && !error_.empty()) each.open = false, --open_;
  }
  if (any && error_.empty()) counts_.cancelled();
}

}  // namespace intaglio::serve
