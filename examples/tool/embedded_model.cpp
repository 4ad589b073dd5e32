// SPDX-License-Identifier: MIT
// fable.gguf as it is, in the read-only data of the program.
#include "model_file.hpp"

#ifndef INTAGLIO_EMBEDDED_MODEL
#error "expected INTAGLIO_EMBEDDED_MODEL, the path of fable.gguf as a string"
#endif

__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "intaglio_embedded_model:\n"
    ".incbin \"" INTAGLIO_EMBEDDED_MODEL
    "\"\n"
    "intaglio_embedded_model_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const std::byte intaglio_embedded_model[];
extern const std::byte intaglio_embedded_model_end[];
}

namespace intaglio::tool {

std::span<const std::byte> embedded_model() { return {intaglio_embedded_model, intaglio_embedded_model_end}; }

}  // namespace intaglio::tool
