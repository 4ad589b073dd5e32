// SPDX-License-Identifier: MIT
// fable.gguf as it is, in the read-only data of the program.
#include "embedded_model.hpp"

#include "file_in_program.hpp"

#ifndef INTAGLIO_EMBEDDED_MODEL
#error "expected INTAGLIO_EMBEDDED_MODEL, the path of fable.gguf as a string"
#endif

INTAGLIO_FILE_IN_PROGRAM(intaglio_embedded_model, INTAGLIO_EMBEDDED_MODEL)

namespace intaglio::tool {

std::span<const std::byte> embedded_model() { return {intaglio_embedded_model, intaglio_embedded_model_end}; }

}  // namespace intaglio::tool
