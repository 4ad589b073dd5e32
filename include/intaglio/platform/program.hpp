// SPDX-License-Identifier: MIT
// Other programs: to find them, to run them beside this one, or to replace this process by one.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_program.hpp"
#else
#include "intaglio/platform/posix_program.hpp"
#endif
