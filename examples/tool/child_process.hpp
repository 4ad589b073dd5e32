// SPDX-License-Identifier: MIT
// Runs another program to its end, its output line by line.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Runs a program found on the PATH; its stdout and stderr come as lines. SIGINT and SIGTERM end it too.
/// @return its exit status, 128 + n where signal n ended it
/// @throws input_error: it cannot be started; interrupted
int run_program(const std::vector<std::string>& arguments, const std::function<void(const std::string&)>& each_line);

}  // namespace intaglio::tool
