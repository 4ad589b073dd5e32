// SPDX-License-Identifier: MIT
// A conversation as clients send it: turns with thoughts and calls of functions, the functions themselves, and other
// values for the chat template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "json_document.hpp"
#include "limits.hpp"
#include "reply_grammar.hpp"

namespace intaglio::serve {

/// A call that the model has made.
struct tool_call {
  std::string id, name;
  json arguments;  ///< an object
};

/// One turn. Roles are system, user, assistant and tool.
struct turn {
  std::string role, content;
  std::string thought{};           ///< of an assistant
  std::vector<tool_call> calls{};  ///< of an assistant
  std::string call_id{}, name{};   ///< of a tool: which call it answers, and of which function
};

struct conversation {
  std::vector<turn> turns;
  std::vector<tool_function> tools{};
  tool_use use = tool_use::none;
  bool several = true;          ///< calls in one reply
  bool named = false;           ///< the one that `use` requires has been named
  json names = json::object();  ///< of the chat template: enable_thinking, reasoning_effort ...
  bool continued = false;       ///< the last turn, the assistant's, is to be gone on with
};

/// Leaves the oldest turns out, whole: each from a user's message up to the next one after an answer. What the system
/// says stays, and so does the last turn.
/// @param fits whether a conversation with these turns has room  @return messages that were left out
std::size_t leave_out_oldest(std::vector<turn>& turns, const std::function<bool(const std::vector<turn>&)>& fits);

/// The turns of `messages`. @throws api_error 400
std::vector<turn> read_messages(const json& list, const limits& limit);

class fields;
/// tools, tool_choice, parallel_tool_calls, chat_template_kwargs, enable_thinking, reasoning_effort,
/// continue_final_message, add_generation_prompt.
/// @throws api_error 400
void read_tools(const fields& from, const limits& limit, conversation& out);
void read_template_names(const fields& from, conversation& out);

}  // namespace intaglio::serve
