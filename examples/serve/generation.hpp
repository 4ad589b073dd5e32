// SPDX-License-Identifier: MIT
// One text that is being generated: tokens come in from the engine's thread, pieces of text go out to the connection's.
#pragma once

#include <intaglio/io/detokenizer.hpp>
#include <intaglio/io/tokenizer.hpp>
#include <intaglio/runtime/stop_text.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "host_draw.hpp"
#include "reply_reader.hpp"
#include "request.hpp"
#include "text_match.hpp"

namespace intaglio::serve {

using steady = std::chrono::steady_clock;

/// A token as clients see it.
struct token_chance {
  std::string bytes;
  double logprob = 0;
};
struct token_logprobs {
  token_chance token;
  std::vector<token_chance> alternatives;
};

/// Some more of a call: the function's name at its beginning, then arguments as a text of JSON.
struct call_piece {
  std::size_t index = 0;  ///< of the reply's calls
  std::string name, arguments;
};

/// What a generation has to say since the last time it was asked.
struct news {
  std::string thought, text;
  std::vector<call_piece> calls;
  std::vector<token_logprobs> tokens;
  std::string_view finish;  ///< "stop", "length" or "tool_calls" at the end; empty: there is more to come
  std::string stopped_by;   ///< at the end: the stop string that was there
  std::string error;        ///< the device failed, or the server stops: the end
  int error_status = 503;   ///< as it is answered
  bool done() const { return !finish.empty() || !error.empty(); }
};

/// What the vocabulary looks like to grammars and log probabilities; made once.
struct vocabulary_view {
  vocabulary_view(const io::tokenizer& tokens, std::uint32_t vocab_size);
  bool is_mark(std::int32_t id) const { return texts[static_cast<std::size_t>(id)].starts_with(control_byte); }

  const io::tokenizer& tokens;
  std::deque<std::string> marks;
  std::vector<std::string_view> texts;  ///< by id, raw (reply_layout.hpp); empty for tokens without text
  token_bytes bytes;
};

/// Engine's side: prompt, take(), draw(), fail(). Connection's side: cancel(), news(). Both may run at once.
class generation {
 public:
  /// @param wake called from the engine's thread when there are news  @throws match_limit: a form with too many
  /// readings
  generation(const vocabulary_view& words, std::vector<std::int32_t> prompt, const completion_request& from,
             std::uint64_t seed, std::uint32_t max_tokens, std::function<void()> wake);

  const std::vector<std::int32_t>& prompt() const { return prompt_; }
  const sampling_options& sampling() const { return sampling_; }
  std::uint32_t max_tokens() const { return max_tokens_; }
  const adapter_choice& adapter() const { return adapter_; }
  /// Tokens so far, the end token among them. For the engine's thread.
  const std::vector<std::int32_t>& ids() const { return ids_; }
  bool done() const { return done_; }
  /// Whether draw() draws the tokens; else the device does.
  bool drawn_by_host() const { return shape_.needed(); }
  /// Whether the generation goes on after the context's end.
  bool shifts() const { return shift_.has_value(); }
  /// The tokens to feed again when all tokens fill the context. For the engine's thread. @pre shifts()
  std::vector<std::int32_t> after_shift(std::span<const std::int32_t> all);
  /// How long draw() takes depends on the form.
  bool has_form() const { return match_ != nullptr; }
  const std::string& form_field() const { return shape_.form_field; }

  /// The next token, drawn from the device's logits as the device would, with penalties, biases and the grammar's mask
  /// in front of it.
  /// @param logits [vocab_size] after the last token  @param history all tokens up to the last
  /// @param of_device the token that the device has drawn from these logits: where the form and min_tokens are all that
  /// it does not know, this is the draw, if it fits
  /// With a form, the token is taken into it.
  /// @throws device_error: logits that are no numbers; match_limit
  std::int32_t draw(std::span<const float> logits, std::span<const std::int32_t> history, std::int32_t of_device);
  /// @return false at the end
  bool take(std::int32_t id);
  /// Ends it with an error.
  void fail(const std::string& why, int status = 503);

  void cancel();
  bool cancelled() const { return cancelled_; }
  /// What has come since the last call.
  news take_news();
  std::uint32_t completion_tokens() const { return completion_tokens_; }
  std::uint32_t thought_tokens() const { return thought_tokens_; }

  std::uint32_t left_out = 0;                          ///< messages that the context had no room for
  std::shared_ptr<const void> model;                   ///< keeps the model loaded meanwhile
  std::atomic<std::uint32_t> cached_tokens{0};         ///< of the prompt, already in the cache when it began
  std::atomic<std::uint32_t> shift_count{0};           ///< how often the context's oldest tokens were dropped
  std::atomic<std::uint64_t> discarded{0};             ///< tokens that were dropped by that
  std::atomic<std::uint64_t> drafted{0}, accepted{0};  ///< tokens that were proposed, and those of them that it drew
  const steady::time_point arrived = steady::now();
  steady::time_point first_token{}, last_token{};  ///< of the engine's thread

 private:
  /// The logits with biases and penalties.
  std::vector<float> shaped(std::span<const float> logits) const;
  /// Whether the next token may be this one: of the form, and no end before min_tokens.
  bool fits(std::uint32_t id);
  /// Which of `count` tokens may be the next one.
  std::vector<bool> fitting(std::size_t count);
  /// Tokens that may come after the next one.
  std::uint32_t tokens_after() const { return max_tokens_ - static_cast<std::uint32_t>(ids_.size()) - 1; }
  std::int32_t draw_fitting(std::span<const float> logits, std::span<const std::uint32_t> recent,
                            std::uint32_t position, std::int32_t of_device);
  void note_logprobs(std::span<const float> logits, std::int32_t id);
  /// The token that the limit of a thought leaves no choice of.
  std::optional<std::int32_t> next_of_end_of_thought();
  void read(std::string_view piece, news& out);
  void add_text(std::string_view piece, std::string& out);
  std::string stopped_by() const;
  void sort(const std::vector<reply_part>& parts, news& out);
  void finish(std::string_view reason, news last);
  void say(news more);
  token_chance chance(std::int32_t id, double logprob) const {
    const std::string_view text = words_.texts[static_cast<std::size_t>(id)];
    return {std::string(words_.is_mark(id) ? text.substr(1) : text), logprob};
  }

  const vocabulary_view& words_;
  std::vector<std::int32_t> prompt_, ids_;
  sampling_options sampling_;
  shaping shape_;
  std::uint32_t max_tokens_;
  adapter_choice adapter_;
  std::optional<context_shift> shift_;
  std::vector<std::string> stops_;
  std::vector<std::int32_t> stop_ids_;
  std::string since_;  ///< the last of the text, where there are stop strings
  io::detokenizer text_;
  runtime::stop_text stop_;
  std::unique_ptr<text_match> match_;
  std::unique_ptr<reply_reader> reader_;                    ///< of a chat's reply
  std::vector<std::int32_t> end_of_thought_;                ///< tokens that close one
  std::size_t closed_ = 0;                                  ///< of these, how many have been drawn
  std::unordered_map<std::int32_t, std::uint32_t> counts_;  ///< of generated tokens
  std::size_t calls_ = 0;                                   ///< that have begun
  bool done_ = false;
  std::function<void()> wake_;
  std::atomic<bool> cancelled_{false};
  std::atomic<std::uint32_t> completion_tokens_{0}, thought_tokens_{0};
  std::mutex mutex_;
  news waiting_;  ///< under mutex_
  std::optional<token_logprobs> logprobs_;
};

}  // namespace intaglio::serve
