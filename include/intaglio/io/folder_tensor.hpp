// SPDX-License-Identifier: MIT
// A tensor in the list of a folder's file, whether safetensors or PyTorch's own.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/dtype.hpp"

namespace intaglio::io {

/// What both forms of files say of a tensor.
struct folder_tensor {
  std::string name;
  std::string_view stored_type;               ///< "BF16", "bfloat16", "bool", ...
  std::optional<dtype> type;                  ///< absent where the library reads no such values
  std::vector<std::uint64_t> shape, strides;  ///< strides in elements; none: row-major
  std::size_t file = 0;                       ///< index of the shard
  std::uint64_t offset = 0;                   ///< of the first element, from the start of that file
  std::uint64_t bytes = 0;                    ///< of all elements

  /// Whether elements follow one another in row-major order.
  bool contiguous() const {
    std::uint64_t expected = 1;
    for (std::size_t i = strides.size(); i-- > 0;) {
      if (shape[i] != 1 && strides[i] != expected) return false;
      expected *= shape[i];
    }
    return true;
  }
};

}  // namespace intaglio::io
