// SPDX-License-Identifier: MIT
#include "intaglio/runtime/kernel_modules.hpp"

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

TEST_CASE("every variant of every kernel has its whole module, in however many literals") {
  const runtime::kernel_modules variants[] = {
      {.wide_loads = true, .integer_dot = false},
      {.wide_loads = true, .in_one = true, .integer_dot = false},
      {},
      {.integer_dot = false},
      {.in_one = true, .matrix = true, .half_matrix = true, .few_matrix = true, .few_tiled = true},
      {.in_one = true, .half_matrix = true, .few_halves = true},
      {.half_matrix = true, .half_fragments = true},
      {.in_one = true, .long_contexts = true},
      {.in_one = true, .dense_layers = true}};
  for (const auto& modules : variants)
    for (std::size_t k = 0; k < kernels::kernel_count; ++k) {
      const auto which = static_cast<kernels::kernel>(k);
      INFO(modules.name() << ": " << kernels::interface_of(which).name);
      CHECK(is_whole(modules.of(which)));
      CHECK_FALSE(is_whole(modules.of(which).first(modules.of(which).size() - 4)));
    }
}
