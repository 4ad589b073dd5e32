// SPDX-License-Identifier: MIT
// The single check that refuses a program that does not fit. Headers that users include name this one first, which
// keeps the compiler's chain of "included from" lines short.
#pragma once

#include "intaglio/core/message.hpp"

namespace intaglio {

#if defined(__clang__)
/// Carries the sentence into clang 16's error, which begins with the failed condition.
template <auto Sentence>
using fits_together = reason<Sentence>;
/// Carries the sentence of a plan that cannot be proven into the error, as fits_together does.
template <auto Sentence>
using proven = reason<Sentence>;
#else
/// Carries the sentence into g++ 12's error, which begins with the innermost struct that is being instantiated and its
/// arguments.
template <auto Sentence>
struct fits_together {
  static_assert(Sentence.empty(), "intaglio: the model does not fit together");
  static constexpr bool model_fits = true;  ///< the condition of a static_assert that names this struct
};
/// Carries the sentence of a plan that cannot be proven into the error, as fits_together does.
template <auto Sentence>
struct proven {
  static_assert(Sentence.empty(), "intaglio: the plan cannot be proven");
  static constexpr bool model_fits = true;  ///< the condition of a static_assert that names this struct
};
#endif

/// Replaces a function's result when the program is refused. It is in this header because clang's chain of
/// lines leads to the file of the static_assert.
template <auto Sentence, class Result>
constexpr Result refused() {
  static_assert(fits_together<Sentence>::model_fits, "intaglio: the model does not fit together");
  return Result{};
}

}  // namespace intaglio
