// SPDX-License-Identifier: MIT
// The data that a session owns, and the rule for its use: one call or one running generation at a time, from one thread
// at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/io/chat_template.hpp"
#include "intaglio/io/tokenizer.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/prompt_lookup.hpp"
#include "intaglio/runtime/score_head.hpp"
#include "intaglio/runtime/weights.hpp"

namespace intaglio::runtime {

/// The data of a session. `history` holds every token fed or drawn, by position; the first `cached` of them are in the
/// KV cache. The last one may be drawn and not fed yet: the next decode pass feeds it.
struct session_body {
  gpu::device device;
  const plan::table* table;
  double submit_budget_ms;
  std::optional<gpu::pipeline_cache> cache;
  std::shared_ptr<const void> stage;  ///< of a cut plan: owns the plan that `run` uses
  std::unique_ptr<executor> run;
  std::optional<io::tokenizer> tokens;
  std::optional<io::chat_template> chat;
  std::optional<file_error> no_chat;    ///< reason why there is no template
  std::string path;                     ///< of the checkpoint, for errors
  std::optional<score_head> score;      ///< for a cross-encoder
  std::optional<pooling> file_pooling;  ///< for embeddings, where the checkpoint says it
  std::vector<std::string> warnings;
  std::vector<std::int32_t> history;
  std::uint32_t cached = 0;
  bool find_first_nan = false;              ///< as in session_options
  bool prove_kernels = true;                ///< as in session_options
  std::vector<std::uint32_t> feed;          ///< tokens of the next pass
  std::optional<std::uint64_t> weight_sum;  ///< of the weights in device memory, once it was needed (saved_session.hpp)
  draft_budget drafting;                    ///< time that prompt lookup may spend
  std::atomic<bool> busy{false};

  session_body(gpu::device on, const plan::table& of, double budget_ms)
      : device(std::move(on)), table(&of), submit_budget_ms(budget_ms), prefill_tokens(of.prefill.max_tokens),
        logits_tokens(of.logits.max_tokens), verify_tokens(of.verify.max_tokens) {
    history.reserve(of.context);
    feed.reserve(of.max_tokens);
  }

  /// Number of tokens in the widest pass of a sequence; for a cut plan the number that every stage has room for.
  std::uint32_t prefill_tokens, logits_tokens, verify_tokens;

  std::uint32_t vocab_size() const { return table->config->vocab_size; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(history.size()); }

  const io::tokenizer& tokenizer() const {
    if (!tokens) throw argument_error("text", "a model with a tokenizer", path + ", which has none: use token ids");
    return *tokens;
  }

  /// Tokens of a conversation up to the beginning of the answer.
  /// @error argument_error: no tokenizer, or an order of turns that the model's template refuses; file_error: an
  ///   unknown template
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const {
    require_head();
    const io::tokenizer& words = tokenizer();
    if (!chat) throw file_error(*no_chat);
    return chat->encode(words, conversation, true);
  }

