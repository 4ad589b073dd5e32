// SPDX-License-Identifier: MIT
// Conversations as the text that a model was trained on, written in code for each family. A template of no known family
// goes to a renderer for its language, where the program has one (io/jinja.hpp). Text that a user typed is kept apart
// from the markup, so it can never become a control token.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/chat_fingerprint.hpp"
#include "intaglio/io/chat_message.hpp"
#include "intaglio/io/marked_texts.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "intaglio/io/unicode.hpp"
#include "intaglio/io/vocabulary.hpp"
#include "intaglio/io/vocabulary_check.hpp"

namespace intaglio::io {

/// A conversation as text; `typed` are the ranges that came from the messages.
struct rendered_chat {
  std::string text;
  std::vector<text_range> typed;
  bool starts_with_bos = false;
};

/// `text` without the white space at both ends, by Python's rules (str.strip), which the published templates rely on.
inline std::string_view trimmed(std::string_view text) {
  const auto blank = [](char32_t c) { return class_of(c) == unicode_class::space || (c >= 0x1C && c <= 0x1F); };
  std::size_t begin = 0, end = 0;
  bool seen = false;
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode_utf8(text, at);
    if (!(next.valid && blank(next.value))) {
      if (!seen) begin = at, seen = true;
      end = at + next.bytes;
    }
    at += next.bytes;
  }
  return text.substr(begin, end - begin);
}

/// The names by which a user can choose a family.
inline constexpr std::array<std::pair<std::string_view, chat_family>, 7> chat_family_names{{
    {"bitnet", chat_family::bitnet},
    {"llama3", chat_family::llama3},
    {"mistral-v1", chat_family::mistral_v1},
    {"mistral-v0.1", chat_family::mistral_v01},
    {"mistral-v0.2", chat_family::mistral_v02},
    {"gemma2", chat_family::gemma2},
    {"gemma3", chat_family::gemma3},
}};

/// Writes conversations in the form of one family. Immutable.
class chat_template {
 public:
  chat_template(chat_style style, std::string bos_text, std::string eos_text)
      : style_(style), bos_(std::move(bos_text)), eos_(std::move(eos_text)) {}

  /// The template that a model file asks for. BitNet b1.58 files embed a wrong one, so their architecture decides.
  /// @param renderer for templates of no known family; may be empty
  /// @throws file_error: no template, or one that is not known without a renderer; never a guess
  static chat_template of(const vocabulary& file, const template_renderer& renderer = {}) {
    const auto found = file.chat_template ? find_chat_style(*file.chat_template) : std::nullopt;
    const bool bitnet =
        is_bitnet_b158(file.architecture) || (file.architecture == "bitnet" && found && found->leftover);
    if (bitnet && !(found && found->family == chat_family::bitnet && !found->leftover))
      return with(file, {.family = chat_family::bitnet, .writes_bos = false});
    if (!file.chat_template)
      throw file_error(file.source, std::nullopt, "tokenizer.chat_template",
                       "a template, or a family chosen by name: " + names(), "none");
    if ((!found || found->leftover) && renderer) return own(file, renderer, {});
    if (!found || found->leftover)
      throw file_error(file.source, std::nullopt, "tokenizer.chat_template",
                       "a known template, a program with Jinja (io/jinja.hpp), or a family chosen by name: " + names(),
                       "'" + printable(*file.chat_template, 80) + "'");
    return renderer ? own(file, renderer, found) : with(file, *found);
  }

  /// The template of a family by its name. @throws argument_error: no such family
  static chat_template named(std::string_view name, const vocabulary& file) {
    for (const auto& [known, family] : chat_family_names)
      if (known == name) return with(file, {.family = family, .writes_bos = family != chat_family::bitnet});
    throw argument_error("chat template", "one of " + names(), "'" + printable(name) + "'");
  }

