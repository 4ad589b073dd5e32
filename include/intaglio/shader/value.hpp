// SPDX-License-Identifier: MIT
// Typed values of a shader that is written in C++: an expression over them records its steps (shader/expression.hpp) in
// a constant evaluation. A value of another type, or an operation that shaders do not have, is refused with one
// sentence.
#pragma once

#include "intaglio/core/fits_together.hpp"

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "intaglio/shader/expression.hpp"

namespace intaglio::shader {

/// The steps that compute a value. Operands come before the steps that use them; no step occurs twice.
struct step_list {
  std::array<step, max_steps> steps{};
  std::uint8_t size = 0;
  bool full = false;

  constexpr std::uint8_t add(const step& next) {
    for (std::uint8_t i = 0; i < size; ++i)
      if (steps[i] == next) return i;
    if (size == max_steps) return full = true, std::uint8_t{0};
    steps[size] = next;
    return size++;
  }
  /// Adds all steps of another list. @return the index of its last step. It searches little, because compilers limit
  /// the steps of a constant evaluation.
  constexpr std::uint8_t add(const step_list& other) {
    if (size == 0) {
      *this = other;
      return static_cast<std::uint8_t>(size == 0 ? 0 : size - 1);
    }
    std::array<std::uint8_t, max_steps> index_of{};
    full = full || other.full;
    for (std::uint8_t i = 0; i < other.size; ++i) {
      step moved = other.steps[i];
      if (moved.what > operation::constant)
        for (auto& each : moved.of) each = index_of[each];
      index_of[i] = i < size && steps[i] == moved ? i : add(moved);
    }
    return other.size == 0 ? std::uint8_t{0} : index_of[other.size - 1u];
  }
};

/// A number (T is float) or a truth value (bool) that a shader will compute.
template <class T>
class value {
 public:
  static_assert(std::same_as<T, float> || std::same_as<T, bool>);
  constexpr value() = default;
  constexpr explicit value(const step_list& list) : list_(list) {}
  /// A constant.
  template <std::same_as<float> Number>
    requires std::same_as<T, float>
  constexpr value(Number number) {
    list_.add(step{.what = operation::constant, .bits = std::bit_cast<std::uint32_t>(number)});
  }  // NOLINT: a literal is a value
  constexpr const step_list& list() const { return list_; }

  /// Deleted: a truth value of a shader is known only on the device.
  template <std::same_as<bool> Known>
  constexpr explicit operator Known() const;

