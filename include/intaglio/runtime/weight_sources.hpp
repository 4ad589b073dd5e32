// SPDX-License-Identifier: MIT
// The tensors of a checkpoint that a plan's weights consist of, found by name and opened once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/parallel.hpp"

namespace intaglio::runtime {

/// Copies the common part of [from_at, from_at + from.size()) and [to_at, to_at + to.size()).
inline void copy_overlap(std::uint64_t from_at, std::span<const std::byte> from, std::uint64_t to_at,
                         std::span<std::byte> to) {
  const std::uint64_t begin = (std::max)(from_at, to_at), end = (std::min)(from_at + from.size(), to_at + to.size());
  if (begin < end)
    std::memcpy(to.data() + (begin - to_at), from.data() + (begin - from_at), static_cast<std::size_t>(end - begin));
}

/// Maps the weights of a plan to a checkpoint's tensors. The checkpoint must outlive it.
class weight_sources {
 public:
  /// @error file_error: the checkpoint lacks a tensor of the plan, or has it in another shape
  weight_sources(const io::checkpoint& from, const plan::table& of) : from_(&from), table_(&of) {
    for (const plan::weight& each : of.weights)
      for (std::uint32_t layer = 0; layer < (in_layers(each) ? of.config->num_hidden_layers : 1); ++layer)
        for (std::uint8_t s = 0; s < each.source_count && of.has(each, layer); ++s) find(each, s, layer);
  }

  /// Bytes of float masters that measure() reads to find their scales.
  std::uint64_t measured_bytes() const {
    std::uint64_t out = 0;
    for (const auto& [name, each] : sources_)
      if (each.ternary && is_float(each.tensor->stored.type)) out += each.tensor->stored.bytes;
    return out;
  }
  /// Opens every ternary matrix, which finds its scale; must precede fill(). `done(bytes)` is called from worker
  /// threads.
  /// @error file_error for a bad scale
  template <class Done>
  void measure(unsigned threads, Done&& done) {
    std::vector<source*> wanted;
    for (auto& [name, each] : sources_)
      if (each.ternary) wanted.push_back(&each);
    parallel(threads, wanted.size(), [&](std::size_t i) {
      wanted[i]->codes.emplace(from_->ternary(*wanted[i]->tensor));
      done(is_float(wanted[i]->tensor->stored.type) ? wanted[i]->tensor->stored.bytes : std::uint64_t{0});
    });
  }

  /// A plan's codec as files name it.
  static dtype dtype_of(kernels::codec type) { return kernels::info(type).type; }

 protected:
  /// A tensor of the checkpoint as rows are read from it.
  struct source {
    const io::checkpoint_tensor* tensor = nullptr;
    bool ternary = false;
    std::optional<io::ternary_tensor> codes;
  };

  static bool is_float(dtype type) { return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16; }
  static bool is_ternary(const plan::weight& w) {
    return w.layout == plan::weight_layout::ternary_tiles || w.layout == plan::weight_layout::ternary_scales ||
           w.layout == plan::weight_layout::feature_rows || w.layout == plan::weight_layout::feature_columns;
  }
  /// Whether a weight consists of tensors of layers.
  static bool in_layers(const plan::weight& w) { return w.per_layer || w.layout == plan::weight_layout::column_norms; }

  const source& at(const plan::weight& w, std::uint8_t index, std::uint32_t layer) const {
    return sources_.find(name_of(w, index, layer))->second;
  }

  const io::checkpoint* from_;
  const plan::table* table_;

 private:
  std::string name_of(const plan::weight& w, std::uint8_t index, std::uint32_t layer) const {
    return (in_layers(w) ? "blk." + std::to_string(table_->first_layer + layer) + "." : std::string{}) +
           std::string(w.sources[index].view());
  }
  [[gnu::cold]] void find(const plan::weight& w, std::uint8_t index, std::uint32_t layer) {
    const std::string name = name_of(w, index, layer);
    const io::checkpoint_tensor* const tensor = from_->find(name);
    const bool vectors = w.layout == plan::weight_layout::vector_f32 && w.source_count > 1;
    const std::uint32_t rows = vectors ? 1 : w.source_rows[index], columns = vectors ? w.source_rows[index] : w.columns;
    const std::string shape = "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
    if (tensor == nullptr) throw file_error(from_->path(), std::nullopt, "tensor '" + name + "'", shape, "none");
    const io::stored_tensor& stored = tensor->stored;
    if (stored.rows != rows || stored.columns != columns)
      throw file_error(from_->path(), stored.offset, "tensor '" + name + "'", shape,
                       "[" + std::to_string(stored.rows) + ", " + std::to_string(stored.columns) + "]");
    source& entry = sources_[name];
    entry.tensor = tensor;
    entry.ternary = entry.ternary || is_ternary(w);
  }

  std::map<std::string, source, std::less<>> sources_;
};

}  // namespace intaglio::runtime
