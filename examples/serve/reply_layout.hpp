// SPDX-License-Identifier: MIT
// How a model writes its replies: between which marks it thinks, and in which form it calls functions. Recognised from
// the text of its chat template.
//
// Marks that are control tokens are in a reply's raw text after a byte that no UTF-8 has, so that no text that the
// model spells can be taken for one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace intaglio::serve {

/// The byte in front of a control token's text.
inline constexpr char control_byte = '\xFF';

enum class call_shape : std::uint8_t {
  one_object,  ///< begin {"name": NAME, KEY: ARGUMENTS} end, again for each call
  list,        ///< begin [{"name": NAME, KEY: ARGUMENTS}, ...] end
  headed,      ///< begin NAME middle ARGUMENTS, again for each call
  channels,    ///< harmony: all of a reply is messages in channels, a call is one to functions.NAME
};

/// One way to write calls. Sources: the templates of the models that are named, as published.
struct call_format {
  std::string_view name, sign;  ///< sign: the text by which a template is recognised
  call_shape shape = call_shape::one_object;
  std::string_view begin{}, middle{},
      end{};  ///< begin empty: a call is all of the reply, recognised by its first `{"name"`
  std::string_view key = "arguments";
  bool several = true;  ///< of one reply
};

/// The first whose sign a template has. The last is what the server itself asks for, where a template has none.
inline constexpr std::array<call_format, 7> call_formats{{
    {.name = "harmony", .sign = "<|channel|>", .shape = call_shape::channels},  // gpt-oss
    {.name = "mistral-args",
     .sign = "[ARGS]",
     .shape = call_shape::headed,
     .begin = "[TOOL_CALLS]",
     .middle = "[ARGS]"},  // Mistral Small 3.2, Devstral, Magistral
    {.name = "mistral", .sign = "[TOOL_CALLS]", .shape = call_shape::list, .begin = "[TOOL_CALLS]"},
    {.name = "hermes", .sign = "<tool_call>", .begin = "<tool_call>", .end = "</tool_call>"},  // Qwen 2.5, Qwen 3
    {.name = "granite", .sign = "<|tool_call|>", .shape = call_shape::list, .begin = "<|tool_call|>"},
    {.name = "llama", .sign = "\"parameters\":", .key = "parameters", .several = false},  // Llama 3.1 and later
    {.name = "prompted", .sign = "", .key = "parameters", .several = false},
}};
inline constexpr const call_format& prompted_calls = call_formats.back();

/// The format of calls that a template's text shows. Templates with any other format get the last one of the list.
const call_format& call_format_of(std::string_view chat_template);

/// Whether a control token of that text belongs into raw texts of replies.
bool is_reply_mark(std::string_view text);

/// The marks of one model, as they are in raw text.
struct reply_layout {
  const call_format* calls = &prompted_calls;
  std::string begin, middle, end;      ///< of calls
  std::string thought, thought_end;    ///< empty: the model does not think aloud
  std::string channel, message, over;  ///< of harmony: headers, their end, the end of a message
  std::string start, constrain;
  std::string thought_closed;  ///< the text that ends a thought, as it is encoded
  bool in_channels() const { return calls->shape == call_shape::channels; }
  bool thinks() const { return in_channels() || !thought.empty(); }
};

/// @param is_control whether the vocabulary has a control token of that text
reply_layout reply_layout_of(std::string_view chat_template, const call_format& calls,
                             const std::function<bool(std::string_view)>& is_control);

/// Follows the text of a reply, outside of calls, up to the next mark. The grammar of replies is built from it, and
/// their reader uses it, so that both see marks at the same bytes.
class mark_watch {
 public:
  enum class found : std::uint8_t { nothing, thought, mark, bare_call, impossible };

  /// @param thought at the beginning after white space; empty: not looked for  @param mark anywhere; empty: none
  /// @param bare a call may be all of the text: `{"name"` at the beginning, with white space in between
  mark_watch(std::string_view thought, std::string_view mark, bool bare)
      : thought_(thought), mark_(mark), bare_(bare) {}

  found step(unsigned char byte);
  /// Bytes at the end that may still become part of a mark, or are white space before anything.
  std::size_t held() const { return open_ ? begun_ : matched_; }
  /// Two watches with the same number go on alike.
  std::uint32_t state() const { return static_cast<std::uint32_t>(part_) << 16 | at_ << 8 | matched_; }

 private:
  enum class part : std::uint8_t { beginning, thought, bare, anywhere };
  void step_mark(unsigned char byte);

  std::string_view thought_, mark_;
  bool bare_;
  part part_ = part::beginning;
  std::uint32_t at_ = 0;       ///< bytes of what may begin here
  std::uint32_t matched_ = 0;  ///< bytes of the mark
  std::size_t begun_ = 0;      ///< bytes since the beginning, while it is open
  bool open_ = true;
};

}  // namespace intaglio::serve
