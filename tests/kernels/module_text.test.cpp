// SPDX-License-Identifier: MIT
#include "intaglio/kernels/module_text.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/kernels/spirv/accept.hpp"

using namespace intaglio;

TEST_CASE("words are spelled by five bits a character") {
  using words = std::vector<std::uint32_t>;
  CHECK(kernels::module_words({}, 3, 0, {}, {"#$B"}) == words{0, 1, 31});
  CHECK(kernels::module_words({}, 2, 0, {}, {"C$bb", "bbbb&"}) ==
        words{32, 0xFFFFFFFF});                                                    // a word may lie in two literals
  CHECK(kernels::module_words({}, 2, 0, {}, {"cd$"}) == words{28, 57 - 32 + 32});  // what stands for ? and backslash
  CHECK(kernels::module_words({"\1\0\0\0", 4}, 2, 0, {}, {"%"}) == words{1, 2});
  // Ids 3 and 5 in front of the second word.
  CHECK(kernels::module_words({"\1\0\0\0\2\0\0\0", 8}, 8, 1, "&%", {}) == words{1, 0x30047, 3, 42, 0x30047, 5, 42, 2});
}

TEST_CASE("a module has as many words as its header says, and instructions to its end") {
  const auto bytes = kernels::whole(kernels::spirv::accept_parts);
  REQUIRE(bytes.size() == 2584);
  std::vector<std::uint32_t> all(bytes.size() / 4);
  std::memcpy(all.data(), bytes.data(), bytes.size());
  std::size_t at = 5;
  while (at < all.size() && all[at] >> 16 != 0) at += all[at] >> 16;
  CHECK(at == all.size());
  CHECK((all[all.size() - 1] & 0xFFFF) == 56);  // OpFunctionEnd
}
