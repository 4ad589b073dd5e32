// SPDX-License-Identifier: MIT
// A feature index opened for reading: the gate, up and down vectors of every layer's features, in mapped files
// (docs/walk.md). feature_index_build.hpp makes one; vindex.hpp converts to and from LARQL's layout.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/io/crc32.hpp"
#include "intaglio/io/feature_manifest.hpp"
#include "intaglio/io/file_progress.hpp"
#include "intaglio/io/mapped_file.hpp"
#include "intaglio/io/ordered_work.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {
/// Options for opening an index.
struct feature_index_options {
  /// Reads everything once, and checks the checksums and every value. Without it only names and sizes are checked.
  bool contents = true;
  unsigned threads = 0;                                     ///< threads of that check; 0: one for each processor
  std::function<void(const file_progress&)> progress = {};  ///< called on the calling thread
};

/// An open index. Movable. Several threads may read at once.
class feature_index {
 public:
  /// @throws file_error for a file that is missing, unfinished, of another size, or without its checksum
  static feature_index open(const std::filesystem::path& folder, const feature_index_options& options = {}) {
    feature_index out(folder, read_feature_manifest(folder));
    if (!out.manifest_.complete())
      throw file_error((folder / feature_index_file).string(), std::nullopt,
                       "the index is not finished; the same command goes on with it",
                       std::to_string(out.config().num_hidden_layers) + " layers", std::to_string(out.layers()));
    if (options.contents) out.check_contents(options);
    return out;
  }
  /// Opens an index that may lack layers, for a writer that completes it.
  static feature_index open_unfinished(const std::filesystem::path& folder, const feature_index_options& options = {}) {
    feature_index out(folder, read_feature_manifest(folder));
    if (options.contents) out.check_contents(options);
    return out;
  }

  const std::filesystem::path& path() const { return folder_; }
  const feature_manifest& manifest() const { return manifest_; }
  /// The config of the model, as far as the manifest has it.
  const decoder_config& config() const { return manifest_.config; }
  std::uint32_t layers() const { return static_cast<std::uint32_t>(manifest_.layers.size()); }
  const feature_layer& layer(std::uint32_t index) const {
    if (index >= layers())
      throw argument_error("layer", "a layer of " + std::to_string(layers()), std::to_string(index));
    return manifest_.layers[index];
  }
  /// Identifies the index by the checksums of its blocks. A journal, a graph and a router name their index by it.
  std::uint32_t identity() const {
    std::vector<std::uint32_t> sums;
    for (const feature_layer& each : manifest_.layers)
      for (const feature_block& block : each.blocks) sums.push_back(block.crc32);
    return crc32(std::as_bytes(std::span(sums)));
  }
  /// Bytes of the vectors of all layers.
  std::uint64_t bytes() const {
    std::uint64_t out = 0;
    for (const feature_layer& each : manifest_.layers)
      for (const feature_block& block : each.blocks) out += block.bytes;
    return out;
  }
  std::uint64_t row_bytes(std::uint32_t layer_index, feature_vector which) const {
    return feature_row_bytes(layer(layer_index)[which].type, config().hidden_size);
  }

  /// All vectors of a kind in the mapped file: features x row_bytes. Touching a mapping of a file that was shortened
  /// raises SIGBUS; the functions below report that as an error instead.
  std::span<const std::byte> mapping(std::uint32_t layer_index, feature_vector which) const {
    const feature_block& block = layer(layer_index)[which];
    return maps_[layer_index].subspan(static_cast<std::size_t>(block.offset), static_cast<std::size_t>(block.bytes));
  }

  /// Bytes of vectors [first, first + count), row_bytes each. @throws argument_error, file_error
  void read_rows(std::uint32_t layer_index, feature_vector which, std::uint64_t first, std::uint64_t count,
                 std::span<std::byte> out) const {
    const feature_layer& of = layer(layer_index);
    const std::uint64_t row = row_bytes(layer_index, which);
    if (!range_inside(first, count, of.features) || out.size() != count * row)
      throw argument_error(
          "features", "features inside 0.." + std::to_string(of.features) + " and room for their vectors",
          std::to_string(first) + " + " + std::to_string(count) + ", room for " + std::to_string(out.size()));
    files_[layer_index]->read(of[which].offset + first * row, out);
  }
  /// Values of vectors [first, first + count). @shape out: [count, hidden_size]
  void read_f32(std::uint32_t layer_index, feature_vector which, std::uint64_t first, std::uint64_t count,
                std::span<float> out) const {
    if (out.size() != count * config().hidden_size)
      throw argument_error("out", std::to_string(count * config().hidden_size) + " values", std::to_string(out.size()));
    std::vector<std::byte> rows(static_cast<std::size_t>(count * row_bytes(layer_index, which)));
    read_rows(layer_index, which, first, count, rows);
    const feature_block& block = layer(layer_index)[which];
    decode_feature_rows(block.type, rows, block.scale, out);
  }
  /// Codes -1, 0, +1 of ternary vectors [first, first + count). @throws argument_error where they are not ternary
  void read_codes(std::uint32_t layer_index, feature_vector which, std::uint64_t first, std::uint64_t count,
                  std::span<std::int8_t> out) const {
    const feature_block& block = layer(layer_index)[which];
    if (block.type != dtype::i2_s || out.size() != count * config().hidden_size)
      throw argument_error("codes", "ternary vectors and room for " + std::to_string(count * config().hidden_size),
                           std::string(feature_type_name(block.type)) + " and " + std::to_string(out.size()));
    std::vector<std::byte> rows(static_cast<std::size_t>(count * row_bytes(layer_index, which)));
    read_rows(layer_index, which, first, count, rows);
    decode_ternary_words(rows, out);
  }

