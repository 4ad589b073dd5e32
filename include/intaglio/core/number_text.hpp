// SPDX-License-Identifier: MIT
// Text of numbers for messages and generated files at run time. For constant expressions see message.hpp.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <version>
#if !defined(__cpp_lib_to_chars)  // libc++ reads no floats by from_chars before version 20
#include <locale>
#include <sstream>
#endif

namespace intaglio {

/// The shortest text that reads back as the same number, independent of the locale.
inline std::string number_text(float value) {
  std::array<char, 32> text{};
  const bool plain = std::fabs(value) >= 1e-4f && std::fabs(value) < 1e9f;  // 500000 rather than 5e+05
  const auto end = plain ? std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed)
                         : std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end.ptr);
}

/// The number that a text spells: digits with a point and an exponent, independent of the locale. Absent for any other
/// text and for numbers beyond the range of double.
inline std::optional<double> number_of_text(std::string_view text) {
  if (text.empty() || text.front() == '+' || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos)
    return std::nullopt;
  double out = 0;
#if defined(__cpp_lib_to_chars)
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
#else
  std::istringstream from{std::string(text)};
  from.imbue(std::locale::classic());
  if (!(from >> out) || from.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
#endif
  return out;
}

}  // namespace intaglio
