// SPDX-License-Identifier: MIT
// The program's operator new: malloc and a counter. The forms that are not here are defined by these.
#include "allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::uint64_t allocations = 0;
}

// Not inlined: g++ 12 warns of a mismatch where it sees the one's malloc without the other's free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  for (;;) {
    if (void* const memory = std::malloc(size == 0 ? 1 : size); memory != nullptr) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace intaglio::tool {

std::uint64_t allocations_of_thread() { return allocations; }

}  // namespace intaglio::tool
