// SPDX-License-Identifier: MIT
// The readers of folders and of JSON, for a program whose file of sessions says INTAGLIO_READERS_APART
// (docs/embedding.md). Its file of readers says INTAGLIO_IMPLEMENTATION and includes this and nothing else of the
// library, so that a compiler works on both files side by side.
#pragma once

#include "intaglio/core/compiler.hpp"
#if defined(INTAGLIO_IMPLEMENTATION)
#if defined(INTAGLIO_COMPILED)
#error "the target intaglio::compiled has the readers: leave out the file that includes <intaglio/readers.hpp>"
#endif
#if defined(INTAGLIO_READERS_APART) || defined(INTAGLIO_GGUF_ONLY)
#error "INTAGLIO_READERS_APART is for the file of sessions, and INTAGLIO_GGUF_ONLY for programs without readers"
#endif
#include "intaglio/io/checkpoint_folder.hpp"
#endif
