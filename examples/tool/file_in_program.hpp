// SPDX-License-Identifier: MIT
// A file as it is, in the read-only data of the program. It takes the assembler of GNU or LLVM.
#pragma once

#include <cstddef>

#if defined(_WIN32)
#define INTAGLIO_BEGIN_DATA(name) ".section .rdata,\"dr\"\n.balign 64\n" name
#define INTAGLIO_END_DATA ".text\n"
#define INTAGLIO_SYMBOL(name) name
#elif defined(__APPLE__)
#define INTAGLIO_BEGIN_DATA(name) ".section __TEXT,__const\n.balign 64\n" name
#define INTAGLIO_END_DATA ".text\n"
#define INTAGLIO_SYMBOL(name) "_" name
#else
#define INTAGLIO_BEGIN_DATA(name) ".section .rodata\n.balign 64\n" name
#define INTAGLIO_END_DATA ".previous\n"
#define INTAGLIO_SYMBOL(name) name
#endif

/// Declares the bytes `name` to `name`_end, a zero after them. @param path a string literal
#define INTAGLIO_FILE_IN_PROGRAM(name, path)                                                       \
  __asm__(INTAGLIO_BEGIN_DATA(INTAGLIO_SYMBOL(#name)) ":\n.incbin \"" path "\"\n" INTAGLIO_SYMBOL( \
      #name) "_end:\n.byte 0\n" INTAGLIO_END_DATA);                                                \
  extern "C" {                                                                                     \
  extern const std::byte name[];                                                                   \
  extern const std::byte name##_end[];                                                             \
  }
