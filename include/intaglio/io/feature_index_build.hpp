// SPDX-License-Identifier: MIT
// Makes a feature index (docs/walk.md), layer by layer. Each file is complete and on the disk before the manifest names
// it, so a build that was killed continues after the last layer in the manifest.
#pragma once

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/crc32.hpp"
#include "intaglio/io/feature_index.hpp"
#include "intaglio/io/feature_source.hpp"
#include "intaglio/platform/files.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {
/// Options for building an index.
struct feature_build_options {
  std::optional<dtype> codec = std::nullopt;                ///< f32, f16 or bf16; absent: the model's own
  i2s_layout layout = i2s_layout::block128;                 ///< layout of I2_S tensors in the model
  unsigned threads = 0;                                     ///< threads that read and encode; 0: one for each processor
  std::uint64_t turn_bytes = std::uint64_t{64} << 20;       ///< memory for transposing down
  std::function<void(const file_progress&)> progress = {};  ///< called on the calling thread
};
/// What a build of an index wrote.
struct feature_build_report {
  std::uint64_t bytes = 0;             ///< bytes of the vectors in the index
  std::uint32_t layers = 0, kept = 0;  ///< layers in the index; of these, layers that an earlier build had made
  std::vector<std::string> warnings;
};

/// A folder that only one process at a time writes to; the lock ends with the process, however it ends.
class locked_folder {
 public:
  /// Makes the folder where there is none. @throws file_error where another process has the lock
  explicit locked_folder(const std::filesystem::path& path) {
    std::error_code failure;
    std::filesystem::create_directories(path, failure);
    descriptor_ = platform::lock_folder(path);
    if (descriptor_ >= 0) return;
    const int number = failure ? failure.value() : errno;
    throw file_error(path.string(), std::nullopt,
                     number == EWOULDBLOCK ? "another process is writing this index"
                                           : "cannot make or open the folder: " + platform::system_text(number));
  }
  locked_folder(const locked_folder&) = delete;
  locked_folder& operator=(const locked_folder&) = delete;
  ~locked_folder() { platform::close_file(descriptor_); }

 private:
  platform::file_number descriptor_ = -1;
};
/// Writes an index layer by layer, and goes on where an earlier build of the same index ended.
class feature_index_builder {
 public:
  feature_index_builder(feature_source& source, std::string codec, const std::filesystem::path& folder,
                        const feature_build_options& options)
      : source_(source), folder_(folder), options_(options), threads_(worker_threads(options.threads)), lock_(folder) {
    manifest_.source = platform::path_of(source.path()).filename().string();
    if (manifest_.source.empty()) manifest_.source = platform::path_of(source.path()).parent_path().filename().string();
    manifest_.codec = std::move(codec);
    manifest_.config = source.config();
  }

  feature_build_report run() {
    remove_leftovers();
    progress_.total_tensors = manifest_.config.num_hidden_layers * std::size(feature_vectors);
    resume();
    for (auto layer = static_cast<std::uint32_t>(manifest_.layers.size()); layer < manifest_.config.num_hidden_layers;
         ++layer) {
      feature_layer done = write_layer(layer);
      source_.expect_unchanged();
      manifest_.layers.push_back(std::move(done));
      write_feature_manifest(folder_, manifest_);
    }
    for (const feature_layer& each : manifest_.layers)
      for (const feature_block& block : each.blocks) report_.bytes += block.bytes;
    report_.layers = static_cast<std::uint32_t>(manifest_.layers.size());
    return report_;
  }

