// SPDX-License-Identifier: MIT
// chat: a conversation line by line.
#include "commands.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "sampling_choice.hpp"

#include <cerrno>

#include <unistd.h>

namespace intaglio::tool {
namespace {

/// A line of stdin without its end; nothing at the end of the input or after a signal.
std::optional<std::string> read_line() {
  std::string out;
  for (;;) {
    char c = 0;
    const ssize_t count = ::read(STDIN_FILENO, &c, 1);
    if (count < 0 && errno == EINTR && graceful_stop::received() == 0) continue;
    if (count <= 0) return out.empty() || count < 0 ? std::nullopt : std::optional(out);
    if (c == '\n') return out;
    out += c;
  }
}

}  // namespace

void chat(const chat_options& options, const common_options& common) {
  generate_options wanted = generation_of(options.sampling, 0.7f, true);
  wanted.max_tokens = options.tokens;
  engine model(options.model, common);
  const bool prompts = is_terminal(STDIN_FILENO) && is_terminal(STDOUT_FILENO);
  std::vector<turn> conversation;
  const auto reset = [&] {
    conversation.clear();
    if (options.system) conversation.push_back({"system", *options.system});
  };
  reset();
  note("Type and press Enter. /reset forgets the conversation, /quit leaves, Ctrl-C stops a reply.");
  for (;;) {
    if (prompts) print("> ");
    flush_output();
    const std::optional<std::string> line = read_line();  // a signal here ends the tool
    if (!line) break;
    if (line->empty()) continue;
    if (*line == "/quit" || *line == "/exit") break;
    if (*line == "/reset") {
      reset();
      continue;
    }
    if (line->front() == '/') {
      note("commands: /reset, /quit");
      continue;
    }
    conversation.push_back({"user", *line});
    naming_file(model.file(), [&] {
      const auto ids = model.encode(conversation);
      if (ids.size() >= model.context())
        throw input_error(printable(model.file(), 240) + ": the conversation: expected at most " + std::to_string(model.context() - 1) +
                          " tokens, found " + std::to_string(ids.size()) + "; /reset forgets it");
      const answer got = model.generate(ids, wanted, [](std::string_view piece) {
        print(piece);
        flush_output();
      });
      print("\n");
      conversation.push_back({"assistant", got.result.text});
      if (got.signal == 15 || (got.signal != 0 && !prompts)) {
        flush_output();
        throw interrupted(got.signal);
      }
      graceful_stop::forget();
    });
  }
  if (prompts) print("\n");
  model.require_silence();
}

}  // namespace intaglio::tool
