// SPDX-License-Identifier: MIT
// Facts about a model file that the file does not state and a caller may give.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace intaglio::io {

/// Order of the codes in an I2_S tensor. Files do not state it; all published files are block128.
enum class i2s_layout : std::uint8_t { block128, block64, rows4 };

/// The name of an order, as options of the tool spell it.
constexpr std::string_view name(i2s_layout layout) {
  return layout == i2s_layout::block128 ? "block128" : layout == i2s_layout::block64 ? "block64" : "rows4";
}

/// Options of opening a checkpoint.
struct checkpoint_options {
  i2s_layout layout = i2s_layout::block128;  ///< layout of the I2_S tensors of a GGUF; no file states it
  /// A file of a Hugging Face folder that has all weights, to be read instead of those with the usual names.
  std::filesystem::path weights = {};
  bool weights_are_torch = false;  ///< that file is one of torch.save, not of safetensors
};

}  // namespace intaglio::io
