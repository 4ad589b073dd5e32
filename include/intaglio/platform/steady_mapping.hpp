// SPDX-License-Identifier: MIT
// A file mapped to memory whose bytes do not change while it is mapped (io/leased_mapping.hpp). Linux leases the file:
// a process that opens it for writing or shortens it waits until its bytes have been copied. Windows shares the file
// only with readers. Other systems have neither and refuse.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_steady_mapping.hpp"
#else
#include "intaglio/platform/posix_steady_mapping.hpp"
#endif
