// SPDX-License-Identifier: MIT
// Opens folders of every form, and files of weights that represent their folder. It includes all readers of folders and
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

/// Whether a folder's weights have the form of this file in it: safetensors are preferred to PyTorch's files.
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
  // A shard, or the file that has the usual name, represents the folder; any other file has the weights itself.
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
