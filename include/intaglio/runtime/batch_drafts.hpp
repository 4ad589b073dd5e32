// SPDX-License-Identifier: MIT
// Drafts of sessions in a batch, from prompt lookup, another proposer or the caller. A pass has a row for each slot. A
// session's drafts use rows of vacant slots, and are positions after its last token in its own pages. Each row draws
// the token that the session would draw at that position, so the tokens are the same without drafts. A caller that
// draws on the host decides which drafts are right (next_drafted).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/runtime/batch_prefixes.hpp"
#include "intaglio/runtime/proposer.hpp"
#include "intaglio/runtime/row_times.hpp"

namespace intaglio::runtime {

/// The sessions of a batch whose passes may have rows of drafts.
class batch_drafts : public batch_prefixes {
 public:
  std::uint32_t most_drafts() const {
    // With f16 products a session that decodes without others has other bits than in a batch.
    const bool same_alone = table().shape.coded_products != plan::chunk_arithmetic::f16;
    return copies_ || !run_->takes_drafts() || run_->is_stage() || !same_alone ? 0 : slot_count() - 1;
  }

  void draft(batch_handle whose, std::span<const std::int32_t> ids) {
    member& of = const_cast<member&>(present(whose));
    body_->check_ids(ids);
    if (most_drafts() == 0)
      throw argument_error("drafts", "a plan whose passes take some (most_drafts)", "one of other passes");
    of.drafts.assign(ids.begin(), ids.end());
  }
  void draft_by(std::shared_ptr<proposer> by) {
    if (by && most_drafts() == 0)
      throw argument_error("proposer", "a plan whose passes take drafts (most_drafts)", "one of other passes");
    proposer_ = std::move(by);
  }
  std::optional<batch_token> next_drafted(batch_handle whose) {
    member* const of = find(whose);
    if (of == nullptr || !of->ready) return {};
    offer& what = of->offered;
    if (what.taken == what.drafts.size() || of->history.size() != what.from + what.taken + 1 ||
        of->history.back() != what.drafts[what.taken])
      return {};
    const auto drawn = static_cast<std::int32_t>(what.drawn[what.taken]);
    logits_row_[whose.slot] = what.rows[what.taken++];
    for (draft_counts* const each : {&drafts_, &of->drafted}) ++each->accepted;
    of->history.push_back(drawn);
    update_slot(whose.slot, *of);
    return batch_token{whose, drawn};
  }
  draft_counts drafts() const { return drafts_; }
  draft_counts drafts(batch_handle whose) const {
    if (const former* const of = find_left(whose)) return of->drafted;
    return present(whose).drafted;
  }

 protected:
  using batch_prefixes::batch_prefixes;

  void check_drafts(const batch_options& options) const {
    if (options.draft_num_tokens > most_drafts())
      throw argument_error("draft_num_tokens", "0 .. " + std::to_string(most_drafts()) + " (other slots of this plan)",
                           std::to_string(options.draft_num_tokens));
    if (options.draft_num_tokens != 0 && !proposer_)
      throw argument_error("draft_num_tokens", "a batch with a proposer (draft_by)", "one without");
    if (options.prompt_lookup_num_tokens > most_drafts())
      throw argument_error("prompt_lookup_num_tokens",
                           "0 .. " + std::to_string(most_drafts()) + " (other slots of this plan)",
                           std::to_string(options.prompt_lookup_num_tokens));
    if (options.prompt_lookup_num_tokens != 0 && options.max_matching_ngram_size < 2)
      throw argument_error("max_matching_ngram_size", "at least 2", std::to_string(options.max_matching_ngram_size));
  }

  bool is_drafting() const {
    return most_drafts() != 0 && std::any_of(members_.begin(), members_.end(), [](const member& each) {
             return each.ready && (each.options.prompt_lookup_num_tokens != 0 || each.options.draft_num_tokens != 0 ||
                                   !each.drafts.empty());
           });
  }

  /// Finds drafts for all ready sessions, and gives them rows.
  /// @param rows of the pass without drafts  @return rows with drafts
  std::uint32_t place_drafts(std::uint32_t rows) {
    std::uint32_t vacant = find_drafts(), next = 0;
    ask_proposer(vacant);
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot) {
      member& of = members_[slot];
      if (!of.ready) continue;
      for (std::size_t i = 0; i < of.drafts.size(); ++i, ++next) {
        while (members_[next].number != 0) ++next;
        of.draft_slots.push_back(next);
        logits_of_[next] = 0;
        rows = (std::max)(rows, next + 1);
      }
      set_rows(slot, of);
    }
    return rows;
  }
  /// Number of rows of drafts in the next pass.
  std::uint32_t drafted_rows() const {
    std::size_t out = 0;
    for (const member& each : members_) out += each.draft_slots.size();
    return static_cast<std::uint32_t>(out);
  }

