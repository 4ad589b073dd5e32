// SPDX-License-Identifier: MIT
// What tests/temporary_folder.hpp takes from POSIX, where mingw-w64 has it not. Included before every source.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

/// Replaces the six last letters of `pattern` so that they name a new folder, and makes that folder.
/// @return `pattern`; nullptr if no folder can be made
inline char* mkdtemp(char* pattern) {
  static std::mt19937 draw{std::random_device{}()};
  char* const digits = pattern + std::strlen(pattern) - 6;
  for (int tries = 0; tries < 100; ++tries) {
    for (int each = 0; each < 6; ++each) digits[each] = static_cast<char>('a' + draw() % 26);
    std::error_code problem;
    if (std::filesystem::create_directory(pattern, problem)) return pattern;
  }
  return nullptr;
}
