// SPDX-License-Identifier: MIT
#include "intaglio/core/version.hpp"
#include "paths.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>
#include <string>

static_assert(INTAGLIO_VERSION ==
              intaglio::version_major * 10000 + intaglio::version_minor * 100 + intaglio::version_patch);
static_assert(INTAGLIO_VERSION_MINOR < 100 && INTAGLIO_VERSION_PATCH < 100, "the parts must not run into each other");

TEST_CASE("the change log opens with this version", "[version]") {
  std::ifstream file{in_source("docs/changes.md")};
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  const auto version = std::to_string(intaglio::version_major) + "." + std::to_string(intaglio::version_minor) + "." +
                       std::to_string(intaglio::version_patch);
  REQUIRE(text.str().find("\n## ") != std::string::npos);
  CHECK(text.str().find("\n## " + version + "\n") == text.str().find("\n## "));
}

TEST_CASE("the vcpkg port has this version", "[version]") {
  std::ifstream file{in_source("cmake/vcpkg/intaglio/vcpkg.json")};
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find("\"version\": \"" + std::to_string(intaglio::version_major) + "." +
                        std::to_string(intaglio::version_minor) + "." + std::to_string(intaglio::version_patch) +
                        "\"") != std::string::npos);
}
