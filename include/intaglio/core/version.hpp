// SPDX-License-Identifier: MIT
// The version of the library, semantic; CMake and Conan read it from here.
#pragma once

#include "intaglio/core/compiler.hpp"

#define INTAGLIO_VERSION_MAJOR 0
#define INTAGLIO_VERSION_MINOR 1
#define INTAGLIO_VERSION_PATCH 0
/// One number that grows with the version: major * 10000 + minor * 100 + patch.
#define INTAGLIO_VERSION (INTAGLIO_VERSION_MAJOR * 10000 + INTAGLIO_VERSION_MINOR * 100 + INTAGLIO_VERSION_PATCH)

namespace intaglio {

inline constexpr int version_major = INTAGLIO_VERSION_MAJOR;
inline constexpr int version_minor = INTAGLIO_VERSION_MINOR;
inline constexpr int version_patch = INTAGLIO_VERSION_PATCH;

}  // namespace intaglio
