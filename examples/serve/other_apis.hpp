// SPDX-License-Identifier: MIT
// Other APIs over the same engine: Anthropic's messages, OpenAI's responses, Ollama's. Each of their bodies becomes one
// of /v1/chat/completions, field by field, and each has answers of its own.
#pragma once

#include <intaglio/core/number_text.hpp>
#include <intaglio/core/version.hpp>
#include <intaglio/io/unicode.hpp>
#include <intaglio/platform/clock.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "completion_reply.hpp"
#include "json_document.hpp"
#include "limits.hpp"
#include "request_fields.hpp"

namespace intaglio::serve {

/// Members that mean the same under another name: {theirs, ours}.
inline void take_members(const fields& from, json& to,
                         std::initializer_list<std::pair<const char*, const char*>> names) {
  for (const auto& [theirs, ours] : names)
    if (const json* const value = from.find(theirs)) to[ours] = *value;
}
/// What APIs that know nothing of it say of a text that goes on after the context's end (context_shift.hpp).
inline void take_context_shift(const fields& from, json& to) {
  take_members(from, to, {{"context_shift", "context_shift"}, {"n_keep", "n_keep"}, {"n_discard", "n_discard"}});
}

/// A field by its name in an API, and by its name in /v1/chat/completions.
struct field_names {
  std::string_view theirs, ours;
};
/// The refusal with the names of the client's API. An item of the chat's messages has another path in other bodies, so
/// its name stays in the message.
inline api_error renamed(const api_error& refusal, std::span<const field_names> names) {
  const auto name_in = [&](const std::string& text, bool whole) -> std::string {
    for (const auto& [theirs, ours] : names) {
      if (!text.starts_with(ours)) continue;
      const std::string rest = text.substr(ours.size());
      if (!rest.empty() && std::string_view(".[: ").find(rest[0]) == std::string_view::npos) continue;
      if (ours != "messages" || !rest.starts_with('[')) return std::string(theirs) + rest;
      return std::string(theirs) + (whole ? "" : ", as a chat's " + text);
    }
    return text;
  };
  api_error out(refusal.status, name_in(refusal.what(), false), name_in(refusal.param, true), refusal.code,
                refusal.retry_after);
  out.allow = refusal.allow;
  return out;
}

inline http_reply json_reply(const json& body) { return {.body = json_text(body), .fields = {}, .pending = nullptr}; }

/// The double that is written as shortly as the float.
inline double as_double(float value) { return number_of_text(number_text(value)).value_or(static_cast<double>(value)); }

inline std::string as_utf8(std::string_view bytes) {
  std::string out;
  io::append_replacing_invalid(out, bytes);
  return out;
}

/// Names of Ollama's have a tag after them.
inline std::string without_tag(const std::string& name) {
  constexpr std::string_view tag = ":latest";
  return name.ends_with(tag) ? name.substr(0, name.size() - tag.size()) : name;
}

/// This build, as answers name it.
inline std::string fingerprint() {
  return "intaglio-" + std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
         std::to_string(version_patch);
}

/// "2026-11-26T18:40:00Z"
inline std::string utc_text(std::time_t at) {
  char out[40] = "";
  if (const auto parts = platform::utc_time(at)) std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &*parts);
  return out;
}

/// {"type": "error", "error": {"type", "message"}}
json messages_error(const api_error& error);
/// A body of /v1/messages as one of chats. @throws api_error 400
json chat_of_messages(const json& body, const limits& limit);

/// Items of /v1/responses as messages of a chat. @param ignore members that are not known  @throws api_error 400
json messages_of_items(const json& input, bool ignore);
/// Converts a body of /v1/responses to one of chats, without its previous response.
json chat_of_response(const json& body, const limits& limit);

/// Bodies of /api/chat and /api/generate as those of chats. @throws api_error 400
json chat_of_ollama(const json& body, const limits& limit);
json chat_of_ollama_prompt(const json& body, const limits& limit);

/// Responses that later requests may go on from: the newest, within bounds of number and bytes.
class response_store {
 public:
  struct entry {
    std::string id;
    json messages;  ///< of the chat up to and with the response
    json document;  ///< as it was answered
    std::size_t bytes = 0;
  };
  static constexpr std::size_t most = 1024, most_bytes = std::size_t{64} << 20;

  void put(entry next) {
    next.bytes = json_text(next.messages).size() + json_text(next.document).size();
    const std::lock_guard lock(mutex_);
    bytes_ += next.bytes;
    list_.push_back(std::move(next));
    while (list_.size() > most || bytes_ > most_bytes) bytes_ -= list_.front().bytes, list_.pop_front();
  }
  std::optional<entry> find(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    for (const entry& each : list_)
      if (each.id == id) return each;
    return {};
  }
  bool remove(std::string_view id) {
    const std::lock_guard lock(mutex_);
    for (auto at = list_.begin(); at != list_.end(); ++at)
      if (at->id == id) return bytes_ -= at->bytes, list_.erase(at), true;
    return false;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<entry> list_;
  std::size_t bytes_ = 0;
};

}  // namespace intaglio::serve
