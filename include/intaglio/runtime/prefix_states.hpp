// SPDX-License-Identifier: MIT
// Decides which copies of recurrent layers' states the sessions of a batch share. Each copy is the state after a page
// of tokens, and has the name of that page in page_pool.hpp. This class holds no memory.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace intaglio::runtime {

/// Which pages of a pool have a copy of the recurrent layers' state after them.
class prefix_states {
 public:
  /// @param copies number of copies that there is room for
  explicit prefix_states(std::uint32_t copies) : copies_(copies) {}

  /// A copy of the recurrent state that a sequence can go on from.
  struct found {
    std::uint32_t pages = 0;  ///< pages of the sequence before the state
    std::uint32_t index = 0;  ///< index of the copy
  };
  /// The copy that is after the most of these pages; empty if there is none. It counts as used.
  /// @param names of a sequence's pages, in order
  std::optional<found> newest(std::span<const std::uint64_t> names) {
    for (std::size_t i = names.size(); i-- > 0;)
      if (copy* const its = of(names[i])) {
        its->since = ++clock_;
        return found{static_cast<std::uint32_t>(i + 1), index_of(*its)};
      }
    return std::nullopt;
  }
  bool has(std::uint64_t name) const {
    return std::any_of(copies_.begin(), copies_.end(), [&](const copy& each) { return each.name == name; });
  }
  /// The index for a new copy after a page. If none is vacant, the copy unused for longest is replaced.
  std::uint32_t put(std::uint64_t name) {
    copy* its = of(name);
    if (its == nullptr)
      its = &*std::min_element(copies_.begin(), copies_.end(),
                               [](const copy& a, const copy& b) { return a.since < b.since; });
    *its = {name, ++clock_};
    return index_of(*its);
  }
  /// Forgets the copy after that page, if there is one.
  void forget(std::uint64_t name) {
    if (copy* const its = of(name)) *its = {};
  }
  void forget_all() { std::fill(copies_.begin(), copies_.end(), copy{}); }

 private:
  struct copy {
    std::uint64_t name = 0, since = 0;  ///< 0: no copy
  };
  copy* of(std::uint64_t name) {
    const auto at = std::find_if(copies_.begin(), copies_.end(), [&](const copy& each) { return each.name == name; });
    return name == 0 || at == copies_.end() ? nullptr : &*at;
  }
  std::uint32_t index_of(const copy& its) const { return static_cast<std::uint32_t>(&its - copies_.data()); }

  std::vector<copy> copies_;
  std::uint64_t clock_ = 0;
};

}  // namespace intaglio::runtime
