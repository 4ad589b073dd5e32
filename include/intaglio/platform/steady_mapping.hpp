// SPDX-License-Identifier: MIT
// A file as memory whose bytes stay those that were there when it was mapped (io/leased_mapping.hpp).
// Linux leases the file: who opens it for writing or cuts it waits until its bytes have been copied. Windows shares it
// with readers alone. Other systems have neither, and refuse.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(_WIN32)
#include "intaglio/platform/windows_steady_mapping.hpp"
#else
#include "intaglio/platform/posix_steady_mapping.hpp"
#endif
