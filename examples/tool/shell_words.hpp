// SPDX-License-Identifier: MIT
// The command line as shells and man read it: scripts that complete it, and pages of its manual, both made from the
// parser's own tables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace intaglio::tool {

/// @param shell bash, zsh or fish
std::string completion_script(const CLI::App& program, std::string_view shell);

/// Names of files (intaglio.1, intaglio-run.1, ...) and their text in roff: one of the program, one of each command.
/// @param version "intaglio 0.1.0"
std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& program, const std::string& version);

}  // namespace intaglio::tool
