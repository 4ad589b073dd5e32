// SPDX-License-Identifier: MIT
// A specialization constant that the kernel does not have.
// expect: no member named \W?row_count
#include "mistake.hpp"

constexpr plan::dispatch product{.kernel = kernels::kernel::matmul};
constexpr auto constants = plan::constants_of<kernels::matmul_kernel>(product);
#ifdef INTAGLIO_TWIN
static_assert(constants.rows == 0);
#else
static_assert(constants.row_count == 0);
#endif
