// SPDX-License-Identifier: MIT
// Files as the system has them, with one interface for POSIX and Windows. Calls that fail leave errno as it says why,
// and none of them is ended early by a signal.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_files.hpp"
#else
#include "intaglio/platform/posix_files.hpp"
#endif
