// SPDX-License-Identifier: MIT
// Sources of a feature index's vectors, one layer at a time. checkpoint_features reads a checkpoint's matrices: rows of
// gate and up are features already, and down is transposed within bounded memory. Other sources derive from
// feature_source.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_index.hpp"
#include "intaglio/io/ordered_work.hpp"

namespace intaglio::io {

/// A function that gets the next bytes of a layer's vectors.
using feature_sink = std::function<void(std::span<const std::byte>)>;
/// A model as a source of its FFNs' vectors, layer by layer.
class feature_source {
 public:
  virtual ~feature_source() = default;
  /// The file or folder, for messages.
  virtual const std::string& path() const = 0;
  virtual const decoder_config& config() const = 0;
  /// Types and scales of a layer's vectors; the builder adds offsets and checksums.
  virtual feature_layer describe(std::uint32_t layer) = 0;
  /// Streams all vectors of a kind of the layer that was described last, in order, in whole rows. @throws file_error
  virtual void stream(std::uint32_t layer, feature_vector which, unsigned threads, const feature_sink& sink) = 0;
  /// Compares some vectors of a layer of an index with the source's. @throws mismatch_error where they differ
  virtual void expect_agreement(const feature_index& index, std::uint32_t layer) = 0;
  /// @throws file_error where a file changed after it was opened
  virtual void expect_unchanged() const = 0;
};

/// Encodes rows of f32 as an index holds them. @param where for messages @throws file_error for values that the type
/// cannot hold
inline void encode_feature_rows(dtype type, std::span<const float> values, std::span<std::byte> out,
                                const std::string& path, const std::string& where) {
  encode_row(type, values, out);
  if (type == dtype::f32) return;
  if (const auto fault = find_feature_fault(type, out))
    throw file_error(path, std::nullopt, where, "values that " + std::string(name(type)) + " can hold", "a larger one");
}

/// Refuses a feature whose vector differs. @throws mismatch_error for two vectors of one feature
[[noreturn]] inline void refuse_feature(const feature_index& index, std::uint32_t layer, feature_vector which,
                                        std::uint64_t feature, const std::string& source) {
  throw mismatch_error((index.path() / feature_index_file).string(),
                       {std::string(name(which)) + " vector of feature " + std::to_string(feature) + " of layer " +
                        std::to_string(layer) + ": unlike that of " + printable(source, 240)},
                       {});
}

/// Some numbers below `count`, deterministic for a seed: 0, the last, and random ones between.
inline std::vector<std::uint64_t> sampled(std::uint64_t count, std::uint64_t wanted, std::uint64_t seed) {
  std::vector<std::uint64_t> out{0, count - 1};
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  while (out.size() < (std::min)(wanted, count)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out.push_back((state >> 33) % count);
  }
  return out;
}

/// A checkpoint of a family with gated FFNs.
class checkpoint_features : public feature_source {
 public:
  /// @param codec f32, f16 or bf16 of all vectors; absent: the model's own, and f32 for matrices whose blocks span
  /// several features
  /// @param turn_bytes memory for transposing down: where a layer needs more, its matrix is read several times
  checkpoint_features(checkpoint model, std::optional<dtype> codec, std::uint64_t turn_bytes)
      : model_(std::move(model)), codec_(codec), turn_bytes_(turn_bytes) {
    if (codec_ && *codec_ != dtype::f32 && *codec_ != dtype::f16 && *codec_ != dtype::bf16)
      throw argument_error("codec", "own, f32, f16 or bf16", std::string(name(*codec_)));
    if (model_.packed() != nullptr)
      throw file_error(model_.path(), 0, "packed file",
                       "the model that it was packed from: its tensors are not here as they were", "weights of plans");
    for (const feature_vector which : feature_vectors)
      if (const std::string name = tensor_name(0, which); model_.find(name) == nullptr)
        throw file_error(model_.path(), std::nullopt, "features of the model", "a gated FFN with the tensor " + name,
                         "none");
    if (config().intermediate_size_of(true) != config().intermediate_size)
      throw file_error(model_.path(), std::nullopt, "features of the model",
                       std::to_string(config().intermediate_size) + " in all layers",
                       std::to_string(config().shared_intermediate_size) + " in layers that share keys and values");
    if (std::uint64_t{config().intermediate_size} * experts() > config_limits::intermediate_size)
      throw argument_error("model",
                           "at most " + std::to_string(config_limits::intermediate_size) + " features of a layer",
                           std::to_string(std::uint64_t{config().intermediate_size} * experts()));
    if (is_own_ternary() && config().hidden_size % ternary_word_columns != 0)
      throw argument_error(
          "codec", "f32, f16 or bf16 for a hidden_size that is no multiple of " + std::to_string(ternary_word_columns),
          "own, ternary");
  }

  const checkpoint& model() const { return model_; }
  const std::string& path() const override { return model_.path(); }
  const decoder_config& config() const override { return model_.config(); }
  void expect_unchanged() const override { model_.expect_unchanged(); }

