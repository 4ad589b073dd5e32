// SPDX-License-Identifier: MIT
// What convert is asked for, and what it says of its work.
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

struct convert_options {
  /// The codec of the matrices: for BitNet i2_s tq1_0 tq2_0 f32 f16 bf16, else f32 f16 bf16, blocks that is_encodable
  /// names, bcml1; safetensors: f32 f16 bf16.
  dtype codec = dtype::i2_s;
  /// The codec of token embedding and head. By default that of the matrices, but f16 beside ternary ones and bcml1.
  std::optional<dtype> embedding = std::nullopt;
  i2s_layout layout = i2s_layout::block128;  ///< of I2_S tensors in the input; the output is always block128
  unsigned threads = 0;                      ///< that read and encode; 0: one for each of the machine's
  std::function<void(const file_progress&)> progress = {};  ///< called on the calling thread
};

/// The tensors of one name in all layers ("ffn_up", "token_embd", ...) that went from one type to another.
struct converted_kind {
  std::string name;
  dtype from = dtype::f32, to = dtype::f32;
  std::size_t tensors = 0;
  conversion_loss loss;
};

/// What was written, and what it cost.
struct convert_report {
  std::uint64_t bytes = 0;            ///< of tensors
  std::vector<std::string> warnings;  ///< with the file in front
  std::vector<converted_kind> kinds;  ///< in the order of the first of each in the file
  conversion_loss loss;               ///< of all
};

}  // namespace intaglio::io
