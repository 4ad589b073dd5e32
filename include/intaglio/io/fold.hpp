// SPDX-License-Identifier: MIT
// Writes a GGUF model with the changes of a feature index's journal included: a dense checkpoint whose FFNs compute
// what a walk over the changed index computes. Everything else is copied byte for byte. The new file appears as a whole
// or not at all.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/feature_patch.hpp"
#include "intaglio/io/file_progress.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_writer.hpp"
#include "intaglio/io/own_files.hpp"

namespace intaglio::io {
/// What a fold changed.
struct fold_report {
  std::vector<std::uint32_t> layers;    ///< layers whose FFN changed
  std::uint32_t intermediate_size = 0;  ///< of the new file: larger where features were inserted
  std::uint64_t bytes = 0;              ///< of tensors
};
/// Refuses a model whose FFNs a journal cannot change.
/// @throws argument_error for a mixture of experts: journals cannot change one (feature_patch)
inline void expect_foldable(const decoder_config& c) {
  if (c.num_local_experts != 0)
    throw argument_error("model", "one with one FFN a layer: a mixture's experts stay as they are",
                         std::to_string(c.num_local_experts) + " experts a layer");
}

/// The work of fold. Gate, up and down of a changed layer become f32, which holds the vectors of journal and index
/// exactly, or stay ternary codes with their scale. Where features were inserted, every layer gets the same number of
/// features, filled up with zeros, and rounded up to whole blocks of matrices that keep their codec.
class feature_folder {
 public:
  feature_folder(const std::filesystem::path& in, const feature_patch& patch, const std::filesystem::path& out,
                 const checkpoint_options& options)
      : patch_(patch), index_(patch.index()), file_(gguf::open(in)), model_(checkpoint::open_gguf(in, options)),
        writer_(out), layout_(options.layout) {
    expect_other_file(model_, out);
    if (auto lines = index_.differences(model_.config()); !lines.empty())
      throw mismatch_error((index_.path() / feature_index_file).string(), std::move(lines), {});
    expect_foldable(model_.config());
    for (const changed_feature& each : patch.changed()) changed_.insert(each.layer);
    features_ = new_features_ = model_.config().intermediate_size;
    for (std::uint32_t layer = 0; layer < index_.layers(); ++layer)
      new_features_ = (std::max<std::uint64_t>)(new_features_, patch.features(layer));
    ternary_ = model_.config().model_type == architecture::bitnet;
    if (new_features_ != features_) new_features_ = whole_blocks(new_features_);
  }

  fold_report run(const std::function<void(const file_progress&)>& progress) {
    write_keys();
    for (const gguf_tensor& tensor : file_.tensors()) declare(tensor);
    writer_.begin();
    file_progress at;
    at.total_tensors = file_.tensors().size();
    at.total_bytes = writer_.data_bytes();
    for (const gguf_tensor& tensor : file_.tensors()) {
      at.tensor = tensor.name;
      if (progress) progress(at);
      write(tensor);
      ++at.tensors;
      at.bytes += tensor.bytes;
    }
    for (const gguf_part& part : file_.parts()) part.file().expect_unchanged();
    model_.expect_unchanged();
    writer_.finish();
    return {{changed_.begin(), changed_.end()}, static_cast<std::uint32_t>(new_features_), writer_.data_bytes()};
  }

 private:
  struct ffn_tensor {
    std::uint32_t layer = 0;
    feature_vector which = feature_vector::gate;
  };
  /// Which of a layer's three matrices a tensor is.
  std::optional<ffn_tensor> ffn(const gguf_tensor& tensor) const {
    for (std::uint32_t layer = 0; layer < index_.layers(); ++layer)
      for (const feature_vector which : feature_vectors)
        if (tensor.name == "blk." + std::to_string(layer) + ".ffn_" + std::string(name(which)) + ".weight")
          return ffn_tensor{layer, which};
    return std::nullopt;
  }
  bool grows() const { return new_features_ != features_; }
  bool is_rewritten(const gguf_tensor& tensor, const ffn_tensor& of) const {
    return changed_.contains(of.layer) || (grows() && tensor.type == dtype::bcml1);
  }
  dtype type_of(const gguf_tensor& tensor, const ffn_tensor& of) const {
    if (!is_rewritten(tensor, of)) return tensor.type;
    if (!ternary_) return dtype::f32;
    return tensor.type == dtype::tq1_0 || tensor.type == dtype::tq2_0 || tensor.columns() % 128 != 0 ? tensor.type
                                                                                                     : dtype::i2_s;
  }

  /// Rounds the number of features up: rows of down are whole blocks, and kernels process groups of four.
  std::uint64_t whole_blocks(std::uint64_t features) const {
    std::uint64_t unit = 4;
    for (const gguf_tensor& tensor : file_.tensors())
      if (const auto of = ffn(tensor); of && of->which == feature_vector::down && !is_rewritten(tensor, *of))
        unit = std::lcm(unit, std::uint64_t{info(tensor.type).block_elements});
    return (features + unit - 1) / unit * unit;
  }

  void write_keys() {
    const std::string sizes = file_.value<std::string>("general.architecture").value_or("") + ".feed_forward_length";
    for (const gguf_value& value : file_.first().values()) {
      if (value.key == "general.alignment" || value.key.starts_with("split.")) continue;
      if (value.key == sizes && grows()) writer_.set(sizes, static_cast<std::uint32_t>(new_features_));
      else writer_.copy(file_.first(), value);
    }
  }

