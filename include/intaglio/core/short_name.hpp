// SPDX-License-Identifier: MIT
// A short name that is stored in the object itself. A table of such names has no pointers, so a program that holds it
// needs no relocations for them.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

namespace intaglio {

/// A name of at most Capacity letters.
/// @error does not compile: a literal that is longer
template <std::size_t Capacity>
struct short_name {
  static_assert(Capacity < 256, "the length of a short name is one byte");
  char letters[Capacity] = {};
  std::uint8_t length = 0;

  constexpr short_name() = default;
  template <std::size_t N>
    requires(N <= Capacity + 1)
  constexpr short_name(const char (&words)[N]) : length(static_cast<std::uint8_t>(N - 1)) {
    for (std::size_t i = 0; i + 1 < N; ++i) letters[i] = words[i];
  }

  constexpr std::string_view view() const { return {letters, length}; }
  constexpr operator std::string_view() const { return view(); }
  constexpr std::size_t size() const { return length; }
  constexpr bool empty() const { return length == 0; }
  friend constexpr bool operator==(const short_name& a, std::string_view b) { return a.view() == b; }
  template <class Traits>
  friend auto& operator<<(std::basic_ostream<char, Traits>& to, const short_name& name) {
    return to << name.view();
  }
};

}  // namespace intaglio
