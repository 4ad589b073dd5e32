// SPDX-License-Identifier: MIT
// Drafts of sessions in a batch, as prompt lookup or a caller gives them. A pass has a row for each slot; a session's
// drafts take rows of slots that nobody has, which stand behind its last token in its own pages. Each row draws what
// the session would draw at that position, so tokens are those without drafts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/runtime/batch_prefixes.hpp"

namespace intaglio::runtime {

/// The sessions of a batch, whose passes may have rows of drafts.
class batch_drafts : public batch_prefixes {
 public:
  std::uint32_t most_drafts() const {
    // With halves a session alone has other bits than one beside others.
    const bool same_alone = table().shape.coded_products != plan::chunk_arithmetic::halves;
    return copies_ || run_->in_one() || run_->is_stage() || !same_alone ? 0 : slot_count() - 1;
  }

 protected:
  using batch_prefixes::batch_prefixes;

  bool is_drafting() const {
    return most_drafts() != 0 && std::any_of(members_.begin(), members_.end(), [](const member& each) {
             return each.ready && (each.options.prompt_lookup_num_tokens != 0 || !each.drafts.empty());
           });
  }

  /// Looks for drafts of all that are ready, and gives them rows.
  /// @param rows of the pass without drafts  @return with them
  std::uint32_t place_drafts(std::uint32_t rows) {
    std::uint32_t vacant = 0, next = 0;
    for (const member& each : members_) vacant += each.number == 0 ? 1 : 0;
    for (std::uint32_t slot = 0; slot < slot_count(); ++slot) {
      member& of = members_[slot];
      if (!of.ready) continue;
      find_drafts(of, vacant);
      vacant -= static_cast<std::uint32_t>(of.drafts.size());
      for (std::size_t i = 0; i < of.drafts.size(); ++i, ++next) {
        while (members_[next].number != 0) ++next;
        of.draft_slots.push_back(next);
        logits_of_[next] = 0;
        rows = (std::max)(rows, next + 1);
      }
      set_rows(of);
    }
    return rows;
  }
  /// Rows of drafts in the next pass.
  std::uint32_t drafted_rows() const {
    std::size_t out = 0;
    for (const member& each : members_) out += each.draft_slots.size();
    return static_cast<std::uint32_t>(out);
  }

  /// What a pass drew for a session: its own token, and behind each draft that was right another one. Their rows are
  /// nobody's again.
  std::span<const std::uint32_t> take_drafts(std::uint32_t slot, member& of, std::uint32_t ready) {
    drawn_of_one_.assign(1, run_->drawn(slot, of.told));
    for (std::size_t i = 0; i < of.drafts.size(); ++i) {
      const std::uint32_t drawn = run_->drawn(of.draft_slots[i], 0);
      if (drawn_of_one_.size() == i + 1 && drawn_of_one_.back() == static_cast<std::uint32_t>(of.drafts[i]))
        drawn_of_one_.push_back(drawn);
      else  // what it left in pages behind the session's positions is masked, but read
        of.is_spoiled = of.is_spoiled || drawn >= table().config->vocab_size;
    }
    for (const std::uint32_t each : of.draft_slots) run_->set(each, {});
    const auto drafted = static_cast<std::uint32_t>(of.drafts.size()),
               taken = static_cast<std::uint32_t>(drawn_of_one_.size());
    drafts_.drafted += drafted, drafts_.accepted += taken - 1;
    of.drafting.verified(taken, cost_of(ready, drafted));
    of.drafts.clear(), of.draft_slots.clear();
    return drawn_of_one_;
  }
  /// Of passes that took this time each, over that many rows; the first of a kind may have compiled kernels.
  void observe(std::uint32_t running, double ms) {
    pass_ms_.resize(slot_count() + 1, -1);
    double& mean = pass_ms_[running];
    mean = mean < 0 ? 0 : mean == 0 ? ms : 0.8 * mean + 0.2 * ms;
  }

  draft_counts drafts_;

 private:
  void find_drafts(member& of, std::uint32_t vacant) {
    const auto now = static_cast<std::uint32_t>(of.history.size()) - 1;
    const std::uint32_t room = (std::min)(all_positions(of), held(of)) - 1 - now,
                        most = of.options.keep_logits ? 0 : (std::min)(vacant, room);
    if (!of.drafts.empty()) {  // a caller's
      of.drafts.resize((std::min<std::size_t>)(of.drafts.size(), most));
      return;
    }
    of.drafts.resize((std::min)(most, of.options.prompt_lookup_num_tokens));
    if (of.drafts.empty()) return;
    const looked_up found = prompt_lookup(of.history, of.options.max_matching_ngram_size, 2, of.drafts);
    of.drafts.resize((std::min)(found.tokens, found.matched));  // a chance match of a few tokens takes few rows
    std::uint32_t ready = 0;
    for (const member& each : members_) ready += each.ready ? 1 : 0;
    const auto drafted = static_cast<std::uint32_t>(of.drafts.size());
    if (!of.drafting.allows(cost_of(ready, drafted), drafted, found.matched)) of.drafts.clear();
  }
  /// Of a pass with drafts in passes without, as measured of that many rows or, before that, of the nearest number.
  double cost_of(std::uint32_t ready, std::uint32_t drafted) const {
    const double guess = 1 + drafted / 2.0;
    if (pass_ms_.size() <= ready || pass_ms_[ready] <= 0) return guess;
    double with = 0;
    std::uint32_t nearest = slot_count();
    for (std::uint32_t rows = ready + 1; rows < pass_ms_.size(); ++rows) {
      const std::uint32_t apart = rows < ready + drafted ? ready + drafted - rows : rows - ready - drafted;
      if (pass_ms_[rows] > 0 && apart < nearest) nearest = apart, with = pass_ms_[rows];
    }
    return with == 0 ? guess : (std::max)(1.0, with / pass_ms_[ready]);
  }
  void set_rows(const member& of) {
    std::vector<std::int32_t> tokens = of.history;
    for (std::size_t i = 0; i < of.drafts.size(); ++i) {
      tokens.push_back(of.drafts[i]);
      slot_words words = words_of(of);
      words.tokens = tokens;
      run_->set(of.draft_slots[i], words);
    }
  }

  std::vector<std::uint32_t> drawn_of_one_;
  std::vector<double> pass_ms_;  ///< by rows; 0 and less: not known yet
};

}  // namespace intaglio::runtime
