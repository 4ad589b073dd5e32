// SPDX-License-Identifier: MIT
// An operand that the kernel does not have: products of a small batch keep no gates.
// expect: no member named \W?gates
#include "mistake.hpp"

constexpr plan::dispatch product{.kernel = kernels::kernel::matmul_batch};
#ifdef INTAGLIO_TWIN
constexpr auto at = kernels::push_ids<kernels::matmul_kernel>;
#else
constexpr auto at = kernels::push_ids<kernels::matmul_batch_kernel>;
#endif
static_assert(product[at.gates].where == plan::region::none);
