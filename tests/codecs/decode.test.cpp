// SPDX-License-Identifier: MIT
// Each codec's values against those of ggml, bit for bit: 64 blocks each (tests/codecs/vectors.hpp).
#include "intaglio/codecs/decode.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "codecs/vectors.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

template <class C>
void compare() {
  const codec_vectors vectors(name(C::type));
  REQUIRE(vectors.blocks.size() == vector_blocks * C::bytes);
  std::vector<float> got(vector_blocks * C::elements);
  REQUIRE(codecs::decode_blocks(C::type, reinterpret_cast<const std::uint8_t*>(vectors.blocks.data()), vector_blocks,
                                got.data()));
  vectors.compare(got);
}

// Rows that kernels would compute wrongly do not compile (device_row.hpp).
static_assert(codecs::is_sound({.bits = 4, .zero = 12, .table = 2}) && codecs::is_sound({.bits = 6, .zero = 63}));
static_assert(!codecs::is_sound({.bits = 5, .zero = 0, .table = 1}));
static_assert(!codecs::is_sound({.bits = 5, .zero = 64}) && !codecs::is_sound({.bits = 4, .zero = -1}));
static_assert(codecs::is_sound({.bits = 8, .zero = 0}) && !codecs::is_sound({.bits = 8, .zero = 1}));

static_assert(codecs::is_listed(dtype::q5_0) && codecs::is_listed(dtype::mxfp4) && !codecs::is_listed(dtype::f32));

/// A finite f16 by its definition.
double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}
bool is_half(std::uint16_t bits) { return (bits & 0x7C00) != 0x7C00; }

/// Decodes one block and compares each value with value(index).
template <class C, class Value>
bool decodes(const std::array<std::uint8_t, C::bytes>& block, const Value& value) {
  std::array<float, C::elements> out;
  C::decode(block.data(), out.data());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] != static_cast<float>(value(i))) {
      FAIL_CHECK(name(C::type) << " value " << i << ": expected " << value(i) << ", found " << out[i]);
      return false;
    }
  return true;
}

/// A codec of 32 neighbours and an f16 scale, with each finite scale and each code. @param code of an index
/// @param put writes a code at its index  @param number what a code stands for  @param blocks that have all codes
template <class C, class Code, class Put, class Number>
void check_all(std::size_t blocks, const Code& code, const Put& put, const Number& number) {
  std::array<std::uint8_t, C::bytes> block{};
  for (std::size_t turn = 0; turn < blocks; ++turn) {
    for (std::size_t i = 0; i < C::elements; ++i) put(block, i, code(turn, i));
    for (unsigned bits = 0; bits < 65536; ++bits) {
      const auto scale = static_cast<std::uint16_t>(bits);
      if (!is_half(scale)) continue;
      std::memcpy(block.data(), &scale, 2);
      const double d = half(scale);
      if (!decodes<C>(block, [&](std::size_t i) { return d * number(code(turn, i)); })) return;
    }
  }
}
/// Puts 4 bits: codes 0 to 15 are the lower halves of 16 bytes from `at` on, 16 to 31 the upper ones.
template <std::size_t at>
constexpr auto put_nibble = [](auto& block, std::size_t i, unsigned code) {
  std::uint8_t& byte = block[at + i % 16];
  byte = static_cast<std::uint8_t>(i < 16 ? (byte & 0xF0) | code : (byte & 15) | code << 4);
};

}  // namespace

