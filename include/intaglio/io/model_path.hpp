// SPDX-License-Identifier: MIT
// Recognises the form of the model at a path by a file's first bytes and its name.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "intaglio/io/checkpoint_packed.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// Whether a file begins like a ZIP file.
inline bool is_zip_file(const std::filesystem::path& path) { return begins_with(path, "PK\x03\x04"); }
/// Whether a file begins like a packed file.
inline bool is_packed_file(const std::filesystem::path& path) { return begins_with(path, packed_layout::magic); }

/// Whether a file begins like safetensors: the length of a JSON header and its brace.
inline bool is_safetensors_file(const std::filesystem::path& path) {
  const mapped_file file(path);
  std::array<char, 9> begin{};
  if (file.size() < begin.size()) return false;
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin[8] == '{' && (path.extension() == ".safetensors" || std::string_view(begin.data(), 4) != "GGUF");
}
/// Whether a file is one of torch.save, by its beginning or, unless that is GGUF's, its name. torch_file reports what
/// is wrong with it.
inline bool is_torch_file(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  const bool named = ending == ".pth" || ending == ".pt" || ending == ".bin";
  return is_zip_file(path) || (named && !begins_with(path, "GGUF"));
}
/// Whether a file has only weights, whose config is in its folder.
inline bool stands_for_folder(const std::filesystem::path& path) {
  return path.extension() == ".safetensors" || is_torch_file(path) || is_safetensors_file(path);
}

/// The folder of a file; "." for a name without one.
inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}
/// Whether a folder has the config of its weights.
inline bool has_model_config(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "config.json", ignored) ||
         std::filesystem::exists(folder / "params.json", ignored);
}

}  // namespace intaglio::io
