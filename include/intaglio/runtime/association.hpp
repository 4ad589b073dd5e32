// SPDX-License-Identifier: MIT
// Makes a feature that lets a model say one token instead of another after a text. `intaglio walk edit insert --prompt`
// writes such a feature into an index (docs/walk.md). Nothing is trained: the gate vector is the text's own input to
// the layer, and the down vector points to what the head reads as the wanted token.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/runtime/walked_model.hpp"

namespace intaglio::runtime {

/// Inputs of a layer's gates at every position of a text, computed exactly. @shape result: [ids, hidden_size]
inline std::vector<std::vector<float>> gate_inputs(walked_model& model, std::span<const std::uint32_t> ids,
                                                   std::uint32_t layer) {
  if (layer >= model.config().num_hidden_layers)
    throw argument_error("layer", "a layer of " + std::to_string(model.config().num_hidden_layers),
                         std::to_string(layer));
  std::vector<std::vector<float>> out;
  const reference::walk_choice exact{.active_only = true};
  model.restart();
  for (const std::uint32_t id : ids)
    model.feed(id, &exact, [&](const reference::walked_ffn& of) {
      if (of.layer == layer) out.emplace_back(of.input.begin(), of.input.end());
    });
  return out;
}

/// Gate, up and down vectors of a feature that fires for the last of `inputs`, and less for the inputs before it. It
/// writes `wanted` instead of `unwanted`.
/// @param inputs inputs of the layer's gates (gate_inputs)
/// @param strength factor of what is written where the gate is 1; ternary models use their own scales instead
inline std::array<std::vector<float>, 3> association(const walked_model& model, std::uint32_t layer,
                                                     std::span<const std::vector<float>> inputs, std::uint32_t wanted,
                                                     std::uint32_t unwanted, float strength = 1) {
  const std::size_t width = model.config().hidden_size;
  if (inputs.empty() || inputs.back().size() != width)
    throw argument_error("inputs", "inputs of width " + std::to_string(width), std::to_string(inputs.size()));
  const std::vector<float>& x = inputs.back();
  std::array<std::vector<float>, 3> out{x, x, model.written(wanted, unwanted)};
  for (std::size_t i = 0; i + 1 < inputs.size(); ++i)
    for (std::size_t c = 0; c < width; ++c) out[0][c] -= inputs[i][c] / static_cast<float>(inputs.size() - 1);
  const io::feature_layer& of = model.index().layer(layer);
  if (of[io::feature_vector::gate].type == dtype::i2_s) {
    for (const io::feature_vector which : io::feature_vectors)
      for (float& value : out[static_cast<std::size_t>(which)])
        value = of[which].scale * static_cast<float>((value > 0) - (value < 0));
    return out;
  }
  const auto dot = [&](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t c = 0; c < width; ++c) sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
    return static_cast<float>(sum);
  };
  constexpr float open = 8;  // from this input on SiLU and GELU pass all but 0.3 %
  const float gate = open / dot(out[0], x), up = 1 / (open * dot(x, x)),
              down = strength / std::sqrt(dot(out[2], out[2]));
  for (std::size_t c = 0; c < width; ++c) out[0][c] *= gate, out[1][c] *= up, out[2][c] *= down;
  return out;
}

/// The index at which a new feature of a ternary model has the most effect: the feature with the largest weight in the
/// norm in front of the down product.
/// @throws argument_error for a model without such a norm
inline std::uint32_t loudest_feature(const io::checkpoint& file, std::uint32_t layer) {
  const io::checkpoint_tensor& norm = file.at("blk." + std::to_string(layer) + ".ffn_sub_norm.weight");
  std::vector<float> weights(static_cast<std::size_t>(norm.stored.columns));
  file.read_f32(norm, 0, 1, weights);
  return static_cast<std::uint32_t>(std::ranges::max_element(weights) - weights.begin());
}

}  // namespace intaglio::runtime
