// SPDX-License-Identifier: MIT
// Marks functions whose sums must round after every product, whatever the user's flags (-march=native under GNU C++
// fuses them). An encoder with fused multiply-adds would now and then choose another code. Clang with
// -ffp-contract=fast still fuses.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(__clang__)
#define INTAGLIO_UNFUSED
/// The first line in the function's body.
#define INTAGLIO_UNFUSED_BODY _Pragma("clang fp contract(off)")
#else
/// In front of the function's declaration.
#define INTAGLIO_UNFUSED [[gnu::optimize("fp-contract=off")]]
#define INTAGLIO_UNFUSED_BODY
#endif
