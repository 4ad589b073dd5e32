// SPDX-License-Identifier: MIT
// Paths of texts.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <filesystem>
#include <string_view>

#if defined(_WIN32)
#include "intaglio/platform/windows_headers.hpp"
#endif

namespace intaglio::platform {

/// The library's texts are UTF-8. std::filesystem on Windows reads a text of char in another encoding: by the locale
/// (libstdc++) or by the ANSI code page (MSVC).
inline std::filesystem::path path_of(std::string_view text) {
#if defined(_WIN32)
  return wide_of(text);
#else
  return text;
#endif
}

}  // namespace intaglio::platform
