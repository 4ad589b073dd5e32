// SPDX-License-Identifier: MIT
#include "terminal_text.hpp"

#include "terminal_markdown.hpp"

#include <intaglio/io/unicode.hpp>

#include <algorithm>

namespace intaglio::tool {
namespace {

/// A line that opens or closes a block of code.
bool is_fence(std::string_view line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string_view::npos &&
         (line.substr(first).starts_with("```") || line.substr(first).starts_with("~~~"));
}

}  // namespace

terminal_text::terminal_text(std::size_t columns, std::size_t rows, bool markdown)
    : columns_((std::max<std::size_t>)(columns, 8)), rows_((std::max<std::size_t>)(rows, 2)), markdown_(markdown) {}

std::string terminal_text::show(std::string_view piece) {
  std::string out;
  held_ += piece;
  const std::string whole = held_.substr(0, io::complete_utf8(held_));
  held_.erase(0, whole.size());
  for (std::size_t at = 0; at < whole.size();) {
    const io::code_point each = io::decode_utf8(whole, at);
    const std::string_view bytes = std::string_view(whole).substr(at, each.bytes);
    at += each.bytes;
    if (bytes == thought_begins || bytes == thought_ends) {
      out += close();
      thought_ = bytes == thought_begins;
      continue;
    }
    const bool control =
        (each.value < 0x20 && bytes != "\n" && bytes != "\t") || (each.value >= 0x7f && each.value < 0xa0);
    block_ += control || !each.valid ? "\ufffd" : bytes;
    if (bytes == "\n" && block_is_over()) out += close();
  }
  return out + draw();
}

std::string terminal_text::finish() {
  block_ += held_.empty() ? "" : "\ufffd";
  held_.clear();
  std::string out = draw();
  drawn_.clear(), block_.clear();
  thought_ = anything_ = false;
  return out;
}

bool terminal_text::block_is_over() const {
  if (!block_.ends_with("\n\n") || block_.find_first_not_of('\n') == std::string::npos) return false;
  if (thought_ || !markdown_) return true;
  bool code = false;
  std::string_view last;
  for (std::size_t at = 0; at < block_.size();) {
    const std::size_t end = (std::min)(block_.find('\n', at), block_.size());
    const std::string_view line = std::string_view(block_).substr(at, end - at);
    if (is_fence(line)) code = !code;
    if (!line.empty()) last = line;
    at = end + 1;
  }
  // An item of a list may go on after an empty line.
  const std::size_t first = last.find_first_not_of(' ');
  const bool item = first > 0 || last.starts_with("- ") || last.starts_with("* ") || (last[0] >= '0' && last[0] <= '9');
  return !code && !item;
}

std::string terminal_text::close() {
  std::string out = draw();
  if (!drawn_.empty()) anything_ = true;
  block_.clear(), drawn_.clear();
  return out;
}

std::string terminal_text::draw() {
  std::string_view text = block_;
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.empty()) return {};
  // A column stays free: a full line would let some terminals begin the next one.
  std::vector<std::string> lines =
      thought_ || !markdown_ ? wrapped(text, columns_ - 1) : markdown_lines(text, columns_ - 1);
  if (thought_)
    for (std::string& each : lines) each = "\x1b[2m" + each + "\x1b[0m";
  if (anything_) lines.insert(lines.begin(), "");
  std::string out = anything_ && drawn_.empty() ? "\n" : "";
  std::size_t same = 0;
  while (same < (std::min)(lines.size(), drawn_.size()) && lines[same] == drawn_[same]) ++same;
  if (!drawn_.empty()) {
    if (same == drawn_.size() && same == lines.size()) return {};
    // Only lines that are still on the screen can be drawn again.
    same = (std::max)(same, drawn_.size() - (std::min)(drawn_.size(), rows_ - 1));
    if (same >= lines.size()) same = lines.size() - 1;  // there are fewer: the last one is written over
    if (same >= drawn_.size()) {
      out += "\n";
    } else if (same + 1 == drawn_.size() && same < lines.size() && lines[same].starts_with(drawn_[same])) {
      // The usual case: the last line grows.
      out += lines[same].substr(drawn_[same].size());
      if (++same < lines.size()) out += "\n";
    } else {
      if (const std::size_t up = drawn_.size() - 1 - same; up > 0) out += "\x1b[" + std::to_string(up) + "A";
      out += "\r\x1b[J";
    }
  }
  for (std::size_t i = same; i < lines.size(); ++i) out += lines[i] + (i + 1 < lines.size() ? "\n" : "");
  drawn_ = std::move(lines);
  return out;
}

}  // namespace intaglio::tool
