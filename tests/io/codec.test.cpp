// SPDX-License-Identifier: MIT
#include "intaglio/io/codec.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/gguf.hpp"

using intaglio::dtype;
using namespace intaglio::io;

namespace {

// The formats' rules element by element, in double: every value of these types is exact in f32, so both must agree bit
// for bit.
double element(dtype type, const std::uint8_t* b, std::size_t e) {
  const auto half = [&](std::size_t at) {
    std::uint16_t bits;
    std::memcpy(&bits, b + at, 2);
    return static_cast<double>(intaglio::f32_from_f16(bits));
  };
  const auto s8 = [&](std::size_t at) { return static_cast<double>(static_cast<std::int8_t>(b[at])); };
  switch (type) {
    case dtype::q8_0:
      return half(0) * s8(2 + e);
    case dtype::q4_0:
      return half(0) * ((e < 16 ? b[2 + e] & 15 : b[2 + e - 16] >> 4) - 8);
    case dtype::q4_1:
      return half(0) * (e < 16 ? b[4 + e] & 15 : b[4 + e - 16] >> 4) + half(2);
    case dtype::q4_k: {
      const std::size_t j = e / 32, k = e / 64, l = e % 32;
      const int scale = j < 4 ? b[4 + j] & 63 : (b[8 + j] & 15) | (b[j] >> 6 << 4);
      const int least = j < 4 ? b[8 + j] & 63 : (b[8 + j] >> 4) | (b[4 + j] >> 6 << 4);
      const int q = j % 2 == 0 ? b[16 + 32 * k + l] & 15 : b[16 + 32 * k + l] >> 4;
      return half(0) * scale * q - half(2) * least;
    }
    case dtype::q6_k: {
      const std::size_t h = e / 128, r = e % 128, quarter = r / 32, l = r % 32;
      const int low = b[64 * h + l + (quarter % 2) * 32], high = b[128 + 32 * h + l];
      const int q = (quarter < 2 ? low & 15 : low >> 4) | ((high >> (2 * quarter) & 3) << 4);
      return half(208) * s8(192 + 8 * h + 2 * quarter + l / 16) * (q - 32);
    }
    case dtype::tq2_0:
      return half(64) * ((b[32 * (e / 128) + e % 32] >> (2 * (e % 128 / 32)) & 3) - 1);
    case dtype::tq1_0: {
      const std::size_t byte = e < 160 ? e % 32 : e < 240 ? 32 + (e - 160) % 16 : 48 + (e - 240) % 4;
      const std::size_t n = e < 160 ? e / 32 : e < 240 ? (e - 160) / 16 : (e - 240) / 4;
      int power = 1;
      for (std::size_t i = 0; i < n; ++i) power *= 3;
      return half(52) * ((static_cast<std::uint8_t>(b[byte] * power) * 3 >> 8) - 1);
    }
    default:
      return 0;
  }
}

}  // namespace

TEST_CASE("codec: decoding agrees with the format's rule for every element of random blocks", "[codec]") {
  std::mt19937 random(7);
  for (const dtype type :
       {dtype::q8_0, dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k, dtype::tq1_0, dtype::tq2_0}) {
    const auto& layout = intaglio::info(type);
    INFO(layout.name);
    constexpr std::size_t blocks = 300;
    std::vector<std::uint8_t> raw(blocks * layout.block_bytes);
    for (auto& byte : raw) byte = static_cast<std::uint8_t>(random());
    // Scales that are numbers: clear the top exponent bit of each half that is read as f16.
    for (std::size_t b = 0; b < blocks; ++b)
      for (const std::size_t at : type == dtype::q6_k                          ? std::vector<std::size_t>{209}
                                  : type == dtype::tq1_0                       ? std::vector<std::size_t>{53}
                                  : type == dtype::tq2_0                       ? std::vector<std::size_t>{65}
                                  : type == dtype::q4_1 || type == dtype::q4_k ? std::vector<std::size_t>{1, 3}
                                                                               : std::vector<std::size_t>{1})
        raw[b * layout.block_bytes + at] &= 0xBF;
    std::vector<float> out(blocks * layout.block_elements);
    decode_row(type, std::as_bytes(std::span(raw)), out);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      wrong += out[i] != static_cast<float>(element(type, raw.data() + i / layout.block_elements * layout.block_bytes,
                                                    i % layout.block_elements));
    CHECK(wrong == 0);
  }
}

