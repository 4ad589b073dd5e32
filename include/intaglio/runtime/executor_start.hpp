// SPDX-License-Identifier: MIT
// The unfinished start of an executor that answers before all of its pipelines are made. Decode begins as the chain of
// dispatches with the sampler's greedy form. The resident dispatch, its form for long contexts and the sampler's
// drawing form are used once they are made and proven.
#pragma once

#include <string>
#include <utility>

#include "intaglio/gpu/pipeline_cache.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/table.hpp"

namespace intaglio::runtime {

/// Orders the steps that prepare an executor: what the first tokens need comes first.
class executor_start {
 public:
  /// The steps that can be done now.
  struct step {
    bool layers = false;   ///< prove the resident dispatch, or its form for long contexts, and use it
    bool drawing = false;  ///< prove the sampler's drawing form and use it
    explicit operator bool() const { return layers || drawing; }
  };

  /// Begins with nothing left to make except `resident`. @param resident the resident sequence that replaces decode's
  /// chain; null: none
  explicit executor_start(const plan::sequence* resident = nullptr) : resident_(resident) {}

  bool is_complete() const noexcept { return resident_ == nullptr && !draws_later_ && !lengthens_later_; }
  const plan::sequence* resident() const noexcept { return resident_; }
  bool lengthens_later() const noexcept { return lengthens_later_; }
  bool draws_later() const noexcept { return draws_later_; }
  /// The form of the sampler that is recorded for passes that sample, where can_draw().
  kernels::sample_form draws_by() const noexcept { return draws_by_; }
  bool draws_by_interim() const noexcept { return draws_by_ == kernels::sample_form::interim; }
  bool can_draw() const noexcept { return !draws_later_ || draws_by_interim(); }

  void leave_drawing() noexcept { draws_later_ = true; }
  /// Notes that passes that sample are recorded with this form.
  void record_drawing(kernels::sample_form by) noexcept { draws_by_ = by; }
  /// Notes that the drawing form is proven.
  void take_drawing() noexcept {
    draws_later_ = false;
    draws_by_ = kernels::sample_form::any;
  }
  /// Notes that the resident dispatch was tried, whatever the result.
  void take_layers() noexcept {
    resident_ = nullptr;
    lengthens_later_ = false;
  }
  /// Notes that the resident pipelines are in use and their form for long contexts is not made yet.
  void leave_long() noexcept { lengthens_later_ = true; }

  /// The steps that can be done in a decode job.
  /// @param decode the sequence that it runs  @param between_passes whether proofs may run, and have room after the
  ///   written positions
  /// @param all_made every pipeline is made  @param made whether the pipelines of some dispatches are made
  template <class Made>
  step next(const plan::sequence& decode, bool between_passes, bool greedy, bool all_made, Made&& made) const {
    step out;
    out.layers = between_passes && ((resident_ != nullptr && made(resident_->prologue) && made(resident_->resident) &&
                                     made(resident_->epilogue)) ||
                                    (lengthens_later_ && made(decode.resident_long)));
    out.drawing = draws_later_ && !greedy && draws_by_interim() && all_made;
    return out;
  }

  /// Sets the note that is written to the pipeline cache when all is proven. @param in outlives this object
  /// @param as_chain the note if decode stays the chain
  void note_when_complete(gpu::pipeline_cache& in, std::string note, std::string as_chain) {
    note_in_ = &in;
    note_ = std::move(note);
    note_as_chain_ = std::move(as_chain);
  }
  bool has_note() const noexcept { return note_in_ != nullptr; }
  /// Leaves the note to the next start.
  void forget_note() noexcept { note_in_ = nullptr; }
  void note_chain() { note_ = note_as_chain_; }
  /// Writes the note when all is done.
  void keep_note() {
    if (!is_complete() || note_in_ == nullptr) return;
    note_in_->set_note(note_);
    note_in_->store();
  }

 private:
  const plan::sequence* resident_;
  bool draws_later_ = false, lengthens_later_ = false;
  kernels::sample_form draws_by_ = kernels::sample_form::any;
  gpu::pipeline_cache* note_in_ = nullptr;
  std::string note_, note_as_chain_;
};

}  // namespace intaglio::runtime