  /// @error argument_error: an id that is not a token
  void check_ids(std::span<const std::int32_t> ids) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || static_cast<std::uint32_t>(ids[i]) >= vocab_size())
        throw argument_error("token id " + std::to_string(i), "0 .. " + std::to_string(vocab_size() - 1),
                             std::to_string(ids[i]));
  }
  /// @error argument_error naming the number of tokens and the room
  void check_room(std::size_t tokens_wanted) const {
    if (tokens_wanted > table->context)
      throw argument_error("prompt", "at most " + std::to_string(table->context) + " tokens (the context)",
                           std::to_string(tokens_wanted) + " tokens");
  }
  /// @error argument_error: the model has no head, so that texts have no next token
  void require_head() const {
    if (family_of(table->config->model_type).encoder)
      throw argument_error("model", "a decoder, whose texts have a next token",
                           "an encoder (" + std::string(name(table->config->model_type)) + "), which gives embeddings");
  }
  /// Checks that an encoder's text is one pass, since its tokens attend to each other. @error argument_error: a chunk
  /// that splits the text
  std::uint32_t checked_chunk_of(std::uint32_t chunk, std::size_t text) const {
    const std::uint32_t out = checked_chunk(chunk);
    if (family_of(table->config->model_type).encoder && out < text)
      throw argument_error("chunk", "all " + std::to_string(text) + " tokens of the text, which see each other",
                           std::to_string(out));
    return out;
  }
  std::uint32_t checked_chunk(std::uint32_t chunk) const {
    if (chunk > prefill_tokens)
      throw argument_error("chunk",
                           "at most " + std::to_string(prefill_tokens) + " tokens (the plan's), or 0 for as many",
                           std::to_string(chunk));
    return chunk != 0 ? chunk : prefill_tokens;
  }

  /// The chunk of a prompt that is fed; 0: the largest number at once, which begin_chunk() takes from chunks or from
  /// chunks of long prompts.
  std::uint32_t fed_chunk(std::uint32_t chunk) const { return chunk != 0 ? checked_chunk(chunk) : table->max_tokens; }

  /// Replaces the history; a beginning in common with the old one stays in the KV cache.
  void replace(std::span<const std::int32_t> ids) {
    const std::size_t limit = (std::min<std::size_t>)({ids.size(), history.size(), cached});
    std::size_t same = 0;
    while (same < limit && ids[same] == history[same]) ++same;
    history.assign(ids.begin(), ids.end());
    cached = run->kept(static_cast<std::uint32_t>(same));
  }

  /// Runs a call and handles its failure: the KV cache counts as empty then; the tokens stay and will be fed anew.
  template <class Body>
  decltype(auto) recovering(Body&& body) {
    try {
      return gpu::translated(std::forward<Body>(body));
    } catch (...) {
      run->drop();
      cached = 0;
      throw;
    }
  }

  /// The kind of pass that feeds `chunk` tokens at a time; single tokens use decode passes where these leave traces.
  pass_kind feeding(std::uint32_t chunk) const {
    return chunk == 1 && table->trace.top != 0 ? pass_kind::decode : pass_kind::prefill;
  }

  /// Begins a pass over history[cached, cached + count).
  void begin(pass_kind kind, std::uint32_t count, const sampling_options& sampling = {}, std::uint32_t passes = 1) {
    if (!run->has_state_of(cached))
      throw device_error(device.label(), "continue after token " + std::to_string(cached),
                         "the state of recurrent layers is that of another");
    feed.assign(history.begin() + cached, history.begin() + cached + count);
    run->begin(kind, cached, feed, sampling, passes);
  }

  /// Begins a pass over the next chunk of the history up to `until`; earlier stages of a cut plan continue with the
  /// chunks after it. @return number of its tokens
  std::uint32_t begin_chunk(std::uint32_t until, std::uint32_t chunk) {
    const std::uint32_t left = until - cached, many = chunk <= prefill_tokens ? 0 : long_chunk(left),
                        count = many != 0 ? many : (std::min)({chunk, prefill_tokens, left});
    begin(many != 0 ? pass_kind::prefill_long : feeding(chunk), count);
    if (run->is_stage()) ask_ahead(cached + count, until, (std::min)(chunk, prefill_tokens));
    return count;
  }
  [[gnu::cold]] std::uint32_t long_chunk(std::uint32_t left) {
    return run->long_chunk(left, prove_kernels, cache ? &*cache : nullptr);
  }
  [[gnu::cold]] void ask_ahead(std::uint32_t from, std::uint32_t until, std::uint32_t chunk) {
    run->ask_ahead(pass_kind::prefill, from, std::span(history).subspan(from, until - from), chunk);
  }

  /// Feeds the history up to `until` and waits for it.
  void feed_until(std::uint32_t until, std::uint32_t chunk) {
    recovering([&] {
      cached = run->kept(cached);
      while (cached < until) {
        const std::uint32_t count = begin_chunk(until, chunk);
        submit_all();
        cached += count;
      }
      run->drain();
    });
  }
  /// Submits the whole job; waits where too many submissions are on the device.
  void submit_all() {
    while (run->pending()) {
      if (!run->may_submit()) run->wait();
      run->submit(submit_budget_ms, executor::max_buffers);
    }
  }

  std::future<void> making_text;  ///< makes tokens and chat while weights are loaded; destroyed first, which waits
};

/// Reserves a session for one call or one generation.
class session_use {
 public:
  session_use() = default;
  /// @error argument_error: the session was moved from, or is in use by another call, another thread or a running
  ///   generation; device_lost: the device was lost before
  explicit session_use(std::shared_ptr<session_body> body) {
    if (!body) throw argument_error("session", "one with a model", "one that was moved from");
    if (body->busy.exchange(true, std::memory_order_acquire))
      throw argument_error("session", "one call at a time", "a call while another one or a generation is running");
    body_ = std::move(body);
    try {
      body_->device.on()->require_alive("use the session");
    } catch (...) {
      release();
      throw;
    }
  }
  session_use(session_use&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  session_use& operator=(session_use&& other) noexcept {
    if (this != &other) {
      release();
      body_ = std::exchange(other.body_, nullptr);
    }
    return *this;
  }
  ~session_use() { release(); }

  session_body* operator->() const noexcept { return body_.get(); }
  session_body& operator*() const noexcept { return *body_; }
  explicit operator bool() const noexcept { return body_ != nullptr; }
  void release() noexcept {
    if (body_) body_->busy.store(false, std::memory_order_release);
    body_.reset();
  }

 private:
  std::shared_ptr<session_body> body_;
};

}  // namespace intaglio::runtime
