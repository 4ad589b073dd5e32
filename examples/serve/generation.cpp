// SPDX-License-Identifier: MIT
#include "generation.hpp"

#include <intaglio/core/error.hpp>

#include <algorithm>
#include <cmath>

namespace intaglio::serve {
namespace {

std::vector<std::string_view> texts_of(const io::tokenizer& tokens, std::uint32_t vocab_size,
                                       std::deque<std::string>& marks) {
  std::vector<std::string_view> out(vocab_size);
  for (std::size_t i = 0; i < std::min<std::size_t>(vocab_size, tokens.size()); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (tokens.is_end_of_generation(id)) continue;
    const std::string_view text = tokens.printed_piece(id, true, false);
    if (tokens.type(id) == io::token_type::control && is_reply_mark(tokens.piece(id)))
      out[i] = marks.emplace_back(control_byte + std::string(tokens.piece(id)));
    else if (text.find(control_byte) == std::string_view::npos) out[i] = text;
  }
  return out;
}

}  // namespace

vocabulary_view::vocabulary_view(const io::tokenizer& of, std::uint32_t vocab_size)
    : tokens(of), texts(texts_of(of, vocab_size, marks)), bytes(texts) {}

generation::generation(const vocabulary_view& words, std::vector<std::int32_t> prompt, const completion_request& from,
                       std::uint64_t seed, std::uint32_t max_tokens, std::function<void()> wake)
    : words_(words), prompt_(std::move(prompt)), sampling_(from.sampling), shape_(from.shape), max_tokens_(max_tokens),
      adapter_(from.adapter.value_or(adapter_choice{0, 0})), shift_(from.shift), stops_(from.stop),
      stop_ids_(from.stop_ids), text_(words.tokens), stop_(from.stop),
      match_(from.shape.form ? std::make_unique<text_match>(from.shape.form) : nullptr), wake_(std::move(wake)) {
  sampling_.seed = seed;
  if (!from.reading) return;
  reader_ = std::make_unique<reply_reader>(from.reading->layout, from.reading->in_thought, from.reading->calls);
  if (shape_.thought_tokens)
    end_of_thought_ = words.tokens.encode(from.reading->layout.thought_closed, {.parse_special = true});
}

std::vector<float> generation::shaped(std::span<const float> logits) const {
  std::vector<float> out(logits.begin(), logits.end());
  for (const auto& [id, bias] : shape_.logit_bias) out[static_cast<std::size_t>(id)] += bias;
  if (shape_.frequency_penalty != 0 || shape_.presence_penalty != 0)
    for (const auto& [id, count] : counts_)
      out[static_cast<std::size_t>(id)] -=
          shape_.presence_penalty + shape_.frequency_penalty * static_cast<float>(count);
  return out;
}

std::int32_t generation::draw(std::span<const float> logits, std::span<const std::int32_t> history,
                              std::int32_t of_device) {
  const std::size_t back =
      std::min<std::size_t>(sampling_.repeat_last_n.value_or(runtime::default_repeat_last_n), history.size());
  std::vector<std::uint32_t> recent;
  for (const std::int32_t id : history.last(back)) recent.push_back(static_cast<std::uint32_t>(id));
  const auto position = static_cast<std::uint32_t>(history.size() - 1);
  const auto only = next_of_end_of_thought();
  const std::int32_t id = only ? *only : draw_fitting(logits, recent, position, of_device);
  if (id < 0 || static_cast<std::size_t>(id) >= logits.size())
    throw device_error({}, "draw a token", "the logits at position " + std::to_string(position) + " are no numbers");
  if (shape_.logprobs) note_logprobs(logits, id);
  if (match_ && !words_.tokens.is_end_of_generation(id)) match_->take(words_.texts[static_cast<std::size_t>(id)]);
  return id;
}

bool generation::fits(std::uint32_t id) {
  if (id >= words_.texts.size()) return true;  // no numbers: for the caller
  if (!words_.tokens.is_end_of_generation(static_cast<std::int32_t>(id)))
    return !match_ || match_->allows(words_.texts[id], tokens_after());
  return ids_.size() >= shape_.min_tokens && (!match_ || match_->complete());
}

std::vector<bool> generation::fitting(std::size_t count) {
  std::vector<bool> out(count, match_ == nullptr);
  if (match_) match_->mark_allowed(words_.bytes, tokens_after(), out);
  // A form that cannot continue ends, even with fewer than the least number of tokens.
  const bool may_end = match_ ? match_->complete() && (ids_.size() >= shape_.min_tokens ||
                                                       std::find(out.begin(), out.end(), true) == out.end())
                              : ids_.size() >= shape_.min_tokens;
  for (const std::int32_t id : words_.tokens.end_of_generation_ids())
    if (static_cast<std::size_t>(id) < count) out[static_cast<std::size_t>(id)] = may_end;
  return out;
}

/// First without the mask, since most draws fit; what does not fit is drawn again among what does. Together that is the
/// draw under the mask.
std::int32_t generation::draw_fitting(std::span<const float> logits, std::span<const std::uint32_t> recent,
                                      std::uint32_t position, std::int32_t of_device) {
  const bool device_knows = shape_.frequency_penalty == 0 && shape_.presence_penalty == 0 && shape_.logit_bias.empty();
  auto first = static_cast<std::uint32_t>(of_device);
  if (!device_knows) {
    std::vector<float> all = shaped(logits);
    first = draw_token(all, recent, sampling_, position);
  }
  if (fits(first)) return static_cast<std::int32_t>(first);
  std::vector<float> values = shaped(logits);
  const std::vector<bool> allowed = fitting(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (!allowed[id]) values[id] = -HUGE_VALF;
  constexpr std::uint32_t second_draw = 0x80000000u;  // random numbers of its own
  return static_cast<std::int32_t>(draw_token(values, recent, sampling_, position | second_draw));
}

void generation::note_logprobs(std::span<const float> logits, std::int32_t id) {
  const double all = log_sum_exp(logits);
  const auto of = [&](std::int32_t each) { return chance(each, logits[static_cast<std::size_t>(each)] - all); };
  token_logprobs out{of(id), {}};
  if (out.token.bytes.empty()) out.token.bytes = words_.tokens.piece(id);
  std::vector<std::int32_t> order(std::min(logits.size(), words_.tokens.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(*shape_.logprobs, order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    out.alternatives.push_back(of(order[static_cast<std::size_t>(i)]));
    if (out.alternatives.back().bytes.empty())
      out.alternatives.back().bytes = words_.tokens.piece(order[static_cast<std::size_t>(i)]);
  }
  logprobs_ = std::move(out);
}

std::optional<std::int32_t> generation::next_of_end_of_thought() {
  if (end_of_thought_.empty() || !reader_->in_thought()) return closed_ = 0, std::nullopt;
  if (closed_ == end_of_thought_.size() || thought_tokens_ < *shape_.thought_tokens) return {};
  return end_of_thought_[closed_++];
}

std::vector<std::int32_t> generation::after_shift(std::span<const std::int32_t> all) {
  const bool begins = words_.tokens.bos() && prompt_.front() == *words_.tokens.bos();
  const std::uint32_t kept = shift_->kept(prompt_.size(), begins, static_cast<std::uint32_t>(all.size())),
                      dropped = shift_->dropped(all.size(), kept);
  shift_count += 1, discarded += dropped;
  return shifted(all, kept, dropped);
}

bool generation::take(std::int32_t id) {
  last_token = steady::now();
  if (ids_.empty()) first_token = last_token;
  ids_.push_back(id);
  completion_tokens_ = static_cast<std::uint32_t>(ids_.size());
  counts_[id] += 1;
  if (words_.tokens.is_end_of_generation(id) || std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end()) {
    logprobs_.reset();  // it is no part of the text
    return finish("stop", {}), false;
  }
  if (reader_ && reader_->in_thought()) ++thought_tokens_;
  news more;
  if (reader_ && words_.is_mark(id)) {
    read(text_.flush(), more);
    read(words_.texts[static_cast<std::size_t>(id)], more);
  } else {
    read(text_.feed(id), more);
  }
  if (stop_.stopped() || (match_ && match_->finished())) return finish("stop", std::move(more)), false;
  if (ids_.size() == max_tokens_) return finish("length", std::move(more)), false;
  say(std::move(more));
  return true;
}

void generation::add_text(std::string_view piece, std::string& out) {
  if (!stops_.empty() && !stop_.stopped()) {
    since_ += piece;
    const std::size_t kept = runtime::max_stop_bytes + piece.size();
    if (since_.size() > kept) since_.erase(0, since_.size() - kept);
  }
  stop_.add(piece, out);
}

std::string generation::stopped_by() const {
  std::string out;
  std::size_t end = std::string::npos;
  for (const std::string& each : stops_)
    if (const std::size_t at = since_.find(each); stop_.stopped() && at != std::string::npos && at + each.size() < end)
      out = each, end = at + each.size();
  return out;
}

void generation::read(std::string_view piece, news& out) {
  if (!reader_) return add_text(piece, out.text);
  std::vector<reply_part> parts;
  reader_->add(piece, parts);
  sort(parts, out);
}

void generation::sort(const std::vector<reply_part>& parts, news& out) {
  for (const reply_part& each : parts) switch (each.is) {
      case reply_part::kind::text:
        add_text(each.text, out.text);
        break;
      case reply_part::kind::thought:
        out.thought += each.text;
        break;
      case reply_part::kind::call:
        out.calls.push_back({calls_++, each.text, {}});
        break;
      case reply_part::kind::arguments:
        if (out.calls.empty() || out.calls.back().index + 1 != calls_) out.calls.push_back({calls_ - 1, {}, {}});
        out.calls.back().arguments += each.text;
        break;
    }
}

void generation::finish(std::string_view reason, news last) {
  if (!stop_.stopped()) {
    read(text_.flush(), last);
    if (reader_) {
      std::vector<reply_part> parts;
      reader_->finish(parts);
      sort(parts, last);
    }
    if (stop_.stopped()) reason = "stop";
    else stop_.finish(last.text);
  }
  last.stopped_by = stopped_by();
  last.finish = calls_ != 0 && !reader_->in_call() ? "tool_calls" : reason;
  say(std::move(last));
}

void generation::fail(const std::string& why, int status) {
  if (done_) return;
  news last;
  last.error = why, last.error_status = status;
  say(std::move(last));
}

void generation::cancel() {
  cancelled_ = true;
  if (match_) match_->cancel();
}

void generation::say(news more) {
  done_ = done_ || more.done();
  {
    const std::lock_guard lock(mutex_);
    waiting_.thought += more.thought;
    waiting_.text += more.text;
    for (call_piece& each : more.calls) {
      if (each.name.empty() && !waiting_.calls.empty()) waiting_.calls.back().arguments += each.arguments;
      else waiting_.calls.push_back(std::move(each));
    }
    if (logprobs_) waiting_.tokens.push_back(std::move(*logprobs_));
    logprobs_.reset();
    waiting_.finish = more.finish;
    waiting_.stopped_by = more.stopped_by;
    waiting_.error = more.error;
    if (!more.error.empty()) waiting_.error_status = more.error_status;
  }
  wake_();
}

news generation::take_news() {
  const std::lock_guard lock(mutex_);
  news out = std::move(waiting_);
  waiting_ = {};
  waiting_.error_status = out.error_status;
  return out;
}

}  // namespace intaglio::serve
