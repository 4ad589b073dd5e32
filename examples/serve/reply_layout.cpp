// SPDX-License-Identifier: MIT
#include "reply_layout.hpp"

#include <algorithm>

namespace intaglio::serve {
namespace {

constexpr std::array<std::string_view, 14> marks{
    "<think>", "</think>",      "[THINK]",     "[/THINK]",    "<tool_call>", "</tool_call>", "[TOOL_CALLS]",
    "[ARGS]",  "<|tool_call|>", "<|channel|>", "<|message|>", "<|start|>",   "<|end|>",      "<|constrain|>"};

bool is_blank(unsigned char byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

}  // namespace

bool is_reply_mark(std::string_view text) { return std::find(marks.begin(), marks.end(), text) != marks.end(); }

const call_format& call_format_of(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != std::string_view::npos; };
  // Between the same marks, but not in JSON: Qwen 3.5 and Qwen3-Coder; GLM.
  if (has("<function=") || has("<arg_key>")) return prompted_calls;
  return *std::find_if(call_formats.begin(), call_formats.end(), [&](const call_format& each) {
    return has(each.sign) || (each.name == "llama" && has("<|python_tag|>"));
  });
}

reply_layout reply_layout_of(std::string_view chat_template, const call_format& calls,
                             const std::function<bool(std::string_view)>& is_control) {
  const auto raw = [&](std::string_view text) {
    return (!text.empty() && is_control(text) ? std::string(1, control_byte) : std::string()) + std::string(text);
  };
  const auto has = [&](std::string_view text) { return chat_template.find(text) != std::string_view::npos; };
  reply_layout out;
  out.calls = &calls;
  out.begin = raw(calls.begin), out.middle = raw(calls.middle), out.end = raw(calls.end);
  if (out.in_channels()) {
    out.channel = raw("<|channel|>"), out.message = raw("<|message|>"), out.over = raw("<|end|>");
    out.start = raw("<|start|>"), out.constrain = raw("<|constrain|>");
    out.thought_closed = "<|end|>";
  } else if (has("<think>")) {
    out.thought = raw("<think>"), out.thought_end = raw("</think>"), out.thought_closed = "</think>";
  } else if (has("[THINK]")) {
    out.thought = raw("[THINK]"), out.thought_end = raw("[/THINK]"), out.thought_closed = "[/THINK]";
  }
  return out;
}

void mark_watch::step_mark(unsigned char byte) {
  // The longest beginning of the mark that the text now ends with.
  for (std::string_view before = mark_.substr(0, matched_);; before.remove_prefix(1)) {
    if (before.size() < mark_.size() && mark_.starts_with(before) &&
        static_cast<unsigned char>(mark_[before.size()]) == byte) {
      matched_ = static_cast<std::uint32_t>(before.size()) + 1;
      return;
    }
    if (before.empty()) break;
  }
  matched_ = 0;
}

mark_watch::found mark_watch::step(unsigned char byte) {
  constexpr std::string_view name = "{\"name\"";
  const auto is_next = [&](std::string_view of, std::size_t at) {
    return at < of.size() && static_cast<unsigned char>(of[at]) == byte;
  };
  const auto is_control = [](std::string_view of) { return of.starts_with(control_byte); };
  const bool in_control = (matched_ != 0 && is_control(mark_)) || (part_ == part::thought && is_control(thought_));
  const std::uint32_t before = matched_;
  ++begun_;
  step_mark(byte);
  if (!mark_.empty() && matched_ == mark_.size()) return found::mark;
  if (part_ == part::beginning) {
    if (is_blank(byte)) return found::nothing;
    if (is_next(thought_, 0)) part_ = part::thought, at_ = 0;
    else if (bare_ && is_next(name, 0)) part_ = part::bare, at_ = 0;
  }
  if (part_ == part::thought && is_next(thought_, at_))
    return ++at_ == thought_.size() ? found::thought : found::nothing;
  if (part_ == part::bare && is_next(name, at_)) return ++at_ == name.size() ? found::bare_call : found::nothing;
  if (part_ == part::bare && at_ == 1 && is_blank(byte)) return found::nothing;
  // No text has the byte of control tokens but in marks, and these come whole.
  if (in_control && matched_ != before + 1) return found::impossible;
  if (byte == static_cast<unsigned char>(control_byte) && matched_ == 0) return found::impossible;
  part_ = part::anywhere, at_ = 0, open_ = false;
  return found::nothing;
}

}  // namespace intaglio::serve
