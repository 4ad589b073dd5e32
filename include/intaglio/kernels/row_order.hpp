// SPDX-License-Identifier: MIT
// The order of the rows of several tensors in a merged matrix: rows that a product's epilogue combines are neighbours.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstdint>

namespace intaglio::kernels {

/// The source of a row of the merged matrix: the tensor's index in the list of sources, and the row in that tensor.
struct source_row {
  std::uint32_t tensor = 0, row = 0;
  friend constexpr bool operator==(source_row, source_row) = default;
};

/// Order of the rows of one matrix product's weight. Aggregate and constexpr, so a plan can hold it.
struct row_order {
  enum class kind : std::uint8_t { plain, rope_pairs, gate_up, stacked };
  kind order = kind::plain;
  std::uint32_t head_dim = 0;                  ///< rope_pairs only
  std::array<std::uint32_t, 3> tensor_rows{};  ///< rows of each source
  bool interleaved = false;                    ///< rope_pairs only: in q and k the rows of a pair are neighbours

  /// One tensor, unchanged.
  static constexpr row_order plain(std::uint32_t rows) { return {kind::plain, 0, {rows, 0, 0}, false}; }
  /// Sources q [q_rows], k and v [kv_rows each]: heads of q, then of k, then of v; within each head i, i + head_dim / 2
  /// are neighbours.
  static constexpr row_order rope_pairs(std::uint32_t head_dim, std::uint32_t q_rows, std::uint32_t kv_rows,
                                        bool interleaved = false) {
    return {kind::rope_pairs, head_dim, {q_rows, kv_rows, kv_rows}, interleaved};
  }
  /// Sources gate and up, [rows] each: gate 0, up 0, gate 1, up 1, ...
  static constexpr row_order gate_up(std::uint32_t rows) { return {kind::gate_up, 0, {rows, rows, 0}, false}; }

  /// Sources q [q_rows], k and v [kv_rows each], or only q and k, unchanged one after the other.
  static constexpr row_order stacked(std::uint32_t q_rows, std::uint32_t kv_rows, bool with_values = true) {
    return {kind::stacked, 0, {q_rows, kv_rows, with_values ? kv_rows : 0}, false};
  }

  constexpr std::uint32_t tensors() const {
    return order == kind::plain ? 1 : order == kind::gate_up || tensor_rows[2] == 0 ? 2 : 3;
  }
  constexpr std::uint32_t rows() const { return tensor_rows[0] + tensor_rows[1] + tensor_rows[2]; }

  /// Source of the row at `position` of the merged matrix, position < rows().
  constexpr source_row operator()(std::uint32_t position) const {
    if (order == kind::gate_up) return {position % 2, position / 2};
    if (order == kind::plain) return {0, position};
    std::uint32_t tensor = 0, row = position;
    while (tensor < 2 && row >= tensor_rows[tensor]) row -= tensor_rows[tensor++];
    if (order == kind::stacked || (interleaved && tensor < 2)) return {tensor, row};
    const std::uint32_t within = row % head_dim;
    return {tensor, row - within + within / 2 + (within % 2) * (head_dim / 2)};
  }

  friend constexpr bool operator==(const row_order&, const row_order&) = default;
};

}  // namespace intaglio::kernels
