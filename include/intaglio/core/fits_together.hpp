// SPDX-License-Identifier: MIT
// The one place where a program that does not fit is refused. Headers that users include name this one first, so that
// the compiler's chain of "included from" lines in front of the sentence stays short.
#pragma once

#include "intaglio/core/message.hpp"

namespace intaglio {

#if defined(__clang__)
/// clang 16 opens with the failed condition, which for a reason names the sentence.
template <auto Sentence>
using fits_together = reason<Sentence>;
template <auto Sentence>
using proven = reason<Sentence>;
#else
/// g++ 12 opens with the innermost struct that is being made and its arguments: the sentence.
template <auto Sentence>
struct fits_together {
  static_assert(Sentence.empty(), "intaglio: the model does not fit together");
  static constexpr bool model_fits = true;
};
template <auto Sentence>
struct proven {
  static_assert(Sentence.empty(), "intaglio: the plan cannot be proven");
  static constexpr bool model_fits = true;
};
#endif

/// Refuses what a function would have to give. Here, because the place of an assertion is what clang's chain of lines
/// leads to.
template <auto Sentence, class Result>
constexpr Result refused() {
  static_assert(fits_together<Sentence>::model_fits, "intaglio: the model does not fit together");
  return Result{};
}

}  // namespace intaglio
