// SPDX-License-Identifier: MIT
// Sort functions that are instantiated once. Each std::sort with its own comparison costs 2 to 5 kB of code and a tenth
// of a second of g++ 12 (docs/lab/compile_time.md). Sorts that run once per load therefore call their comparison
// through a pointer.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/core/compiler.hpp"

namespace intaglio {

/// A reference to a function object that compares the things at two indices. The function object must outlive the
/// reference.
class index_comparison {
 public:
  /// @param before a strict weak order: before(std::size_t, std::size_t) gives bool
  template <class Before>
    requires(!std::same_as<Before, index_comparison>)
  index_comparison(const Before& before)
      : object_(&before), call_([](const void* object, std::size_t a, std::size_t b) -> bool {
          return (*static_cast<const Before*>(object))(a, b);
        }) {}

  /// True where the thing at index a comes before the thing at index b. Equal things are ordered by index.
  bool operator()(std::size_t a, std::size_t b) const {
    if (call_(object_, a, b)) return true;
    return a < b && !call_(object_, b, a);
  }

 private:
  const void* object_;  ///< the caller's function object
  bool (*call_)(const void*, std::size_t, std::size_t);
};

/// Sorts unique indices by the things that they refer to. Equal things are ordered by index.
[[gnu::cold]] inline void sort_indices(std::span<std::size_t> indices, index_comparison before) {
  std::sort(indices.begin(), indices.end(), before);
}

/// The indices 0 to count - 1, sorted by the things that they refer to. Equal things keep their order.
[[gnu::cold]] inline std::vector<std::size_t> sorted_indices(std::size_t count, index_comparison before) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), std::size_t{0});
  sort_indices(out, before);
  return out;
}

/// Sorts elements with a comparison of two of them. Equal elements keep their order.
template <class T, class Before>
void sort_once(std::vector<T>& all, const Before& before) {
  const auto at = [&](std::size_t a, std::size_t b) { return before(all[a], all[b]); };
  std::vector<T> out;
  out.reserve(all.size());
  for (const std::size_t i : sorted_indices(all.size(), at)) out.push_back(std::move(all[i]));
  all = std::move(out);
}

}  // namespace intaglio
