// SPDX-License-Identifier: MIT
// Arithmetic on sizes that come from files or users: every result is either right or absent.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace intaglio {

/// A 64-bit size whose arithmetic remembers overflow: `auto bytes = checked_size{rows} * row_bytes + 32; if (!bytes)
/// ...`.
class checked_size {
 public:
  constexpr checked_size(std::uint64_t value) : value_(value) {}  // NOLINT: sizes convert freely
  static constexpr checked_size overflowed() {
    checked_size out{0};
    out.valid_ = false;
    return out;
  }

  constexpr explicit operator bool() const { return valid_; }
  constexpr bool valid() const { return valid_; }
  /// The value; only meaningful where valid().
  constexpr std::uint64_t value() const { return value_; }
  constexpr bool fits(std::uint64_t limit) const { return valid_ && value_ <= limit; }

  friend constexpr checked_size operator+(checked_size a, checked_size b) {
    if (!a.valid_ || !b.valid_ || a.value_ > (std::numeric_limits<std::uint64_t>::max)() - b.value_)
      return overflowed();
    return a.value_ + b.value_;
  }
  friend constexpr checked_size operator-(checked_size a, checked_size b) {
    if (!a.valid_ || !b.valid_ || a.value_ < b.value_) return overflowed();
    return a.value_ - b.value_;
  }
  friend constexpr checked_size operator*(checked_size a, checked_size b) {
    if (!a.valid_ || !b.valid_ || (b.value_ != 0 && a.value_ > (std::numeric_limits<std::uint64_t>::max)() / b.value_))
      return overflowed();
    return a.value_ * b.value_;
  }
  friend constexpr checked_size operator/(checked_size a, checked_size b) {
    if (!a.valid_ || !b.valid_ || b.value_ == 0) return overflowed();
    return a.value_ / b.value_;
  }
  /// Up to the next multiple of `alignment`; alignment zero overflows.
  constexpr checked_size round_up(checked_size alignment) const {
    return (*this + (alignment - 1)) / alignment * alignment;
  }

 private:
  std::uint64_t value_;
  bool valid_ = true;
};

/// True where [offset, offset + size) is inside [0, whole).
constexpr bool range_inside(checked_size offset, checked_size size, std::uint64_t whole) {
  return (offset + size).fits(whole);
}

/// Signed arithmetic that says whether the result does not fit; `out` then holds its lowest 64 bits.
constexpr bool sum_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) {
  out = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  return (a < 0) == (b < 0) && (out < 0) != (a < 0);
}
/// Computes a - b. @return whether it does not fit; `out` holds its lowest 64 bits
constexpr bool difference_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) {
  out = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  return (a < 0) != (b < 0) && (out < 0) != (a < 0);
}
/// Computes a * b. @return whether it does not fit; `out` holds its lowest 64 bits
constexpr bool product_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) {
  out = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  if (a == 0 || b == 0) return false;
  if (a == -1 || b == -1) return (a == -1 ? b : a) == (std::numeric_limits<std::int64_t>::min)();
  return out / b != a;
}

}  // namespace intaglio
