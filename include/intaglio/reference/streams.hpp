// SPDX-License-Identifier: MIT
// Kernel streams on the CPU: the steps of AltUp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "intaglio/ir/op.hpp"
#include "intaglio/reference/canonical.hpp"

namespace intaglio::reference {

/// A step and its streams.
struct streams_shape {
  std::size_t width = 0, streams = 0;
  ir::stream_step step = ir::stream_step::take;
  std::size_t stream = 0;
  float scale = 1, eps = 0;
};
/// Operands of a step besides its input; empty where the step has none.
struct streams_operands {
  std::span<const float> branch, target, norm, router, mixing;
};

/// Number of elements that a step reads and writes for a token, and of its weights.
struct streams_sizes {
  std::size_t input, branch, target, output, norm, router, mixing;

  constexpr streams_sizes(ir::stream_step step, std::size_t width, std::size_t streams) {
    using enum ir::stream_step;
    const std::size_t all = width * streams;
    const bool mixes = step == predict || step == correct, one = step == take || step == weigh || step == shrink;
    input = step == join ? width : all;
    branch = step == correct || step == spread || step == append || step == join ? width : 0;
    target = step == append ? width : step == join ? all : 0;
    output = one || step == join ? width : step == append ? all + width : all;
    norm = mixes || step == weigh ? width : 0;
    router = mixes ? all : 0;
    mixing = mixes ? (step == predict ? streams : 1) * streams * streams : 0;
  }
};

/// A sum over quads: lane v of 32 takes quads v, v + 32, ... in rising order; then all lanes are added in order.
template <class Quad>
float sum_of_quads(std::size_t quads, const Quad& quad) {
  std::array<float, 32> lanes{};
  for (std::size_t at = 0; at < quads; ++at) lanes[at % 32] += quad(at);
  float all = 0;
  for (const float lane : lanes) all += lane;
  return all;
}
/// The sum of the squares of four neighbouring values.
inline float square_of_quad(std::span<const float> x, std::size_t quad) {
  const auto square = [&](std::size_t i) { return product(x[4 * quad + i], x[4 * quad + i]); };
  return (square(0) + square(1)) + (square(2) + square(3));
}

/// The tanh of the router's rows times the norm of x, divided by its width.
inline std::vector<float> stream_choices(const streams_shape& shape, std::span<const float> x,
                                         const streams_operands& of) {
  const std::size_t width = shape.width, quads = width / 4;
  const auto count = static_cast<float>(width);
  const float squares = sum_of_quads(quads, [&](std::size_t quad) { return square_of_quad(x, quad); }),
              r = 1.0f / std::sqrt(squares / count + shape.eps);
  std::vector<float> out;
  for (std::size_t k = 0; k < shape.streams; ++k) {
    const float sum = sum_of_quads(quads, [&](std::size_t quad) {
      const auto y = [&](std::size_t i) {
        return product(product(x[4 * quad + i], of.norm[4 * quad + i]), of.router[k * width + 4 * quad + i]);
      };
      return (y(0) + y(1)) + (y(2) + y(3));
    });
    const float logit = product(sum, r) / count;
    out.push_back(1.0f - 2.0f / (kernels::arithmetic::exp(product(2.0f, logit)) + 1.0f));
  }
  return out;
}
/// Row `row` of the mixing matrix times the choices. Entries of the matrix are clamped to -clip .. clip; clip 0: they
/// are not.
inline float mixed_choice(std::span<const float> mixing, std::span<const float> choices, std::size_t row, float clip) {
  float sum = 0;
  for (std::size_t k = 0; k < choices.size(); ++k)
    sum += product(choices[k], clip == 0 ? mixing[row * choices.size() + k]
                                         : (std::clamp)(mixing[row * choices.size() + k], -clip, clip));
  return sum;
}
/// The factor that scales y to the magnitude of x.
inline float factor_to(std::span<const float> y, std::span<const float> x) {
  const auto mean = [](std::span<const float> of) {
    return sum_of_quads(of.size() / 4, [&](std::size_t quad) { return square_of_quad(of, quad); }) /
           static_cast<float>(of.size());
  };
  const float own = mean(y);
  return std::sqrt(mean(x)) / std::sqrt(own < 1e-5f ? 1e-5f : own);
}

/// The steps predict and correct for one token. The output may be the same memory as the input.
inline void mix_streams(const streams_shape& shape, std::span<const float> input, const streams_operands& of,
                        std::span<float> output) {
  const std::size_t width = shape.width, count = shape.streams;
  const std::vector<float> s(input.begin(), input.end());
  const bool predicts = shape.step == ir::stream_step::predict;
  const auto choices = stream_choices(shape, predicts ? std::span(s).first(width) : of.branch, of);
  std::vector<float> by;
  for (std::size_t row = 0; row < (predicts ? count * count : count); ++row)
    by.push_back(predicts ? mixed_choice(of.mixing, choices, row, 0) : mixed_choice(of.mixing, choices, row, 120) + 1);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < width; ++c) {
      float sum = 0;
      if (!predicts) sum = product(of.branch[c] - s[c], by[i]);
      for (std::size_t k = 0; predicts && k < count; ++k) sum += product(s[k * width + c], by[i * count + k]);
      output[i * width + c] = s[i * width + c] + sum;
    }
}

/// Kernel streams for one token. In the steps predict, correct and spread the output may be the same memory as the
/// input.
/// @shape input: [streams, width], for join [width]; output: the step's result (kernels/streams.hpp)
inline void streams(const streams_shape& shape, std::span<const float> input, const streams_operands& of,
                    std::span<float> output) {
  const std::size_t width = shape.width, count = shape.streams;
  switch (shape.step) {
    case ir::stream_step::take:
    case ir::stream_step::weigh:
      for (std::size_t i = 0; i < width; ++i)
        output[i] =
            product(input[shape.stream * width + i], shape.step == ir::stream_step::weigh ? of.norm[i] : shape.scale);
      return;
    case ir::stream_step::predict:
    case ir::stream_step::correct:
      return mix_streams(shape, input, of, output);
    case ir::stream_step::spread:
      for (std::size_t i = 0; i < count * width; ++i)
        output[i] = i < width ? input[i] : input[i] + of.branch[i % width];
      return;
    case ir::stream_step::append: {
      std::ranges::copy(input.first(count * width), output.begin());
      const float by = factor_to(of.branch, of.target.first(width));
      for (std::size_t c = 0; c < width; ++c) output[count * width + c] = product(of.branch[c], by);
      return;
    }
    case ir::stream_step::shrink: {
      const auto x = input.first(width);
      const float center = mean(x),
                  square = sum_of_quads(width / 4,
                                        [&](std::size_t quad) {
                                          const std::array<float, 4> apart{
                                              x[4 * quad] - center, x[4 * quad + 1] - center, x[4 * quad + 2] - center,
                                              x[4 * quad + 3] - center};
                                          return square_of_quad(apart, 0);
                                        }),
                  cutoff = center + product(std::sqrt(square / static_cast<float>(width)), shape.scale);
      for (std::size_t c = 0; c < width; ++c) {
        const float above = x[c] - cutoff;
        output[c] = above <= 0 ? 0.0f : above;  // NaN stays NaN
      }
      return;
    }
    case ir::stream_step::join: {
      const float by = factor_to(of.branch, of.target.first(width));
      for (std::size_t c = 0; c < width; ++c) output[c] = input[c] + product(of.branch[c], by);
      return;
    }
  }
}

}  // namespace intaglio::reference
