// SPDX-License-Identifier: MIT
// The version of the library, semantic; CMake and Conan read it from here.
#pragma once

#include "intaglio/core/compiler.hpp"

/// Grows if a change of a public name can break a program.
#define INTAGLIO_VERSION_MAJOR 0
/// Grows if public names are added. While the major version is 0, programs may have to change too.
#define INTAGLIO_VERSION_MINOR 1
/// Grows if only faults are corrected.
#define INTAGLIO_VERSION_PATCH 0
/// The version as one number that grows, for `#if`: major * 10000 + minor * 100 + patch.
#define INTAGLIO_VERSION (INTAGLIO_VERSION_MAJOR * 10000 + INTAGLIO_VERSION_MINOR * 100 + INTAGLIO_VERSION_PATCH)

namespace intaglio {

/// INTAGLIO_VERSION_MAJOR as a constant.
inline constexpr int version_major = INTAGLIO_VERSION_MAJOR;
/// INTAGLIO_VERSION_MINOR as a constant.
inline constexpr int version_minor = INTAGLIO_VERSION_MINOR;
/// INTAGLIO_VERSION_PATCH as a constant.
inline constexpr int version_patch = INTAGLIO_VERSION_PATCH;

}  // namespace intaglio
