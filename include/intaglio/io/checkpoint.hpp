// SPDX-License-Identifier: MIT
// Opens a model of any form that the library reads.
#pragma once

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/checkpoint_hf.hpp"

namespace intaglio::io {

inline checkpoint checkpoint::open(const std::filesystem::path& path, const checkpoint_options& options) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? open_hf(path, options) : open_gguf(path, options);
}

}  // namespace intaglio::io
