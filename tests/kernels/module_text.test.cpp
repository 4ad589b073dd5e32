// SPDX-License-Identifier: MIT
#include "intaglio/kernels/module_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "intaglio/kernels/spirv/accept.hpp"

using namespace intaglio;

namespace {

std::vector<std::uint64_t> numbers(std::initializer_list<std::string_view> texts) {
  std::vector<std::uint64_t> out;
  kernels::spell(texts, [&](std::uint64_t number) { out.push_back(number); });
  return out;
}

}  // namespace

TEST_CASE("numbers are spelled by five bits a character") {
  using all = std::vector<std::uint64_t>;
  CHECK(numbers({"#$B"}) == all{0, 1, 31});
  CHECK(numbers({"C$bb", "bbbb&"}) == all{32, 0xFFFFFFFF});  // a number may be in two literals
  CHECK(numbers({"bbbbbb&"}) == all{0xFFFFFFFF});
  CHECK(numbers({"bbbbbb*"}) == all{0x1FFFFFFFF});   // twice a word has 33 bits
  CHECK(numbers({"cd$"}) == all{28, 57 - 32 + 32});  // codes of ? and backslash
}

TEST_CASE("instructions are encoded by how they begin and by the distance of their ids") {
  // Beginnings: OpLoad of three words with type 7, and OpFunctionEnd. Then two of the first, 12 and the id after it.
  std::vector<std::uint32_t> out;
  kernels::instruction_reader read(100, out);
  for (const std::uint64_t number : {2u, 3u, 2u * 61 + 1, 7u, 1u, 2u * 56, 0u, 2u * 12, 0u, 2u * 0 + 1, 1u})
    read(number);
  CHECK(out == std::vector<std::uint32_t>{3 << 16 | 61, 7, 12, 3 << 16 | 61, 7, 13, 1 << 16 | 56});
  // A word that is no id, since it is not below the bound, is not what distances are from.
  out.clear();
  kernels::instruction_reader other(100, out);
  for (const std::uint64_t number : {1u, 4u, 2u * 43, 0u, 2u * 9, 2u * 100, 2u * 1 + 1}) other(number);
  CHECK(out == std::vector<std::uint32_t>{4 << 16 | 43, 9, 100, 9});
}

TEST_CASE("a module's words are declarations, what is exact in front of their types, and code") {
  using words = std::vector<std::uint32_t>;
  const auto bytes = [](const words& of) {
    return std::string(reinterpret_cast<const char*>(of.data()), 4 * of.size());
  };
  CHECK(kernels::module_words(bytes({1, 2}), 8, 1, "&%", {}) == words{1, 0x30047, 3, 42, 0x30047, 5, 42, 2});
  CHECK(kernels::module_words(bytes({1, 2, 3, 100}), 11, 4, {}, {"%&^&*", "$S&#;#$$"}) ==
        words{1, 2, 3, 100, 3 << 16 | 61, 7, 12, 3 << 16 | 61, 7, 13, 1 << 16 | 56});
}

TEST_CASE("a module has as many words as its header says, and instructions to its end") {
  const auto bytes = kernels::whole(kernels::spirv::accept_parts);
  REQUIRE(bytes.size() == 2476);
  std::vector<std::uint32_t> all(bytes.size() / 4);
  std::memcpy(all.data(), bytes.data(), bytes.size());
  std::size_t at = 5;
  while (at < all.size() && all[at] >> 16 != 0) at += all[at] >> 16;
  CHECK(at == all.size());
  CHECK((all[all.size() - 1] & 0xFFFF) == 56);  // OpFunctionEnd
}
