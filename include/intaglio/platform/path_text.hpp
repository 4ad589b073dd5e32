// SPDX-License-Identifier: MIT
// Conversion of text to paths.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <filesystem>
#include <string_view>

#if defined(_WIN32)
#include "intaglio/platform/windows_headers.hpp"
#endif

namespace intaglio::platform {

/// A path from UTF-8 text, which the library uses everywhere. std::filesystem on Windows would read char text in
/// another encoding: by the locale (libstdc++) or by the ANSI code page (MSVC).
inline std::filesystem::path path_of(std::string_view text) {
#if defined(_WIN32)
  return wide_of(text);
#else
  return text;
#endif
}

}  // namespace intaglio::platform
