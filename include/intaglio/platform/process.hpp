// SPDX-License-Identifier: MIT
// The running process, and work in a child process.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_process.hpp"
#else
#include "intaglio/platform/posix_process.hpp"
#endif
