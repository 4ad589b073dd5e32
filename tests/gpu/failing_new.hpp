// SPDX-License-Identifier: MIT
// operator new that fails at the Nth allocation of the thread that armed it, outside of Vulkan. Include it in one source of a program.
#pragma once

#include "gpu/fault_shim.hpp"

#include <cstdlib>
#include <new>

namespace faults {

struct allocation_order {
  long left = -1;        ///< allocations until the first failure; negative: none fails
  bool for_good = false; ///< all after it fail too
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

// Not inlined: g++ 12 warns of a mismatch where it sees the one's malloc without the other's free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (!faults::allocation_fails())
    if (void* const place = std::malloc(size == 0 ? 1 : size); place != nullptr) return place;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
// A driver's compiler uses these; all forms must come from one allocator.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return faults::allocation_fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t& quiet) noexcept { return operator new(size, quiet); }
[[gnu::noinline]] void operator delete(void* place, const std::nothrow_t&) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place, const std::nothrow_t&) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete(void* place, std::size_t) noexcept { std::free(place); }
[[gnu::noinline]] void operator delete[](void* place, std::size_t) noexcept { std::free(place); }
