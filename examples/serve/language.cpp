// SPDX-License-Identifier: MIT
#include "token_engine.hpp"

#include "api_error.hpp"

namespace intaglio::serve {

language::language(io::vocabulary from, std::uint32_t vocab_size, const io::template_renderer& templates)
    : file(std::move(from)), tokens(file, vocab_size), view(tokens, vocab_size) {
  try {
    chat.emplace(io::chat_template::of(file, templates));
  } catch (const file_error& unknown) {  // only who asks for a conversation needs to hear of it
    no_chat = unknown.what();
  }
}

std::vector<std::int32_t> language::encode(std::span<const turn> conversation) const {
  if (!chat) throw api_error(400, "messages: the model has no chat template that is known; /v1/completions takes plain text", "messages", "no_chat_template");
  std::vector<io::chat_message> messages;
  for (const turn& each : conversation) messages.push_back({each.role, each.content});
  return chat->encode(tokens, messages, true);
}

}  // namespace intaglio::serve
