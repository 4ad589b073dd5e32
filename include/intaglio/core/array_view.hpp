// SPDX-License-Identifier: MIT
// A view of consecutive elements, as std::span is. For each type of elements a std::span of a vector costs g++ 12 up to
// 2.9 MB, most of it for the concepts of its constructors, and a view 0.1 MB (docs/lab/compile_time.md). Its iterators
// are pointers. Views of structs are array_view; those of bytes, of numbers and of what callers pass are std::span.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <type_traits>

namespace intaglio {

/// Elements that a container owns, which must outlive the view. @tparam T the element; const if it is only read
template <class T>
class array_view {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  constexpr array_view() noexcept = default;
  constexpr array_view(T* first, std::size_t count) noexcept : first_(first), count_(count) {}
  template <std::size_t N>
  constexpr array_view(T (&of)[N]) noexcept : first_(of), count_(N) {}
  /// All elements of a container that has them one after another. @param of a vector, array, std::span or view
  template <class Container>
    requires requires(T*& first, Container& of) { first = of.data(), of.size(); }
  constexpr array_view(Container&& of) noexcept : first_(of.data()), count_(of.size()) {}
  constexpr array_view(const array_view&) noexcept = default;
  constexpr array_view& operator=(const array_view&) noexcept = default;

  constexpr T* data() const noexcept { return first_; }
  constexpr std::size_t size() const noexcept { return count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr T* begin() const noexcept { return first_; }
  constexpr T* end() const noexcept { return first_ + count_; }
  constexpr T& operator[](std::size_t at) const noexcept { return first_[at]; }
  constexpr T& front() const noexcept { return first_[0]; }
  constexpr T& back() const noexcept { return first_[count_ - 1]; }

  constexpr array_view first(std::size_t count) const noexcept { return {first_, count}; }
  constexpr array_view last(std::size_t count) const noexcept { return {first_ + (count_ - count), count}; }
  constexpr array_view subspan(std::size_t from) const noexcept { return {first_ + from, count_ - from}; }
  constexpr array_view subspan(std::size_t from, std::size_t count) const noexcept { return {first_ + from, count}; }

 private:
  T* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace intaglio
