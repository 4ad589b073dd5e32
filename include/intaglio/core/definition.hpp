// SPDX-License-Identifier: MIT
// Where the definitions of the caller's face go (docs/embedding.md): into every file that includes them, or into the
// one that says INTAGLIO_IMPLEMENTATION, which other files that have the declarations alone are linked with.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(INTAGLIO_IMPLEMENTATION)
#define INTAGLIO_DEFINITION
#else
#define INTAGLIO_DEFINITION inline
#define INTAGLIO_DEFINITIONS_ARE_INLINE
#endif