  chat_family family() const { return style_.family; }
  /// Whether a renderer runs the model's own template. Then there is no family.
  bool is_own() const { return renderer_ && !in_code_; }
  /// Whether a renderer can run the model's own template, and its text contains `text`.
  bool mentions(std::string_view text) const { return renderer_ && text_.find(text) != std::string::npos; }

  /// The text of a conversation. @throws argument_error: no messages, an unknown role, an order that the family refuses
  std::string apply(std::span<const chat_message> messages, bool add_generation_prompt) const {
    return render(messages, add_generation_prompt).text;
  }

  /// The text of a conversation with the typed parts marked. Fields that only the model's own template reads (names,
  /// further fields of messages) are given to it, even where the family is known.
  /// @param names variables of the template, as for template_renderer  @throws argument_error
  rendered_chat render(std::span<const chat_message> messages, bool add_generation_prompt,
                       const std::string& names = {}) const {
    const bool more = !names.empty() || std::any_of(messages.begin(), messages.end(),
                                                    [](const chat_message& each) { return !each.more.empty(); });
    if (more && !renderer_)
      throw argument_error("messages", "roles and contents alone: the chat template reads nothing else", "more");
    const bool runs = renderer_ && (!in_code_ || more);
    check_roles(messages, runs);
    if (runs) return render_own(messages, add_generation_prompt, names);
    rendered_chat out;
    if (style_.writes_bos) markup(out, bos_), out.starts_with_bos = !bos_.empty();
    const bool prompt = add_generation_prompt || style_.always_prompts;
    switch (style_.family) {
      case chat_family::bitnet:
        bitnet(messages, prompt, out);
        break;
      case chat_family::llama3:
        llama3(messages, prompt, out);
        break;
      case chat_family::mistral_v1:
        mistral_v1(messages, out);
        break;
      case chat_family::mistral_v01:
        mistral(messages, " ", out);
        break;
      case chat_family::mistral_v02:
        mistral(messages, "", out);
        break;
      case chat_family::gemma2:
        if (messages[0].role == "system") refuse(0, "user first: System role not supported", messages[0].role);
        gemma(messages, 0, prompt, out);
        break;
      case chat_family::gemma3:
        gemma(messages, messages[0].role == "system" ? 1 : 0, prompt, out);
        break;
    }
    return out;
  }

  /// The text of a conversation whose last message, the assistant's, is still being written: the text ends with that
  /// message.
  /// @throws argument_error: the last message is not the assistant's; a template that leaves its end out
  rendered_chat render_continued(std::span<const chat_message> messages, const std::string& names = {}) const {
    if (messages.empty() || messages.back().role != "assistant")
      throw argument_error("messages", "an assistant's message at the end, to continue it", "another");
    const std::string mark = unused_mark(messages, names);
    std::vector<chat_message> marked(messages.begin(), messages.end());
    marked.back().content += mark;
    rendered_chat out = render(marked, false, names);
    const std::size_t end = out.text.rfind(mark);
    if (end == std::string::npos)
      throw argument_error("messages", "a chat template that writes the last message whole", "one that does not");
    out.text.resize(end);
    std::erase_if(out.typed, [&](const text_range& each) { return each.begin >= end; });
    for (text_range& each : out.typed) each.end = (std::min)(each.end, end);
    return out;
  }

  /// The tokens of a conversation: BOS once if the model wants it, and control tokens only from the markup. @throws
  /// argument_error
  std::vector<std::int32_t> encode(const tokenizer& tokens, std::span<const chat_message> messages,
                                   bool add_generation_prompt) const {
    return encode(tokens, render(messages, add_generation_prompt));
  }
  static std::vector<std::int32_t> encode(const tokenizer& tokens, const rendered_chat& chat) {
    return tokens.encode(
        chat.text, {.parse_special = true, .add_bos = !chat.starts_with_bos && tokens.adds_bos(), .plain = chat.typed});
  }

