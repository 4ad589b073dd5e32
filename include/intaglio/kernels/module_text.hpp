// SPDX-License-Identifier: MIT
// The words of a module from the header that tools/embed_shaders wrote: its declarations as they are, which constant
// expressions read too, and the functions behind them as text, a third as long for compilers to read.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace intaglio::kernels {

/// Five bits of a word a character, the lowest first; bit 5 says that more of the word follow.
/// tools/embed_shaders, `spelled`, writes them with characters from '#' on that need no escape.
constexpr std::uint32_t spelled_bits(char character) {
  if (character == 'c') return '?' - '#';
  if (character == 'd') return '\\' - '#';
  return static_cast<std::uint32_t>(character) - '#';
}

/// The words of a module. @param count in all
inline std::vector<std::uint32_t> module_words(std::string_view declarations, std::size_t count,
                                               std::initializer_list<std::string_view> code) {
  std::vector<std::uint32_t> out(declarations.size() / 4);
  std::memcpy(out.data(), declarations.data(), declarations.size());
  out.reserve(count);
  std::uint32_t word = 0, shift = 0;
  for (const std::string_view part : code)
    for (const char character : part) {
      const std::uint32_t bits = spelled_bits(character);
      word |= (bits & 31) << shift;
      shift += 5;
      if ((bits & 32) != 0) continue;
      out.push_back(word);
      word = shift = 0;
    }
  return out;
}

/// Those of a module's header, spelled out once. @param parts NAME_parts of it
template <class Parts>
std::span<const std::byte> whole(Parts parts) {
  return parts([]<std::size_t size>(const char(&declarations)[size], std::uint32_t count, const auto*... code) {
    static const std::vector<std::uint32_t> words = module_words({declarations, size - 1}, count, {code...});
    return std::as_bytes(std::span(words));
  });
}

}  // namespace intaglio::kernels
