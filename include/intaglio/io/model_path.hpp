// SPDX-License-Identifier: MIT
// Recognises the form of the model at a path by a file's first bytes and its name, and finds the model of a folder.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/checkpoint_packed.hpp"
#include "intaglio/io/gguf_names.hpp"
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
/// Whether a file's name is one of torch.save.
inline bool has_torch_name(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".pth" || ending == ".pt" || ending == ".bin";
}
/// Whether a file is one of torch.save, by its beginning or, unless that is GGUF's, its name. torch_file reports what
/// is wrong with it.
inline bool is_torch_file(const std::filesystem::path& path) {
  return is_zip_file(path) || (has_torch_name(path) && !begins_with(path, "GGUF"));
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

/// A folder's files and folders but for hidden ones, in the order of their names. Empty where it cannot be read.
inline std::vector<std::filesystem::path> listed_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code unreadable;
  for (std::filesystem::directory_iterator at(folder, unreadable), end; !unreadable && at != end;
       at.increment(unreadable))
    if (!at->path().filename().string().starts_with('.')) out.push_back(at->path());
  std::sort(out.begin(), out.end());
  return out;
}

/// What a folder may be opened as: itself, where it has a config with weights in files of other forms than GGUF; else
/// each GGUF model in it; a config alone is the folder too. Empty: it has no model.
inline std::vector<std::filesystem::path> models_of_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  bool others = false;
  for (const std::filesystem::path& each : listed_folder(folder)) {
    others = others || each.extension() == ".safetensors" || has_torch_name(each);
    if (names_gguf_model(each.filename().string())) out.push_back(each);
  }
  if (has_model_config(folder) && (others || out.empty())) return {folder};
  return out;
}

/// The path of what is opened where a path is given: of a folder its only model, else the path.
/// @throws file_error for a folder without a model, or with several
inline std::filesystem::path model_at(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  const std::vector<std::filesystem::path> found = models_of_folder(path);
  if (found.size() == 1) return found.front();
  std::string names;
  for (std::size_t i = 0; i < found.size() && i < 4; ++i)
    names += (i == 0 ? ": " : ", ") + printable(found[i].filename().string(), 40);
  if (found.size() > 4) names += ", ...";
  throw file_error(path.string(), std::nullopt, "the model of a folder", "config.json, params.json or one GGUF file",
                   found.empty() ? "none of them" : std::to_string(found.size()) + " GGUF files" + names);
}

}  // namespace intaglio::io
