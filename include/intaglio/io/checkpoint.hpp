// SPDX-License-Identifier: MIT
// Opens a model of any form that the library reads.
#pragma once

#include <array>

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/checkpoint_original.hpp"

namespace intaglio::io {

/// True for a file that begins as a ZIP file does.
inline bool is_zip_file(const std::filesystem::path& path) {
  const mapped_file file(path);
  std::array<char, 4> magic{};
  if (file.size() >= magic.size()) file.read(0, std::as_writable_bytes(std::span(magic)));
  return std::string_view(magic.data(), magic.size()) == "PK\x03\x04";
}

inline checkpoint checkpoint::open(const std::filesystem::path& path, const checkpoint_options& options) {
  std::error_code ignored;
  const auto there = [&](const std::filesystem::path& file) { return std::filesystem::exists(file, ignored); };
  if (!std::filesystem::is_directory(path, ignored)) {
    if (!is_zip_file(path)) return open_gguf(path, options);
    // One of PyTorch's files stands for its folder, which says what the model is.
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    if (!there(folder / "config.json") && !there(folder / "params.json"))
      throw file_error(path.string(), std::nullopt, "PyTorch's file without a config", "config.json or params.json beside it", "neither");
    checkpoint out = open(folder, options);
    const auto same = [&](const auto& file) { return std::filesystem::equivalent(file->path(), path, ignored); };
    if (std::none_of(out.files_.begin(), out.files_.end(), same))
      throw file_error(path.string(), std::nullopt, "none of its folder's weights", printable(out.files_.front()->path(), 240), "another file");
    return out;
  }
  if (!there(path / "config.json") && there(path / "params.json")) return open_original(path, options);
  return open_hf(path, options);
}

}  // namespace intaglio::io
