// SPDX-License-Identifier: MIT
// How a generation runs: it feeds the prompt, draws tokens and makes text of them. Defines text_stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "intaglio/io/detokenizer.hpp"
#include "intaglio/runtime/first_not_finite.hpp"
#include "intaglio/runtime/generation.hpp"
#include "intaglio/runtime/prompt_lookup.hpp"
#include "intaglio/runtime/session_body.hpp"
#include "intaglio/runtime/session_handle.hpp"
#include "intaglio/runtime/stop_text.hpp"

namespace intaglio {
namespace runtime {

/// The state of a text_stream, which does not move.
class running_text {
 public:
  running_text(runtime::session_use use, const generate_options& options)
      : use_(std::move(use)), sampling_(options.sampling()), stop_(options.stop),
        chunk_(use_->fed_chunk(options.chunk)), tokens_per_submit_(options.tokens_per_submit),
        lookup_(options.prompt_lookup_num_tokens), longest_ngram_(options.max_matching_ngram_size),
        stop_at_end_(options.stop_at_end), idle_(options.gpu_idle), start_(clock::now()) {
    runtime::session_body& body = *use_;
    if (!(idle_ >= 0 && idle_ <= 0.95f)) throw argument_error("gpu_idle", "a share of 0 .. 0.95", number_text(idle_));
    check_lookup();
    drafts_.resize(lookup_);
    runtime::validate(sampling_, body.vocab_size(), body.table->context);
    if (options.max_tokens && *options.max_tokens == 0) throw argument_error("max_tokens", "at least 1", "0");
    if (body.history.empty()) throw argument_error("prompt", "at least one token", "none");
    const std::uint32_t room = body.table->context - body.size();
    limit_ = options.max_tokens ? (std::min)(*options.max_tokens, room) : room;
    first_ = body.size();
    body.cached = body.run->kept((std::min)(body.cached, first_ - 1));  // the first decode pass feeds the last token
    result_.timings.cached_tokens = body.cached;
    result_.timings.prompt_tokens = first_ - body.cached;
    result_.ids.reserve(limit_);
    result_.text.reserve(std::size_t{8} * (std::min)(limit_, 4096u));
    piece_.reserve(256);
    if (body.tokens) words_.emplace(*body.tokens);
    if (lookup_ != 0)
      body.recovering([&] {
        body.run->prepare_verify(body.prove_kernels, body.cache ? &*body.cache : nullptr);
        for (const std::uint32_t drafts : {lookup_, (std::min)(lookup_, cheap)})
          body.run->warm_verify(body.cached, drafts + 1, sampling_, body.submit_budget_ms);
      });
    if (limit_ == 0) finish(finish_reason::length);
  }
  running_text(const running_text&) = delete;
  running_text& operator=(const running_text&) = delete;
  ~running_text() { abandon(); }

  bool done() const noexcept { return result_.finish != finish_reason::none; }
  std::string_view piece() const noexcept { return piece_; }
  const generation& result() const noexcept { return result_; }

  bool advance(double budget_ms) {
    if (!(budget_ms > 0))
      throw argument_error("budget_ms", "a time above 0", number_text(static_cast<float>(budget_ms)));
    piece_.clear();
    if (done() || !use_) return false;
    guarded([&] {
      use_->run->poll();
      collect();
      if (!done()) submit(budget_ms, 1, true);
    });
    return !done();
  }

  bool next() {
    piece_.clear();
    guarded([&] {
      while (!done() && piece_.empty()) {
        const auto from = clock::now();
        submit(use_->submit_budget_ms, idle_ > 0 ? 1 : runtime::executor::max_in_flight);
        use_->run->wait();
        const auto busy = clock::now() - from;
        collect();
        if (idle_ > 0) rest(busy);
      }
    });
    return !piece_.empty();
  }

  trace_result take_trace() {
    if (!use_) throw argument_error("trace", "a generation that runs, or its session", "a generation that is done");
    return use_->run->take_trace(use_->size());
  }

  void cancel() {
    piece_.clear();
    if (!done()) finish(finish_reason::stop);
  }

 private:
  using clock = std::chrono::steady_clock;

  template <class Body>
  void guarded(Body&& body) {
    if (done() || !use_) return;
    try {
      use_->recovering(std::forward<Body>(body));
    } catch (...) {
      use_.release();
      result_.finish = finish_reason::stop;
      throw;
    }
  }

  /// Keeps at most `flying` submissions on the device. @param stamped as for pass_runner::submit
  void submit(double budget_ms, std::size_t flying, bool stamped = false) {
    runtime::session_body& body = *use_;
    while (body.run->in_flight() < flying) {
      if (!body.run->pending()) {
        if (decoding_ && (lookup_ == 0 || body.run->in_flight() != 0)) return;
        if (!decoding_ && body.cached + 1 < first_) {
          chunk_start_ = body.cached;
          body.cached += body.begin_chunk(first_ - 1, chunk_);
        } else {
          begin_decode();
        }
      }
      body.run->submit(budget_ms, passes_per_submit(), stamped);
    }
  }