TEST_CASE("codec: 16-bit floats are decoded exactly at any alignment", "[codec]") {
  std::vector<std::uint8_t> raw(1 + 2 * 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(raw.data() + 1 + 2 * i, &bits, 2);
  }
  std::vector<float> out(65536);
  decode_row(dtype::bf16, std::as_bytes(std::span(raw).subspan(1)), out);
  for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(std::bit_cast<std::uint32_t>(out[i]) == i << 16);
  decode_row(dtype::f16, std::as_bytes(std::span(raw).subspan(1)), out);
  for (std::size_t i = 0; i < out.size(); ++i)
    REQUIRE(std::bit_cast<std::uint32_t>(out[i]) ==
            std::bit_cast<std::uint32_t>(intaglio::f32_from_f16(static_cast<std::uint16_t>(i))));
  CHECK(out[0x3C00] == 1.f);
  CHECK(out[0x0001] == std::ldexp(1.f, -24));
  CHECK(out[0xFBFF] == -65504.f);
}

TEST_CASE("codec: quantised files of llama-quantize decode near their masters", "[codec]") {
  const auto folder = conformance("llama-tiny") / "gguf";
  const auto masters = gguf::open(folder / "llama-tiny-f32.gguf");
  // Root mean square error against root mean square of the weights, as these codecs are known to give on normal
  // weights.
  for (const auto& [type, name, limit] : {std::tuple{dtype::q8_0, "q8_0", 0.01},
                                          {dtype::q4_0, "q4_0", 0.12},
                                          {dtype::q4_1, "q4_1", 0.1},
                                          {dtype::q4_k, "q4_k", 0.09},
                                          {dtype::q6_k, "q6_k", 0.025}}) {
    const auto quantised = gguf::open(folder / ("llama-tiny-" + std::string(name) + ".gguf"));
    double error = 0, power = 0;
    for (const auto& tensor : quantised.tensors()) {
      if (tensor.type != type) continue;
      std::vector<float> values(static_cast<std::size_t>(tensor.rows() * tensor.columns())), decoded(values.size());
      masters.first().file().read(masters.find_tensor(tensor.name)->offset, std::as_writable_bytes(std::span(values)));
      bytes stored(static_cast<std::size_t>(tensor.bytes));
      quantised.first().file().read(tensor.offset, stored);
      decode_row(type, stored, decoded);
      for (std::size_t i = 0; i < values.size(); ++i) {
        error += std::pow(static_cast<double>(values[i]) - static_cast<double>(decoded[i]), 2);
        power += std::pow(static_cast<double>(values[i]), 2);
      }
    }
    INFO(name);
    REQUIRE(power > 0);
    CHECK(std::sqrt(error / power) < limit);
    CHECK(std::sqrt(error / power) > limit / 10);  // a codec that lost nothing was not used
  }
}

TEST_CASE("codec: sizes that do not fit together are argument errors", "[codec]") {
  std::vector<float> values(32);
  bytes raw(34);
  decode_row(dtype::q8_0, raw, values);
  CHECK_THROWS_AS(decode_row(dtype::q8_0, std::span(raw).first(33), values), intaglio::argument_error);
  CHECK_THROWS_AS(decode_row(dtype::q8_0, raw, std::span(values).first(31)), intaglio::argument_error);
  CHECK_THROWS_AS(decode_row(dtype::i2_s, raw, values), intaglio::argument_error);
  decode_row(dtype::q8_0, {}, {});  // nothing is whole blocks too
}
