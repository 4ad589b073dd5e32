// SPDX-License-Identifier: MIT
// LoRA adapters beside a model, without merging. A plan with space for them (plan/adapters.hpp) reads the matrices of
// all adapters, one after the other, as tensors of the model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/lora_adapter.hpp"

namespace intaglio::io {

/// A set of adapters. Sessions choose them by number: the first one that is added is 1, and 0 means no adapter.
class adapter_set {
 public:
  /// @param name the name by which requests choose it
  /// @throws file_error as lora_adapter; argument_error: no name, or one that another adapter has
  void add(std::string name, const std::filesystem::path& file) {
    if (name.empty() || number_of(name))
      throw argument_error("adapter", "a name of its own", "'" + printable(name, 60) + "'");
    if (adapters_.size() == most)
      throw argument_error("adapters", "at most " + std::to_string(most), "one more: " + printable(file.string(), 100));
    adapters_.push_back({std::move(name), lora_adapter(file)});
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(adapters_.size()); }
  /// @param number 1 .. size()
  const std::string& name(std::uint32_t number) const { return adapters_[number - 1].name; }
  const std::string& path(std::uint32_t number) const { return adapters_[number - 1].file.path(); }
  std::optional<std::uint32_t> number_of(std::string_view name) const {
    for (std::uint32_t i = 0; i < size(); ++i)
      if (adapters_[i].name == name) return i + 1;
    return std::nullopt;
  }

  /// Adds the tensors of all adapters to the model. Each matrix that an adapter changes in some layer gets
  /// "blk.N.NAME.lora_a", [(size() + 1) * rank(), columns], and .lora_b, [(size() + 1) * rows, rank()], in all layers
  /// that have the matrix. Number 0 is zeros, and so are matrices that an adapter does not change.
  /// @throws file_error as lora_adapter::merge_into, but not for codecs: the matrices stay unchanged
  void hold_in(checkpoint& model) {
    std::vector<products> all;
    for (const one& each : adapters_) {
      products& own = all.emplace_back();
      for (auto& [name, product] : each.file.products_for(model, false)) {
        note(without_layer(name));
        rank_ = (std::max)(rank_, product.rank);
        own.emplace(name, scaled(std::move(product)));
      }
    }
    rank_ = (rank_ + 7) / 8 * 8;
    type_ = narrowest_of(all);
    for (const std::string& matrix : matrices_)
      for (std::uint32_t layer = 0; layer < model.config().num_hidden_layers; ++layer) {
        const std::string name = "blk." + std::to_string(layer) + "." + matrix;
        if (model.find(name) != nullptr) hold(model, name, all);
      }
  }

  /// The rank that every adapter is padded to: the largest rank of any of their matrices, rounded up to a multiple of
  /// 8.
  std::uint64_t rank() const { return rank_; }
  /// The type of the adapters' values: f16 or bf16 where that loses nothing of any value, else f32.
  dtype type() const { return type_; }
  /// Names of the matrices, without their layers.
  const std::vector<std::string>& matrices() const { return matrices_; }
  /// Bytes of the tensors that hold_in() added.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct one {
    std::string name;
    lora_adapter file;
  };
  using products = std::map<std::string, low_rank_addend>;
  static constexpr std::size_t most = 63;

  static std::string without_layer(const std::string& name) { return name.substr(name.find('.', 4) + 1); }
  void note(std::string matrix) {
    if (std::find(matrices_.begin(), matrices_.end(), matrix) == matrices_.end())
      matrices_.push_back(std::move(matrix));
  }
  /// The product with its factor multiplied into b.
  static low_rank_addend scaled(low_rank_addend of) {
    std::vector<float> b = *of.b;
    for (float& value : b) value *= of.factor;
    of.b = std::make_shared<const std::vector<float>>(std::move(b));
    return of;
  }
  static dtype narrowest_of(const std::vector<products>& all) {
    for (const dtype type : {dtype::f16, dtype::bf16})
      if (std::all_of(all.begin(), all.end(), [&](const products& own) {
            return std::all_of(own.begin(), own.end(), [&](const auto& each) {
              return holds(type, *each.second.a) && holds(type, *each.second.b);
            });
          }))
        return type;
    return dtype::f32;
  }
  /// Whether a type holds all values exactly.
  static bool holds(dtype type, const std::vector<float>& values) {
    constexpr std::size_t step = 4096;
    std::vector<std::byte> bytes;
    std::vector<float> back;
    for (std::size_t at = 0; at < values.size(); at += step) {
      const auto some = std::span(values).subspan(at, (std::min)(step, values.size() - at));
      bytes.resize(static_cast<std::size_t>(row_bytes(type, some.size())));
      back.resize(some.size());
      encode_row(type, some, bytes);
      decode_row(type, bytes, back);
      if (!std::equal(back.begin(), back.end(), some.begin())) return false;
    }
    return true;
  }

  void hold(checkpoint& model, const std::string& name, const std::vector<products>& all) {
    const checkpoint_tensor to = model.at(name);
    const std::uint64_t rows = to.stored.rows, columns = to.stored.columns, numbers = all.size() + 1;
    std::vector<float> a = room(name, numbers * rank_, columns), b = room(name, numbers * rows, rank_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto at = all[i].find(name);
      if (at == all[i].end()) continue;
      const low_rank_addend& its = at->second;
      std::copy(its.a->begin(), its.a->end(), a.begin() + difference((i + 1) * rank_ * columns));
      for (std::uint64_t row = 0; row < rows; ++row)
        std::copy_n(its.b->begin() + difference(row * its.rank), its.rank,
                    b.begin() + difference(((i + 1) * rows + row) * rank_));
    }
    hold(model, name + ".lora_a", numbers * rank_, columns, a, nullptr);
    hold(model, name + ".lora_b", numbers * rows, rank_, b, &to);  // heads in the file's order, as the matrix has them
  }
  /// @param like the tensor whose order of rows the values have, or null
  void hold(checkpoint& model, std::string name, std::uint64_t rows, std::uint64_t columns,
            const std::vector<float>& values, const checkpoint_tensor* like) {
    checkpoint_tensor out;
    out.stored_name = name;
    out.stored = {std::move(name), type_, rows, columns};
    if (like != nullptr)
      out.rows_in_pairs = like->rows_in_pairs, out.rotary_dim = like->rotary_dim, out.neighbours = like->neighbours;
    std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(type_, values.size())));
    encode_row(type_, values, bytes);
    bytes_ += bytes.size();
    model.hold(std::move(out), std::move(bytes));
  }
  static std::ptrdiff_t difference(std::uint64_t count) { return static_cast<std::ptrdiff_t>(count); }
  /// A matrix of zeros. @throws argument_error: more elements than shaders can count
  static std::vector<float> room(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 31;
    if (rows > limit || columns > limit || rows * columns > limit)
      throw argument_error("adapters",
                           "at most " + std::to_string(limit) + " values of all beside " + printable(name, 60),
                           std::to_string(rows) + " rows of " + std::to_string(columns));
    return std::vector<float>(static_cast<std::size_t>(rows * columns));
  }

  std::vector<one> adapters_;
  std::vector<std::string> matrices_;
  std::uint64_t rank_ = 0, bytes_ = 0;
  dtype type_ = dtype::f32;
};

}  // namespace intaglio::io
