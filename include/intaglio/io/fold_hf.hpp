// SPDX-License-Identifier: MIT
// fold.hpp for a Hugging Face folder with safetensors. It writes a new folder with one file of weights, in which the
// FFNs of changed layers are f32, config.json with the new number of features, and copies of the other files. The
// folder appears as a whole or not at all.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/feature_patch.hpp"
#include "intaglio/io/file_progress.hpp"
#include "intaglio/io/fold.hpp"
#include "intaglio/io/safetensors_model.hpp"
#include "intaglio/io/safetensors_writer.hpp"
#include "intaglio/platform/path_text.hpp"
#include "intaglio/platform/process.hpp"

namespace intaglio::io {

/// The work of fold_hf.
class hf_feature_folder {
 public:
  hf_feature_folder(const std::filesystem::path& in, const feature_patch& patch, const std::filesystem::path& out)
      : in_(in), out_(out), patch_(patch), index_(patch.index()), files_(safetensors_model::open(in)) {
    if (index_.config().model_type == architecture::bitnet)
      throw argument_error("model",
                           "one with float weights; `convert` makes a GGUF of packed ones, which can be folded",
                           "a BitNet's folder");
    std::error_code ignored;
    if (std::filesystem::exists(out, ignored))
      throw file_error(out.string(), std::nullopt, "the new folder", "a name that is not in use", "something");
    const std::uint32_t features = index_.config().intermediate_size;
    for (const changed_feature& each : patch.changed()) changed_.insert(each.layer);
    features_ = new_features_ = features;
    for (std::uint32_t layer = 0; layer < index_.layers(); ++layer)
      new_features_ = (std::max<std::uint64_t>)(new_features_, patch.features(layer));
    if (new_features_ != features_) new_features_ = (new_features_ + 3) / 4 * 4;  // kernels process groups of four
  }

  fold_report run(const std::function<void(const file_progress&)>& progress) {
    const std::filesystem::path made =
        platform::path_of(out_.string() + ".partial-" + std::to_string(platform::process_id()));
    struct removing {
      const std::filesystem::path& folder;
      ~removing() {
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
      }
    } const leftover{made};
    std::error_code failure;
    if (!std::filesystem::create_directory(made, failure))
      throw file_error(made.string(), std::nullopt,
                       "cannot make the folder: " + (failure ? failure.message() : "it is there"));
    const std::uint64_t bytes = write_weights(made, progress);
    write_config(made);
    copy_rest(made);
    std::filesystem::rename(made, out_, failure);
    if (failure) throw file_error(out_.string(), std::nullopt, "cannot put the folder there: " + failure.message());
    return {{changed_.begin(), changed_.end()}, static_cast<std::uint32_t>(new_features_), bytes};
  }

 private:
  struct ffn_tensor {
    std::uint32_t layer = 0;
    feature_vector which = feature_vector::gate;
  };
  std::optional<ffn_tensor> ffn(const safetensors_tensor& tensor) const {
    const auto name = gguf_name(tensor.name, index_.config().model_type);
    if (!name) return std::nullopt;
    for (std::uint32_t layer = 0; layer < index_.layers(); ++layer)
      for (const feature_vector which : feature_vectors)
        if (*name == "blk." + std::to_string(layer) + ".ffn_" + std::string(intaglio::io::name(which)) + ".weight")
          return ffn_tensor{layer, which};
    return std::nullopt;
  }

