// SPDX-License-Identifier: MIT
// libcurl, looked for when the program runs; INTAGLIO_HAS_LIBCURL where its header was there when it was compiled.
#pragma once

#include "console.hpp"

#include <intaglio/platform/library.hpp>

#include <array>
#include <string>

#if __has_include(<curl/curl.h>)
#define CURL_DISABLE_TYPECHECK  // its macros would stand in the way of pointers to the functions
#include <curl/curl.h>
#define INTAGLIO_HAS_LIBCURL 1
#endif

#ifdef INTAGLIO_HAS_LIBCURL
namespace intaglio::tool {

// clang-format 16 breaks these lines in another way each time.
// clang-format off
#define INTAGLIO_CURL_FUNCTIONS(X) \
  X(curl_global_init) X(curl_easy_init) X(curl_easy_setopt) X(curl_easy_perform) X(curl_easy_getinfo) \
  X(curl_easy_cleanup) X(curl_easy_strerror) X(curl_slist_append) X(curl_slist_free_all) X(curl_url) X(curl_url_set) \
  X(curl_url_get) X(curl_url_cleanup) X(curl_free)
// clang-format on

/// libcurl's functions. @throws input_error: it is not on this machine
struct curl_library {
#define INTAGLIO_CURL_MEMBER(name) decltype(&::name) name = nullptr;
  INTAGLIO_CURL_FUNCTIONS(INTAGLIO_CURL_MEMBER)
#undef INTAGLIO_CURL_MEMBER

#if defined(_WIN32)
  static constexpr std::array files{"libcurl.dll", "libcurl-x64.dll", "libcurl-4.dll"};
  static constexpr const char* comes_with = "curl.se, vcpkg or MSYS2";
#elif defined(__APPLE__)
  static constexpr std::array files{"libcurl.4.dylib"};
  static constexpr const char* comes_with = "macOS has it";
#else
  static constexpr std::array files{"libcurl.so.4", "libcurl-gnutls.so.4"};
  static constexpr const char* comes_with = "Debian and Ubuntu: libcurl4";
#endif

  curl_library() {
    bool whole = false;
    std::string problem;
    for (const char* const file : files) {
      if (whole) break;
      whole = true;
#define INTAGLIO_CURL_FIND(name)                                                                                    \
  if (whole)                                                                                                        \
    whole = (this->name = reinterpret_cast<decltype(&::name)>(platform::library_function(file, #name, problem))) != \
            nullptr;
      INTAGLIO_CURL_FUNCTIONS(INTAGLIO_CURL_FIND)
#undef INTAGLIO_CURL_FIND
    }
    if (!whole)
      throw input_error(std::string("models from the net need ") + files[0] + " (" + comes_with +
                        "), which is not on this machine");
    this->curl_global_init(CURL_GLOBAL_DEFAULT);
  }
};
#undef INTAGLIO_CURL_FUNCTIONS

/// Looked for once. @throws as curl_library()
inline const curl_library& curl() {
  static const curl_library library;
  return library;
}

}  // namespace intaglio::tool
#endif
