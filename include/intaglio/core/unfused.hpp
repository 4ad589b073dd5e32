// SPDX-License-Identifier: MIT
// Keeps compilers from fusing a product with the sum that follows, whatever the flags are (-march=native,
// -ffp-contract=fast). An encoder with fused multiply-adds would now and then choose another code.
#pragma once

#include "intaglio/core/compiler.hpp"

namespace intaglio {

/// The rounded product, for a sum. Compilers take it for an unknown value where the target has fused multiply-adds:
/// g++'s attribute for this is for debugging only, and clang's pragma yields to -ffp-contract=fast.
/// @param product a float or a vector of them
template <class T>
[[gnu::always_inline]] inline T rounded(T product) {
#if defined(__FMA__) || defined(__FMA4__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#elif defined(__GNUC__) && !defined(__x86_64__)
  asm("" : "+m"(product));
#endif
  return product;
}

}  // namespace intaglio
