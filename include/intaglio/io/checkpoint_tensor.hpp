// SPDX-License-Identifier: MIT
// A tensor of an opened model: where its bytes are, and how reading transforms them.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intaglio/io/codec.hpp"
#include "intaglio/io/codec_ternary.hpp"
#include "intaglio/io/tensor_pieces.hpp"
#include "intaglio/io/tensor_rules.hpp"
#include "intaglio/io/weight_factors.hpp"

namespace intaglio::io {

/// MXFP4 with its scales apart from the codes, as transformers writes it: byte j of a block has weights 2j and 2j + 1.
struct split_mxfp4 {
  const mapped_file* scales = nullptr;
  std::uint64_t scales_offset = 0;       ///< offset of the scales, one byte for each block
  std::uint64_t row0 = 0, row_step = 1;  ///< the file's row of the tensor's first row, and the distance between rows
};

/// Heads of a matrix of blocks that are read transposed, as f16: the file's rows are the tensor's columns.
struct transposed_heads {
  dtype type = dtype::f16;    ///< the codec of the file's matrix
  std::uint64_t columns = 0;  ///< of the file's matrix; the number of the tensor's rows of a head
  std::uint64_t head_rows =
      0;  ///< the file's rows of a head; the first ones are read, as many as the tensor has columns
};

/// A product of two narrow matrices that reading adds to a matrix: factor * b a.
struct low_rank_addend {
  std::shared_ptr<const std::vector<float>> a, b;  ///< [rank, columns], [rows, rank]
  std::uint64_t rank = 0;
  float factor = 1;
  /// Adds one row of the product. @param row in the order of the file  @param values [columns]
  void add_row(std::uint64_t row, std::span<float> values) const {
    for (std::uint64_t r = 0; r < rank; ++r) {
      const float weight = factor * (*b)[static_cast<std::size_t>(row * rank + r)];
      const float* const from = a->data() + static_cast<std::size_t>(r) * values.size();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += weight * from[i];
    }
  }
};

/// Turns the parameters of xIELU, alpha_p, alpha_n, beta and eps, into its factors: those above and up to 0 are above 0
/// and beta by the softplus.
inline void xielu_factors(std::span<float> values) {
  const auto softplus = [](float x) { return x > 20.f ? double{x} : std::log1p(std::exp(double{x})); };
  values[1] = static_cast<float>(double{values[2]} + softplus(values[1]));
  values[0] = static_cast<float>(softplus(values[0]));
}

/// A tensor of the model. `stored.name` is GGUF's name, `stored_name` the file's. stored.type is u8 for Hugging Face's
/// packed matrices.
struct checkpoint_tensor {
  stored_tensor stored;
  std::string stored_name;
  std::uint32_t dimensions = 2;  ///< 1 for a vector
  tensor_role role = tensor_role::matrix;
  std::optional<float> packed_scale;  ///< scale of a packed matrix
  float factor = 1.f;                 ///< further factor of a ternary matrix
  float addend = 0.f;         ///< added to every value on reading (Gemma's norms in Hugging Face form hold w for 1 + w)
  bool negative_exp = false;  ///< every value x is read as -exp(x) (A_log of delta rules in Hugging Face form)
  bool xielu = false;  ///< the parameters of xIELU, as files have them; reading gives its factors (xielu_factors)
  std::uint32_t rows_in_pairs = 0;   ///< head_dim where rows 2i and 2i + 1 of a head are rotated together (RoPE of
                                     ///< Meta's files, GGUF llama); reading reorders them
  std::uint32_t rotary_dim = 0;      ///< with rows_in_pairs: number of rows of a head that are rotated, the first ones,
                                     ///< i with i + rotary_dim / 2; reading puts the rows of a pair head_dim / 2 apart
  bool neighbours = false;           ///< with rotary_dim: row 2i is rotated with row 2i + 1
  std::vector<tensor_piece> pieces;  ///< the parts of a tensor whose rows do not simply follow one another from
                                     ///< stored.offset: floats with strides, or in several files

  std::optional<split_mxfp4> split;  ///< where stored.type is mxfp4: the scales; stored.offset is the codes' offset

  std::optional<transposed_heads> transposed;  ///< stored.type is f16; stored.offset is the offset of the file's matrix

  std::vector<low_rank_addend> added;  ///< products that are added to the values, in the order of the file
                                       ///< (lora_adapter.hpp)

  std::vector<row_factor> factors;  ///< of the rows, in the order of the file; empty: all are 1

  /// Whether the values are the stored ones.
  bool is_as_stored() const { return addend == 0.f && !xielu && added.empty() && factors.empty(); }
  /// Whether the rows are at stored.offset in the order in which they are read.
  bool in_place() const { return pieces.empty() && rows_in_pairs == 0 && !split && !transposed; }
  /// The file's row for a row in NeoX order (for a vector, the value). rows_in_pairs is not 0.
  std::uint64_t file_row(std::uint64_t row) const { return row_in_pairs(rows_in_pairs, row, rotary_dim, neighbours); }
};

}  // namespace intaglio::io
