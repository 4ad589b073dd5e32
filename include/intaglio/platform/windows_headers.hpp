// SPDX-License-Identifier: MIT
// windows.h with as few of its macros as it can do with. Included by this room's Windows headers alone.
#pragma once

#include "intaglio/core/compiler.hpp"

#if !defined(WIN32_LEAN_AND_MEAN)
#define WIN32_LEAN_AND_MEAN
#endif
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
