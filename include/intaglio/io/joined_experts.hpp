// SPDX-License-Identifier: MIT
// Tensors of Hugging Face folders as parts of the model's matrices: tensors whose elements do not follow one another,
// and tensors that join the matrices of all experts of a layer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/io/checkpoint_tensor.hpp"
#include "intaglio/io/safetensors_model.hpp"
#include "intaglio/io/torch_model.hpp"

namespace intaglio::io {

/// A shape as text: "[4096, 14336]".
inline std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

/// The strides of a tensor of at most 2 dimensions as pieces of a matrix; empty where its elements follow one another.
inline std::vector<tensor_piece> pieces_of(const folder_tensor& tensor, const mapped_file* file) {
  if (tensor.contiguous() || tensor.shape.empty() || tensor.shape.size() > 2) return {};
  const bool matrix = tensor.shape.size() == 2;
  return {{.file = file,
           .offset = tensor.offset,
           .rows = matrix ? tensor.shape[0] : 1,
           .columns = tensor.shape.back(),
           .row_stride = matrix ? tensor.strides[0] : 0,
           .column_stride = tensor.strides.back()}};
}

/// A tensor that joins the matrices of all experts of a layer, as transformers names it: gate_up_proj or down_proj, as
/// numbers, as a bias, or as the codes or the scales of MXFP4.
struct joined_experts {
  bool both = false;                                            ///< gate and up
  bool alternating = true;                                      ///< rows of gate and up alternate; else all of gate's
                                                                ///< are in front of up's
  bool blocks = false, scales = false, bias = false;            ///< codes of MXFP4, scales of MXFP4, a bias
  std::uint64_t experts = 0, parts = 1, rows = 0, columns = 0;  ///< parts: matrices of an expert, each [rows, columns]

  /// Reads the end of a tensor's name, "gate_up_proj_blocks". Absent for other names.
  static std::optional<joined_experts> of(const decoder_config& c, std::string_view what) {
    constexpr std::string_view gate_up = "gate_up_proj", down = "down_proj";
    joined_experts out;
    out.both = what.starts_with(gate_up);
    if (!out.both && !what.starts_with(down)) return std::nullopt;
    const std::string_view form = what.substr(out.both ? gate_up.size() : down.size());
    out.blocks = form == "_blocks", out.scales = form == "_scales", out.bias = form == "_bias";
    if (!form.empty() && !out.coded() && !out.bias) return std::nullopt;
    out.experts = c.num_local_experts;
    out.parts = out.both ? 2 : 1;
    out.rows = out.both ? c.intermediate_size : c.hidden_size;
    out.columns = out.both ? c.hidden_size : c.intermediate_size;
    return out;
  }
  bool coded() const { return blocks || scales; }

  std::vector<std::uint64_t> shape() const {
    if (bias) return {experts, parts * rows};
    if (blocks) return {experts, parts * rows, columns / 32, 16};
    if (scales) return {experts, parts * rows, columns / 32};
    return {experts, columns, parts * rows};
  }
  /// The GGUF name of a part. @param layer "blk.0"
  std::string name(const std::string& layer, std::uint64_t part) const {
    return layer +
           (!both       ? ".ffn_down_exps"
            : part == 0 ? ".ffn_gate_exps"
                        : ".ffn_up_exps") +
           (bias ? ".bias" : ".weight");
  }
  /// A part of a tensor of numbers, with strides: the file has each matrix transposed.
  checkpoint_tensor plain_tensor(const folder_tensor& tensor, const mapped_file* file, const std::string& called,
                                 std::uint64_t part) const {
    const std::uint64_t element = info(*tensor.type).block_bytes, first = alternating ? part : part * rows;
    checkpoint_tensor out;
    out.stored_name = tensor.name;
    out.dimensions = bias ? 1 : 3;
    out.stored = {called, *tensor.type,  bias ? 1 : experts * rows, bias ? experts * rows : columns,
                  file,   tensor.offset, tensor.bytes / parts};
    if (bias && both)
      out.pieces = {{.file = file,
                     .offset = tensor.offset + part * element,
                     .rows = 1,
                     .columns = experts * rows,
                     .row_stride = parts * experts * rows,
                     .column_stride = parts}};
    for (std::uint64_t e = 0; !bias && e < experts; ++e)
      out.pieces.push_back({.file = file,
                            .offset = tensor.offset + (e * columns * parts * rows + first) * element,
                            .row0 = e * rows,
                            .rows = rows,
                            .columns = columns,
                            .row_stride = alternating ? parts : 1,
                            .column_stride = parts * rows});
    return out;
  }
};

}  // namespace intaglio::io
