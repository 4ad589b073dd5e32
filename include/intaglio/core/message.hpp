// SPDX-License-Identifier: MIT
// Sentences made in constant expressions and shown by the compiler. libstdc++ 12 has no <format>.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace intaglio {

/// A type with a printed name, such as dtype: `name(value)` is found by argument-dependent lookup.
template <class T>
concept named = requires(const T& value) {
  { name(value) } -> std::convertible_to<std::string_view>;
};

/// Whether two texts are equal. In a constant expression clang evaluates fewer statements than in the standard
/// library's comparison.
constexpr bool are_equal(std::string_view a, std::string_view b) {
  if (!std::is_constant_evaluated()) return a == b;
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  const char *const one = a.data(), *const other = b.data();
  for (std::size_t i = 0; i < size; ++i)
    if (one[i] != other[i]) return false;
  return true;
}

/// A sentence of at most N - 1 characters that can be a template argument. Text that does not fit is cut and ends in
/// "...". The type is structural, and unused characters stay zero, so equal sentences are equal arguments.
template <std::size_t N = 256>
struct text {
  static_assert(N > 4, "a text needs room for more than an ellipsis");
  char data[N] = {};
  std::size_t size = 0;

  constexpr text() = default;
  constexpr text(std::string_view words) { append(words); }
  constexpr text(const char* words) { append(std::string_view(words)); }

  constexpr std::string_view view() const { return {data, size}; }
  constexpr bool empty() const { return size == 0; }
  friend constexpr bool operator==(const text& a, std::string_view b) {
    return a.size == b.size() && are_equal({a.data, a.size}, b);
  }

  constexpr text& append(char letter) {
    if (size + 1 < N) data[size++] = letter;
    else data[N - 2] = data[N - 3] = data[N - 4] = '.';
    return *this;
  }
  // Cold, so that the calls stay calls: sentences are made where something fails, or once.
  [[gnu::cold]] constexpr text& append(std::string_view words) {
    const std::size_t room = N - 1 - size, fits = words.size() < room ? words.size() : room;
    const char* const from = words.data();
    for (std::size_t i = 0; i < fits; ++i) data[size + i] = from[i];
    size += fits;
    if (fits < words.size()) append('.');  // the text is full, and ends in an ellipsis
    return *this;
  }
  constexpr text& append(const char* words) { return append(std::string_view(words)); }
  template <std::size_t M>
  constexpr text& append(const text<M>& words) {
    return append(words.view());
  }
  constexpr text& append(bool value) { return append(std::string_view(value ? "true" : "false")); }

  template <std::integral T>
  [[gnu::cold]] constexpr text& append(T number) {
    if (number < T{}) append('-');
    std::uint64_t rest =
        number < T{} ? std::uint64_t{0} - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    char digits[20] = {};
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    while (count != 0) append(digits[--count]);
    return *this;
  }

  /// The shortest decimal that reads back as the same number: 0.07, 500000, 1e-5.
  template <std::floating_point T>
  [[gnu::cold]] constexpr text& append(T number) {
    if (number != number) return append(std::string_view("nan"));
    if (number < 0) append('-');
    double value = static_cast<double>(number < 0 ? -number : number);
    if (value > static_cast<double>((std::numeric_limits<T>::max)())) return append(std::string_view("inf"));
    if (value == 0) return append('0');
    int exponent = 0;  // exponent of the first digit
    for (double scaled = value; scaled >= 10; scaled /= 10) ++exponent;
    for (double scaled = value; scaled < 1; scaled *= 10) --exponent;
    std::uint64_t digits = 0;
    int count = 0;
    do {
      ++count;
      digits = static_cast<std::uint64_t>(scaled_by_power_of_ten(value, count - 1 - exponent) + 0.5);
    } while (count < (std::is_same_v<T, float> ? 9 : 16) &&
             static_cast<T>(scaled_by_power_of_ten(static_cast<double>(digits), exponent - count + 1)) !=
                 static_cast<T>(value));
    while (digits % 10 == 0) digits /= 10, --count;
    std::uint64_t limit = 1;
    for (int i = 0; i < count; ++i) limit *= 10;
    if (digits >= limit) ++exponent, ++count;  // 9.99 rounded up
    return append_decimal(digits, count, exponent);
  }

  template <named T>
    requires(!std::integral<T> && !std::floating_point<T>)
  constexpr text& append(const T& value) {
    return append(std::string_view(name(value)));
  }

  /// Appends several parts in order.
  template <class First, class Second, class... Rest>
  [[gnu::cold]] constexpr text& append(const First& first, const Second& second, const Rest&... rest) {
    append(first);
    append(second);
    (append(rest), ...);
    return *this;
  }

 private:
  static constexpr double scaled_by_power_of_ten(double value, int power) {
    double factor = 1;
    for (int i = 0; i < (power < 0 ? -power : power); ++i) factor *= 10;  // exact up to 10^22
    return power < 0 ? value / factor : value * factor;
  }
  constexpr text& append_decimal(std::uint64_t digits, int count, int exponent) {
    if (exponent < -4 || exponent > 14) {
      std::uint64_t unit = 1;
      for (int i = 1; i < count; ++i) unit *= 10;
      append(digits / unit);
      if (count > 1) append('.').append_padded(digits % unit, count - 1);
      return append('e').append(exponent);
    }
    std::uint64_t unit = 1;
    const int decimals = count - 1 - exponent;
    for (int i = 0; i < decimals && i < 19; ++i) unit *= 10;
    for (int i = decimals; i < 0; ++i) digits *= 10;
    append(digits / unit);
    return decimals > 0 ? append('.').append_padded(digits % unit, decimals) : *this;
  }
  constexpr text& append_padded(std::uint64_t number, int width) {
    std::uint64_t unit = 1;
    for (int i = 1; i < width; ++i) unit *= 10;
    for (; unit != 0; unit /= 10) append(static_cast<char>('0' + number / unit % 10));
    return *this;
  }
};

/// Makes a sentence from its parts: strings, characters, numbers, and values with a name.
template <class... Parts>
constexpr text<> message(const Parts&... parts) {
  text<> out;
  (out.append(parts), ...);
  return out;
}

/// Why something does not fit, as compilers print it. Use it inside a template, because g++ 12 prints the sentence only
/// there: `static_assert(reason<Model::problem>::model_fits, "intaglio: the model does not fit together");`
/// g++ shows a text as a string; clang shows only its first numbers, but every character of a pack. Both `reason`s have
/// one member, model_fits, which is true where the sentence is empty.
template <char... Sentence>
struct sentence {
  static constexpr bool model_fits = sizeof...(Sentence) == 0;
};

#if defined(__clang__)
/// Turns a text into a `sentence` of its characters.
template <auto Text>
struct spelled {
  template <std::size_t... At>
  static sentence<Text.data[At]...> letters(std::index_sequence<At...>);
  using type = decltype(letters(std::make_index_sequence<Text.size>{}));
};
/// Carries a text into an error of clang, one character after the other.
template <auto Text>
using reason = typename spelled<Text>::type;
#else
/// Carries a text into an error of g++, as a string.
template <auto Text>
struct reason {
  static constexpr bool model_fits = Text.size == 0;
};
#endif

}  // namespace intaglio
