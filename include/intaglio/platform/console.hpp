// SPDX-License-Identifier: MIT
// The terminal of a program, and the signals that ask it to end.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_console.hpp"
#else
#include "intaglio/platform/posix_console.hpp"
#endif