 private:
  static chat_template with(const vocabulary& file, chat_style style) {
    const auto text = [&](const std::optional<std::int64_t>& id) {
      return id && *id >= 0 && static_cast<std::uint64_t>(*id) < file.tokens.size()
                 ? file.tokens[static_cast<std::size_t>(*id)]
                 : std::string{};
    };
    return {style, text(file.bos_id), text(file.eos_id)};
  }
  static chat_template own(const vocabulary& file, const template_renderer& renderer,
                           const std::optional<chat_style>& known) {
    chat_template out = with(file, known.value_or(chat_style{}));
    out.in_code_ = known.has_value();
    out.text_ = *file.chat_template;
    out.renderer_ = renderer;
    const auto types = checked_token_types(file);
    for (std::size_t i = 0; i < file.tokens.size(); ++i)
      if ((types[i] == token_type::control || types[i] == token_type::user_defined) && !file.tokens[i].empty())
        out.special_.push_back(file.tokens[i]);
    sort_once(out.special_, [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    return out;
  }

  /// Runs the model's own template. Texts of special tokens that a user typed are replaced while the template runs, and
  /// come back as typed text.
  rendered_chat render_own(std::span<const chat_message> messages, bool prompt, const std::string& names) const {
    const std::string mark = unused_mark(messages, names);
    std::vector<chat_message> hidden(messages.begin(), messages.end());
    marked_texts marks(special_, mark);
    for (chat_message& message : hidden) {
      message.content = marks.hidden(message.content);
      message.more = marks.hidden_in_strings(message.more);
    }
    const std::string text = renderer_(text_, hidden, prompt, bos_, eos_, marks.hidden_in_strings(names));
    rendered_chat out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = (std::min)(text.find(mark, at), text.size());
      markup(out, std::string_view(text).substr(at, next - at));
      if (next == text.size()) break;
      std::size_t index = 0;
      const char* const digits = text.data() + next + mark.size();
      const auto [end, problem] = std::from_chars(digits, text.data() + text.size(), index);
      if (problem != std::errc{} || index >= marks.found().size() || end == text.data() + text.size() || *end != ';')
        throw argument_error("messages",
                             "texts that the chat template passes on whole, or without special tokens in them",
                             "'" + printable(std::string_view(text).substr(next), 60) + "'");
      typed(out, marks.found()[index]);
      at = static_cast<std::size_t>(end + 1 - text.data());
    }
    out.starts_with_bos = !bos_.empty() && out.text.starts_with(bos_);
    return out;
  }

  /// A character for private use that occurs neither in the template nor in the messages.
  std::string unused_mark(std::span<const chat_message> messages, const std::string& names) const {
    for (char32_t c = 0xE000; c <= 0xF8FF; ++c) {
      std::string mark;
      append_utf8(mark, c);
      const auto has = [&](const std::string& text) { return text.find(mark) != std::string::npos; };
      if (!has(text_) && !has(names) && std::none_of(messages.begin(), messages.end(), [&](const chat_message& each) {
            return has(each.content) || has(each.more);
          }))
        return mark;
    }
    throw argument_error("messages", "texts without all characters for private use", "all of them");
  }

  static std::string names() {
    std::string out;
    for (const auto& [name, family] : chat_family_names) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
  }
  [[noreturn]] static void refuse(std::size_t message, const std::string& expected, std::string_view found) {
    throw argument_error("messages[" + std::to_string(message) + "].role", expected, "'" + printable(found) + "'");
  }
  static void check_roles(std::span<const chat_message> messages, bool tools) {
    if (messages.empty()) throw argument_error("messages", "at least one", "none");
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages[i].role != "system" && messages[i].role != "user" && messages[i].role != "assistant" &&
          !(tools && messages[i].role == "tool"))
        refuse(i, tools ? "system, user, assistant or tool" : "system, user or assistant", messages[i].role);
  }
  static void check_turns(std::span<const chat_message> messages, std::size_t first) {
    for (std::size_t i = first; i < messages.size(); ++i)
      if ((messages[i].role == "user") != ((i - first) % 2 == 0))
        refuse(i,
               (i - first) % 2 == 0 ? "user: Conversation roles must alternate user/assistant/user/assistant/..."
                                    : "assistant: Conversation roles must alternate user/assistant/user/assistant/...",
               messages[i].role);
  }
  static void markup(rendered_chat& out, std::string_view text) { out.text.append(text); }
  static void typed(rendered_chat& out, std::string_view text) {
    if (!text.empty()) out.typed.push_back({out.text.size(), out.text.size() + text.size()});
    out.text.append(text);
  }

