// SPDX-License-Identifier: MIT
// windows.h with as few of its macros as possible. Only the Windows headers of platform/ include it.
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

/// UTF-16, which Windows uses, from UTF-8, which the library uses. Invalid input becomes U+FFFD.
inline std::wstring wide_of(std::string_view text) {
  const int from = static_cast<int>(text.size()),
            size = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), from, nullptr, 0);
  std::wstring out(static_cast<std::size_t>(size), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), from, out.data(), size);
  return out;
}
/// A UTF-16 text of the system in UTF-8.
inline std::string utf8_of(std::wstring_view text) {
  const int from = static_cast<int>(text.size()),
            size = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), from, nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(size), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), from, out.data(), size, nullptr, nullptr);
  return out;
}

}  // namespace intaglio::platform
