// SPDX-License-Identifier: MIT
// Opens folders of every form, and files of weights that stand for their folder. It includes all their readers and
// JSON.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "intaglio/core/definition.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/checkpoint_original.hpp"
#include "intaglio/io/model_path.hpp"
#include "intaglio/platform/path_text.hpp"

namespace intaglio::io {

/// True where a folder's weights are of the form that this file of it has: safetensors come before PyTorch's.
inline bool opens(const std::filesystem::path& folder, const std::filesystem::path& file) {
  return !is_torch_file(file) || !safetensors_model::are_in(folder);
}

INTAGLIO_DEFINITION checkpoint checkpoint::open_folder(const std::filesystem::path& path,
                                                       const checkpoint_options& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const bool original = !std::filesystem::exists(path / "config.json", ignored) &&
                          std::filesystem::exists(path / "params.json", ignored);
    return original ? open_original(path, options) : open_hf(path, options);
  }
  const std::filesystem::path folder = folder_of(path);
  if (!has_model_config(folder))
    throw file_error(path.string(), std::nullopt, "weights without a config",
                     "config.json or params.json beside the file, or a folder that has both", "neither");
  // A shard, or the one file that the folder's names say, stands for the folder; any other is the model's weights.
  const bool original = !std::filesystem::exists(folder / "config.json", ignored);
  const bool belongs = is_torch_file(path) ? torch_model::belongs(path) : safetensors_model::belongs(path);
  if (!original && !(belongs && opens(folder, path))) {
    checkpoint_options alone = options;
    alone.weights = path;
    alone.weights_are_torch = is_torch_file(path);
    return open_hf(folder, alone);
  }
  checkpoint out = open_folder(folder, options);
  const auto same = [&](const auto& file) {
    return std::filesystem::equivalent(platform::path_of(file->path()), path, ignored);
  };
  if (std::none_of(out.files_.begin(), out.files_.end(), same))
    throw file_error(path.string(), std::nullopt, "none of its folder's weights",
                     printable(out.files_.front()->path(), 240), "another file");
  return out;
}

}  // namespace intaglio::io