  static void bitnet(std::span<const chat_message> messages, bool prompt, rendered_chat& out) {
    for (const auto& message : messages) {
      markup(out, message.role == "system" ? "System: " : message.role == "user" ? "User: " : "Assistant: ");
      typed(out, trimmed(message.content));
      markup(out, "<|eot_id|>");
    }
    if (prompt) markup(out, "Assistant: ");
  }
  [[gnu::cold]] static void llama3(std::span<const chat_message> messages, bool prompt, rendered_chat& out) {
    for (const auto& message : messages) {
      markup(out, "<|start_header_id|>" + message.role + "<|end_header_id|>\n\n");
      typed(out, trimmed(message.content));
      markup(out, "<|eot_id|>");
    }
    if (prompt) markup(out, "<|start_header_id|>assistant<|end_header_id|>\n\n");
  }
  [[gnu::cold]] void mistral(std::span<const chat_message> messages, std::string_view after_answer,
                             rendered_chat& out) const {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& message = messages[i];
      if ((message.role == "user") != (i % 2 == 0)) check_turns(messages, 0);
      if (message.role == "system")
        refuse(i, "user or assistant: Only user and assistant roles are supported!", message.role);
      if (message.role == "user") markup(out, "[INST] ");
      typed(out, message.content);
      if (message.role == "user") markup(out, " [/INST]");
      else markup(out, eos_), markup(out, after_answer);
    }
  }
  /// The plain form that llama.cpp calls mistral-v1: the system text is before the first user text, and the brackets
  /// have spaces around them.
  [[gnu::cold]] void mistral_v1(std::span<const chat_message> messages, rendered_chat& out) const {
    const std::size_t first = messages[0].role == "system" ? 1 : 0;
    if (first == messages.size()) throw argument_error("messages", "a user's message after the system's", "none");
    check_turns(messages, first);
    for (std::size_t i = first; i < messages.size(); ++i) {
      if (messages[i].role == "system") refuse(i, "user or assistant", messages[i].role);
      markup(out, messages[i].role == "user" ? " [INST] " : " ");
      if (i == 1 && first == 1) typed(out, messages[0].content), markup(out, "\n\n");
      typed(out, messages[i].content);
      markup(out, messages[i].role == "user" ? " [/INST]" : eos_);
    }
  }
  [[gnu::cold]] static void gemma(std::span<const chat_message> messages, std::size_t first, bool prompt,
                                  rendered_chat& out) {
    check_turns(messages, first);
    for (std::size_t i = first; i < messages.size(); ++i) {
      markup(out, "<start_of_turn>" + (messages[i].role == "assistant" ? "model" : messages[i].role) + "\n");
      if (i == 1 && first == 1) typed(out, messages[0].content), markup(out, "\n\n");
      typed(out, trimmed(messages[i].content));
      markup(out, "<end_of_turn>\n");
    }
    if (prompt) markup(out, "<start_of_turn>model\n");
  }

  chat_style style_;
  std::string bos_, eos_;
  std::string text_;  ///< the template's text, where there is a renderer
  template_renderer renderer_;
  bool in_code_ = true;               ///< the library writes the family of style_ in code
  std::vector<std::string> special_;  ///< special tokens' texts, the longest first
};

}  // namespace intaglio::io
