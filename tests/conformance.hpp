// SPDX-License-Identifier: MIT
// The tiny models of the conformance set, expanded once beside the test program (python3 with numpy; INTAGLIO_PYTHON
// names another).
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "shared.hpp"

/// Folder of one expanded model, e.g. conformance("bitnet-tiny") / "gguf/bitnet-tiny-f16.gguf". The case fails where it
/// cannot be made.
/// @param of the set, "conformance" or "conformance2", and its program
inline std::filesystem::path conformance(const std::string& model, const std::string& of = "conformance",
                                         const std::string& program = "confgen.py") {
  const std::filesystem::path set = shared(of);
  const char* const own = std::getenv("INTAGLIO_TESTS_FOLDER");  // tests/under_layer
  const std::filesystem::path folder =
      (own != nullptr ? std::filesystem::path(own) : std::filesystem::read_symlink("/proc/self/exe").parent_path()) /
      of;
  const std::filesystem::path done = folder / (model + ".expanded");
  std::filesystem::create_directories(folder);
  // Several test programs may start at once.
  const int lock = ::open((folder / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  REQUIRE(lock >= 0);
  ::flock(lock, LOCK_EX);
  bool there = std::filesystem::exists(done);
  std::string tried;
  if (!there) {
    std::vector<std::string> pythons{"python3", "/usr/bin/python3"};
    if (const char* chosen = std::getenv("INTAGLIO_PYTHON"); chosen != nullptr && *chosen != '\0') pythons = {chosen};
    for (const std::string& python : pythons) {
      const std::string command = "'" + python + "' '" + (set / program).string() + "' expand '" + set.string() +
                                  "' '" + folder.string() + "' --model " + model + " > '" + (folder / "log").string() +
                                  "' 2>&1";
      there = std::system(command.c_str()) == 0;
      if (there) break;
      tried += command + "\n";
    }
    if (there) std::ofstream(done) << "\n";
  }
  ::close(lock);
  if (!there) FAIL("cannot expand the conformance set (is numpy installed?):\n" + tried);
  return folder / model;
}