 private:
  /// Removes files that a killed build left unfinished.
  void remove_leftovers() const {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
      const std::string file = entry.path().filename().string();
      if ((file.starts_with("layer-") || file.starts_with(feature_index_file)) &&
          file.find(".partial-") != std::string::npos)
        std::filesystem::remove(entry.path(), ignored);
    }
  }

  /// Takes the existing layers over, after it was checked that they are complete and belong to the source.
  void resume() {
    std::error_code ignored;
    if (!std::filesystem::exists(folder_ / feature_index_file, ignored)) return;
    const feature_index before = feature_index::open_unfinished(
        folder_, {.contents = true, .threads = options_.threads, .progress = options_.progress});
    std::vector<std::string> lines = before.differences(manifest_.config);
    if (before.manifest().codec != manifest_.codec)
      lines.push_back("codec: wanted " + manifest_.codec + ", file " + printable(before.manifest().codec, 40));
    if (!lines.empty()) throw mismatch_error((folder_ / feature_index_file).string(), lines, {});
    for (std::uint32_t layer = 0; layer < before.layers(); ++layer) source_.expect_agreement(before, layer);
    manifest_ = before.manifest();
    report_.kept = before.layers();
    for (const feature_layer& each : manifest_.layers) {
      progress_.tensors += std::size(feature_vectors);
      for (const feature_block& block : each.blocks) progress_.bytes += block.bytes;
    }
  }

  feature_layer write_layer(std::uint32_t layer) {
    feature_layer out = source_.describe(layer);
    out.file = feature_layer_file(layer);
    std::uint64_t end = 0, whole = 0;
    for (feature_block& block : out.blocks) {
      block.offset = (end + feature_block_alignment - 1) / feature_block_alignment * feature_block_alignment;
      block.bytes = out.features * feature_row_bytes(block.type, manifest_.config.hidden_size);
      end = block.offset + block.bytes;
      whole += block.bytes;
    }
    // Layers may differ in type; later layers are estimated like this one.
    progress_.total_bytes = progress_.bytes + whole * (manifest_.config.num_hidden_layers - layer);
    atomic_file file(folder_ / platform::path_of(out.file));
    const std::vector<std::byte> zeros(feature_block_alignment);
    for (const feature_vector which : feature_vectors) {
      feature_block& block = out[which];
      file.write(std::span(zeros).first(static_cast<std::size_t>(block.offset - file.size())));
      progress_.tensor = out.file;
      report();
      source_.stream(layer, which, threads_, [&](std::span<const std::byte> bytes) {
        if (bytes.size() > block.offset + block.bytes - file.size())
          throw argument_error("vectors", std::to_string(block.bytes) + " bytes", "more");
        file.write(bytes);
        block.crc32 = crc32(bytes, block.crc32);
        progress_.bytes += bytes.size();
        report();
      });
      if (file.size() != block.offset + block.bytes)
        throw argument_error("vectors", std::to_string(block.bytes) + " bytes",
                             std::to_string(file.size() - block.offset));
      ++progress_.tensors;
    }
    file.commit();
    report();
    return out;
  }
  void report() const {
    if (options_.progress) options_.progress(progress_);
  }

  feature_source& source_;
  std::filesystem::path folder_;
  const feature_build_options& options_;
  unsigned threads_;
  locked_folder lock_;
  feature_manifest manifest_;
  file_progress progress_;
  feature_build_report report_;
};

/// Makes or completes the index of `model` (anything that checkpoint::open reads) in `folder`. Memory is bounded by
/// turn_bytes and a few pieces of 2^18 values for each thread, whatever the model's size. A complete index of the model
/// is left unchanged.
/// @throws file_error for faults of a file; mismatch_error for a folder with the index of another model or codec;
/// argument_error for a codec that an index cannot have
inline feature_build_report build_feature_index(const std::filesystem::path& model, const std::filesystem::path& folder,
                                                const feature_build_options& options = {}) {
  checkpoint_features source(checkpoint::open(model, {options.layout}), options.codec, options.turn_bytes);
  std::vector<std::string> warnings = source.model().warnings();
  feature_build_report out =
      feature_index_builder(source, options.codec ? std::string(name(*options.codec)) : "own", folder, options).run();
  out.warnings.insert(out.warnings.begin(), warnings.begin(), warnings.end());
  return out;
}

/// Compares an index with its model: the config, and some vectors of every layer.
/// @throws mismatch_error where they differ
inline void expect_index_of(const feature_index& index, const std::filesystem::path& model,
                            i2s_layout layout = i2s_layout::block128) {
  const std::optional<dtype> codec =
      index.manifest().codec == "own" ? std::nullopt : feature_type_from_name(index.manifest().codec);
  checkpoint_features source(checkpoint::open(model, {layout}), codec, 0);
  if (const auto lines = index.differences(source.config()); !lines.empty())
    throw mismatch_error((index.path() / feature_index_file).string(), lines, {});
  for (std::uint32_t layer = 0; layer < index.layers(); ++layer) source.expect_agreement(index, layer);
}

}  // namespace intaglio::io
