// SPDX-License-Identifier: MIT
// Converts a stream of tokens to text: it gives only whole UTF-8 sequences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "intaglio/io/tokenizer.hpp"
#include "intaglio/io/unicode.hpp"

namespace intaglio::io {

/// Turns a stream of tokens into valid UTF-8. Bytes that never become a character come out as U+FFFD.
/// The tokenizer must outlive it.
class detokenizer {
 public:
  /// The defaults suit an answer: it continues a text, and control tokens are not shown.
  explicit detokenizer(const tokenizer& tokens, decode_options options = {.skip_control = true, .text_start = false})
      : tokens_(&tokens), options_(options) {}

  /// @return the text that is complete now; may be empty  @throws argument_error: id out of range
  std::string feed(std::int32_t id) {
    const std::string_view piece = tokens_->printed_piece(id, options_.skip_control, options_.text_start);
    if (!(options_.skip_control && tokens_->type(id) == token_type::control)) options_.text_start = false;
    pending_.append(piece);
    const std::size_t complete = complete_utf8(pending_);
    std::string out;
    append_replacing_invalid(out, std::string_view{pending_}.substr(0, complete));
    pending_.erase(0, complete);
    return out;
  }

  /// @return the rest at the end of the stream: empty, or U+FFFD for a sequence that was cut
  std::string flush() {
    std::string out;
    append_replacing_invalid(out, pending_);
    pending_.clear();
    return out;
  }

  /// Bytes of an unfinished character, at most 3.
  std::string_view pending() const { return pending_; }

 private:
  const tokenizer* tokens_;
  decode_options options_;
  std::string pending_;
};

}  // namespace intaglio::io