TEST_CASE("codecs: each code with each scale decodes by the codec's formula", "[codecs]") {
  const auto cycle = [](unsigned codes) {
    return [codes](std::size_t turn, std::size_t i) { return static_cast<unsigned>(turn * 32 + i) % codes; };
  };
  check_all<codecs::q4_0>(1, cycle(16), put_nibble<2>, [](unsigned code) { return static_cast<int>(code) - 8; });
  check_all<codecs::q8_0>(
      8, cycle(256), [](auto& block, std::size_t i, unsigned code) { block[2 + i] = static_cast<std::uint8_t>(code); },
      [](unsigned code) { return code < 128 ? static_cast<int>(code) : static_cast<int>(code) - 256; });
  check_all<codecs::q5_0>(
      1, cycle(32),
      [](auto& block, std::size_t i, unsigned code) {
        put_nibble<6>(block, i, code & 15);
        std::uint8_t& tops = block[2 + i / 8];
        tops = static_cast<std::uint8_t>((tops & ~(1u << i % 8)) | (code >> 4) << i % 8);
      },
      [](unsigned code) { return static_cast<int>(code) - 16; });
  constexpr std::array iq4{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  check_all<codecs::iq4_nl>(1, cycle(16), put_nibble<2>, [&](unsigned code) { return iq4[code]; });
  const auto bits_of = [](unsigned width) {
    return [width](auto& block, std::size_t i, unsigned code) {
      std::uint8_t& byte = block[2 + i * width / 8];
      const std::size_t shift = i * width % 8;
      byte = static_cast<std::uint8_t>((byte & ~(((1u << width) - 1u) << shift)) | code << shift);
    };
  };
  check_all<codecs::q1_0>(1, cycle(2), bits_of(1), [](unsigned code) { return code != 0 ? 1 : -1; });
  check_all<codecs::q2_0>(1, cycle(4), bits_of(2), [](unsigned code) { return static_cast<int>(code) - 1; });
}

TEST_CASE("codecs: each code, scale and some least values decode by the codec's formula", "[codecs]") {
  constexpr std::array<std::uint16_t, 8> leasts{0, 0x8000, 1, 0x83FF, 0x3C00, 0xBC01, 0x7BFF, 0xFBFF};
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto scale = static_cast<std::uint16_t>(bits);
    if (!is_half(scale)) continue;
    for (const std::uint16_t least : leasts) {
      std::array<std::uint8_t, codecs::q4_1::bytes> four{};
      std::array<std::uint8_t, codecs::q5_1::bytes> five{};
      std::memcpy(four.data(), &scale, 2), std::memcpy(four.data() + 2, &least, 2);
      std::memcpy(five.data(), &scale, 2), std::memcpy(five.data() + 2, &least, 2);
      for (std::size_t i = 0; i < 16; ++i) four[4 + i] = five[8 + i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
      five[4] = five[5] = 0x5A, five[6] = five[7] = 0xA5;  // each low code has both upper bits
      const double d = half(scale), m = half(least);
      const auto low = [](std::size_t i) { return static_cast<int>(i < 16 ? i : 31 - i); };
      const auto top = [](std::size_t i) { return ((i < 16 ? 0x5A : 0xA5) >> i % 8 & 1) * 16; };
      if (!decodes<codecs::q4_1>(four, [&](std::size_t i) { return d * low(i) + m; })) return;
      if (!decodes<codecs::q5_1>(five, [&](std::size_t i) { return d * (low(i) + top(i)) + m; })) return;
    }
  }
}

TEST_CASE("codecs: each code of 4 bits that is a number, with each scale of 8 bits", "[codecs]") {
  constexpr std::array e2m1{0., .5, 1., 1.5, 2., 3., 4., 6.};
  const auto number = [&](std::size_t code) { return code < 8 ? e2m1[code] : -e2m1[code - 8]; };
  for (unsigned scale = 0; scale < 255; ++scale) {  // 255 is NaN
    std::array<std::uint8_t, codecs::mxfp4::bytes> block{static_cast<std::uint8_t>(scale)};
    for (std::size_t i = 0; i < 16; ++i) block[1 + i] = static_cast<std::uint8_t>(i | (15 - i) << 4);
    decodes<codecs::mxfp4>(
        block, [&](std::size_t i) { return std::ldexp(number(i < 16 ? i : 31 - i), static_cast<int>(scale) - 127); });
  }
  for (unsigned scale = 0; scale < 256; ++scale) {
    std::array<std::uint8_t, codecs::nvfp4::bytes> block{};
    block.fill(static_cast<std::uint8_t>(scale));
    for (std::size_t i = 0; i < 32; ++i)
      block[4 + i] = static_cast<std::uint8_t>(i % 8 | (i % 8 + 8) << 4);  // 8 codes of 16 neighbours
    const int exponent = static_cast<int>(scale >> 3 & 15), fraction = static_cast<int>(scale & 7);
    const double d = scale == 127    ? 0
                     : exponent == 0 ? std::ldexp(fraction, -9)
                                     : std::ldexp(8 + fraction, exponent - 10);
    decodes<codecs::nvfp4>(block, [&](std::size_t i) { return d * number(i % 16); });
  }
}

TEST_CASE("codecs: decoding is ggml's, bit for bit", "[codecs]") {
  need_shared();
  [&]<class... C>(std::tuple<C...>*) { (compare<C>(), ...); }(static_cast<codecs::all*>(nullptr));
}

TEST_CASE("codecs: an exponent of MXFP4 that is NaN gives no numbers", "[codecs]") {
  std::array<std::uint8_t, codecs::mxfp4::bytes> block{255, 0x11};
  std::array<float, codecs::mxfp4::elements> out{};
  codecs::mxfp4::decode(block.data(), out.data());
  for (const float value : out) CHECK(std::isnan(value));
}
