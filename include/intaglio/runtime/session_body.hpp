// SPDX-License-Identifier: MIT
// What a session owns, and who may use it when: one call or one running generation at a time, from one thread at a
// time.
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

/// The state behind a session. `history` holds every token fed or drawn, by position; the first `cached` of them are in
/// the KV cache. The last one may be drawn and not fed yet: a decode pass takes it as its input.
struct session_body {
  gpu::device device;
  const plan::table* table;
  double submit_budget_ms;
  std::optional<gpu::pipeline_cache> cache;
  std::shared_ptr<const void> stage;  ///< of a plan that is cut: what run's plan is made of
  std::unique_ptr<executor> run;
  std::optional<io::tokenizer> tokens;
  std::optional<io::chat_template> chat;
  std::optional<file_error> no_chat;    ///< why there is none
  std::string path;                     ///< of the checkpoint, for errors
  std::optional<score_head> score;      ///< of a cross-encoder
  std::optional<pooling> file_pooling;  ///< of embeddings, where the checkpoint says it
  std::vector<std::string> warnings;
  std::vector<std::int32_t> history;
  std::uint32_t cached = 0;
  bool find_first_nan = false;      ///< as session_options has it
  bool prove_kernels = true;        ///< as session_options has it
  std::vector<std::uint32_t> feed;  ///< tokens of the next pass
  std::optional<std::uint64_t>
      weight_sum;         ///< of the weights in device memory, once somebody asked (saved_session.hpp)
  draft_budget drafting;  ///< what prompt lookup may spend
  std::atomic<bool> busy{false};

  session_body(gpu::device on, const plan::table& of, double budget_ms)
      : device(std::move(on)), table(&of), submit_budget_ms(budget_ms), prefill_tokens(of.prefill.max_tokens),
        logits_tokens(of.logits.max_tokens), verify_tokens(of.verify.max_tokens) {
    history.reserve(of.context);
    feed.reserve(of.max_tokens);
  }

  /// Tokens of the widest pass of a sequence: of a cut plan those that every stage has room for.
  std::uint32_t prefill_tokens, logits_tokens, verify_tokens;

  std::uint32_t vocab_size() const { return table->config->vocab_size; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(history.size()); }

  const io::tokenizer& tokenizer() const {
    if (!tokens) throw argument_error("text", "a model with a tokenizer", path + ", which has none: use token ids");
    return *tokens;
  }

  /// Tokens of a conversation up to where the answer begins.
  /// @error argument_error: no tokenizer, or an order of turns that the model's template refuses; file_error: no known
  /// template
  std::vector<std::int32_t> encode(std::span<const io::chat_message> conversation) const {
    require_head();
    const io::tokenizer& words = tokenizer();
    if (!chat) throw file_error(*no_chat);
    return chat->encode(words, conversation, true);
  }

  /// @error argument_error: an id that is no token
  void check_ids(std::span<const std::int32_t> ids) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || static_cast<std::uint32_t>(ids[i]) >= vocab_size())
        throw argument_error("token id " + std::to_string(i), "0 .. " + std::to_string(vocab_size() - 1),
                             std::to_string(ids[i]));
  }
  /// @error argument_error naming both numbers
  void check_room(std::size_t tokens_wanted) const {
    if (tokens_wanted > table->context)
      throw argument_error("prompt", "at most " + std::to_string(table->context) + " tokens (the context)",
                           std::to_string(tokens_wanted) + " tokens");
  }
  /// @error argument_error: the model has no head, and texts no next token
  void require_head() const {
    if (family_of(table->config->model_type).encoder)
      throw argument_error("model", "a decoder, whose texts have a next token",
                           "an encoder (" + std::string(name(table->config->model_type)) + "), which gives embeddings");
  }
  /// An encoder's text is one pass: its tokens see each other. @error argument_error: a chunk that cuts it
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

  /// The chunk of a prompt that is fed, 0 standing for as many as there may be at once: begin_chunk() then takes those
  /// of chunks, or of chunks of long prompts.
  std::uint32_t fed_chunk(std::uint32_t chunk) const { return chunk != 0 ? checked_chunk(chunk) : table->max_tokens; }

  /// Replaces the history; what it has in common with the old one stays in the KV cache.
  void replace(std::span<const std::int32_t> ids) {
    const std::size_t limit = (std::min<std::size_t>)({ids.size(), history.size(), cached});
    std::size_t same = 0;
    while (same < limit && ids[same] == history[same]) ++same;
    history.assign(ids.begin(), ids.end());
    cached = run->kept(static_cast<std::uint32_t>(same));
  }

  /// After a failure of the device nothing in the KV cache is relied on; the tokens stay and will be fed anew.
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

  /// Passes that feed `chunk` tokens at a time: one by one, where decode tells of each, they are decode's.
  pass_kind feeding(std::uint32_t chunk) const {
    return chunk == 1 && table->trace.top != 0 ? pass_kind::decode : pass_kind::prefill;
  }

  /// Begins a pass over history[cached, cached + count).
  void begin(pass_kind kind, std::uint32_t count, const sampling_options& sampling = {}, std::uint32_t passes = 1) {
    if (!run->has_state_of(cached))
      throw device_error(device.label(), "go on behind token " + std::to_string(cached),
                         "the state of recurrent layers is that of another");
    feed.assign(history.begin() + cached, history.begin() + cached + count);
    run->begin(kind, cached, feed, sampling, passes);
  }

  /// Begins a pass over the next chunk of the history up to `until`; stages of a cut plan before this one go on with
  /// those behind it. @return its tokens
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
  /// Submits the whole job, waiting where too much is in flight.
  void submit_all() {
    while (run->pending()) {
      if (!run->may_submit()) run->wait();
      run->submit(submit_budget_ms, executor::max_buffers);
    }
  }

  std::future<void> making_text;  ///< tokens and chat, while weights stream; goes first, and waits
};

/// Holds a session for one call or one generation.
class session_use {
 public:
  session_use() = default;
  /// @error argument_error: the session was moved from, or is in use by another call, another thread or a running
  /// generation;
  ///        device_lost: the device was lost before
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