  /// Sleeps after `busy` time of device work, for as long as the share of idle time requires.
  void rest(clock::duration busy) {
    result_.timings.busy_ms += milliseconds(busy);
    const double share = static_cast<double>(idle_);
    if (!done()) std::this_thread::sleep_for(busy * (share / (1 - share)));
  }

  /// Number of decode passes of a submission: small enough that text flows and the ring cannot run over, large enough
  /// that the device is busy. Between two submissions the device idles for 0.1 to 0.2 ms (an H200). With prompt lookup
  /// the number is smaller, since passes that are submitted still draw their tokens when drafts are found; it is
  /// smallest where drafts are likely soon. The first token has a submission of its own, so that it comes as soon as
  /// possible and the time of the later tokens begins with theirs.
  std::uint32_t passes_per_submit() const {
    const std::uint32_t most = (std::max)(1u, use_->table->ring_size / 4);
    if (tokens_per_submit_ != 0) return (std::min)(tokens_per_submit_, most);
    if (decoding_ && result_.ids.empty() && use_->run->submitted_passes() == 0) return 1;
    const double one_ms = pass_ms(runtime::pass_kind::decode), flow_ms = lookup_ == 0 ? 25 : matches_ ? 5 : 12.5;
    return one_ms <= 0 ? 1
                       : std::clamp(static_cast<std::uint32_t>((std::min)(flow_ms / one_ms, 1e6)), 1u,
                                    matches_ ? (std::min)(16u, most) : most);
  }

  /// Begins the next job after the tokens that were taken: a pass over drafts, or passes for all remaining tokens,
  /// which collect() ends when there is something to draft.
  void begin_decode() {
    runtime::session_body& body = *use_;
    if (decoding_) draw_anew();
    decoding_ = true;
    const std::uint32_t left = limit_ - static_cast<std::uint32_t>(result_.ids.size());
    const std::size_t drafted = drafts();
    verifying_ = static_cast<std::uint32_t>(drafted);
    if (verifying_ == 0) return body.begin(runtime::pass_kind::decode, 1, sampling_, left);
    body.feed.assign(1, static_cast<std::uint32_t>(body.history.back()));
    for (const std::int32_t id : std::span(drafts_).first(drafted)) body.feed.push_back(static_cast<std::uint32_t>(id));
    result_.timings.drafted_tokens += static_cast<std::uint32_t>(drafted);
    body.run->begin(body.run->verify_kind(drafted + 1), body.cached, body.feed, sampling_, 1);
  }

  /// Fills drafts_ if verifying them is worth a pass. @return their number
  std::size_t drafts() {
    const runtime::session_body& body = *use_;
    matches_ = false;
    const std::size_t most = (std::min<std::size_t>)(lookup_, limit_ - result_.ids.size() - 1),
                      less = (std::min<std::size_t>)(most, cheap);
    const auto allowed = [&](std::size_t count, std::size_t matched) {
      return body.drafting.allows(verify_cost(count), count, matched);
    };
    if (most == 0 || (!allowed(most, body.history.size()) && !allowed(less, body.history.size()))) return 0;
    const runtime::looked_up found =
        runtime::prompt_lookup(body.history, longest_ngram_, 2, std::span(drafts_).first(most));
    matches_ = found.tokens != 0;
    if (!matches_) return 0;
    if (runtime::draft_budget::counted_on(most, found.matched) > cheap && allowed(most, found.matched)) return most;
    return allowed(less, found.matched) ? less : 0;
  }

  /// The measured time of a pass; 0 before one was measured.
  double pass_ms(runtime::pass_kind kind) const {
    return use_->run->speed(kind).segment_ms() * use_->run->segments(kind);
  }

  /// Time of a pass over drafts, in decode passes, as measured, or a guess before that.
  double verify_cost(std::size_t drafted) const {
    const double measured = use_->run->verify_cost(use_->run->verify_kind(drafted + 1));
    return measured > 0 ? measured : runtime::draft_budget::guess;
  }

  void check_lookup() const {
    const std::uint32_t verify = use_->verify_tokens;
    if (lookup_ >= (std::max)(verify, 1u))
      throw argument_error("prompt_lookup_num_tokens", "0 .. " + std::to_string(verify - 1) + " (the plan's)",
                           std::to_string(lookup_));
    if (lookup_ != 0 && longest_ngram_ < 2)
      throw argument_error("max_matching_ngram_size", "at least 2", std::to_string(longest_ngram_));
  }

  /// Number of tokens of the job that the device has put into the ring.
  std::uint32_t drawn_tokens() const {
    const std::uint32_t passes = use_->run->completed();
    return verifying_ != 0 && passes != 0 ? use_->run->accepted() : passes;
  }

  void collect() {
    if (!decoding_) return;
    runtime::session_body& body = *use_;
    const std::uint32_t drawn = drawn_tokens();
    if (taken_ >= drawn) return;
    if (verifying_ != 0) {
      body.drafting.verified(drawn, verify_cost(verifying_));
      result_.timings.accepted_tokens += drawn - 1;
    } else {
      body.drafting.decoded(drawn - taken_);
    }
    while (!done() && decoding_ && taken_ < drawn) take_token(body.run->drawn(taken_++));
    if (lookup_ != 0 && verifying_ == 0 && !done() && decoding_ && body.run->pending() && drafts() != 0)
      body.run->drop();  // passes on the device still draw tokens
  }

