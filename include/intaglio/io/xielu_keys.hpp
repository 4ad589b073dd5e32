// SPDX-License-Identifier: MIT
// Writes the parameters of xIELU as llama.cpp's and transformers' files have them (io/xielu_parameters.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/io/safetensors_writer.hpp"
#include "intaglio/io/xielu_parameters.hpp"

namespace intaglio::io {

/// Writes the keys of GGUF: a number for each layer, as the model's files have it.
[[gnu::cold]] inline void write_xielu(gguf_writer& out, const checkpoint& model) {
  if (model.config().hidden_act != activation::xielu) return;
  std::array<std::vector<float>, xielu_names.size()> all;
  for (std::uint32_t layer = 0; layer < model.config().num_hidden_layers; ++layer) {
    const checkpoint_tensor& tensor = model.at("blk." + std::to_string(layer) + ".ffn_act.weight");
    std::array<float, xielu_names.size()> values{};
    tensor.stored.file->read(tensor.stored.offset, std::as_writable_bytes(std::span(values)));
    for (std::size_t part = 0; part < values.size(); ++part) all[part].push_back(values[part]);
  }
  for (std::size_t part = 0; part < all.size(); ++part) out.set_array<float>(std::string(xielu_keys[part]), all[part]);
}

/// Declares the tensors of a folder whose numbers are those of blk.N.ffn_act.weight: vectors of one number, which
/// training changes, and two that have no dimension.
[[gnu::cold]] inline void add_xielu(safetensors_writer& out, std::string_view tensor) {
  const std::string layer(tensor.substr(4, tensor.find('.', 4) - 4));
  constexpr std::array<std::uint64_t, 1> one{1};
  for (std::size_t part = 0; part < xielu_names.size(); ++part)
    out.add_tensor("model.layers." + layer + std::string(xielu_folder) + std::string(xielu_names[part]), dtype::f32,
                   std::span(one).first(part < 2 ? 1 : 0));
}

}  // namespace intaglio::io