  /// The tokens that a pass drew for a session: one after its last token, and one after each draft that was right.
  /// With keep_logits only the first of them; the others are offered (next_drafted). Afterwards the rows of drafts are
  /// vacant again.
  /// @param ready rows of the pass without drafts  @param all number of drafts in the pass
  std::span<const std::uint32_t> take_drafts(std::uint32_t slot, member& of, std::uint32_t ready, std::uint32_t all) {
    drawn_of_one_.assign(1, run_->drawn(slot, of.reported));
    const bool offers = of.options.keep_logits;
    for (std::size_t i = 0; i < of.drafts.size(); ++i) {
      const std::uint32_t drawn = run_->drawn(of.draft_slots[i], 0);
      if (offers && drawn < table().config->vocab_size) of.offered.drawn.push_back(drawn);
      else if (!offers && drawn_of_one_.size() == i + 1 &&
               drawn_of_one_.back() == static_cast<std::uint32_t>(of.drafts[i]))
        drawn_of_one_.push_back(drawn);
      else  // values after the session's positions in its pages are masked, but they are read
        of.is_spoiled = of.is_spoiled || drawn >= table().config->vocab_size;
    }
    for (const std::uint32_t each : of.draft_slots) run_->set(each, {});
    const auto drafted = static_cast<std::uint32_t>(of.drafts.size()),
               taken = static_cast<std::uint32_t>(drawn_of_one_.size());
    for (draft_counts* const each : {&drafts_, &of.drafted}) each->drafted += drafted, each->accepted += taken - 1;
    const double cost = cost_of(ready, all) + in_passes(std::exchange(of.proposed_ms, 0), ready);
    const bool is_proposed = std::exchange(of.is_proposed, false);
    if (offers && !of.is_spoiled) {
      of.offered.drafts.swap(of.drafts), of.offered.rows.swap(of.draft_slots);
      of.offered.from = of.history.size(), of.offered.cost = cost, of.offered.is_proposed = is_proposed;
    } else {
      weigh(of, drafted, taken, cost, is_proposed);
    }
    of.drafts.clear(), of.draft_slots.clear();
    return drawn_of_one_;
  }
  /// Drops all offers of the last pass that the caller did not take.
  void close_offers() {
    for (member& of : members_) {
      const offer what = std::exchange(of.offered, {});
      if (!what.drafts.empty())
        weigh(of, static_cast<std::uint32_t>(what.drafts.size()), what.taken + 1, what.cost, what.is_proposed);
    }
  }
  /// Records the time of a pass over a number of rows.
  void observe(std::uint32_t running, double ms) {
    if (!times_) times_.emplace(slot_count());
    times_->observe(running, ms);
  }

  draft_counts drafts_;
  std::shared_ptr<proposer> proposer_;  ///< for sessions with draft_num_tokens

 private:
  static constexpr double free_rows = 1.1;  ///< costs of passes that take the same time, but for errors of measurement

  std::uint32_t ready_count() const {
    std::uint32_t out = 0;
    for (const member& each : members_) out += each.ready ? 1 : 0;
    return out;
  }
  /// Number of drafts that fit a session's pages and its max_tokens. An offered token never reaches max_tokens, since
  /// the session would have left by then.
  std::uint32_t room_of(const member& of) const {
    const std::uint32_t now = static_cast<std::uint32_t>(of.history.size()) - 1,
                        room = (std::min)(all_positions(of), held(of)) - 1 - now;
    return of.options.keep_logits && room != 0 ? room - 1 : room;
  }
  /// @param taken tokens that a pass over `drafted` drafts drew
  static void weigh(member& of, std::uint32_t drafted, std::uint32_t taken, double cost, bool is_proposed) {
    of.drafting.verified(taken, cost);
    if (is_proposed) of.right.verified(drafted, taken - 1);
  }
  draft_wish wish_of(member& of, std::uint32_t drafts) const {
    of.drafts.resize(drafts);
    return {of.number, of.history, of.options.sampling, of.prompt + of.options.max_tokens, &of.drafts};
  }

