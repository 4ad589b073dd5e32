// SPDX-License-Identifier: MIT
#include "number_form.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace intaglio::serve {
namespace {

constexpr std::uint64_t power_of_ten(int exponent) {
  std::uint64_t out = 1;
  for (int i = 0; i < exponent; ++i) out *= 10;
  return out;
}

/// |a| and |b|.
int compare_sizes(const decimal& a, const decimal& b) {
  const bool a_zero = a.digits == "0", b_zero = b.digits == "0";
  if (a_zero || b_zero) return static_cast<int>(b_zero) - static_cast<int>(a_zero);
  const std::int64_t a_top = std::int64_t{a.exponent} + static_cast<std::int64_t>(a.digits.size()),
                     b_top = std::int64_t{b.exponent} + static_cast<std::int64_t>(b.digits.size());
  if (a_top != b_top) return a_top < b_top ? -1 : 1;
  const std::size_t size = std::max(a.digits.size(), b.digits.size());
  const std::string x = a.digits + std::string(size - a.digits.size(), '0'),
                    y = b.digits + std::string(size - b.digits.size(), '0');
  return x < y ? -1 : x == y ? 0 : 1;
}

/// |of| * 10^decimals as a natural number, cut off; at most `cap`. @param exact whether nothing was cut off
std::uint64_t scaled(const decimal& of, int decimals, std::uint64_t cap, bool& exact) {
  exact = true;
  if (of.digits == "0") return 0;
  const int shift = of.exponent + decimals;
  const int size = static_cast<int>(of.digits.size());
  if (size + shift > 17) return cap;
  if (size + shift <= 0) return exact = false, 0;
  std::string text = of.digits;
  if (shift >= 0) {
    text.append(static_cast<std::size_t>(shift), '0');
  } else {
    exact = false;  // the last digit is not 0
    text.resize(static_cast<std::size_t>(size + shift));
  }
  std::uint64_t out = 0;
  for (const char each : text) out = out * 10 + static_cast<std::uint64_t>(each - '0');
  return std::min(out, cap);
}

}  // namespace

decimal decimal::of(const json& number) {
  if (number.is_number_unsigned()) return of_text(std::to_string(number.get<std::uint64_t>()));
  if (number.is_number_integer()) return of_text(std::to_string(number.get<std::int64_t>()));
  std::array<char, 40> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number.get<double>(), std::chars_format::scientific);
  return of_text(std::string(text.data(), end.ptr));
}

decimal decimal::of_text(const std::string& text) {
  decimal out;
  out.digits.clear();
  std::size_t at = 0;
  if (text[at] == '-') out.negative = true, ++at;
  bool after_point = false;
  for (; at < text.size() && text[at] != 'e'; ++at) {
    if (text[at] == '.') after_point = true;
    else out.digits += text[at], out.exponent -= after_point ? 1 : 0;
  }
  if (at < text.size()) out.exponent += std::stoi(text.substr(at + 1));
  const auto first = out.digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  out.digits.erase(0, first);
  while (out.digits.back() == '0') out.digits.pop_back(), ++out.exponent;
  return out;
}

