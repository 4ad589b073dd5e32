// SPDX-License-Identifier: MIT
#include "reply_reader.hpp"

#include <algorithm>

namespace intaglio::serve {
namespace {

constexpr std::string_view blank = " \n\r\t";

std::string_view without_blanks(std::string_view text) {
  const std::size_t at = text.find_first_not_of(blank);
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

/// Takes `wanted` from the front of `text`, after white space. @return false: the text is another, or too short
bool took(std::string_view& text, std::string_view wanted) {
  const std::string_view rest = without_blanks(text);
  if (!rest.starts_with(wanted)) return false;
  text = rest.substr(wanted.size());
  return true;
}

}  // namespace

reply_reader::reply_reader(const reply_layout& layout, bool in_thought, bool calls)
    : layout_(layout), wants_calls_(calls), watch_({}, {}, false) {
  if (layout_.in_channels()) {
    mode_ = mode::header;
  } else if (in_thought && !layout_.thought.empty()) {
    mode_ = mode::thought;
    watch_ = mark_watch({}, layout_.thought_end, false);
  } else {
    begin_text(false);
  }
}

void reply_reader::begin_text(bool after_thought) {
  mode_ = mode::text;
  watch_ = mark_watch(after_thought ? std::string_view() : std::string_view(layout_.thought),
                      wants_calls_ ? std::string_view(layout_.begin) : std::string_view(),
                      wants_calls_ && !layout_.in_channels() && layout_.begin.empty());
  said_ = !after_thought;
  watched_ = 0;
}

void reply_reader::say(reply_part::kind kind, std::string_view text, std::vector<reply_part>& out) {
  if (text.empty()) return;
  if (!out.empty() && out.back().is == kind && kind != reply_part::kind::call) out.back().text += text;
  else out.push_back({kind, std::string(text)});
}

/// A control token where no mark is expected: it is no part of the text.
bool reply_reader::is_stray(std::string_view piece) const {
  if (!piece.starts_with(control_byte) || mode_ == mode::header || mode_ == mode::call || mode_ == mode::call_end)
    return false;
  if (layout_.in_channels()) return mode_ == mode::arguments || piece != layout_.over;
  if (mode_ == mode::arguments) return true;
  mark_watch next = watch_;
  mark_watch::found last = mark_watch::found::nothing;
  for (const char each : piece) last = next.step(static_cast<unsigned char>(each));
  return last != mark_watch::found::mark && last != mark_watch::found::thought;
}

void reply_reader::add(std::string_view piece, std::vector<reply_part>& out) {
  if (is_stray(piece)) return;
  held_ += piece;
  read(out);
}

void reply_reader::read(std::vector<reply_part>& out) {
  for (bool goes_on = true; goes_on && !held_.empty();) {
    switch (mode_) {
      case mode::text:
      case mode::thought:
        goes_on = read_text(out);
        break;
      case mode::call:
        goes_on = read_call(out);
        break;
      case mode::arguments:
        goes_on = read_arguments(out);
        break;
      case mode::call_end:
        goes_on = read_call_end();
        break;
      case mode::header:
        goes_on = read_header(out);
        break;
    }
  }
}

/// Text or a thought, up to a mark. @return whether the mark was there
bool reply_reader::read_text(std::vector<reply_part>& out) {
  const bool thinks = mode_ == mode::thought;
  const auto emit_text = [&](std::size_t bytes) {
    std::string_view text = std::string_view(held_).substr(0, bytes);
    if (!said_) text = without_blanks(text);  // between a thought's marks and its text, and after it
    if (text.empty()) return;
    said_ = true;
    // White space in front of a mark is part of nothing.
    const bool ends = thinks || (wants_calls_ && !layout_.in_channels());
    const std::size_t last = text.find_last_not_of(blank), end = !ends                            ? text.size()
                                                                 : last == std::string_view::npos ? 0
                                                                                                  : last + 1;
    if (end != 0)
      say(thinks ? reply_part::kind::thought : reply_part::kind::text, blanks_ + std::string(text.substr(0, end)), out),
          blanks_.clear();
    blanks_ += text.substr(end);
  };
  while (watched_ < held_.size()) {
    const auto found = watch_.step(static_cast<unsigned char>(held_[watched_++]));
    if (found == mark_watch::found::nothing || found == mark_watch::found::impossible) continue;
    const bool bare = found == mark_watch::found::bare_call, opens = found == mark_watch::found::thought;
    const std::string& mark = layout_.in_channels() ? layout_.over
                              : opens               ? layout_.thought
                              : thinks              ? layout_.thought_end
                                                    : layout_.begin;
    if (!bare && !opens) emit_text(watched_ - mark.size());
    blanks_.clear();
    if (!bare) held_.erase(0, watched_);
    watched_ = 0;
    if (layout_.in_channels()) {
      mode_ = mode::header;
    } else if (thinks) {
      begin_text(true);
    } else if (opens) {
      mode_ = mode::thought, said_ = false;
      watch_ = mark_watch({}, layout_.thought_end, false);
    } else {
      mode_ = mode::call;
    }
    return true;
  }
  // White space at the beginning is held too: a thought or a call may follow.
  const std::size_t sure = held_.size() - std::min(watch_.held(), held_.size());
  emit_text(sure);
  held_.erase(0, sure);
  watched_ = held_.size();
  return false;
}

void reply_reader::begin_call(std::string_view name, std::vector<reply_part>& out) {
  out.push_back({reply_part::kind::call, std::string(name)});
  ++calls_;
  mode_ = mode::arguments;
  depth_ = 0, in_string_ = escaped_ = false;
}

/// A call up to its arguments. @return false: there is more to come
bool reply_reader::read_call(std::vector<reply_part>& out) {
  std::string_view rest = held_;
  if (layout_.calls->shape == call_shape::headed) {
    const std::size_t end = rest.find(layout_.middle);
    if (end == std::string_view::npos) return false;
    const std::string name(without_blanks(rest.substr(0, end)));
    held_.erase(0, end + layout_.middle.size());
    begin_call(name, out);
    return true;
  }
  if (layout_.calls->shape == call_shape::list && !took(rest, "[")) took(rest, ",");
  if (!took(rest, "{") || !took(rest, "\"name\"") || !took(rest, ":") || !took(rest, "\"")) return false;
  const std::size_t end = rest.find('"');
  if (end == std::string_view::npos) return false;
  const std::string name(rest.substr(0, end));
  rest.remove_prefix(end + 1);
  if (!took(rest, ",") || !took(rest, "\"" + std::string(layout_.calls->key) + "\"") || !took(rest, ":")) return false;
  held_ = std::string(without_blanks(rest));
  begin_call(name, out);
  return true;
}

bool reply_reader::read_arguments(std::vector<reply_part>& out) {
  if (depth_ == 0) held_ = std::string(without_blanks(held_));
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const char c = held_[i];
    if (in_string_) {
      if (escaped_) escaped_ = false;
      else if (c == '\\') escaped_ = true;
      else if (c == '"') in_string_ = false;
      continue;
    }
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c != '}' && c != ']') continue;
    if (--depth_ != 0) continue;
    say(reply_part::kind::arguments, std::string_view(held_).substr(0, i + 1), out);
    held_.erase(0, i + 1);
    mode_ = mode::call_end;
    return true;
  }
  say(reply_part::kind::arguments, held_, out);
  held_.clear();
  return false;
}

