// SPDX-License-Identifier: MIT
// The turns of a chat, and as the note of a saved session.
#pragma once

#include "engine.hpp"

#include <intaglio/core/error.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace intaglio::tool {

/// A system message, if any, then user and assistant in turn.
struct conversation {
  std::optional<std::string> system;
  std::vector<turn> turns;

  std::vector<turn> all() const {
    std::vector<turn> out;
    if (system) out.push_back({"system", *system});
    out.insert(out.end(), turns.begin(), turns.end());
    return out;
  }
  /// Takes the last reply away. @return false where there is none
  bool forget_reply() {
    if (turns.empty() || turns.back().role != "assistant") return false;
    turns.pop_back();
    return true;
  }

  std::string note() const {
    nlohmann::ordered_json out{
        {"format", "intaglio chat"}, {"system", nullptr}, {"turns", nlohmann::ordered_json::array()}};
    if (system) out["system"] = *system;
    for (const turn& each : turns) out["turns"].push_back({{"role", each.role}, {"text", each.text}});
    return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  /// @error file_error: the note of another program
  static conversation of_note(const std::string& note, const std::string& path) {
    const auto refuse = [&](const char* what) -> conversation {
      throw file_error(path, std::nullopt, "note of the session", "a conversation of intaglio chat", what);
    };
    const auto parsed = nlohmann::json::parse(note, nullptr, false);
    if (!parsed.is_object() || parsed.value("format", nlohmann::json()) != "intaglio chat")
      return refuse("another note");
    conversation out;
    const auto system = parsed.find("system"), turns = parsed.find("turns");
    if (system == parsed.end() || turns == parsed.end() || !turns->is_array()) return refuse("one without turns");
    if (system->is_string()) out.system = system->get<std::string>();
    else if (!system->is_null()) return refuse("a system message that is no text");
    for (const auto& each : *turns) {
      if (!each.is_object() || !each.contains("role") || !each.contains("text") || !each["role"].is_string() ||
          !each["text"].is_string())
        return refuse("a turn without role or text");
      out.turns.push_back({each["role"].get<std::string>(), each["text"].get<std::string>()});
      if (out.turns.back().role != (out.turns.size() % 2 == 1 ? "user" : "assistant"))
        return refuse("turns out of order");
    }
    return out;
  }
};

}  // namespace intaglio::tool