 private:
  step_list list_;
};

/// A number that a shader computes.
using real = value<float>;
/// A truth value that a shader computes.
using truth = value<bool>;

/// Whether a type is a value of a shader.
template <class A>
inline constexpr bool is_value = false;
template <class T>
inline constexpr bool is_value<value<T>> = true;
/// Operands of which at least one is a value of a shader.
template <class... A>
concept shader_values = (is_value<std::remove_cvref_t<A>> || ...);
/// Whether an operand is a number: one of a shader, or a constant.
template <class A>
inline constexpr bool is_real = std::same_as<A, real> || std::same_as<A, float>;

/// The name of a type in messages.
template <class A>
constexpr std::string_view type_name() {
  if constexpr (std::same_as<A, real>) return "value<float>";
  else if constexpr (std::same_as<A, truth>) return "value<bool>";
  else if constexpr (std::same_as<A, float>) return "float";
  else if constexpr (std::same_as<A, double>) return "double (a literal of float ends in f)";
  else if constexpr (std::same_as<A, bool>) return "bool";
  else if constexpr (std::integral<A>) return "an integer (a literal of float ends in .0f)";
  else return "another type";
}

/// Joins the steps of some operands and adds one more.
template <class Result, operation What, class... A>
constexpr Result made(const A&... operands) {
  step_list list;
  step next{.what = What};
  std::size_t at = 0;
  ((next.of[at++] = list.add(operands.list())), ...);
  list.add(next);
  return Result(list);
}

template <text<16> Name, class A, class B>
inline constexpr text<> wanted_reals = message(Name.view(), ": expected value<float> or float on both sides, found ",
                                               type_name<A>(), " and ", type_name<B>());
/// An operation of two numbers, refused in one sentence for other operands.
template <text<16> Name, class Result, operation What, class A, class B>
constexpr Result of_reals(const A& a, const B& b) {
  if constexpr (is_real<A> && is_real<B>) return made<Result, What>(real(a), real(b));
  else return refused<wanted_reals<Name, A, B>, Result>();
}
template <text<16> Name, class A>
inline constexpr text<> wanted_real = message(Name.view(), ": expected value<float>, found ", type_name<A>());
/// An operation of one number, refused in one sentence for another operand.
template <text<16> Name, operation What, class A>
constexpr real of_real(const A& a) {
  if constexpr (is_real<A>) return made<real, What>(real(a));
  else return refused<wanted_real<Name, A>, real>();
}
template <text<16> Name, class A, class B>
inline constexpr text<> wanted_truths =
    message(Name.view(), ": expected value<bool> on both sides, found ", type_name<A>(), " and ", type_name<B>());
/// An operation of two truth values, refused in one sentence for other operands.
template <text<16> Name, operation What, class A, class B>
constexpr truth of_truths(const A& a, const B& b) {
  if constexpr (std::same_as<A, truth> && std::same_as<B, truth>) return made<truth, What>(a, b);
  else return refused<wanted_truths<Name, A, B>, truth>();
}

/// @{
/// Arithmetic of numbers in f32.
template <class A, class B>
  requires shader_values<A, B>
constexpr real operator+(const A& a, const B& b) {
  return of_reals<"operator +", real, operation::add>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr real operator-(const A& a, const B& b) {
  return of_reals<"operator -", real, operation::subtract>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr real operator*(const A& a, const B& b) {
  return of_reals<"operator *", real, operation::multiply>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr real operator/(const A& a, const B& b) {
  return of_reals<"operator /", real, operation::divide>(a, b);
}
template <class A>
  requires shader_values<A>
constexpr real operator-(const A& a) {
  return of_real<"operator -", operation::negate>(a);
}
/// @}

/// @{
/// Comparison of numbers, and logic of truth values.
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator<(const A& a, const B& b) {
  return of_reals<"operator <", truth, operation::less>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator>(const A& a, const B& b) {
  return of_reals<"operator >", truth, operation::less>(b, a);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator<=(const A& a, const B& b) {
  return of_reals<"operator <=", truth, operation::less_equal>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator>=(const A& a, const B& b) {
  return of_reals<"operator >=", truth, operation::less_equal>(b, a);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator==(const A& a, const B& b) {
  return of_reals<"operator ==", truth, operation::equal>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator&&(const A& a, const B& b) {
  return of_truths<"operator &&", operation::both>(a, b);
}
template <class A, class B>
  requires shader_values<A, B>
constexpr truth operator||(const A& a, const B& b) {
  return of_truths<"operator ||", operation::either>(a, b);
}
constexpr truth operator!(const truth& a) { return made<truth, operation::opposite>(a); }
/// @}

/// Computes e to the power of a.
template <class A>
  requires shader_values<A>
constexpr real exp(const A& a) {
  return of_real<"exp", operation::exp>(a);
}
/// The absolute value of a.
template <class A>
  requires shader_values<A>
constexpr real abs(const A& a) {
  return of_real<"abs", operation::absolute>(a);
}
/// The larger of two numbers.
template <class A, class B>
  requires shader_values<A, B>
constexpr real(max)(const A& a, const B& b) {
  return of_reals<"max", real, operation::maximum>(a, b);
}
/// The smaller of two numbers.
template <class A, class B>
  requires shader_values<A, B>
constexpr real(min)(const A& a, const B& b) {
  return of_reals<"min", real, operation::minimum>(a, b);
}

template <class C, class A, class B>
inline constexpr text<> wanted_condition =
    message("select: expected value<bool> and two of value<float> or float, found ", type_name<C>(), ", ",
            type_name<A>(), " and ", type_name<B>());
/// Computes `condition ? a : b`.
template <class C, class A, class B>
  requires shader_values<C, A, B>
constexpr real select(const C& condition, const A& a, const B& b) {
  if constexpr (std::same_as<C, truth> && is_real<A> && is_real<B>)
    return made<real, operation::select>(condition, real(a), real(b));
  else return refused<wanted_condition<C, A, B>, real>();
}

/// Computes (e^2x - 1) / (e^2x + 1), which ends in 1 and -1.
template <class A>
  requires shader_values<A>
constexpr real tanh(const A& a) {
  return 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
}
/// Refuses a truth value of the device where C++ needs one of its own.
template <class T>
template <std::same_as<bool> Known>
constexpr value<T>::operator Known() const {
  constexpr text<> problem = std::same_as<Known, bool>
                                 ? message("if, ?: expected bool, found ", type_name<value<T>>(),
                                           ", which is known on the device alone; there is select(condition, a, b)")
                                 : text<>{};
  return refused<problem, Known>();
}

template <text<16> Name, class...>
inline constexpr text<> no_operation = message(Name.view(),
                                               ": expected an operation of shader values, + - * / < <= > >= == && || ! "
                                               "exp abs max min select tanh, found another one");
#define INTAGLIO_NO_SHADER_OPERATOR(sign)                          \
  template <class A, class B>                                      \
    requires shader_values<A, B>                                   \
  constexpr real operator sign(const A&, const B&) {               \
    return refused<no_operation<"operator " #sign, A, B>, real>(); \
  }
INTAGLIO_NO_SHADER_OPERATOR(%)
INTAGLIO_NO_SHADER_OPERATOR(&)
INTAGLIO_NO_SHADER_OPERATOR(|)
INTAGLIO_NO_SHADER_OPERATOR(^)
INTAGLIO_NO_SHADER_OPERATOR(<<)
INTAGLIO_NO_SHADER_OPERATOR(>>)
#undef INTAGLIO_NO_SHADER_OPERATOR
#define INTAGLIO_NO_SHADER_FUNCTION(name)              \
  template <class... A>                                \
    requires shader_values<A...>                       \
  constexpr real name(const A&...) {                   \
    return refused<no_operation<#name, A...>, real>(); \
  }
INTAGLIO_NO_SHADER_FUNCTION(sqrt)
INTAGLIO_NO_SHADER_FUNCTION(pow)
INTAGLIO_NO_SHADER_FUNCTION(log)
INTAGLIO_NO_SHADER_FUNCTION(sin)
INTAGLIO_NO_SHADER_FUNCTION(cos)
INTAGLIO_NO_SHADER_FUNCTION(erf)
INTAGLIO_NO_SHADER_FUNCTION(floor)
#undef INTAGLIO_NO_SHADER_FUNCTION

}  // namespace intaglio::shader