  void declare(const gguf_tensor& tensor) {
    auto shape = tensor.shape;
    dtype type = tensor.type;
    if (const auto of = ffn(tensor)) {
      if (changed_.contains(of->layer)) check(tensor, *of);
      type = type_of(tensor, *of);
      shape[of->which == feature_vector::down ? 0 : 1] = new_features_;
    }
    writer_.add_tensor(tensor.name, type, std::span(shape).first(tensor.dimensions));
  }
  void check(const gguf_tensor& tensor, const ffn_tensor& of) const {
    const std::string where = "tensor '" + printable(tensor.name, 70) + "'";
    if (!ternary_) return;
    if (layout_ != i2s_layout::block128)
      throw argument_error("i2s-layout", "block128, which the new file's codes are in", std::string(name(layout_)));
    const checkpoint_tensor& found = model_.at(tensor.name);
    if (found.factor != 1.f) throw file_error(file_.path(), std::nullopt, where, "no factor beside it", "one");
    if (const float wanted = index_.layer(of.layer)[of.which].scale; model_.ternary(found).scale() != wanted)
      throw mismatch_error((index_.path() / feature_index_file).string(),
                           {tensor.name + ": scale " + number_text(wanted) + ", that of " +
                            printable(file_.path(), 200) + " is another"},
                           {});
  }

  void write(const gguf_tensor& tensor) {
    const auto of = ffn(tensor);
    if (of && is_rewritten(tensor, *of)) return ternary_ ? write_codes(tensor, *of) : write_values(*of);
    if (of && grows()) return write_padded(tensor, *of);
    copy(tensor, 0, tensor.bytes);
  }
  void copy(const gguf_tensor& tensor, std::uint64_t from, std::uint64_t count) {
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < count; at += bytes.size()) {
      bytes.resize(static_cast<std::size_t>((std::min<std::uint64_t>)(count - at, 1 << 22)));
      file_.parts()[tensor.part].file().read(tensor.offset + from + at, bytes);
      writer_.write(bytes);
    }
  }
  /// Copies a tensor and appends zeros for the features that it lacks.
  void write_padded(const gguf_tensor& tensor, const ffn_tensor& of) {
    const std::uint64_t row = row_bytes(tensor.type, tensor.columns());
    if (of.which != feature_vector::down) {
      copy(tensor, 0, tensor.bytes);
      return write_zeros((new_features_ - features_) * row);
    }
    for (std::uint64_t h = 0; h < tensor.rows(); ++h) {
      copy(tensor, h * row, row);
      write_zeros(row_bytes(tensor.type, new_features_ - features_));
    }
  }
  void write_zeros(std::uint64_t count) {
    const std::vector<std::byte> zeros(static_cast<std::size_t>(count));
    writer_.write(zeros);
  }

  /// All vectors of a kind in f32 by features, with zeros after the last, [new_features, hidden_size].
  std::vector<float> values(const ffn_tensor& of) const {
    const std::size_t width = index_.config().hidden_size, count = patch_.features(of.layer);
    std::vector<float> out(static_cast<std::size_t>(new_features_) * width);
    patch_.read_f32(of.layer, of.which, 0, count, std::span(out).first(count * width));
    return out;
  }
  template <class T, class Value>
  static std::vector<T> turned(const std::vector<float>& rows, std::size_t width, Value&& value) {
    const std::size_t count = rows.size() / width;
    std::vector<T> out(rows.size());
    for (std::size_t f = 0; f < count; ++f)
      for (std::size_t h = 0; h < width; ++h) out[h * count + f] = value(rows[f * width + h]);
    return out;
  }
  void write_values(const ffn_tensor& of) {
    const std::vector<float> rows = values(of);
    const auto same = [](float value) { return value; };
    if (of.which != feature_vector::down) writer_.write(std::as_bytes(std::span(rows)));
    else writer_.write(std::as_bytes(std::span<const float>(turned<float>(rows, index_.config().hidden_size, same))));
  }
  void write_codes(const gguf_tensor& tensor, const ffn_tensor& of) {
    const std::vector<float> rows = values(of);
    const auto code = [](float value) { return static_cast<std::int8_t>((value > 0) - (value < 0)); };
    std::vector<std::int8_t> codes(rows.size());
    if (of.which == feature_vector::down) codes = turned<std::int8_t>(rows, index_.config().hidden_size, code);
    else std::ranges::transform(rows, codes.begin(), code);
    const dtype type = type_of(tensor, of);
    const float scale = index_.layer(of.layer)[of.which].scale;
    std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(type, codes.size())));
    encode_ternary_rows(type, codes, scale, bytes);
    writer_.write(bytes);
    if (type == dtype::i2_s) writer_.write(i2_s_tail(scale));
  }

  const feature_patch& patch_;
  const feature_index& index_;
  gguf file_;
  checkpoint model_;
  gguf_writer writer_;
  i2s_layout layout_;
  std::set<std::uint32_t> changed_;
  std::uint64_t features_ = 0, new_features_ = 0;
  bool ternary_ = false;
};

/// Includes the changes of a journal in the model that its index was made of. Memory: one matrix in f32, twice.
/// @param in a GGUF file  @throws file_error, mismatch_error for an index of another model, argument_error for a
/// mixture
inline fold_report fold(const std::filesystem::path& in, const feature_patch& patch, const std::filesystem::path& out,
                        const checkpoint_options& options = {},
                        const std::function<void(const file_progress&)>& progress = {}) {
  return feature_folder(in, patch, out, options).run(progress);
}

}  // namespace intaglio::io
