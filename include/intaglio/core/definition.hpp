// SPDX-License-Identifier: MIT
// Where the definitions of the library's interface go (docs/embedding.md). They go into every file that includes them,
// or only into the file that defines INTAGLIO_IMPLEMENTATION; files that have only declarations are linked with that
// file.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(INTAGLIO_IMPLEMENTATION)
#define INTAGLIO_DEFINITION
#else
#define INTAGLIO_DEFINITION inline
#define INTAGLIO_DEFINITIONS_ARE_INLINE
#endif
