// SPDX-License-Identifier: MIT
// windows.h with as few of its macros as it can do with. Included by this room's Windows headers alone.
#pragma once

#include "intaglio/core/compiler.hpp"

#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>

#include <string>
#include <string_view>

namespace intaglio::platform {

/// The library's texts are UTF-8, Windows' UTF-16. What is neither becomes U+FFFD.
inline std::wstring wide_of(std::string_view text) {
  const int from = static_cast<int>(text.size()),
            size = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), from, nullptr, 0);
  std::wstring out(static_cast<std::size_t>(size), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), from, out.data(), size);
  return out;
}
inline std::string utf8_of(std::wstring_view text) {
  const int from = static_cast<int>(text.size()),
            size = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), from, nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(size), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), from, out.data(), size, nullptr, nullptr);
  return out;
}

}  // namespace intaglio::platform
