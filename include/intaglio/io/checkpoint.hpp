// SPDX-License-Identifier: MIT
// Opens a model of any form that the library reads; of GGUF and packed files alone where the program says
// INTAGLIO_GGUF_ONLY, which leaves the readers of folders and of JSON out of it (docs/embedding.md).
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/checkpoint_packed.hpp"
#if !defined(INTAGLIO_GGUF_ONLY)
#include "intaglio/io/checkpoint_hf.hpp"
#include "intaglio/io/checkpoint_original.hpp"
#include "intaglio/platform/path_text.hpp"
#endif

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

#if defined(INTAGLIO_GGUF_ONLY)

inline checkpoint checkpoint::open(const std::filesystem::path& path, const checkpoint_options& options) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  if (folder || stands_for_folder(path))
    throw file_error(path.string(), std::nullopt, "a model of another form",
                     "GGUF or a packed file, as the program was compiled with INTAGLIO_GGUF_ONLY",
                     folder ? "a folder" : "weights of a folder");
  return is_packed_file(path) ? open_packed(path) : open_gguf(path, options);
}

#else

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}
/// True where a folder has what says which model its weights are.
inline bool has_model_config(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "config.json", ignored) ||
         std::filesystem::exists(folder / "params.json", ignored);
}

/// True where a folder's weights are of the form that this file of it has: safetensors come before PyTorch's.
inline bool opens(const std::filesystem::path& folder, const std::filesystem::path& file) {
  return !is_torch_file(file) || !safetensors_model::are_in(folder);
}

inline checkpoint checkpoint::open(const std::filesystem::path& path, const checkpoint_options& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (is_packed_file(path)) return open_packed(path);
    const std::filesystem::path folder = folder_of(path);
    if (path.extension() == ".json" && has_model_config(folder))
      throw file_error(path.string(), std::nullopt, "a part of a model",
                       "the folder that it is in, " + printable(folder.string(), 100), "a file of JSON");
    if (!stands_for_folder(path)) return open_gguf(path, options);
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
    checkpoint out = open(folder, options);
    const auto same = [&](const auto& file) {
      return std::filesystem::equivalent(platform::path_of(file->path()), path, ignored);
    };
    if (std::none_of(out.files_.begin(), out.files_.end(), same))
      throw file_error(path.string(), std::nullopt, "none of its folder's weights",
                       printable(out.files_.front()->path(), 240), "another file");
    return out;
  }
  if (!std::filesystem::exists(path / "config.json", ignored) && std::filesystem::exists(path / "params.json", ignored))
    return open_original(path, options);
  return open_hf(path, options);
}

#endif

}  // namespace intaglio::io
