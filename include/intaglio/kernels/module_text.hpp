// SPDX-License-Identifier: MIT
// Restores the words of a module from the header that tools/embed_shaders wrote. The header has the declarations
// unchanged, which constant expressions read too, and the functions as text, which is a quarter as long for compilers
// to read.
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

/// Value of a character of a spelled number: five bits of the number, lowest first, and bit 5 if more characters of the
/// number follow. tools/embed_shaders, `spelled`, writes them with characters from '#' on that need no escape.
constexpr std::uint32_t spelled_bits(char character) {
  if (character == 'c') return '?' - '#';
  if (character == 'd') return '\\' - '#';
  return static_cast<std::uint32_t>(character) - '#';
}

/// Decodes the numbers that texts spell and passes each to `take`.
template <class Take>
void spell(std::initializer_list<std::string_view> texts, Take take) {
  std::uint64_t number = 0;
  std::uint32_t shift = 0;
  for (const std::string_view text : texts)
    for (const char character : text) {
      const std::uint32_t bits = spelled_bits(character);
      number |= static_cast<std::uint64_t>(bits & 31) << shift;
      shift += 5;
      if ((bits & 32) != 0) continue;
      take(number);
      number = 0;
      shift = 0;
    }
}

/// Decodes instructions from numbers (tools/embed_shaders, `instruction_numbers`). First comes a list of beginnings,
/// each an instruction's first word and often its second one; then, for each instruction, its beginning's index and its
/// further words. A word is stored as twice its value, or as twice its distance from the highest id so far plus one.
class instruction_reader {
 public:
  /// @param bound of the module's ids  @param out receives the words
  instruction_reader(std::uint32_t bound, std::vector<std::uint32_t>& out) : bound_(bound), out_(&out) {}

  void operator()(std::uint64_t number) {
    switch (next_) {
      case part::count:
        awaited_ = static_cast<std::size_t>(number), next_ = part::length;
        return;
      case part::length:
        beginnings_.push_back({static_cast<std::uint32_t>(number) << 16, 0, false});
        break;
      case part::opcode:
        beginnings_.back().first |= static_cast<std::uint32_t>(number >> 1);
        beginnings_.back().two = (number & 1) != 0;
        break;
      case part::second:
        beginnings_.back().second = static_cast<std::uint32_t>(number);
        break;
      case part::which:
        begin(beginnings_[static_cast<std::size_t>(number)]);
        return;
      case part::word:
        add(number);
        return;
    }
    if (next_ == part::length) next_ = part::opcode;
    else if (next_ == part::opcode && beginnings_.back().two) next_ = part::second;
    else next_ = beginnings_.size() == awaited_ ? part::which : part::length;
  }

 private:
  struct beginning {
    std::uint32_t first, second;
    bool two;
  };
  enum class part { count, length, opcode, second, which, word };

  void begin(const beginning& with) {
    out_->push_back(with.first);
    if (with.two) out_->push_back(with.second);
    left_ = (with.first >> 16) - (with.two ? 2 : 1);
    next_ = left_ == 0 ? part::which : part::word;
  }
  void add(std::uint64_t number) {
    const std::uint32_t value = static_cast<std::uint32_t>(number >> 1);
    const std::uint32_t word = (number & 1) != 0 ? latest_ + 1 - value : value;
    if (word < bound_ && word > latest_) latest_ = word;
    out_->push_back(word);
    if (--left_ == 0) next_ = part::which;
  }

  std::uint32_t bound_, latest_ = 0, left_ = 0;
  std::size_t awaited_ = 0;
  part next_ = part::count;
  std::vector<beginning> beginnings_;
  std::vector<std::uint32_t>* out_;
};

/// Restores the words of a module. @param count number of all words
/// @param exact_at word of the declarations before which the results of `exact` are decorated NoContraction
/// @param exact their ids, each minus the previous one
inline std::vector<std::uint32_t> module_words(std::string_view declarations, std::size_t count, std::size_t exact_at,
                                               std::string_view exact, std::initializer_list<std::string_view> code) {
  constexpr std::uint32_t decorate = 3u << 16 | 71u, no_contraction = 42;
  std::vector<std::uint32_t> out(exact_at);
  out.reserve(count);
  std::memcpy(out.data(), declarations.data(), 4 * exact_at);
  std::uint32_t id = 0;
  spell({exact}, [&](std::uint64_t further) {
    out.insert(out.end(), {decorate, id += static_cast<std::uint32_t>(further), no_contraction});
  });
  const std::size_t at = out.size();
  out.resize(at + declarations.size() / 4 - exact_at);
  std::memcpy(out.data() + at, declarations.data() + 4 * exact_at, declarations.size() - 4 * exact_at);
  constexpr std::size_t bound_at = 3;  // word of a module's header
  spell(code, instruction_reader(out.size() > bound_at ? out[bound_at] : 0, out));
  return out;
}

/// The words of a module's header, decoded once. @param parts NAME_parts of the header
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
