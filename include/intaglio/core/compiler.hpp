// SPDX-License-Identifier: MIT
// The requirements on the compiler and its flags. Every header includes this one before it declares anything. A
// compiler that falls short prints one sentence, and the #include after that sentence stops the compilation.
#pragma once

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
#error "intaglio needs C++20: compile with -std=c++20 or newer"
#include "intaglio stops here"
#endif

#if !defined(__cpp_exceptions) && !defined(_CPPUNWIND)
#error "intaglio reports errors by exceptions: compile without -fno-exceptions"
#include "intaglio stops here"
#endif

#if defined(__STDC_HOSTED__) && __STDC_HOSTED__ == 0
#error "intaglio needs the whole standard library: compile without -ffreestanding"
#include "intaglio stops here"
#endif

#if (defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ < 8) || (defined(_WIN32) && !defined(_WIN64))
#error "intaglio maps files and device memory beyond 4 GiB: compile for a 64-bit target, without -m32 or -mx32"
#include "intaglio stops here"
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "intaglio reads model files in place, which are little-endian: compile for a little-endian target"
#include "intaglio stops here"
#endif

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0) ||        \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__) || \
    defined(__ROUNDING_MATH__) || defined(_M_FP_FAST)
#error "intaglio promises results to the bit: compile without -ffast-math, -Ofast and the flags that these stand for"
#include "intaglio stops here"
#endif

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "intaglio promises results to the bit: compile with float arithmetic in float (-mfpmath=sse, not 387)"
#include "intaglio stops here"
#endif

#if !defined(_MSC_VER) && !defined(__cpp_threadsafe_static_init)
#error "intaglio is used from several threads: compile without -fno-threadsafe-statics"
#include "intaglio stops here"
#endif

#if !defined(__cpp_aligned_new)
#error "intaglio allocates memory with an alignment: compile without -fno-aligned-new"
#include "intaglio stops here"
#endif

#if defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI == 0
#error "intaglio uses std::string in constant expressions: compile without _GLIBCXX_USE_CXX11_ABI=0"
#include "intaglio stops here"
#endif

#if defined(_GLIBCXX_DEBUG)
#include <version>
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE < 14
#error "intaglio plans in constant expressions, where _GLIBCXX_DEBUG works from libstdc++ 14: try _GLIBCXX_ASSERTIONS"
#include "intaglio stops here"
#endif
#endif

namespace intaglio::detail {

static_assert(sizeof(1.0) == sizeof(double) && 0.1 != static_cast<double>(0.1F),
              "intaglio promises results to the bit: compile without -fsingle-precision-constant");

/// A struct whose size shows whether the compiler packs structs, to words too (-fpack-struct=4).
struct byte_and_word {
  char byte;
  long long word;
};
static_assert(sizeof(byte_and_word) == 2 * sizeof(long long),
              "intaglio passes structs to the Vulkan driver: compile without -fpack-struct");

}  // namespace intaglio::detail
