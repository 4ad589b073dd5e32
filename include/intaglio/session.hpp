// SPDX-License-Identifier: MIT
// Declares what a caller uses: sessions, their text, options, errors and devices (docs/embedding.md). It costs a tenth
// of the compile time of <intaglio/vulkan.hpp>. One file of the program defines INTAGLIO_IMPLEMENTATION before this
// include and instantiates the session of each model: template class intaglio::session<Model>;
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/runtime/session_handle.hpp"
#if defined(INTAGLIO_IMPLEMENTATION)
#if defined(INTAGLIO_DEFINITIONS_ARE_INLINE)
#error "define INTAGLIO_IMPLEMENTATION before the first include of intaglio: other files would not find the definitions"
#endif
#if defined(INTAGLIO_COMPILED)  // the target intaglio::compiled has the rest
#if defined(INTAGLIO_GGUF_ONLY)
#error "INTAGLIO_GGUF_ONLY is for the file that defines sessions: intaglio::compiled has the readers of all forms"
#endif
#include "intaglio/runtime/engraved_session.hpp"
#else
#include "intaglio/runtime/session.hpp"
#endif
#endif
