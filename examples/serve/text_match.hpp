// SPDX-License-Identifier: MIT
// Follows a text through a grammar, and says what may come next. All readings of the text are followed at once, as sets
// of stacks of symbols that are still to come. Such a set is kept as an acyclic graph in which equal parts are one node
// (a graph-structured stack that is deterministic from its top, so that equal sets are the same node): readings that go
// on alike cost as one. A node with what each byte makes of it is a state of an automaton, made as it is met.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar.hpp"

namespace intaglio::serve {

/// The texts of a vocabulary in an order in which common beginnings are looked at once.
class token_bytes {
 public:
  struct entry {
    std::string_view text;
    std::int32_t id;
    std::uint32_t shared;  ///< bytes in common with the entry before
  };
  /// @param texts of the tokens that may be in a text, by id; empty: not one of them. Must outlive this
  explicit token_bytes(const std::vector<std::string_view>& texts);
  std::span<const entry> entries() const { return entries_; }
  /// Bytes that are tokens of their own: with them any text can be written.
  const byte_set& single() const { return single_; }

 private:
  std::vector<entry> entries_;
  byte_set single_;
};

/// Thrown when the readings of a text by the grammar exceed a limit, or when the result is no longer wanted.
class match_limit : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A text that is being written in a grammar. Used by one thread at a time. All but the first three may throw
/// match_limit.
class text_match {
 public:
  /// Nodes that may be made or met: at first (some 20 ms of work), and for each byte that is taken. Bytes whose states
  /// are known cost nothing.
  static constexpr std::uint64_t first_work = 400'000, work_of_byte = 5'000;
  /// Limits for all nodes: unneeded nodes are dropped beyond the first, and the second is never exceeded.
  static constexpr std::size_t most_kept_bytes = std::size_t{6} << 20, most_bytes = std::size_t{12} << 20;

  explicit text_match(std::shared_ptr<const grammar> of);

  /// The text may end here.
  bool complete() const { return nodes_[at_].ends; }
  /// Nothing may follow.
  bool finished() const { return complete() && nodes_[at_].entries.empty(); }
  /// Bytes that are needed at least until it may end.
  std::uint32_t least_bytes() const { return nodes_[at_].least; }

  /// Whether the bytes fit and leave a text that `bytes_left` more bytes can end.
  bool allows(std::string_view bytes, std::uint32_t bytes_left);
  /// @pre allows(bytes)
  void take(std::string_view bytes);
  /// Marks the tokens that allows() would take.
  void mark_allowed(const token_bytes& tokens, std::uint32_t bytes_left, std::vector<bool>& allowed);

  /// Ends what runs, and whatever comes, with match_limit; of any thread.
  void cancel() { cancelled_ = true; }
  /// What has been done, and is held: for tests.
  std::uint64_t work() const { return work_; }
  std::size_t bytes() const { return bytes_; }

 private:
  using index = std::uint32_t;
  struct entry {
    std::uint32_t symbol;  ///< the top of a stack
    index below;           ///< what may be below it
    friend bool operator==(const entry&, const entry&) = default;
  };
  struct node {
    std::vector<entry> entries;  ///< by symbol, each once
    bool ends = false;           ///< the empty stack is among them: the text may end
    std::uint32_t least = 0, depth = 0;
    index popped = unknown, expanded = unknown;  ///< known once they were asked for
    std::unique_ptr<index[]> next;               ///< by class of bytes
  };
  struct stacks {
    std::vector<entry> entries;
    bool ends = false;
  };
  struct hash {
    const text_match* of;
    std::size_t operator()(index at) const;
  };
  struct same {
    const text_match* of;
    bool operator()(index a, index b) const {
      return of->nodes_[a].ends == of->nodes_[b].ends && of->nodes_[a].entries == of->nodes_[b].entries;
    }
  };
  static constexpr index unknown = 0xFFFF'FFFFu, dead = 0, end = 1;
  static constexpr std::uint32_t deep = 400, deepest = 1500;

  void clear();
  void count(std::uint64_t steps);
  index intern(std::vector<entry> entries, bool ends);
  index merged(stacks of);
  index united(std::span<const index> list);
  void add(index of, stacks& to) const;
  void add_from(std::uint32_t at, index below, stacks& to);
  index popped(index of);
  index expanded(index of);
  index step(index from, unsigned char byte);
  index walk(index from, std::string_view bytes);
  void drop_all_but(std::vector<index>& roots);

  std::shared_ptr<const grammar> of_;
  std::vector<node> nodes_;
  std::unordered_set<index, hash, same> known_;
  std::unordered_map<std::uint64_t, index> unions_;
  std::size_t bytes_ = 0;
  std::uint64_t work_ = 0, most_work_ = first_work;
  index at_ = 0;
  std::atomic<bool> cancelled_{false};
};

}  // namespace intaglio::serve
