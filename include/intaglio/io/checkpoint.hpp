// SPDX-License-Identifier: MIT
// Opens a model of any form that the library reads.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/checkpoint_original.hpp"
#include "intaglio/io/checkpoint_packed.hpp"

namespace intaglio::io {

inline bool begins_with(const std::filesystem::path& path, std::string_view text) {
  const mapped_file file(path);
  std::string begin(text.size(), '\0');
  if (file.size() >= begin.size()) file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin == text;
}
/// True for a file that begins as a ZIP file does.
inline bool is_zip_file(const std::filesystem::path& path) { return begins_with(path, "PK\x03\x04"); }
/// True for a file that begins as a packed file does.
inline bool is_packed_file(const std::filesystem::path& path) { return begins_with(path, packed_layout::magic); }

inline checkpoint checkpoint::open(const std::filesystem::path& path, const checkpoint_options& options) {
  std::error_code ignored;
  const auto there = [&](const std::filesystem::path& file) { return std::filesystem::exists(file, ignored); };
  if (!std::filesystem::is_directory(path, ignored)) {
    if (is_packed_file(path)) return open_packed(path);
    if (!is_zip_file(path)) return open_gguf(path, options);
    // One of PyTorch's files stands for its folder, which says what the model is.
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    if (!there(folder / "config.json") && !there(folder / "params.json"))
      throw file_error(path.string(), std::nullopt, "PyTorch's file without a config",
                       "config.json or params.json beside it", "neither");
    checkpoint out = open(folder, options);
    const auto same = [&](const auto& file) { return std::filesystem::equivalent(file->path(), path, ignored); };
    if (std::none_of(out.files_.begin(), out.files_.end(), same))
      throw file_error(path.string(), std::nullopt, "none of its folder's weights",
                       printable(out.files_.front()->path(), 240), "another file");
    return out;
  }
  if (!there(path / "config.json") && there(path / "params.json")) return open_original(path, options);
  return open_hf(path, options);
}

}  // namespace intaglio::io
