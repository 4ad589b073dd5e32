// SPDX-License-Identifier: MIT
// Says of a path which form of a model it holds, by a file's first bytes and its name.
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

/// True for a file that begins as a ZIP file does.
inline bool is_zip_file(const std::filesystem::path& path) { return begins_with(path, "PK\x03\x04"); }
/// True for a file that begins as a packed file does.
inline bool is_packed_file(const std::filesystem::path& path) { return begins_with(path, packed_layout::magic); }

/// True for a file that begins as safetensors do: the length of a JSON header and its brace.
inline bool is_safetensors_file(const std::filesystem::path& path) {
  const mapped_file file(path);
  std::array<char, 9> begin{};
  if (file.size() < begin.size()) return false;
  file.read(0, std::as_writable_bytes(std::span(begin)));
  return begin[8] == '{' && (path.extension() == ".safetensors" || std::string_view(begin.data(), 4) != "GGUF");
}
/// True for a file of torch.save, by its beginning or, unless that is GGUF's, its name; torch_file says what is wrong
/// with it.
inline bool is_torch_file(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  const bool named = ending == ".pth" || ending == ".pt" || ending == ".bin";
  return is_zip_file(path) || (named && !begins_with(path, "GGUF"));
}
/// True for a file of weights alone, of whose model its folder speaks.
inline bool stands_for_folder(const std::filesystem::path& path) {
  return path.extension() == ".safetensors" || is_torch_file(path) || is_safetensors_file(path);
}

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}
/// True where a folder has what says which model its weights are.
inline bool has_model_config(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "config.json", ignored) ||
         std::filesystem::exists(folder / "params.json", ignored);
}

}  // namespace intaglio::io
