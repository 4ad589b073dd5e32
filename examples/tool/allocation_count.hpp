// SPDX-License-Identifier: MIT
// Counts what the tool itself allocates, so that bench can show that nothing is allocated between tokens.
#pragma once

#include <cstdint>

namespace intaglio::tool {

/// Calls of operator new by this thread since it began; those of a driver's C++ are among them, its malloc is not.
std::uint64_t allocations_of_thread();

}  // namespace intaglio::tool
