// SPDX-License-Identifier: MIT
// A smaller model with the same tokens that drafts the next tokens of a batch's sessions (batch_handle.hpp, draft_by).
// It draws with the sessions' seeds at their positions, so that it often draws the same tokens. Source: Leviathan et
// al. 2022, speculative decoding. Here tokens are compared, not probabilities, since a draw with one seed at one
// position does not depend on the drafts.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/same_tokens.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/batch_handle.hpp"
#include "intaglio/runtime/proposer.hpp"

namespace intaglio {

/// A batch of a smaller model that only drafts. Each session of the large model that asks for drafts has a session
/// here. Its prompt is fed one chunk at a time, between passes of the large model; it gets no drafts before. Wrong
/// drafts are taken back. Used by the thread of the large model's batch.
class draft_model final : public runtime::proposer {
 public:
  /// @param drafting batch of the small model with about as many slots as the large one
  /// @param names of both models for error messages, the small one's first
  /// @error argument_error: other tokens, recurrent layers, an encoder
  draft_model(basic_batch drafting, const basic_batch& large,
              const std::pair<std::string, std::string>& names = {"the draft model", "the model"})
      : small_(std::move(drafting)), large_vocabulary_(vocabulary(large)) {
    expect_same_tokens(large, names);
    if (small_.table().kept_bytes() != 0)
      throw argument_error("draft model", "one without recurrent layers, whose states cannot be taken back",
                           names.first + ", which has them");
  }

  /// The small model's sessions, for their counters.
  const basic_batch& batch() const noexcept { return small_; }
  double token_ms() const noexcept override { return (std::max)(token_ms_, 0.0); }

  void propose(std::span<runtime::draft_wish> wishes) override {
    ++round_;
    for (runtime::draft_wish& each : wishes) {
      seat& of = seats_[each.who];
      of.round = round_, of.wanted = static_cast<std::uint32_t>(each.drafts->size()), of.wish = &each;
      each.drafts->clear();
      if (!of.refused) follow(of);
    }
    std::erase_if(seats_, [&](const auto& each) {  // sessions that were not asked for have left or pause
      if (each.second.round == round_) return false;
      small_.leave(each.second.handle);
      return true;
    });
    draw();
    for (const auto& [who, of] : seats_) hand_over(of);
  }

 private:
  /// A session that is more tokens behind is fed anew, by chunks; up to this number passes feed the tokens one by one.
  static constexpr std::size_t most_after = 8;
  /// Tokens that a session may draw in excess while it waits for others.
  static constexpr std::uint32_t spare = 64;

  struct seat {
    batch_handle handle{};     ///< no session: the small model has no room for it
    std::size_t joined = 0;    ///< tokens of its prompt in the small model
    std::uint64_t round = 0;   ///< in which it was last asked for
    std::uint32_t wanted = 0;  ///< number of drafts
    runtime::draft_wish* wish = nullptr;
    bool is_fed = false;   ///< the prompt is fed
    bool drew = false;     ///< in the last step
    bool refused = false;  ///< the small model has no finite logits, or not the same tokens, for it
  };

  void expect_same_tokens(const basic_batch& large, const std::pair<std::string, std::string>& names) const {
    const auto refuse = [&](const std::string& what) {
      throw argument_error("tokens of " + names.first, "those of " + names.second, what);
    };
    if (small_.has_tokenizer() && large.has_tokenizer()) {
      if (const std::string other = io::first_other_token(small_.tokenizer(), large.tokenizer()); !other.empty())
        refuse(other);
      return;
    }
    if (small_.has_tokenizer() != large.has_tokenizer()) refuse("one of both without a tokenizer");
    if (vocabulary(small_) != vocabulary(large))
      refuse(std::to_string(vocabulary(small_)) + " and " + std::to_string(vocabulary(large)));
  }
  static std::uint32_t vocabulary(const basic_batch& of) { return of.table().config->vocab_size; }
  bool knows(std::span<const std::int32_t> ids) const {
    return std::all_of(ids.begin(), ids.end(),
                       [&](std::int32_t id) { return static_cast<std::uint32_t>(id) < vocabulary(small_); });
  }

