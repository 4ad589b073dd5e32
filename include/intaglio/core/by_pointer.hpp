// SPDX-License-Identifier: MIT
// Loops over vectors in constant expressions. clang counts the statements that it evaluates, also those of a
// vector's iterator (docs/lab/compile_time.md).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <type_traits>

namespace intaglio {

/// The elements between two pointers, for a range-based loop.
template <class T>
struct pointed {
  T* first = nullptr;
  T* last = nullptr;
  constexpr T* begin() const { return first; }
  constexpr T* end() const { return last; }
};

/// The elements of a vector by pointer. The vector must not grow in the loop.
template <class Vector>
constexpr auto by_pointer(Vector& of) {
  return pointed<std::remove_pointer_t<decltype(of.data())>>{of.data(), of.data() + of.size()};
}

}  // namespace intaglio
