// SPDX-License-Identifier: MIT
#include "gpu/failing_new.hpp"

#include <cstdlib>
#include <new>

void* operator new(std::size_t size) {
  if (!faults::allocation_fails())
    if (void* const memory = std::malloc(size == 0 ? 1 : size); memory != nullptr) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
// A driver's compiler uses these; all forms must come from one allocator.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return faults::allocation_fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t& quiet) noexcept { return operator new(size, quiet); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
