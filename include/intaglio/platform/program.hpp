// SPDX-License-Identifier: MIT
// Other programs: found, run beside this one, or in its place.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_program.hpp"
#else
#include "intaglio/platform/posix_program.hpp"
#endif
