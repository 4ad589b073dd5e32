// SPDX-License-Identifier: MIT
// Calls of a batch that the stages before the last one run too. A call is a list of words, which a link carries in the
// order of the calls.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/runtime/batch_executor.hpp"

namespace intaglio::runtime {

/// What a call asks of the later stages of a batch.
enum class batch_call : std::uint32_t { chunk, chunk_for_nobody, pass, clean };

/// Writes the words of a call. They begin with the slots that have changed: each has the fields of slot_words, except
/// sampling and all tokens but the last.
class batch_words {
 public:
  /// Records what a slot is from the next call on.
  void note(std::uint32_t slot, const slot_words& to) {
    ++changes_;
    const bool there = !to.tokens.empty();
    add({slot, there ? static_cast<std::uint32_t>(to.tokens.size()) - 1 : 0, to.running && there ? 1u : 0u, to.limit,
         there ? static_cast<std::uint32_t>(to.tokens.back()) : 0, static_cast<std::uint32_t>(to.pages.size())});
    changed_.insert(changed_.end(), to.pages.begin(), to.pages.end());
  }
  /// Writes a call, and in front of it the slots that changed. @param its arguments of the call; a reader knows their
  /// number
  void take(batch_call what, std::span<const std::uint32_t> its, std::vector<std::uint32_t>& into) {
    into.assign({static_cast<std::uint32_t>(what), changes_});
    into.insert(into.end(), changed_.begin(), changed_.end());
    into.insert(into.end(), its.begin(), its.end());
    changed_.clear();
    changes_ = 0;
  }

 private:
  void add(std::initializer_list<std::uint32_t> words) { changed_.insert(changed_.end(), words); }

  std::vector<std::uint32_t> changed_;
  std::uint32_t changes_ = 0;
};

/// Reads what batch_words wrote.
class batch_words_reader {
 public:
  /// @param words must outlive the reader
  explicit batch_words_reader(std::span<const std::uint32_t> words) : left_(words) {}
  /// @error device_error: no words are left, which a sound link never causes
  std::uint32_t next() { return take(1).front(); }
  std::span<const std::uint32_t> take(std::size_t count) {
    if (count > left_.size()) throw device_error("stage", "read a call of a batch", "it ends before its words do");
    const auto out = left_.first(count);
    left_ = left_.subspan(count);
    return out;
  }
  std::span<const std::uint32_t> rest() { return take(left_.size()); }

 private:
  std::span<const std::uint32_t> left_;
};

/// Tokens that are stored as words.
inline std::span<const std::int32_t> as_tokens(std::span<const std::uint32_t> words) {
  return {reinterpret_cast<const std::int32_t*>(words.data()), words.size()};
}

/// Runs a call in a stage that has another stage after it.
/// @param words from batch_words  @param budget_ms limit of a submission
/// @return tokens of the pass, whose rows are in run.ends() afterwards; 0: the call has no rows
/// @error device_lost, out_of_memory
inline std::uint32_t run_call(batch_executor& run, std::span<const std::uint32_t> words, double budget_ms) {
  batch_words_reader read(words);
  const auto what = static_cast<batch_call>(read.next());
  for (std::uint32_t left = read.next(); left != 0; --left) {
    const auto its = read.take(6);
    run.set_words(its[0], {its[1], its[2], its[3], its[4]}, read.take(its[5]));
  }
  switch (what) {
    case batch_call::chunk: {
      const auto its = read.take(4);
      const auto tokens = as_tokens(read.rest());
      run.prefill(its[0], its[1], tokens, its[2], its[3], budget_ms);
      return static_cast<std::uint32_t>(tokens.size());
    }
    case batch_call::chunk_for_nobody: {
      const std::uint32_t position = read.next();
      const auto tokens = as_tokens(read.rest());
      run.feed_alone(position, tokens, budget_ms);
      return static_cast<std::uint32_t>(tokens.size());
    }
    case batch_call::pass: {
      const std::uint32_t group = read.next(), rows = read.next(), first = group * run.table().shape.slot_count;
      for (std::uint32_t i = 0; i < rows; ++i) {
        const auto its = read.take(3);
        run.go_on(first + i, {its[0], its[1], 0, its[2]});
      }
      run.decode(rows, 1, false, budget_ms, group);
      return rows;
    }
    case batch_call::clean: {
      const std::uint32_t slot = read.next();
      run.clean(slot, read.rest());
      return 0;
    }
  }
  return 0;
}

}  // namespace intaglio::runtime
