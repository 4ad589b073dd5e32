// SPDX-License-Identifier: MIT
#include "token_engine.hpp"

#include <algorithm>
#include <cmath>

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
  if (!chat)
    throw api_error(400, "messages: the model has no chat template that is known; /v1/completions takes plain text",
                    "messages", "no_chat_template");
  std::vector<io::chat_message> messages;
  for (const turn& each : conversation) messages.push_back({each.role, each.content});
  return chat->encode(tokens, messages, true);
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

}  // namespace intaglio::serve
