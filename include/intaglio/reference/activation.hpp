// SPDX-License-Identifier: MIT
// An activation on the CPU: computes the steps of its expression and rounds each as the kernels do.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <span>

#include "intaglio/kernels/arithmetic.hpp"
#include "intaglio/shader/expression.hpp"

namespace intaglio::reference {

/// The value of an activation's expression for one gate and one up value.
inline float evaluate(const shader::expression& f, float gate, float up) {
  using shader::operation;
  std::array<float, shader::max_steps> y{};  // truth values are 0 and 1
  const auto truth = [](bool b) { return b ? 1.0f : 0.0f; };
  for (std::size_t i = 0; i < f.size; ++i) {
    const shader::step& s = f.steps[i];
    const float a = y[s.of[0]], b = y[s.of[1]], c = y[s.of[2]];
    switch (s.what) {
      case operation::gate:
        y[i] = gate;
        break;
      case operation::up:
        y[i] = up;
        break;
      case operation::constant:
        y[i] = std::bit_cast<float>(s.bits);
        break;
      case operation::negate:
        y[i] = -a;
        break;
      case operation::absolute:
        y[i] = std::abs(a);
        break;
      case operation::exp:
        y[i] = kernels::arithmetic::exp(a);
        break;
      case operation::add:
        y[i] = a + b;
        break;
      case operation::subtract:
        y[i] = a - b;
        break;
      case operation::multiply:
        y[i] = kernels::arithmetic::product(a, b);
        break;
      case operation::divide:
        y[i] = a / b;
        break;
      case operation::maximum:
        y[i] = a > b ? a : b;
        break;
      case operation::minimum:
        y[i] = a < b ? a : b;
        break;
      case operation::less:
        y[i] = truth(a < b);
        break;
      case operation::less_equal:
        y[i] = truth(a <= b);
        break;
      case operation::equal:
        y[i] = truth(a == b);
        break;
      case operation::both:
        y[i] = truth(a != 0 && b != 0);
        break;
      case operation::either:
        y[i] = truth(a != 0 || b != 0);
        break;
      case operation::opposite:
        y[i] = truth(a == 0);
        break;
      case operation::select:
        y[i] = a != 0 ? b : c;
        break;
    }
  }
  return f.size == 0 ? 0.0f : y[f.size - 1u];
}

/// Kernel gated on the CPU: output[i] = scale * f(gate[i] / scale, up[i]). @shape all of the same size
inline void gated(const shader::expression& f, std::span<const float> gate, std::span<const float> up,
                  std::span<float> output, float scale = 1) {
  for (std::size_t i = 0; i < output.size(); ++i) output[i] = scale * evaluate(f, gate[i] / scale, up[i]);
}

/// Kernel gated on the CPU with a layer's parameters: output[i] = (x[i] > 0 ? own[0] : own[1]) * f(x[i], own[3])
/// + own[2] * x[i]. @shape x and output of the same size; own: [4]
inline void gated_by_parameters(const shader::expression& f, std::span<const float> x, std::span<const float> own,
                                std::span<float> output) {
  using kernels::arithmetic::product;
  for (std::size_t i = 0; i < output.size(); ++i)
    output[i] = product(x[i] > 0 ? own[0] : own[1], evaluate(f, x[i], own[3])) + product(own[2], x[i]);
}

}  // namespace intaglio::reference
