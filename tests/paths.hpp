// SPDX-License-Identifier: MIT
// Where the tests find what they read and run. Folders of this machine stand in paths.cpp alone, so that ccache knows
// every other file of the tests again in another checkout.
#pragma once

#include <string>
#include <string_view>

namespace paths {
extern const char* const shared;  ///< the shared test material, as given to CMake (INTAGLIO_SHARED)
extern const char* const source;  ///< the root of the source tree
extern const char* const tool;    ///< the program intaglio; empty where neither one is built nor one was named
}  // namespace paths

/// A file of the source tree, e.g. in_source("docs/changes.md").
inline std::string in_source(std::string_view relative) { return std::string(paths::source) + "/" += relative; }