  /// Finds drafts of the caller and of prompt lookup. @return slots that stay vacant
  std::uint32_t find_drafts() {
    std::uint32_t vacant = free_slots();
    for (member& of : members_) {
      if (!of.ready) continue;
      const std::uint32_t most = (std::min)(vacant, room_of(of));
      if (!of.drafts.empty()) of.drafts.resize((std::min<std::size_t>)(of.drafts.size(), most));
      else look_up(of, (std::min)(most, of.options.prompt_lookup_num_tokens), free_slots() / ready_count());
      vacant -= static_cast<std::uint32_t>(of.drafts.size());
    }
    return vacant;
  }
  /// @param share of the vacant rows that the session may take although nothing promises that drafts in them are right
  void look_up(member& of, std::uint32_t most, std::uint32_t share) {
    if (most == 0) return;
    of.drafts.resize(most);
    const looked_up found = of.looks.find(of.history, of.options.max_matching_ngram_size, of.drafts);
    // A short match, which may be chance, gets only a few rows, and such as take no more time.
    auto drafted = static_cast<std::uint32_t>((std::min)(found.tokens, found.matched));
    const std::uint32_t ready = ready_count();
    const double cost = cost_of(ready, drafted);
    while (drafted != 0 && drafted < (std::min)(most, share) && cost_of(ready, drafted + 1) <= free_rows * cost)
      ++drafted;
    const bool pays = drafted != 0 && of.drafting.pays(cost, drafted, draft_budget::counted_on(drafted, found.matched));
    of.drafts.resize(pays ? drafted : 0);
  }
  /// Asks the proposer for drafts of sessions that have none; each gets its share of the vacant slots.
  void ask_proposer(std::uint32_t vacant) {
    wishes_.clear(), asked_.clear();
    if (!proposer_) return;
    const auto wants = [](const member& of) {
      return of.ready && of.options.draft_num_tokens != 0 && of.drafts.empty();
    };
    const std::uint32_t ready = ready_count();
    const auto asking = static_cast<std::uint32_t>(std::count_if(members_.begin(), members_.end(), wants));
    std::uint32_t left = asking;
    for (member& of : members_) {
      if (!wants(of)) continue;
      const std::uint32_t share = (vacant + left - 1) / left,
                          drafts =
                              worth(of, (std::min)({share, room_of(of), of.options.draft_num_tokens}), ready, asking);
      --left;
      if (drafts == 0) continue;
      vacant -= drafts;
      wishes_.push_back(wish_of(of, drafts));
      asked_.push_back(&of);
    }
    if (wishes_.empty()) return;
    proposer_->propose(wishes_);
    for (member* const of : asked_) {
      of->is_proposed = !of->drafts.empty();
      of->proposed_ms = static_cast<double>(of->drafts.size()) * proposer_->token_ms();
    }
  }
  /// The number of drafts a session that promises most tokens for their time, where every session that asks gets that
  /// number; 0: drafts do not pay. Needs the measured time of a pass without drafts.
  std::uint32_t worth(const member& of, std::uint32_t most, std::uint32_t ready, std::uint32_t asking) const {
    if (!times_ || !times_->has(ready)) return 0;
    const double each = in_passes(proposer_->token_ms(), ready);
    double best = 0, cost = 0;
    std::uint32_t out = 0;
    for (std::uint32_t drafts = 1; drafts <= most; ++drafts) {
      const double now = cost_of(ready, drafts * asking) + drafts * each, gain = (1 + of.right.expected(drafts)) / now;
      if (gain > best) best = gain, cost = now, out = drafts;
    }
    return out != 0 && of.drafting.pays(cost, out, of.right.expected(out)) ? out : 0;
  }
  double in_passes(double ms, std::uint32_t ready) const { return times_ ? times_->in_passes(ms, ready) : 0; }
  double cost_of(std::uint32_t ready, std::uint32_t drafted) const {
    return (times_ ? *times_ : row_times()).cost(ready, drafted);
  }
  void set_rows(std::uint32_t slot, const member& of) {
    std::vector<std::int32_t> tokens = of.history;
    for (std::size_t i = 0; i < of.drafts.size(); ++i) {
      tokens.push_back(of.drafts[i]);
      slot_words words = words_of(of);
      words.tokens = tokens;
      words.before = 1 + std::exchange(slot, of.draft_slots[i]);
      run_->set(slot, words);
    }
  }

  std::vector<std::uint32_t> drawn_of_one_;
  std::vector<draft_wish> wishes_;
  std::vector<member*> asked_;      ///< the sessions that the wishes belong to
  std::optional<row_times> times_;  ///< of this batch's passes
};

}  // namespace intaglio::runtime