  /// Makes the session's tokens equal to the wish's tokens, as far as no pass is needed.
  void follow(seat& of) {
    const std::span<const std::int32_t> wanted = of.wish->history;
    if (!small_.has(of.handle)) return join(of);
    if (!of.is_fed) return;
    const std::vector<std::int32_t>& now = small_.history(of.handle);
    const auto [here, there] = std::mismatch(now.begin(), now.end(), wanted.begin(), wanted.end());
    const auto same = static_cast<std::size_t>(here - now.begin());
    if (there == wanted.end()) return;  // the tokens that it drew follow them
    if (wanted.size() - same > most_after || same < of.joined) return join(of);
    if (here == now.end()) return;
    if (!knows({&*there, 1})) return refuse(of);
    small_.set_next(of.handle, *there, static_cast<std::uint32_t>(now.size() - same - 1));
  }
  void refuse(seat& of) {
    small_.leave(of.handle);
    of.refused = true;
  }
  void join(seat& of) {
    small_.leave(of.handle);
    of.handle = {}, of.is_fed = false;
    const std::span<const std::int32_t> prompt = of.wish->history;
    const auto size = static_cast<std::uint32_t>(prompt.size());
    if (!knows(prompt)) return refuse(of);
    if (size + of.wanted >= small_.context()) return;
    const std::uint32_t most = (std::min)(small_.context(), of.wish->end + spare) - size;
    if (!small_.fits(prompt, most)) return;
    sampling_options drawn = of.wish->sampling;
    if (drawn.top_k) drawn.top_k = (std::min)(*drawn.top_k, vocabulary(small_));
    if (drawn.repeat_last_n) drawn.repeat_last_n = (std::min)(*drawn.repeat_last_n, small_.context());
    of.handle = small_.join(prompt, {.sampling = drawn, .max_tokens = most});
    of.joined = size;
  }

  std::uint32_t lacks(const seat& of) const {
    const std::size_t now = small_.history(of.handle).size(), wanted = of.wish->history.size() + of.wanted;
    return static_cast<std::uint32_t>(wanted - (std::min)(now, wanted));
  }
  /// Draws until all fed sessions have their drafts. Other sessions are fed meanwhile, by at least one chunk.
  void draw() {
    double ms = 0;
    std::uint32_t most = 0;
    bool measured = true;
    for (bool first = true;; first = false) {
      std::uint32_t tokens = 0;
      bool waits = false, one = false;
      for (const auto& [who, of] : seats_) {
        if (!small_.has(of.handle)) continue;
        waits = waits || !of.is_fed;
        if (!of.is_fed) continue;
        most = (std::max)(most, of.wanted);
        tokens = (std::max)(tokens, lacks(of));
        one = one || lacks(of) > of.wanted;  // the next token is known
      }
      if (tokens == 0 && !(first && waits)) break;
      const auto start = std::chrono::steady_clock::now();
      step(one || tokens == 0 ? 1 : (std::min)(tokens, small_.table().ring_size));
      ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      measured = measured && !waits;
    }
    if (!measured || most == 0 || ms == 0) return;
    const double each = ms / most;  // the first step may have compiled kernels
    token_ms_ = token_ms_ < 0 ? 0 : token_ms_ == 0 ? each : 0.8 * token_ms_ + 0.2 * each;
  }
  void step(std::uint32_t tokens) {
    for (auto& [who, of] : seats_) of.drew = false;
    for (const batch_token& token : small_.step(tokens)) {
      const auto at =
          std::find_if(seats_.begin(), seats_.end(), [&](const auto& each) { return each.second.handle == token.of; });
      if (at == seats_.end()) continue;
      at->second.is_fed = at->second.drew = true;
      at->second.refused = at->second.refused || !token.finite;
    }
    for (auto& [who, of] : seats_) {
      if (!small_.has(of.handle)) continue;
      of.is_fed = of.drew;  // else it waits for pages
      const std::vector<std::int32_t>& now = small_.history(of.handle);
      if (!of.drew || now.size() > of.wish->history.size()) continue;
      const std::int32_t known = of.wish->history[now.size() - 1];
      if (now.back() == known) continue;
      if (knows({&known, 1})) small_.set_next(of.handle, known);
      else refuse(of);
    }
  }
  void hand_over(const seat& of) const {
    if (of.refused || !small_.has(of.handle)) return;
    const std::vector<std::int32_t>& now = small_.history(of.handle);
    const std::size_t from = of.wish->history.size(), end = (std::min)(now.size(), from + of.wanted);
    for (std::size_t i = from; i < end; ++i) {
      if (static_cast<std::uint32_t>(now[i]) >= large_vocabulary_) return;
      of.wish->drafts->push_back(now[i]);
    }
  }

  basic_batch small_;
  std::uint32_t large_vocabulary_;
  std::map<std::uint64_t, seat> seats_;  ///< by session of the large model
  std::uint64_t round_ = 0;
  double token_ms_ = -1;  ///< 0 and less: unknown
};

}  // namespace intaglio
