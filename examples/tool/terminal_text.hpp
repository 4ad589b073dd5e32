// SPDX-License-Identifier: MIT
// A reply on a terminal while it comes: words stay whole, Markdown is drawn, and thoughts are dim.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace intaglio::tool {

/// Draws the current block of Markdown again with each piece: lines that did not change stay, and others are
/// overwritten. Control characters of a model never reach the terminal.
class terminal_text {
 public:
  /// Stand around a thought in what show() is given.
  static constexpr std::string_view thought_begins = "\x01", thought_ends = "\x02";

  /// @param rows of the terminal: lines that went out of it cannot be drawn anew
  /// @param markdown false: words are wrapped, and nothing else
  terminal_text(std::size_t columns, std::size_t rows, bool markdown);

  /// @return what to write to the terminal
  std::string show(std::string_view piece);
  /// The end of the reply, without a line's end.
  std::string finish();

 private:
  std::string draw();
  /// Draws the block to its end; the next one begins.
  std::string close();
  /// True where `block_` ends: after an empty line that is no code.
  bool block_is_over() const;

  std::size_t columns_, rows_;
  bool markdown_;
  bool thought_ = false;
  bool anything_ = false;  ///< there is a block above this one
  std::string held_;       ///< the beginning of a character whose other bytes have not come
  std::string block_;
  std::vector<std::string> drawn_;
};

}  // namespace intaglio::tool
