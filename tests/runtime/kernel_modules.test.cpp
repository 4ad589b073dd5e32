// SPDX-License-Identifier: MIT
#include "intaglio/runtime/kernel_modules.hpp"
#include "intaglio/runtime/kernel_proof.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

using namespace intaglio;

namespace {

/// Whether SPIR-V is there to its last instruction, the end of a function (section 2.3, "Physical Layout of a SPIR-V
/// Module").
bool is_whole(std::span<const std::byte> module) {
  constexpr std::uint32_t magic = 0x07230203, header_words = 5, function_end = 56;
  std::vector<std::uint32_t> words(module.size() / 4);
  std::memcpy(words.data(), module.data(), words.size() * 4);
  if (module.size() % 4 != 0 || words.size() <= header_words || words[0] != magic) return false;
  std::uint32_t opcode = 0;
  std::size_t at = header_words;
  for (std::size_t length = 0; at < words.size(); at += length) {
    opcode = words[at] & 0xffff;
    length = words[at] >> 16;
    if (length == 0) return false;
  }
  return at == words.size() && opcode == function_end;
}

}  // namespace

TEST_CASE("every module of every kernel is there whole, in however many literals") {
  for (std::size_t i = 0; i < kernels::variant_count; ++i) {
    const auto which = static_cast<kernels::variant>(i);
    INFO(kernels::name(which));
    const auto module = runtime::modules_of<>(which).spirv;
    CHECK(is_whole(module));
    CHECK_FALSE(is_whole(module.first(module.size() - 4)));
  }
}

TEST_CASE("a program has the modules that its plans use, and no others") {
  constexpr kernels::variant_set used = [] {
    kernels::variant_set out;
    out.add(kernels::variant::embed);
    out.add(kernels::variant::walk_up);
    return out;
  }();
  for (std::size_t i = 0; i < kernels::variant_count; ++i) {
    const auto which = static_cast<kernels::variant>(i);
    CHECK(runtime::modules_of<used>(which).spirv.empty() == !used.has(which));
  }
}
