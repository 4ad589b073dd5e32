// SPDX-License-Identifier: MIT
// Activations of gated units, as types whose operator() is an expression over shader values: the function of the gate,
// whose result is multiplied by `up`.
//   struct relu_cubed { constexpr shader::real operator()(shader::real gate) const { ... } };
// With two parameters, gate and up, it computes the whole product. Plans print a `static constexpr std::string_view
// name`.
#pragma once

#include "intaglio/core/fits_together.hpp"

#include <concepts>
#include <string_view>
#include <type_traits>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/shader/value.hpp"

namespace intaglio::shader {

/// Squared ReLU: max(x, 0)^2. @source So et al. 2021
struct relu_squared {
  static constexpr std::string_view name = "relu2";
  constexpr real operator()(real gate) const {
    const real x = (max)(gate, 0.0f);
    return x * x;
  }
};

/// SiLU: x * sigmoid(x). @source Elfwing et al. 2017
struct silu {
  static constexpr std::string_view name = "silu";
  constexpr real operator()(real gate) const { return gate / (1.0f + exp(-gate)); }
};

/// The tanh form of GELU. @source Hendrycks & Gimpel 2016
struct gelu_tanh {
  static constexpr std::string_view name = "gelu_tanh";
  constexpr real operator()(real gate) const {
    const real inner = 0.797884561f * (gate + 0.044715f * ((gate * gate) * gate));
    return (0.5f * gate) * (1.0f + tanh(inner));
  }
};

/// GELU itself, x * Phi(x): the error function by formula 7.1.26, whose error is below 1.5e-7.
/// @source Hendrycks & Gimpel 2016; Abramowitz & Stegun 1964
struct gelu {
  static constexpr std::string_view name = "gelu";
  constexpr real operator()(real gate) const {
    const real x = abs(gate) * 0.707106781f, t = 1.0f / (1.0f + 0.3275911f * x);
    const real sum =
        t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    const real tail = (0.5f * sum) * exp(-(x * x));  // tail of the normal distribution behind |gate|
    return gate * select(gate < 0.0f, tail, 1.0f - tail);
  }
};

/// The activation xIELU without its factors: x^2 above 0, else e^min(x, limit) - 1 - x. The kernel gated multiplies
/// each side by a layer's factor, and adds x times a third one. e^m - 1 - m is m^2 times a polynomial near 0, where the
/// difference would lose digits. @source Huang & Schlag 2024 (arXiv 2411.13010); transformers, XIELUActivation
struct xielu {
  static constexpr std::string_view name = "xielu";
  constexpr real operator()(real x, real limit) const {
    const real m = (min)(x, limit);
    const real series =
        0.5f + m * (0.166666667f +
                    m * (0.0416666667f +
                         m * (8.33333333e-3f + m * (1.38888889e-3f + m * (1.98412698e-4f + m * 2.48015873e-5f)))));
    const real curve = select(m < -0.5f, (exp(m) - 1.0f) - m, (m * m) * series);
    return select(x > 0.0f, x * x, curve + (m - x));
  }
};

/// An activation for units without a gate: both operands are x.
template <class F>
struct ungated {
  static constexpr text<> joined = message(F::name, " alone");
  static constexpr std::string_view name = joined.view();
  constexpr real operator()(real x, real) const { return F{}(x); }
};

/// Product (up + 1) * gate * sigmoid(1.702 gate), gate up to 7, up from -7 to 7. @source transformers, GptOssExperts
struct clamped_swiglu {
  static constexpr std::string_view name = "clamped_swiglu";
  static constexpr float limit = 7;  ///< config.json's swiglu_limit
  constexpr real operator()(real gate, real up) const {
    const real g = (min)(limit, gate), u = (max)(-limit, (min)(limit, up));
    return (u + 1.0f) * (g / (1.0f + exp(-1.702f * g)));
  }
};

/// The tanh, for values that a kernel divides by a bound before and multiplies by it after.
/// @source Bello et al. 2017; Gemma 2 report 2024
struct softcap {
  static constexpr std::string_view name = "softcap";
  constexpr real operator()(real gate, real) const { return tanh(gate); }
};

/// The value itself, for values to which a kernel adds a bias before.
struct identity {
  static constexpr std::string_view name = "identity";
  constexpr real operator()(real gate, real) const { return gate; }
};

/// An empty type that can be called with gate, or with gate and up.
template <class F>
concept element_wise = std::is_empty_v<F> && std::is_default_constructible_v<F> &&
                       (std::invocable<const F&, real> || std::invocable<const F&, real, real>);
/// The result of an activation for a gate, and for an up value where it takes one.
template <class F>
constexpr auto result_of(const real& gate, const real& up) {
  if constexpr (std::invocable<const F&, real, real>) return F{}(gate, up);
  else return F{}(gate);
}
template <class F>
constexpr std::string_view activation_name() {  ///< for messages
  if constexpr (requires {
                  { F::name } -> std::convertible_to<std::string_view>;
                })
    return F::name;
  else return "activation";
}
template <class F, class Result>
inline constexpr text<> wanted_result =
    message(activation_name<F>(), ": expected value<float> as its result, found ", type_name<Result>());
template <class F>
inline constexpr text<> too_long =
    message(activation_name<F>(), ": expected at most ", max_steps, " steps, found more");
/// The steps of an activation; one of the gate alone is multiplied by the up value.
template <class F>
constexpr step_list traced() {
  step_list gate, up;
  gate.add(step{.what = operation::gate});
  up.add(step{.what = operation::up});
  const auto y = result_of<F>(real(gate), real(up));
  using result = std::remove_cv_t<decltype(y)>;
  if constexpr (!is_real<result>) return refused<wanted_result<F, result>, real>().list();
  else if constexpr (std::invocable<const F&, real, real>) return real(y).list();
  else return (real(y) * real(up)).list();
}
/// An activation's name and steps, checked.
template <element_wise F>
constexpr expression noted() {
  constexpr step_list list = traced<F>();
  if constexpr (list.full) refused<too_long<F>, real>();
  return {activation_name<F>(), list.steps, list.size};
}

/// The steps of F as data. A program has one object for each F, so the address identifies F.
template <element_wise F>
inline constexpr expression expression_of = noted<F>();

/// An activation: one of config.json's, or a type that computes one.
class activation_function {
 public:
  constexpr activation_function(activation known = activation::relu_squared)  // NOLINT: config.json's activations
                                                                              // convert freely
      : what_(known == activation::silu        ? &expression_of<silu>
              : known == activation::gelu_tanh ? &expression_of<gelu_tanh>
              : known == activation::gelu      ? &expression_of<gelu>
              : known == activation::xielu     ? &expression_of<xielu>
                                               : &expression_of<relu_squared>) {}
  template <element_wise F>
  constexpr activation_function(F) : what_(&expression_of<F>) {}  // NOLINT: types of activations convert freely
  /// @param of a result of expression_of; it must outlive this object
  constexpr explicit activation_function(const expression& of) : what_(&of) {}
  constexpr const expression& operator*() const { return *what_; }
  constexpr const expression* operator->() const { return what_; }
  friend constexpr bool operator==(const activation_function&, const activation_function&) = default;

 private:
  const expression* what_;
};

/// A known activation, for units without a gate.
constexpr activation_function ungated_function(activation known) {
  return known == activation::silu        ? activation_function(ungated<silu>{})
         : known == activation::gelu_tanh ? activation_function(ungated<gelu_tanh>{})
         : known == activation::gelu      ? activation_function(ungated<gelu>{})
         : known == activation::xielu     ? activation_function(xielu{})
                                          : activation_function(ungated<relu_squared>{});
}

}  // namespace intaglio::shader
