// SPDX-License-Identifier: MIT
// Writes a model as one file that loads by copying: config, tokenizer and the weights in the layouts of plans
// (docs/packed.md). Needs no device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/ordered_work.hpp"
#include "intaglio/io/own_files.hpp"
#include "intaglio/io/packed_writer.hpp"
#include "intaglio/plan/weight_identity.hpp"
#include "intaglio/runtime/weight_image.hpp"

namespace intaglio {

/// Options for writing a packed file.
struct pack_options {
  unsigned threads = 0;  ///< threads that repack; 0: one for each of the machine's
  std::function<void(std::uint64_t done, std::uint64_t total)>
      progress{};  ///< bytes of weights; an exception ends the work and leaves no file
};

namespace runtime {

/// The codec of a plan's layers as the tools name it.
inline std::string layer_codec_name(const plan::table& of) {
  for (const plan::weight& each : of.weights)
    if (each.per_layer &&
        (each.layout == plan::weight_layout::matrix || each.layout == plan::weight_layout::row_groups))
      return std::string(kernels::info(each.codec).name);
  return "i2_s";
}

/// Writes the weights that any of several plans of one model uses.
class packing {
 public:
  packing(const io::checkpoint& from, std::span<const plan::table* const> tables) : from_(&from) {
    std::set<std::string> known;
    for (const plan::table* table : tables) {
      images_.push_back({weight_image(from, *table), table});
      for (std::uint32_t slot = 0; slot < table->weights.size(); ++slot) {
        const plan::weight& w = table->weights[slot];
        if (const std::string words = plan::identity(w, *table); known.insert(words).second) {
          parts_.push_back({images_.size() - 1, slot});
          weights_.push_back({.layout = words, .copies = table->copies(w), .bytes = w.bytes});
        }
      }
    }
  }

  /// @return bytes of the file
  std::uint64_t write(const std::filesystem::path& out, const pack_options& options) {
    const unsigned threads = io::worker_threads(options.threads);
    struct piece {
      std::size_t part;
      std::uint32_t layer;
      std::uint64_t begin, bytes;
    };
    std::vector<piece> pieces;
    std::uint64_t total = 0, done = 0;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const std::uint64_t unit = weight_image::unit_bytes(weight(part)),
                          step = (std::max<std::uint64_t>)(1, (std::uint64_t{1} << 20) / unit) * unit;
      const plan::table& of = *images_[parts_[part].first].table;
      for (std::uint32_t layer = 0; layer < (weight(part).per_layer ? of.config->num_hidden_layers : 1); ++layer)
        for (std::uint64_t at = 0; at < weights_[part].bytes && of.has(weight(part), layer); at += step)
          pieces.push_back({part, layer, at, (std::min)(step, weights_[part].bytes - at)});
      total += weights_[part].copies * weights_[part].bytes;
    }
    for (prepared& each : images_) each.image.measure(threads, [](std::uint64_t) {});
    const plan::table& table = *images_.front().table;
    io::packed_writer file(out,
                           {.codec = layer_codec_name(table),
                            .stated_architecture = from_->stated_architecture(),
                            .states_context = from_->states_context(),
                            .pooling = from_->pooling(),
                            .config = from_->config(),
                            .vocabulary = from_->vocabulary(),
                            .weights = weights_,
                            .sums = {}},
                           plan::weight_layout_version);
    const std::size_t slot_count = 2 * threads;
    std::vector<std::vector<std::byte>> made(slot_count);
    if (options.progress) options.progress(0, total);
    io::ordered_work(
        threads, slot_count, pieces.size(),
        [&](std::size_t i, std::size_t slot) {
          made[slot].resize(static_cast<std::size_t>(pieces[i].bytes));
          const auto& [image, index] = parts_[pieces[i].part];
          images_[image].image.fill(index, pieces[i].layer, pieces[i].begin, made[slot]);
        },
        [&](std::size_t i, std::size_t slot) {
          file.write(made[slot]);
          done += pieces[i].bytes;
          if (options.progress) options.progress(done, total);
        });
    from_->expect_unchanged();
    file.commit();
    return file.size();
  }

 private:
  struct prepared {
    weight_image image;
    const plan::table* table;
  };
  const plan::weight& weight(std::size_t part) const {
    return images_[parts_[part].first].table->weights[parts_[part].second];
  }

  const io::checkpoint* from_;
  std::vector<prepared> images_;
  std::vector<std::pair<std::size_t, std::uint32_t>> parts_;  ///< image and slot
  std::vector<io::packed_weight> weights_;
};

}  // namespace runtime

/// Packs a model for some plans of it, such as those of session<Model>: plan::engraved<Model,
/// plan::profiles::cpu>::table and the tables of the other profiles. Weights that they share are stored once. The file
/// appears under its name when it is complete and on disk.
/// @return bytes of the file
/// @error argument_error: no plan, a file that is packed already; mismatch_error; file_error: a bad value, a file that
///   was truncated or changed, a full disk
inline std::uint64_t pack(const io::checkpoint& from, std::span<const plan::table* const> tables,
                          const std::filesystem::path& out, const pack_options& options = {}) {
  if (tables.empty()) throw argument_error("plans", "at least one", "none");
  if (from.packed() != nullptr)
    throw argument_error("model", "a file that is not packed", printable(from.path(), 240) + ", which is");
  io::expect_other_file(from, out);
  for (const plan::table* table : tables)
    if (auto differences = from.differences(*table->config); !differences.empty())
      throw mismatch_error(from.path(), std::move(differences),
                           "intaglio engrave " + printable(from.path(), 240) + " -o DIR");
  return runtime::packing(from, tables).write(out, options);
}

}  // namespace intaglio
