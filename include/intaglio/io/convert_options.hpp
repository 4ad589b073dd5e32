// SPDX-License-Identifier: MIT
// Options of convert, and its report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "intaglio/core/dtype.hpp"
#include "intaglio/io/checkpoint_options.hpp"
#include "intaglio/io/conversion_loss.hpp"
#include "intaglio/io/file_progress.hpp"

namespace intaglio::io {

/// Options of converting a model.
struct convert_options {
  /// The codec of the matrices. BitNet: i2_s tq1_0 tq2_0 f32 f16 bf16; other models: f32 f16 bf16, blocks that
  /// is_encodable names, bcml1; safetensors: f32 f16 bf16.
  dtype codec = dtype::i2_s;
  /// The codec of token embedding and head. The default is the matrices' codec, but f16 for ternary codecs and bcml1.
  std::optional<dtype> embedding = std::nullopt;
  i2s_layout layout = i2s_layout::block128;  ///< layout of I2_S tensors in the input; the output is always block128
  unsigned threads = 0;                      ///< threads that read and encode; 0: one for each processor
  std::function<void(const file_progress&)> progress = {};  ///< called on the calling thread
};

/// The tensors of one name in all layers ("ffn_up", "token_embd", ...) that were converted from one type to another.
struct converted_kind {
  std::string name;
  dtype from = dtype::f32, to = dtype::f32;
  std::size_t tensors = 0;
  conversion_loss loss;
};

/// What was written, and the loss.
struct convert_report {
  std::uint64_t bytes = 0;            ///< bytes of all tensors
  std::vector<std::string> warnings;  ///< a line each, with the file in front
  std::vector<converted_kind> kinds;  ///< in the order of their first tensors in the file
  conversion_loss loss;               ///< loss of all tensors
};

}  // namespace intaglio::io
