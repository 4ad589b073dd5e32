// SPDX-License-Identifier: MIT
#include "intaglio/kernels/descriptor.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>

#include "intaglio/kernels/matmul_chunk.hpp"

using namespace intaglio::kernels;

namespace {
enum class form : std::uint32_t { none, some };
struct few_constants {
  std::uint32_t first = 0;
  float second = 0;
  form third = form::none;
  std::array<std::uint32_t, 2> pair{};
  std::uint32_t last = 0;
};
// An id counts words, whatever the member's type is. An array has the id of its first element.
static_assert(constant_id<&few_constants::first> == 0 && constant_id<&few_constants::second> == 1);
static_assert(constant_id<&few_constants::third> == 2 && constant_id<&few_constants::pair> == 3);
static_assert(constant_id<&few_constants::last> == 5);

/// Whether storing constants writes a member to the word of its id, and reading them finds it there.
template <class Constants>
constexpr bool is_word(std::uint32_t Constants::*member, std::uint32_t id) {
  Constants c{};
  constant_words without{}, with{};
  store(c, without);
  c.*member ^= 0x80000001u;
  store(c, with);
  for (std::uint32_t i = 0; i < with.size(); ++i)
    if ((with[i] != without[i]) != (i == id)) return false;
  return constants_from<Constants>(with).*member == c.*member;
}
using chunk = matmul_chunk_kernel::constants;
static_assert(is_word(&few_constants::last, constant_id<&few_constants::last>));
static_assert(is_word(&chunk::max_tokens, constant_id<&chunk::max_tokens>));
static_assert(is_word(&chunk::experts_used, constant_id<&chunk::experts_used>));
static_assert(is_word(&chunk::rows, constant_id<&chunk::rows>) && !is_word(&chunk::rows, constant_id<&chunk::columns>));
}  // namespace

TEST_CASE("all words survive being read as constants and stored", "[kernels][descriptor]") {
  constant_words given{}, found{};
  for (std::uint32_t i = 0; i < 6; ++i) given[i] = 0x3f800000u + i;  // as floats none is a NaN
  store(constants_from<few_constants>(given), found);
  CHECK(found == given);
}
