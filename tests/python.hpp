// SPDX-License-Identifier: MIT
// A script of the tests, run by a python3 that has numpy; INTAGLIO_PYTHON names another.
#pragma once

#include "paths.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

/// The case fails where the script does. @param script below the sources, "tests/runtime/numpy_logits.py"
inline void run_python(const std::string& script, std::initializer_list<std::string> arguments) {
  std::vector<std::string> pythons{"python3", "/usr/bin/python3"};
  if (const char* chosen = std::getenv("INTAGLIO_PYTHON"); chosen != nullptr && *chosen != '\0') pythons = {chosen};
  std::string rest = " '" + in_source(script) + "'";
  for (const std::string& each : arguments) rest += " '" + each + "'";
  for (const std::string& python : pythons)
    if (std::system(("'" + python + "'" + rest + (&python == &pythons.back() ? "" : " 2>/dev/null")).c_str()) == 0)
      return;
  FAIL("cannot run" + rest + " (is numpy installed?)");
}
