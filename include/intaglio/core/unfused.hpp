// SPDX-License-Identifier: MIT
// Marks functions whose sums must round after every product, whatever the user's flags (-march=native under GNU C++
// fuses them): an encoder with fused multiply-adds would choose another code now and then. Clang given
// -ffp-contract=fast fuses all the same.
#pragma once

#include "intaglio/core/compiler.hpp"

#if defined(__clang__)
#define INTAGLIO_UNFUSED
/// First in the function's body.
#define INTAGLIO_UNFUSED_BODY _Pragma("clang fp contract(off)")
#else
/// Before the function's declaration.
#define INTAGLIO_UNFUSED [[gnu::optimize("fp-contract=off")]]
#define INTAGLIO_UNFUSED_BODY
#endif