  feature_layer describe(std::uint32_t layer) override {
    feature_layer out;
    out.features = features_of_layer(config());
    for (const feature_vector which : feature_vectors) {
      const checkpoint_tensor& from = tensor(layer, which);
      codes_[static_cast<std::size_t>(which)].reset();
      if (is_own_ternary()) {
        out[which].type = dtype::i2_s;
        out[which].scale = codes_[static_cast<std::size_t>(which)].emplace(model_.ternary(from)).scale();
      } else {
        const dtype stored = from.stored.type;
        const bool rows = is_feature_type(stored) && stored != dtype::i2_s &&
                          (which != feature_vector::down || info(stored).block_elements == 1);
        out[which].type = codec_ ? *codec_ : rows ? stored : dtype::f32;
      }
    }
    described_ = out;
    return out;
  }

  void stream(std::uint32_t layer, feature_vector which, unsigned threads, const feature_sink& sink) override {
    if (which != feature_vector::down) return stream_rows(layer, which, threads, sink);
    if (is_own_ternary()) turn<std::int8_t>(layer, threads, sink);
    else turn<float>(layer, threads, sink);
  }

  void expect_agreement(const feature_index& index, std::uint32_t layer) override {
    describe(layer);
    for (const feature_vector which : feature_vectors)
      if (const dtype type = index.layer(layer)[which].type; type != described_[which].type)
        throw mismatch_error(
            (index.path() / feature_index_file).string(),
            {std::string(name(which)) + " vectors of layer " + std::to_string(layer) + ": wanted " +
             std::string(feature_type_name(described_[which].type)) + ", file " + std::string(feature_type_name(type))},
            {});
    const std::uint64_t columns = config().hidden_size;
    std::vector<std::byte> wanted, found;
    for (const feature_vector which : {feature_vector::gate, feature_vector::up})
      for (const std::uint64_t feature :
           sampled(described_.features, 8, 3 * layer + static_cast<std::uint64_t>(which))) {
        const std::uint64_t row = feature_row_bytes(described_[which].type, columns);
        wanted.resize(static_cast<std::size_t>(row));
        found.resize(wanted.size());
        read_some(layer, which, feature, 1, wanted);
        index.read_rows(layer, which, feature, 1, found);
        if (wanted != found || described_[which].scale != index.layer(layer)[which].scale)
          refuse_feature(index, layer, which, feature, path());
      }
    // A chunk of down is some rows of the checkpoint's matrix; each row has one element of every feature.
    const feature_vector down = feature_vector::down;
    const feature_block& block = index.layer(layer)[down];
    std::vector<float> row(described_.features), vector(static_cast<std::size_t>(columns)), rounded(vector.size());
    std::vector<std::byte> encoded;
    for (const std::uint64_t h : sampled(columns, 4, layer)) {
      for (std::uint32_t e = 0; e < experts(); ++e)
        read_down_values(
            layer, e * columns + h,
            std::span(row).subspan(std::size_t{e} * config().intermediate_size, config().intermediate_size));
      if (block.type != dtype::i2_s) {
        encoded.resize(static_cast<std::size_t>(feature_row_bytes(block.type, row.size())));
        encode_row(block.type, row, encoded);
        decode_row(block.type, encoded, row);
      }
      for (const std::uint64_t feature : sampled(described_.features, 8, h)) {
        index.read_f32(layer, down, feature, 1, vector);
        if (vector[static_cast<std::size_t>(h)] != row[static_cast<std::size_t>(feature)])
          refuse_feature(index, layer, down, feature, path());
      }
    }
  }

 private:
  static constexpr std::uint64_t chunk_elements = 1 << 18;

  bool is_own_ternary() const { return !codec_ && config().model_type == architecture::bitnet; }
  std::uint32_t experts() const { return (std::max)(1u, config().num_local_experts); }
  std::string tensor_name(std::uint32_t layer, feature_vector which) const {
    return "blk." + std::to_string(layer) + ".ffn_" + std::string(name(which)) +
           (config().num_local_experts != 0 ? "_exps.weight" : ".weight");
  }
  const checkpoint_tensor& tensor(std::uint32_t layer, feature_vector which) const {
    return model_.at(tensor_name(layer, which));
  }
  std::string where(std::uint32_t layer, feature_vector which) const {
    return "tensor '" + printable(tensor(layer, which).stored_name, 70) + "'";
  }

