// SPDX-License-Identifier: MIT
// Files of the operating system, with one interface for POSIX and Windows. Calls that fail set errno to the reason. No
// call is ended early by a signal.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_files.hpp"
#else
#include "intaglio/platform/posix_files.hpp"
#endif