  /// The differences between the index's model and an engraved one; empty where they agree.
  std::vector<std::string> differences(const decoder_config& engraved) const {
    decoder_config stated = engraved;  // the other fields say nothing about features
    stated.model_type = config().model_type;
    stated.hidden_act = config().hidden_act;
    stated.hidden_size = config().hidden_size;
    stated.intermediate_size = config().intermediate_size;
    stated.num_hidden_layers = config().num_hidden_layers;
    stated.num_local_experts = config().num_local_experts;
    stated.num_experts_per_tok = config().num_experts_per_tok;
    return config_differences(engraved, stated);
  }

  /// @throws file_error where one of the files changed since it was opened
  void expect_unchanged() const {
    for (const auto& file : files_) file->expect_unchanged();
  }

 private:
  feature_index(const std::filesystem::path& folder, feature_manifest manifest)
      : folder_(folder), manifest_(std::move(manifest)) {
    for (const feature_layer& each : manifest_.layers) {
      auto& file = files_.emplace_back(std::make_unique<mapped_file>(folder_ / platform::path_of(each.file)));
      if (file->size() != each.bytes())
        throw file_error(file->path(), std::nullopt, "size", std::to_string(each.bytes()) + " bytes",
                         std::to_string(file->size()));
      maps_.push_back(file->mapping());
    }
  }

  static constexpr std::size_t chunk_bytes = std::size_t{1} << 18;

  void check_contents(const feature_index_options& options) const {
    file_progress progress;
    progress.total_tensors = manifest_.layers.size() * std::size(feature_vectors);
    for (const feature_layer& each : manifest_.layers) progress.total_bytes += each.bytes();
    const unsigned threads = worker_threads(options.threads);
    ordered_work(
        threads, threads == 1 ? 1 : 2 * std::size_t{threads}, progress.total_tensors,
        [&](std::size_t item, std::size_t) {
          check_block(static_cast<std::uint32_t>(item / 3), feature_vectors[item % 3]);
        },
        [&](std::size_t item, std::size_t) {
          const feature_layer& done = manifest_.layers[item / 3];
          progress.tensor = done.file;
          progress.bytes += done.blocks[item % 3].bytes;
          ++progress.tensors;
          if (options.progress) options.progress(progress);
        });
  }
  void check_block(std::uint32_t layer_index, feature_vector which) const {
    const feature_block& block = layer(layer_index)[which];
    const mapped_file& file = *files_[layer_index];
    const std::uint64_t row = row_bytes(layer_index, which),
                        step = (std::max<std::uint64_t>)(row, chunk_bytes / row * row);
    std::vector<std::byte> bytes;
    std::uint32_t sum = 0;
    std::optional<std::pair<std::uint64_t, std::string>>
        fault;  // a damaged file's checksum explains more than a bad value
    for (std::uint64_t at = 0; at < block.bytes; at += step) {
      bytes.resize(static_cast<std::size_t>((std::min)(step, block.bytes - at)));
      file.read(block.offset + at, bytes);
      sum = crc32(bytes, sum);
      if (fault) continue;
      if (const auto found = find_feature_fault(block.type, bytes))
        fault = {block.offset + at + found->byte, std::string(found->found)};
    }
    const std::string where = std::string(name(which)) + " vectors of layer " + std::to_string(layer_index);
    if (sum != block.crc32)
      throw file_error(file.path(), block.offset, "checksum of the " + where, feature_json::hex8(block.crc32),
                       feature_json::hex8(sum));
    if (fault)
      throw file_error(file.path(), fault->first, where,
                       block.type == dtype::i2_s ? "codes 0, 1 and 2" : "finite numbers", fault->second);
  }

  std::filesystem::path folder_;
  feature_manifest manifest_;
  std::vector<std::unique_ptr<mapped_file>> files_;
  std::vector<std::span<const std::byte>> maps_;  ///< the whole file of each layer
};

}  // namespace intaglio::io
