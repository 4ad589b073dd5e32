// SPDX-License-Identifier: MIT
// Where tests find material too large for this repository: tiny models, goldens, vocabularies.
// The environment variable INTAGLIO_SHARED comes before the folder that CMake was given.
#pragma once

#include "paths.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

/// The folder of shared material, whether it exists or not.
inline std::filesystem::path shared_root() {
  if (const char* chosen = std::getenv("INTAGLIO_SHARED"); chosen != nullptr && *chosen != '\0') return chosen;
  return paths::shared;
}

/// A file or folder of the shared material, e.g. shared("conformance/bitnet-tiny"). The running test case fails where
/// it is missing; only where the whole folder is absent and INTAGLIO_WITHOUT_SHARED=1 admits that, the case is skipped
/// and counted as skipped.
inline std::filesystem::path shared(std::string_view relative) {
  const std::filesystem::path root = shared_root();
  const std::filesystem::path path = root / relative;
  if (std::filesystem::exists(path)) return path;
  if (!std::filesystem::exists(root)) {
    static const bool warned = [&root] {
      std::fprintf(stderr, "WARN: %s: expected the shared test material, found nothing; set INTAGLIO_SHARED\n",
                   root.string().c_str());
      return true;
    }();
    (void)warned;
    const char* admitted = std::getenv("INTAGLIO_WITHOUT_SHARED");
    if (admitted != nullptr && std::string_view{admitted} == "1")
      SKIP("without the shared test material: " + path.string());
  }
  FAIL("shared test material is missing: " + path.string());
  return {};  // FAIL throws
}

/// At the beginning of a case that asks for the material within an assertion only, where being skipped would count as
/// failing.
inline void need_shared() { static_cast<void>(shared("")); }
