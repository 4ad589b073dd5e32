// SPDX-License-Identifier: MIT
// Factors of whole matrices, or of some rows of a matrix, that a folder's config.json states (maximal update
// parametrization). Reading multiplies the values by them, as llama.cpp's converter does, so that a folder and a GGUF
// file give equal matrices. Source: transformers, models/falcon_h1; llama.cpp, conversion/falcon_h1.py.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "intaglio/core/array_view.hpp"

namespace intaglio::io {

/// Neighbouring rows of a tensor, in the order of the file, and the factor of their values.
struct row_factor {
  std::uint64_t rows = 0;  ///< 0: all rows that are left
  float factor = 1.f;
  friend bool operator==(const row_factor&, const row_factor&) = default;
};

/// The factors of a tensor, or of the tensor of this name in each layer.
struct weight_factor {
  std::string_view tensor;  ///< "output.weight", or "attn_q.weight" for "blk.N.attn_q.weight"
  std::vector<row_factor> runs;
};

/// The factors of a tensor with this GGUF name; empty where it has none, or where all are 1.
[[gnu::cold]] inline std::vector<row_factor> factors_of(array_view<const weight_factor> all, std::string_view name) {
  if (name.starts_with("blk.")) name.remove_prefix(name.find('.', 4) + 1);
  for (const weight_factor& each : all) {
    if (each.tensor != name) continue;
    for (const row_factor& run : each.runs)
      if (run.factor != 1.f) return each.runs;
  }
  return {};
}

/// Multiplies rows by their factors. @param row0 index of the first row  @param values whole rows of `columns` values
inline void multiply_rows(array_view<const row_factor> runs, std::uint64_t row0, std::uint64_t columns,
                          std::span<float> values) {
  const std::uint64_t end = row0 + values.size() / columns;
  std::uint64_t first = 0;
  for (const row_factor& run : runs) {
    const std::uint64_t after = run.rows == 0 ? end : first + run.rows;
    for (std::uint64_t row = first < row0 ? row0 : first; row < after && row < end; ++row)
      for (float& value :
           values.subspan(static_cast<std::size_t>((row - row0) * columns), static_cast<std::size_t>(columns)))
        value *= run.factor;
    first = after;
  }
}

}  // namespace intaglio::io