  void take_token(std::uint32_t drawn) {
    runtime::session_body& body = *use_;
    if (drawn >= body.vocab_size()) {
      if (!body.run->leave_resident(body.prove_kernels)) refuse_logits();
      draw_anew();
      return;
    }
    const auto id = static_cast<std::int32_t>(drawn);
    const auto now = clock::now();
    if (result_.ids.empty()) {
      result_.timings.prompt_ms = milliseconds(now - start_);
      first_token_ = now;
    }
    body.history.push_back(id);
    result_.ids.push_back(id);
    result_.timings.generated_tokens += 1;
    result_.timings.decode_ms = milliseconds(now - first_token_);
    if (stop_at_end_ && words_ && body.tokens->is_end_of_generation(id)) {
      finish(finish_reason::stop);
      return;
    }
    const std::size_t before = piece_.size();
    if (words_) stop_.add(words_->feed(id), piece_);
    result_.text.append(piece_, before, std::string::npos);
    if (stop_.stopped()) finish(finish_reason::stop);
    else if (result_.ids.size() == limit_) finish(finish_reason::length);
  }

  /// Continues after the last token that was drawn, with a new job.
  void draw_anew() noexcept {
    runtime::session_body& body = *use_;
    first_ = body.size();
    body.cached = first_ - 1;
    taken_ = 0;
    decoding_ = false;
  }

  [[noreturn]] void refuse_logits() {
    runtime::session_body& body = *use_;
    std::string what = "the logits at position " + std::to_string(body.size() - 1) + " are no numbers";
    if (body.find_first_nan && !body.run->is_stage()) {
      const auto first = runtime::first_not_finite(body);
      what += first ? "; first: " + first->text() : "; every state between layers is finite";
    }
    throw device_error(body.device.label(), "draw a token", what);
  }

  void finish(finish_reason reason) {
    if (!stop_.stopped()) {
      const std::size_t before = piece_.size();
      if (words_) stop_.add(words_->flush(), piece_);
      if (stop_.stopped()) reason = finish_reason::stop;
      else stop_.finish(piece_);
      result_.text.append(piece_, before, std::string::npos);
    }
    result_.finish = reason;
    abandon();
  }

  /// Leaves the session as if the generation had ended with the tokens that were taken. Tokens of later passes are
  /// forgotten.
  void abandon() noexcept {
    if (!use_) return;
    runtime::session_body& body = *use_;
    if (!decoding_ && body.run->pending()) body.cached = chunk_start_;
    body.run->drop();
    if (decoding_) body.cached = (std::min)(first_ - 1 + drawn_tokens(), body.size());
    body.run->forget_traces(body.size());
    use_.release();
  }

  static double milliseconds(clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

  runtime::session_use use_;
  std::optional<io::detokenizer> words_;
  sampling_options sampling_;
  runtime::stop_text stop_;
  std::uint32_t chunk_ = 0, tokens_per_submit_ = 0;
  std::uint32_t lookup_ = 0, longest_ngram_ = 0;  ///< as in generate_options
  std::uint32_t limit_ = 0, first_ = 0, taken_ = 0, chunk_start_ = 0;
  bool stop_at_end_ = true;
  float idle_ = 0;
  static constexpr std::uint32_t cheap = runtime::executor::short_tokens - 1;  ///< drafts of a pass that costs less
  std::uint32_t verifying_ = 0;                                                ///< drafts of the pass on the device
  bool matches_ = false;  ///< whether the last search found drafts, worth a pass or not
  bool decoding_ = false;
  clock::time_point start_, first_token_{};
  std::vector<std::int32_t> drafts_;
  std::string piece_;
  generation result_;
};

}  // namespace runtime

INTAGLIO_DEFINITION text_stream::text_stream(runtime::session_use use, const generate_options& options)
    : run_(std::make_unique<runtime::running_text>(std::move(use), options)) {}
INTAGLIO_DEFINITION text_stream::text_stream(text_stream&&) noexcept = default;
INTAGLIO_DEFINITION text_stream::~text_stream() = default;
INTAGLIO_DEFINITION bool text_stream::done() const noexcept { return run_->done(); }
INTAGLIO_DEFINITION std::string_view text_stream::piece() const noexcept { return run_->piece(); }
INTAGLIO_DEFINITION const generation& text_stream::result() const noexcept { return run_->result(); }
INTAGLIO_DEFINITION bool text_stream::advance(double budget_ms) { return run_->advance(budget_ms); }
INTAGLIO_DEFINITION bool text_stream::next() { return run_->next(); }
INTAGLIO_DEFINITION trace_result text_stream::take_trace() { return run_->take_trace(); }
INTAGLIO_DEFINITION void text_stream::cancel() { run_->cancel(); }

}  // namespace intaglio