  /// Rows of gate or up; on any thread.
  void read_some(std::uint32_t layer, feature_vector which, std::uint64_t first, std::uint64_t count,
                 std::span<std::byte> out) const {
    const checkpoint_tensor& from = tensor(layer, which);
    const dtype type = described_[which].type;
    const auto elements = static_cast<std::size_t>(count * config().hidden_size);
    if (type == dtype::i2_s) {
      std::vector<std::int8_t> codes(elements);
      codes_[static_cast<std::size_t>(which)]->rows(first, count, codes);
      return encode_ternary_words(codes, out);
    }
    std::vector<float> values(elements);
    model_.read_f32(from, first, count, values);  // it refuses values that are not finite
    if (from.stored.type == type && from.is_as_stored()) model_.read_rows(from, first, count, out);
    else encode_feature_rows(type, values, out, from.stored.file->path(), where(layer, which));
  }
  void stream_rows(std::uint32_t layer, feature_vector which, unsigned threads, const feature_sink& sink) {
    const std::uint64_t columns = config().hidden_size, features = described_.features,
                        row = feature_row_bytes(described_[which].type, columns);
    const std::uint64_t step = (std::max<std::uint64_t>)(1, chunk_elements / columns);
    std::vector<std::vector<std::byte>> buffers(threads == 1 ? 1 : 2 * std::size_t{threads});
    ordered_work(
        threads, buffers.size(), static_cast<std::size_t>((features + step - 1) / step),
        [&](std::size_t item, std::size_t slot) {
          const std::uint64_t first = item * step, count = (std::min)(step, features - first);
          buffers[slot].resize(static_cast<std::size_t>(count * row));
          read_some(layer, which, first, count, buffers[slot]);
        },
        [&](std::size_t, std::size_t slot) { sink(buffers[slot]); });
  }

  /// Reads rows of down in the checkpoint's order, [count, intermediate_size], one expert's matrix after the other; on
  /// any thread.
  void read_down(std::uint32_t, std::uint64_t first, std::uint64_t count, std::span<std::int8_t> out) const {
    codes_[2]->rows(first, count, out);
  }
  void read_down(std::uint32_t layer, std::uint64_t first, std::uint64_t count, std::span<float> out) const {
    model_.read_f32(tensor(layer, feature_vector::down), first, count, out);
  }
  void read_down_values(std::uint32_t layer, std::uint64_t row, std::span<float> out) const {
    if (!is_own_ternary()) return read_down(layer, row, 1, out);
    std::vector<std::int8_t> codes(out.size());
    read_down(layer, row, 1, codes);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(codes[i]) * codes_[2]->scale();
  }

  /// Streams down by features: several passes over the matrix, each of which transposes as many features as fit in
  /// memory.
  template <class T>
  void turn(std::uint32_t layer, unsigned threads, const feature_sink& sink) {
    for (std::uint32_t expert = 0; expert < experts(); ++expert) turn<T>(layer, expert, threads, sink);
  }
  template <class T>
  void turn(std::uint32_t layer, std::uint32_t expert, unsigned threads, const feature_sink& sink) {
    const std::size_t columns = config().hidden_size, features = config().intermediate_size;
    const dtype type = described_[feature_vector::down].type;
    const std::size_t at_once =
        std::clamp<std::size_t>(static_cast<std::size_t>(turn_bytes_ / sizeof(T)) / columns, 1, features);
    const std::size_t step = (std::max<std::size_t>)(1, static_cast<std::size_t>(chunk_elements) / features);
    std::vector<T> turned(at_once * columns);
    std::vector<std::vector<T>> buffers(threads == 1 ? 1 : 2 * std::size_t{threads});
    std::vector<std::byte> bytes;
    for (std::size_t begin = 0; begin < features; begin += at_once) {
      const std::size_t end = (std::min)(features, begin + at_once);
      ordered_work(
          threads, buffers.size(), (columns + step - 1) / step,
          [&](std::size_t item, std::size_t slot) {
            const std::size_t first = item * step, count = (std::min)(step, columns - first);
            buffers[slot].resize(count * features);
            read_down(layer, expert * columns + first, count, std::span<T>(buffers[slot]));
            for (std::size_t f = begin; f < end; ++f)
              for (std::size_t r = 0; r < count; ++r)
                turned[(f - begin) * columns + first + r] = buffers[slot][r * features + f];
          },
          [](std::size_t, std::size_t) {});
      const std::size_t rows = (std::max<std::size_t>)(1, static_cast<std::size_t>(chunk_elements) / columns);
      for (std::size_t f = begin; f < end; f += rows) {
        const std::size_t count = (std::min)(rows, end - f);
        const std::span<const T> values = std::span<const T>(turned).subspan((f - begin) * columns, count * columns);
        bytes.resize(count * static_cast<std::size_t>(feature_row_bytes(type, columns)));
        if constexpr (sizeof(T) == 1) encode_ternary_words(values, bytes);
        else
          encode_feature_rows(type, values, bytes, tensor(layer, feature_vector::down).stored.file->path(),
                              where(layer, feature_vector::down));
        sink(bytes);
      }
    }
  }

  checkpoint model_;
  std::optional<dtype> codec_;
  std::uint64_t turn_bytes_;
  feature_layer described_;
  std::array<std::optional<ternary_tensor>, 3> codes_;
};

}  // namespace intaglio::io
