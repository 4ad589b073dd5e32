// SPDX-License-Identifier: MIT
// Declares sessions that decode together, as a caller uses them. <intaglio/session.hpp> declares a single session.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/runtime/batch_handle.hpp"
#if defined(INTAGLIO_IMPLEMENTATION)
#if defined(INTAGLIO_DEFINITIONS_ARE_INLINE)
#error "define INTAGLIO_IMPLEMENTATION before the first include of intaglio: other files would not find the definitions"
#endif
#if defined(INTAGLIO_COMPILED)  // the target intaglio::compiled has the rest
#if defined(INTAGLIO_GGUF_ONLY)
#error "INTAGLIO_GGUF_ONLY is for the file that defines sessions: intaglio::compiled has the readers of all forms"
#endif
#include "intaglio/runtime/engraved_batch_session.hpp"
#else
#include "intaglio/runtime/batch_session.hpp"
#endif
#endif