int compare(const decimal& a, const decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

void number_bounds::at_least(const decimal& bound, bool open) {
  const int order = least ? compare(bound, *least) : 1;
  if (order > 0) least = bound, least_open = open;
  else if (order == 0) least_open = least_open || open;
}
void number_bounds::at_most(const decimal& bound, bool open) {
  const int order = most ? compare(bound, *most) : -1;
  if (order < 0) most = bound, most_open = open;
  else if (order == 0) most_open = most_open || open;
}

bool number_bounds::multiple_of(const decimal& each) {
  constexpr std::uint64_t most_step = 1'000'000'000;
  const int decimals = std::max(step_decimals, each.decimals());
  if (decimals > 15) return false;
  bool exact = true;
  const std::uint64_t next = scaled(each, decimals, most_step * 10, exact);
  if (next == 0 || next > most_step) return false;
  if (step != 0) {
    if (decimals - step_decimals > 9) return false;
    const std::uint64_t before = step * power_of_ten(decimals - step_decimals);
    if (before > most_step) return false;
    const std::uint64_t both = before / std::gcd(before, next) * next;
    if (both > most_step) return false;
    step = both;
  } else {
    step = next;
  }
  step_decimals = decimals;
  for (; step_decimals > 0 && step % 10 == 0; --step_decimals) step /= 10;
  return true;
}

bool number_bounds::holds(const decimal& value) const {
  if (least && (compare(value, *least) < 0 || (least_open && compare(value, *least) == 0))) return false;
  if (most && (compare(value, *most) > 0 || (most_open && compare(value, *most) == 0))) return false;
  if (step == 0) return true;
  if (value.decimals() > step_decimals) return false;
  // digits * 10^(exponent + decimals) mod step
  std::uint64_t remainder = 0;
  for (const char digit : value.digits) remainder = (remainder * 10 + static_cast<std::uint64_t>(digit - '0')) % step;
  for (int i = 0; i < value.exponent + step_decimals && remainder != 0; ++i) remainder = remainder * 10 % step;
  return remainder == 0;
}

bool number_bounds::empty() const {
  if (!least || !most) return false;
  const int order = compare(*least, *most);
  return order > 0 || (order == 0 && (least_open || most_open || !holds(*least)));
}

grammar::rule number_writer::of(const number_bounds& bounds) {
  std::string key;
  const auto name = [&](const std::optional<decimal>& each, bool open) {
    key += each
               ? (each->negative ? "-" : "") + each->digits + 'e' + std::to_string(each->exponent) + (open ? "o;" : ";")
               : ";";
  };
  name(bounds.least, bounds.least_open), name(bounds.most, bounds.most_open);
  key += std::to_string(bounds.step) + ';' + std::to_string(bounds.step_decimals);
  const auto [known, fresh] = made_.try_emplace(key, 0);
  if (!fresh) return known->second;
  const grammar::rule out = known->second = g.add_rule();
  for (int whole = 1; whole <= most_digits; ++whole) {
    shape of{whole, most_digits - whole, 1};
    if (bounds.step != 0) {
      if (bounds.step_decimals > of.decimals) continue;  // too many digits in all
      of.decimals = bounds.step_decimals, of.step = bounds.step;
    }
    const std::uint64_t first = whole == 1 ? 0 : power_of_ten(whole - 1 + of.decimals),
                        last = power_of_ten(whole + of.decimals) - 1;
    // The bounds of the sizes on one side of zero; on the other side the two are swapped.
    const auto side = [&](bool negative) {
      const auto &low = negative ? bounds.most : bounds.least, &high = negative ? bounds.least : bounds.most;
      const bool low_open = negative ? bounds.most_open : bounds.least_open,
                 high_open = negative ? bounds.least_open : bounds.most_open;
      std::uint64_t from = first, until = last;
      bool exact = true;
      if (low && low->negative == negative) {
        std::uint64_t bound = scaled(*low, of.decimals, last + 1, exact);
        if (!exact || low_open) ++bound;
        from = std::max(from, bound);
      }
      if (high && high->negative == negative) {
        std::uint64_t bound = scaled(*high, of.decimals, last + 1, exact);
        if (exact && high_open) {
          if (bound == 0) return;
          --bound;
        }
        until = std::min(until, bound);
      } else if (high && high->negative != negative) {
        return;  // the bound is on the other side of zero
      }
      if (negative) from = std::max<std::uint64_t>(from, 1);  // no -0
      if (from <= until) add(out, negative, from, until, of);
    };
    side(false);
    side(true);
  }
  return out;
}

void number_writer::add(grammar::rule to, bool negative, std::uint64_t least, std::uint64_t most, const shape& of) {
  const auto padded = [&](std::uint64_t value) {
    std::string out = std::to_string(value);
    return std::string(static_cast<std::size_t>(of.whole + of.decimals) - out.size(), '0') + out;
  };
  const grammar::rule digits = rest(of, 0, 0, true, true, padded(least), padded(most));
  g.add(to, {std::string(negative ? "-" : ""), digits});
}

/// The digits from `at` on. @param value of those before, modulo the step  @param low, high those before are the
/// bound's
grammar::rule number_writer::rest(const shape& of, int at, std::uint64_t value, bool low, bool high,
                                  const std::string& least, const std::string& most) {
  const int all = of.whole + of.decimals;
  // What matters about the earlier digits is their contribution to the final remainder.
  std::uint64_t added = value % of.step;
  for (int i = at; i < all && added != 0; ++i) added = added * 10 % of.step;
  std::vector<std::uint64_t> key{static_cast<std::uint64_t>(all - at), static_cast<std::uint64_t>(at - of.whole + 32),
                                 of.step, added};
  const std::uint64_t bounds_left[]{low ? std::stoull('1' + least.substr(static_cast<std::size_t>(at))) : 0,
                                    high ? std::stoull('1' + most.substr(static_cast<std::size_t>(at))) : 0};
  key.insert(key.end(), bounds_left, bounds_left + 2);
  const auto [known, fresh] = rests_.try_emplace(key, 0);
  if (!fresh) return known->second;
  const grammar::rule out = g.add_rule();
  rests_[key] = out;
  const auto zeros_from = [&](const std::string& bound) {
    return bound.find_first_not_of('0', static_cast<std::size_t>(at)) == std::string::npos;
  };
  // The number may end here: omitted digits are zeros.
  if (at >= of.whole && added == 0 && (!low || zeros_from(least))) g.add(out, {});
  if (at == all) return out;
  const int from = low ? least[static_cast<std::size_t>(at)] - '0' : 0,
            until = high ? most[static_cast<std::size_t>(at)] - '0' : 9;
  std::map<grammar::rule, byte_set> by_rest;
  for (int digit = from; digit <= until; ++digit) {
    const grammar::rule next = rest(of, at + 1, (value * 10 + static_cast<std::uint64_t>(digit)) % of.step,
                                    low && digit == from, high && digit == until, least, most);
    by_rest[next].set(static_cast<std::size_t>('0' + digit));
  }
  const std::string point = at == of.whole ? "." : "";
  for (const auto& [next, set] : by_rest) g.add(out, {point, set, next});
  return out;
}

}  // namespace intaglio::serve
