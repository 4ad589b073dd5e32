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

/// The words that texts spell, each handed to `take`.
template <class Take>
void spell(std::initializer_list<std::string_view> texts, Take take) {
  std::uint32_t word = 0, shift = 0;
  for (const std::string_view text : texts)
    for (const char character : text) {
      const std::uint32_t bits = spelled_bits(character);
      word |= (bits & 31) << shift;
      shift += 5;
      if ((bits & 32) != 0) continue;
      take(word);
      word = shift = 0;
    }
}

/// The words of a module. @param count in all
/// @param exact_at word of the declarations in front of which the results of `exact` are decorated NoContraction
/// @param exact their ids, each less the one before it
inline std::vector<std::uint32_t> module_words(std::string_view declarations, std::size_t count, std::size_t exact_at,
                                               std::string_view exact, std::initializer_list<std::string_view> code) {
  constexpr std::uint32_t decorate = 3u << 16 | 71u, no_contraction = 42;
  std::vector<std::uint32_t> out(exact_at);
  out.reserve(count);
  std::memcpy(out.data(), declarations.data(), 4 * exact_at);
  std::uint32_t id = 0;
  spell({exact}, [&](std::uint32_t further) { out.insert(out.end(), {decorate, id += further, no_contraction}); });
  const std::size_t at = out.size();
  out.resize(at + declarations.size() / 4 - exact_at);
  std::memcpy(out.data() + at, declarations.data() + 4 * exact_at, declarations.size() - 4 * exact_at);
  spell(code, [&](std::uint32_t word) { out.push_back(word); });
  return out;
}

/// Those of a module's header, spelled out once. @param parts NAME_parts of it
template <class Parts>
std::span<const std::byte> whole(Parts parts) {
  return parts([]<std::size_t size>(const char(&declarations)[size], std::uint32_t count, std::uint32_t exact_at,
                                    const char* exact, const auto*... code) {
    static const std::vector<std::uint32_t> words =
        module_words({declarations, size - 1}, count, exact_at, exact, {code...});
    return std::as_bytes(std::span(words));
  });
}

}  // namespace intaglio::kernels
