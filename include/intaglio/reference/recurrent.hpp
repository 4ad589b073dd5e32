// SPDX-License-Identifier: MIT
// Kernels of layers with a recurrent state on the CPU: short_conv.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/kernels/arithmetic.hpp"

namespace intaglio::reference {

struct short_conv_shape {
  std::size_t width = 0, taps = 0;
  bool multiplied = false;  ///< the input is B, C and h
};

/// @param position of the first token: where it is 0 `kept` is not read
/// @shape  input: [tokens, 3 width] where it is multiplied, else [tokens, width]; weight: [width, taps]; kept: [taps -
/// 1, width]; output: [tokens, width]
inline void short_conv(const short_conv_shape& shape, std::span<const float> input, std::span<const float> weight,
                       std::uint32_t position, std::span<float> kept, std::span<float> output) {
  using kernels::arithmetic::product;
  const std::size_t width = shape.width, before = shape.taps - 1, tokens = output.size() / width;
  std::vector<float> z((before + tokens) * width);
  if (position != 0) std::ranges::copy(kept.first(before * width), z.begin());
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t c = 0; c < width; ++c)
      z[(before + t) * width + c] =
          shape.multiplied ? product(input[3 * t * width + c], input[(3 * t + 2) * width + c]) : input[t * width + c];
  for (std::size_t t = 0; t < tokens; ++t)
    for (std::size_t c = 0; c < width; ++c) {
      float sum = 0;
      for (std::size_t k = 0; k < shape.taps; ++k) sum += product(weight[c * shape.taps + k], z[(t + k) * width + c]);
      output[t * width + c] = shape.multiplied ? product(input[(3 * t + 1) * width + c], sum)
                                               : sum / (1.0f + kernels::arithmetic::exp(-sum));
    }
  std::copy_n(z.end() - static_cast<std::ptrdiff_t>(before * width), before * width, kept.begin());
}

}  // namespace intaglio::reference
