// SPDX-License-Identifier: MIT
// The parameters of xIELU: four numbers of each layer. A folder has a tensor for each of them, and GGUF four keys
// without an architecture in front, each with a number for every layer or one for all. A model has them as a vector of
// each layer, blk.N.ffn_act.weight. Source: transformers, XIELUActivation; llama.cpp, conversion/apertus.py and
// ggml_xielu.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_keys.hpp"

namespace intaglio::io {

/// The names of the numbers, in the order of the vector.
inline constexpr std::array<std::string_view, 4> xielu_names{"alpha_p", "alpha_n", "beta", "eps"};
/// In front of such a name in a layer of a folder.
inline constexpr std::string_view xielu_folder = ".mlp.act_fn.";

/// Which number a tensor of a folder is: "model.layers.3.mlp.act_fn.beta" is number 2 of layer 3.
struct xielu_number {
  std::uint32_t layer = 0;
  std::size_t part = 0;
};
[[gnu::cold]] inline std::optional<xielu_number> xielu_number_of(std::string_view name) {  ///< absent for another name
  constexpr std::string_view layers = "layers.";
  const auto tail = name.find(xielu_folder);
  if (tail == name.npos) return std::nullopt;
  const auto part = std::find(xielu_names.begin(), xielu_names.end(), name.substr(tail + xielu_folder.size()));
  const std::string_view stem = name.substr(0, tail);
  const auto digits = stem.rfind('.') + 1;  // 0 without a dot
  const std::string_view number = stem.substr(digits);
  if (part == xielu_names.end() || !stem.substr(0, digits).ends_with(layers) || number.empty() || number.size() > 6 ||
      number.find_first_not_of("0123456789") != number.npos || (number.size() > 1 && number[0] == '0'))
    return std::nullopt;
  xielu_number out{0, static_cast<std::size_t>(part - xielu_names.begin())};
  for (const char digit : number) out.layer = 10 * out.layer + static_cast<std::uint32_t>(digit - '0');
  return out;
}

/// Collects the numbers of all layers, and adds them to a model as vectors.
class xielu_collector {
 public:
  explicit xielu_collector(std::uint32_t layers) : layers_(layers) {}

  /// Notes a number. @return false where the model has no such layer, or has the number already
  bool note(const xielu_number& at, float value) {
    if (at.layer >= layers_) return false;
    values_.resize(std::size_t{layers_});
    std::optional<float>& to = values_[at.layer][at.part];
    return to ? false : (to = value, true);
  }

  /// Adds the vectors. A number that is missing is a fault of the builder.
  [[gnu::cold]] void finish(checkpoint_builder& builder) const {
    std::vector<std::byte> bytes(std::size_t{layers_} * row_size);
    for (std::size_t layer = 0; layer < layers_; ++layer)
      for (std::size_t part = 0; part < xielu_names.size(); ++part) {
        const std::optional<float> value = layer < values_.size() ? values_[layer][part] : std::nullopt;
        if (!value)
          return builder.fault("xIELU's " + std::string(xielu_names[part]) + " of layer " + std::to_string(layer) +
                               ": expected a number, found none");
        std::memcpy(bytes.data() + layer * row_size + part * sizeof(float), &*value, sizeof(float));
      }
    const mapped_file* const file = builder.hold(std::move(bytes), "parameters of xIELU");
    for (std::uint32_t layer = 0; layer < layers_; ++layer) {
      checkpoint_tensor out;
      out.stored = {"blk." + std::to_string(layer) + ".ffn_act.weight",
                    dtype::f32,
                    1,
                    xielu_names.size(),
                    file,
                    layer * std::uint64_t{row_size},
                    row_size};
      out.stored_name = out.stored.name;
      out.dimensions = 1;
      out.xielu = true;
      builder.add(std::move(out));
    }
  }

 private:
  static constexpr std::size_t row_size = xielu_names.size() * sizeof(float);
  std::uint32_t layers_;
  std::vector<std::array<std::optional<float>, 4>> values_;
};

/// Reads the keys of a GGUF file into a model. @throws file_error for a key that is absent or of another length
[[gnu::cold]] inline void read_xielu(const gguf& file, checkpoint_builder& builder) {
  const std::uint32_t layers = builder.config().num_hidden_layers;
  xielu_collector collector(layers);
  for (std::size_t part = 0; part < xielu_names.size(); ++part) {
    const std::string key(xielu_keys[part]);
    const gguf_value* const stored = file.first().find(key);
    const auto refuse = [&](std::string found) {
      throw file_error(file.path(), stored == nullptr ? std::optional<std::uint64_t>() : stored->offset,
                       "key '" + key + "'",
                       "a number for each of " + std::to_string(layers) + " layers, or one for all", std::move(found));
    };
    if (stored == nullptr) refuse("no such key");
    std::vector<float> each;
    if (stored->type == gguf_type::array) each = file.array<float>(key).value_or(std::vector<float>());
    else each.assign(layers, file.number<float>(key).value_or(0.f));
    if (each.size() != layers) refuse(std::to_string(each.size()) + " numbers of f32");
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      if (!std::isfinite(each[layer])) refuse("a number that is not finite, of layer " + std::to_string(layer));
      collector.note({layer, part}, each[layer]);
    }
  }
  collector.finish(builder);
}

}  // namespace intaglio::io