  std::uint64_t write_weights(const std::filesystem::path& to,
                              const std::function<void(const file_progress&)>& progress) {
    safetensors_writer writer(to / safetensors_file::name);
    const std::uint64_t width = index_.config().hidden_size;
    for (const safetensors_tensor& tensor : files_.tensors()) {
      if (!tensor.type) refuse(tensor, "a type that is read", std::string(tensor.stored_type));
      const auto of = ffn(tensor);
      if (!of) {
        writer.add_tensor(tensor.name, *tensor.type, tensor.shape);
        continue;
      }
      const bool down = of->which == feature_vector::down;
      const std::array<std::uint64_t, 2> stored{down ? width : features_, down ? features_ : width},
          shape{down ? width : new_features_, down ? new_features_ : width};
      if (!std::ranges::equal(tensor.shape, stored)) refuse(tensor, shape_text(stored), shape_text(tensor.shape));
      writer.add_tensor(tensor.name, changed_.contains(of->layer) ? dtype::f32 : *tensor.type, shape);
    }
    writer.begin();
    file_progress at;
    at.total_tensors = files_.tensors().size();
    at.total_bytes = writer.data_bytes();
    for (const safetensors_tensor& tensor : files_.tensors()) {
      at.tensor = tensor.name;
      if (progress) progress(at);
      const auto of = ffn(tensor);
      if (of && changed_.contains(of->layer)) write_values(writer, *of);
      else if (of && new_features_ != features_) write_padded(writer, tensor, of->which);
      else copy(writer, tensor, 0, tensor.bytes);
      ++at.tensors;
      at.bytes += tensor.bytes;
    }
    for (const safetensors_file& each : files_.files()) each.file().expect_unchanged();
    writer.finish();
    return writer.data_bytes();
  }
  void copy(safetensors_writer& writer, const safetensors_tensor& tensor, std::uint64_t from,
            std::uint64_t count) const {
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < count; at += bytes.size()) {
      bytes.resize(static_cast<std::size_t>((std::min<std::uint64_t>)(count - at, 1 << 22)));
      files_.files()[tensor.file].file().read(tensor.offset + from + at, bytes);
      writer.write(bytes);
    }
  }
  /// Copies a tensor and appends zeros for the features that it lacks.
  void write_padded(safetensors_writer& writer, const safetensors_tensor& tensor, feature_vector which) const {
    const std::uint64_t rows = which == feature_vector::down ? tensor.shape[0] : 1, row = tensor.bytes / rows;
    const std::vector<std::byte> zeros(static_cast<std::size_t>(row / features_ * (new_features_ - features_)));
    for (std::uint64_t r = 0; r < rows; ++r) {
      copy(writer, tensor, r * row, row);
      writer.write(zeros);
    }
  }
  void write_values(safetensors_writer& writer, const ffn_tensor& of) const {
    const std::size_t width = index_.config().hidden_size, count = patch_.features(of.layer),
                      all = static_cast<std::size_t>(new_features_);
    std::vector<float> rows(all * width);
    patch_.read_f32(of.layer, of.which, 0, count, std::span(rows).first(count * width));
    if (of.which == feature_vector::down) {
      std::vector<float> turned(rows.size());
      for (std::size_t f = 0; f < all; ++f)
        for (std::size_t h = 0; h < width; ++h) turned[h * all + f] = rows[f * width + h];
      rows = std::move(turned);
    }
    writer.write(std::as_bytes(std::span(rows)));
  }

  void write_config(const std::filesystem::path& to) const {
    const mapped_file file(in_ / "config.json");
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    if (new_features_ != features_) {
      auto config =
          nlohmann::ordered_json::parse(text, nullptr, false);  // opened as a checkpoint before, so it is well-formed
      auto& own = config.contains("text_config") ? config["text_config"] : config;
      if (!own.is_object() || own.value("intermediate_size", std::uint64_t{0}) != features_)
        throw file_error(file.path(), std::nullopt, "intermediate_size", std::to_string(features_), "another or none");
      own["intermediate_size"] = new_features_;
      text = config.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    }
    atomic_file out(to / "config.json");
    out.write(std::as_bytes(std::span(text)));
    out.commit();
  }
  /// Copies the other files: tokenizer, templates and notes, but neither weights nor folders.
  void copy_rest(const std::filesystem::path& to) const {
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator(in_, failure)) {
      const auto name = entry.path().filename();
      const std::string ending = name.extension().string();
      if (!entry.is_regular_file() || name == "config.json" ||
          name == platform::path_of(safetensors_model::index_name()) || ending == ".safetensors" || ending == ".bin" ||
          ending == ".pth" || ending == ".gguf")
        continue;
      std::filesystem::copy_file(entry.path(), to / name, failure);
      if (failure) throw file_error((to / name).string(), std::nullopt, "cannot copy: " + failure.message());
    }
    if (failure) throw file_error(in_.string(), std::nullopt, "cannot read the folder: " + failure.message());
  }
  [[noreturn]] void refuse(const safetensors_tensor& tensor, const std::string& expected,
                           const std::string& found) const {
    throw file_error(files_.files()[tensor.file].file().path(), tensor.offset,
                     "tensor '" + printable(tensor.name, 70) + "'", expected, found);
  }

  std::filesystem::path in_, out_;
  const feature_patch& patch_;
  const feature_index& index_;
  safetensors_model files_;
  std::set<std::uint32_t> changed_;
  std::uint64_t features_ = 0, new_features_ = 0;
};

/// Includes the changes of a journal in the model of a Hugging Face folder that its index was made of.
/// matrix in f32, twice.
/// @param out  a folder that is not there yet  @throws file_error; mismatch_error for an index of another model;
/// argument_error for packed ternary weights and mixtures
inline fold_report fold_hf(const std::filesystem::path& in, const feature_patch& patch,
                           const std::filesystem::path& out,
                           const std::function<void(const file_progress&)>& progress = {}) {
  const checkpoint model = checkpoint::open(in);
  if (auto lines = patch.index().differences(model.config()); !lines.empty())
    throw mismatch_error((patch.index().path() / feature_index_file).string(), std::move(lines), {});
  expect_foldable(model.config());
  return hf_feature_folder(in, patch, out).run(progress);
}

}  // namespace intaglio::io