/// What closes a call, and whether another begins.
bool reply_reader::read_call_end() {
  if (layout_.in_channels()) return held_.clear(), false;
  std::string_view rest = held_;
  if (layout_.calls->shape == call_shape::headed) {
    if (!took(rest, layout_.begin)) return false;
    held_ = std::string(rest);
    mode_ = mode::call;
    return true;
  }
  if (!took(rest, "}")) return false;
  if (layout_.calls->shape == call_shape::list) {
    if (std::string_view next = rest; took(next, ",")) {
      held_ = std::string(rest);
      mode_ = mode::call;
      return true;
    }
    if (!took(rest, "]")) return false;
  }
  if (!layout_.end.empty() && !took(rest, layout_.end)) return false;
  if (layout_.begin.empty() || !took(rest, layout_.begin)) return false;
  held_ = std::string(rest);
  mode_ = mode::call;
  return true;
}

/// A header of harmony: channel and recipient, up to the mark after which the message is.
bool reply_reader::read_header(std::vector<reply_part>& out) {
  const std::size_t end = held_.find(layout_.message);
  if (end != std::string::npos) {
    const std::string header = held_.substr(0, end);
    held_.erase(0, end + layout_.message.size());
    begin_body(header, out);
    return true;
  }
  // Something else than a header: the reply is text.
  const std::string_view rest = without_blanks(held_);
  const auto may_be = [&](std::string_view beginning) {
    return beginning.starts_with(rest.substr(0, beginning.size()));
  };
  if (may_be(layout_.channel) || may_be(layout_.start) || may_be("to=functions.")) return false;
  mode_ = mode::text, watch_ = mark_watch({}, layout_.over, false), watched_ = 0, said_ = true;
  return true;
}

void reply_reader::begin_body(std::string_view header, std::vector<reply_part>& out) {
  constexpr std::string_view recipient = "to=functions.";
  if (const std::size_t at = header.find(recipient); at != std::string_view::npos) {
    const std::string_view name = header.substr(at + recipient.size());
    return begin_call(name.substr(0, name.find_first_of(std::string(" ") + control_byte + '<')), out);
  }
  mode_ = header.find("analysis") != std::string_view::npos ? mode::thought : mode::text;
  watch_ = mark_watch({}, layout_.over, false), watched_ = 0, said_ = true;
}

void reply_reader::finish(std::vector<reply_part>& out) {
  if (mode_ == mode::text || mode_ == mode::thought) {
    std::string_view rest = held_;
    if (!said_) rest = without_blanks(rest);
    if (mode_ == mode::text) say(reply_part::kind::text, blanks_ + std::string(rest), out);
    else if (const std::size_t last = rest.find_last_not_of(blank); last != std::string_view::npos)
      say(reply_part::kind::thought, blanks_ + std::string(rest.substr(0, last + 1)), out);
  }
  held_.clear();
}

}  // namespace intaglio::serve
