// SPDX-License-Identifier: MIT
// What a caller says about a model file that the file does not say.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace intaglio::io {

/// Order of the codes in an I2_S tensor. The file does not say; all published files are block128.
enum class i2s_layout : std::uint8_t { block128, block64, rows4 };

constexpr std::string_view name(i2s_layout layout) {
  return layout == i2s_layout::block128 ? "block128" : layout == i2s_layout::block64 ? "block64" : "rows4";
}

struct checkpoint_options {
  i2s_layout layout = i2s_layout::block128;  ///< how the I2_S tensors of a GGUF are laid out; no file says it
  /// One file of a Hugging Face folder that has all weights, instead of those that the folder's names say.
  std::filesystem::path weights = {};
  bool weights_are_torch = false;  ///< that file is one of torch.save, not of safetensors
};

}  // namespace intaglio::io
