// SPDX-License-Identifier: MIT
// Splits a reply into thoughts, text, and calls of functions while it is written. The parts do not include the marks
// and the white space around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reply_layout.hpp"

namespace intaglio::serve {

/// Some more of a reply. Parts of a call follow the one with its name.
struct reply_part {
  enum class kind : std::uint8_t { text, thought, call, arguments };
  kind is = kind::text;
  std::string text;  ///< of a call: the function's name
};

/// One reply, token by token. What may still become a mark is held back.
class reply_reader {
 public:
  /// @param calls whether marks of calls are looked for: the reply's grammar then has them followed by a call
  reply_reader(const reply_layout& layout, bool in_thought, bool calls);
  reply_reader(const reply_reader&) = delete;  // the watch looks at the marks here
  reply_reader& operator=(const reply_reader&) = delete;

  /// @param piece raw text of a token: with the byte of control tokens in front, where it is one
  void add(std::string_view piece, std::vector<reply_part>& out);
  /// Ends the reply: text that was held back belongs to the text, or to an open thought.
  void finish(std::vector<reply_part>& out);
  bool in_thought() const { return mode_ == mode::thought; }
  /// A call has begun and is not yet whole.
  bool in_call() const { return mode_ == mode::call || mode_ == mode::arguments; }
  std::size_t calls() const { return calls_; }

 private:
  enum class mode : std::uint8_t { text, thought, call, arguments, call_end, header };

  void read(std::vector<reply_part>& out);
  bool read_text(std::vector<reply_part>& out);
  bool read_call(std::vector<reply_part>& out);
  bool read_arguments(std::vector<reply_part>& out);
  bool read_call_end();
  bool read_header(std::vector<reply_part>& out);
  void begin_text(bool after_thought);
  void begin_body(std::string_view header, std::vector<reply_part>& out);
  void say(reply_part::kind kind, std::string_view text, std::vector<reply_part>& out);
  void begin_call(std::string_view name, std::vector<reply_part>& out);
  bool is_stray(std::string_view piece) const;

  const reply_layout layout_;
  bool wants_calls_;
  mode mode_ = mode::text;
  mark_watch watch_;
  std::string held_;         ///< raw text that is not yet part of anything
  std::size_t watched_ = 0;  ///< bytes of it that the watch has seen
  std::string blanks_;       ///< white space that is left out if a mark follows
  bool said_ = false;        ///< something of the text or thought that is open
  std::size_t calls_ = 0;
  int depth_ = 0;  ///< of the arguments' JSON
  bool in_string_ = false, escaped_ = false;
};

}  // namespace intaglio::serve
