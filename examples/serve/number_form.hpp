// SPDX-License-Identifier: MIT
// Decimal numbers of a range that are multiples of something, digit by digit: numbers of at most 15 digits, which every
// reader takes for what they are, without an exponent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar.hpp"
#include "json_document.hpp"

namespace intaglio::serve {

/// digits * 10^exponent, exactly what a number of JSON says (of a binary fraction: its shortest text).
struct decimal {
  bool negative = false;
  std::string digits = "0";  ///< without zeros at either end, but for 0 itself
  int exponent = 0;

  static decimal of(const json& number);
  static decimal of_text(const std::string& text);
  /// Digits after the point.
  int decimals() const { return exponent < 0 ? -exponent : 0; }
};
/// -1, 0 or 1.
int compare(const decimal& a, const decimal& b);

/// What numbers are asked for.
struct number_bounds {
  std::optional<decimal> least, most;
  bool least_open = false, most_open = false;  ///< the bound itself is not among them
  std::uint64_t step = 0;                      ///< multiples of step / 10^step_decimals; 0: any
  int step_decimals = 0;

  void at_least(const decimal& bound, bool open);
  void at_most(const decimal& bound, bool open);
  /// @return false: with those that were there, the step would be more than 10^9, or have more than 15 decimal places
  bool multiple_of(const decimal& each);
  bool any() const { return !least && !most && step == 0; }
  bool holds(const decimal& value) const;
  /// No number at all is within.
  bool empty() const;
};

class number_writer {
 public:
  explicit number_writer(grammar& to) : g(to) {}
  /// A rule for them; without alternatives where there are none of at most 15 digits.
  grammar::rule of(const number_bounds& bounds);

 private:
  static constexpr int most_digits = 15;
  struct shape {
    int whole, decimals;     ///< digits in front of the point and after it
    std::uint64_t step = 1;  ///< of the number without its point
  };
  void add(grammar::rule to, bool negative, std::uint64_t least, std::uint64_t most, const shape& of);
  grammar::rule rest(const shape& of, int at, std::uint64_t value, bool low, bool high, const std::string& least,
                     const std::string& most);

  grammar& g;
  std::map<std::vector<std::uint64_t>, grammar::rule> rests_;
  std::map<std::string, grammar::rule> made_;
};

}  // namespace intaglio::serve
