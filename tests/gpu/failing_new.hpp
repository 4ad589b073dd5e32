// SPDX-License-Identifier: MIT
// operator new that fails at the Nth allocation of the thread that armed it, outside of Vulkan: failing_new.cpp,
// linked to the rooms that include this.
#pragma once

#include "gpu/fault_shim.hpp"

namespace faults {

struct allocation_order {
  long left = -1;         ///< allocations until the first failure; negative: none fails
  bool for_good = false;  ///< all after it fail too
  long seen = 0;
  bool failed = false;
};
inline thread_local allocation_order allocations;

/// Arms while it lives.
class failing_allocations {
 public:
  failing_allocations(long at, bool for_good) { allocations = {at, for_good, 0, false}; }
  failing_allocations(const failing_allocations&) = delete;
  failing_allocations& operator=(const failing_allocations&) = delete;
  ~failing_allocations() { allocations.left = -1; }
};

inline bool allocation_fails() {
  if (inside_vulkan > 0 || allocations.left < 0) return false;
  const long at = allocations.seen++;
  const bool now = at == allocations.left || (allocations.for_good && at > allocations.left);
  allocations.failed = allocations.failed || now;
  return now;
}

}  // namespace faults
