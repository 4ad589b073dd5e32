// SPDX-License-Identifier: MIT
// Opens a model of any form that the library reads. A program that defines INTAGLIO_GGUF_ONLY has no readers of folders
// and JSON; one that defines INTAGLIO_READERS_APART has them in another file (docs/embedding.md).
#pragma once

#include <filesystem>
#include <optional>
#include <system_error>

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/checkpoint_packed.hpp"
#include "intaglio/io/model_path.hpp"
#if !defined(INTAGLIO_GGUF_ONLY) && !defined(INTAGLIO_READERS_APART)
#include "intaglio/io/checkpoint_folder.hpp"
#endif
#if defined(INTAGLIO_GGUF_ONLY) && defined(INTAGLIO_READERS_APART)
#error "INTAGLIO_GGUF_ONLY leaves the readers out of the program, so INTAGLIO_READERS_APART has nothing to say"
#endif

namespace intaglio::io {

inline checkpoint checkpoint::open(const std::filesystem::path& given, const checkpoint_options& options) {
  const std::filesystem::path path = model_at(given);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return open_folder(path, options);
  if (is_packed_file(path)) return open_packed(path);
  if (path.extension() == ".json" && has_model_config(folder_of(path)))
    throw file_error(path.string(), std::nullopt, "a part of a model",
                     "the folder that it is in, " + printable(folder_of(path).string(), 100), "a file of JSON");
  return stands_for_folder(path) ? open_folder(path, options) : open_gguf(path, options);
}

#if defined(INTAGLIO_GGUF_ONLY)
inline checkpoint checkpoint::open_folder(const std::filesystem::path& path, const checkpoint_options&) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  throw file_error(path.string(), std::nullopt, "a model of another form",
                   "GGUF or a packed file, as the program was compiled with INTAGLIO_GGUF_ONLY",
                   folder ? "a folder" : "weights of a folder");
}
#endif

}  // namespace intaglio::io
