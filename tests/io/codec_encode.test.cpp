// SPDX-License-Identifier: MIT
#include "intaglio/io/codec_encode.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/gguf.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::argument_error;
using intaglio::dtype;
using namespace intaglio::io;

TEST_CASE("codec_encode: encoding gives the very bytes that llama-quantize wrote", "[codec]") {
  for (const std::string model : {"llama-tiny", "gemma3-tiny"}) {
    const auto folder = conformance(model) / "gguf";
    const auto masters = gguf::open(folder / (model + "-f32.gguf"));
    for (const dtype type :
         {dtype::f16, dtype::bf16, dtype::q8_0, dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k}) {
      const std::string name(intaglio::name(type));
      INFO(model << " " << name);
      const auto quantised = gguf::open(folder / (model + "-" + name + ".gguf"));
      std::size_t compared = 0;
      for (const auto& tensor : quantised.tensors()) {  // also the Q6_K embedding or head of the Q4 files
        if (!is_encodable(tensor.type) || tensor.type == dtype::f32) continue;
        const auto* master = masters.find_tensor(tensor.name);
        REQUIRE(master != nullptr);
        std::vector<float> values(static_cast<std::size_t>(tensor.rows() * tensor.columns()));
        masters.first().file().read(master->offset, std::as_writable_bytes(std::span(values)));
        bytes stored(static_cast<std::size_t>(tensor.bytes)), encoded(stored.size());
        quantised.first().file().read(tensor.offset, stored);
        encode_row(tensor.type, values, encoded);
        INFO(tensor.name);
        CHECK((encoded == stored));
        compared += tensor.type == type ? 1u : 0u;
      }
      CHECK(compared >= 20);
    }
  }
}

TEST_CASE("codec_encode: codecs of their own header give the very bytes that llama-quantize wrote", "[codec]") {
  const auto compare = [](const std::string& model, const std::string& variant, dtype type, std::size_t least) {
    INFO(model << " " << variant);
    const auto folder = conformance(model, "conformance2", "confgen2.py") / "gguf";
    const auto masters = gguf::open(folder / (model + "-f32.gguf")),
               quantised = gguf::open(folder / (model + "-" + variant + ".gguf"));
    std::size_t compared = 0;
    for (const auto& tensor : quantised.tensors()) {
      if (tensor.type != type) continue;
      const auto* master = masters.find_tensor(tensor.name);
      REQUIRE(master != nullptr);
      std::vector<float> values(static_cast<std::size_t>(tensor.bytes / intaglio::info(type).block_bytes *
                                                         intaglio::info(type).block_elements));
      masters.first().file().read(master->offset, std::as_writable_bytes(std::span(values)));
      bytes stored(static_cast<std::size_t>(tensor.bytes)), encoded(stored.size());
      quantised.first().file().read(tensor.offset, stored);
      encode_row(type, values, encoded);
      INFO(tensor.name);
      CHECK((encoded == stored));
      ++compared;
    }
    CHECK(compared >= least);
  };
  for (const dtype type : {dtype::q5_0, dtype::q5_1, dtype::q2_k, dtype::q3_k, dtype::q5_k, dtype::iq4_nl})
    compare("qwen3-tiny", std::string(intaglio::name(type)), type, 20);
  compare("qwen3moe-tiny", "mxfp4_moe", dtype::mxfp4, 9);
}

TEST_CASE("codec_encode: every number of 16 bits survives, and NaN stays NaN", "[codec]") {
  bytes raw(2 * 65536);
  for (std::size_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(raw.data() + 2 * i, &bits, 2);
  }
  std::vector<float> values(65536);
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    CAPTURE(intaglio::name(type));
    decode_row(type, raw, values);
    bytes back(raw.size());
    encode_row(type, values, back);
    const unsigned exponent = type == dtype::f16 ? 0x7C00 : 0x7F80, fraction = type == dtype::f16 ? 0x3FF : 0x7F;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, back.data() + 2 * i, 2);
      REQUIRE((bits == i || (std::isnan(values[i]) && (bits & exponent) == exponent && (bits & fraction) != 0)));
    }
  }
}

TEST_CASE("codec_encode: halves round away from zero, and their neighbours do not", "[codec]") {
  std::mt19937 random(9);
  const auto same = [](float value) {
    return intaglio::codecs::round_away(value) == static_cast<int>(std::round(value));
  };
  for (int i = -130; i <= 130; ++i)
    for (const float value : {static_cast<float>(i), static_cast<float>(i) + 0.5f}) {
      REQUIRE(same(value));
      REQUIRE(same(std::nextafter(value, 1000.f)));
      REQUIRE(same(std::nextafter(value, -1000.f)));
    }
  bool all = true;
  for (int i = 0; i < 1'000'000; ++i) all &= same(static_cast<float>(random()) * 0x1p-24f - 128.f);
  CHECK(all);
}

TEST_CASE("codec_encode: ternary blocks hold all 3^5 digit patterns", "[codec]") {
  for (unsigned q = 0; q < 243; ++q) {
    const std::array<std::uint8_t, 5> digits{static_cast<std::uint8_t>(q / 81), static_cast<std::uint8_t>(q / 27 % 3),
                                             static_cast<std::uint8_t>(q / 9 % 3), static_cast<std::uint8_t>(q / 3 % 3),
                                             static_cast<std::uint8_t>(q % 3)};
    REQUIRE(tq1_0_digits(codec_blocks::pack_243(q)) == digits);
  }
  std::mt19937 random(3);
  std::vector<float> values(1024), again(1024);
  for (float& value : values) value = 0.75f * static_cast<float>(static_cast<int>(random() % 3) - 1);
  for (const dtype type : {dtype::tq1_0, dtype::tq2_0}) {
    bytes encoded(static_cast<std::size_t>(row_bytes(type, 1024)));
    encode_row(type, values, encoded);
    decode_row(type, encoded, again);
    CHECK((values == again));
  }
}

TEST_CASE("codec_encode: blocks of zeros, of tiny and of equal values encode to numbers", "[codec]") {
  for (const dtype type : {dtype::q8_0, dtype::q4_0, dtype::q4_1, dtype::q4_k, dtype::q6_k, dtype::tq1_0, dtype::tq2_0})
    for (const float value : {0.f, -0.f, 1e-40f, -1e-40f, 1e-30f, 3.f, -65504.f}) {
      std::vector<float> values(256, value), again(256);
      bytes encoded(static_cast<std::size_t>(row_bytes(type, 256)));
      encode_row(type, values, encoded);
      decode_row(type, encoded, again);
      INFO(intaglio::name(type) << " " << value);
      for (const float x : again) {
        REQUIRE(std::isfinite(x));
        REQUIRE(std::fabs(x - value) <= std::fabs(value) / 100 + 1e-6f);
      }
    }
}

TEST_CASE("codec_encode: the byte values that the format fixes", "[ternary]") {
  std::vector<std::int8_t> codes(128);
  codes[0] = 1, codes[32] = -1, codes[64] = 1;
  bytes out(32);
  encode_ternary_rows(dtype::i2_s, codes, 1.f, out);
  CHECK(out[0] == std::byte{0x89});
  CHECK(out[1] == std::byte{0x55});
  std::fill(codes.begin(), codes.end(), std::int8_t{-1});
  encode_ternary_rows(dtype::i2_s, codes, 1.f, out);
  CHECK(out == bytes(32, std::byte{0x00}));
  std::fill(codes.begin(), codes.end(), std::int8_t{1});
  encode_ternary_rows(dtype::i2_s, codes, 1.f, out);
  CHECK(out == bytes(32, std::byte{0xAA}));
}

TEST_CASE("codec_encode: codes as floats are the scale with a sign, or nothing", "[codec]") {
  const std::vector<std::int8_t> codes{1, 0, -1};
  std::vector<float> values(3);
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    bytes out(static_cast<std::size_t>(row_bytes(type, 3)));
    encode_ternary_rows(type, codes, 0.75f, out);
    decode_row(type, out, values);
    CHECK(values == std::vector<float>{0.75f, 0.f, -0.75f});
  }
  const auto tail = i2_s_tail(0.75f);
  float scale;
  std::memcpy(&scale, tail.data(), 4);
  CHECK(scale == 0.75f);
  CHECK(std::count(tail.begin() + 4, tail.end(), std::byte{0}) == 28);
}

TEST_CASE("codec_encode: sizes that do not fit together and types without an encoder are argument errors", "[codec]") {
  for (const auto& row : intaglio::dtype_table) {
    CAPTURE(row.name);
    const std::size_t length = row.block_elements;
    std::vector<float> values(length + 1, 1.f);
    const std::vector<std::int8_t> codes(length + 1, std::int8_t{1});
    bytes out(std::size_t{2} * row.block_bytes);
    const auto first = std::span(values).first(length);
    if (is_encodable(row.type)) {
      CHECK_NOTHROW(encode_row(row.type, first, std::span(out).first(row.block_bytes)));
      CHECK_NOTHROW(encode_row(row.type, {}, {}));
      CHECK_THROWS_AS(encode_row(row.type, first, out), argument_error);
      CHECK_THROWS_AS(encode_row(row.type, first, std::span(out).first(row.block_bytes - 1)), argument_error);
      if (length > 1)  // a value more than a block
        CHECK_THROWS_WITH(
            encode_row(row.type, values, std::span(out).first(row.block_bytes)),
            ContainsSubstring("whole blocks of " + std::string(row.name) + ", found " +
                              std::to_string(row.block_bytes) + " for " + std::to_string(length + 1) + " elements"));
    } else {
      CHECK_THROWS_WITH(encode_row(row.type, first, std::span(out).first(row.block_bytes)),
                        ContainsSubstring("expected f32 f16 bf16 q8_0 q4_0 q4_1 q4_k q6_k tq1_0 tq2_0 q5_0 q5_1 q2_k "
                                          "q3_k q5_k iq4_nl mxfp4, found " +
                                          std::string(row.name)));
    }
    const auto some = std::span(codes).first(length);
    const bool holds_codes = row.type == dtype::i2_s || row.type == dtype::tq1_0 || row.type == dtype::tq2_0 ||
                             row.type == dtype::f32 || row.type == dtype::f16 || row.type == dtype::bf16;
    if (holds_codes) CHECK_NOTHROW(encode_ternary_rows(row.type, some, 1.f, std::span(out).first(row.block_bytes)));
    else
      CHECK_THROWS_WITH(encode_ternary_rows(row.type, some, 1.f, std::span(out).first(row.block_bytes)),
                        ContainsSubstring("expected i2_s tq1_0 tq2_0 f32 f16 bf16, found " + std::string(row.name)));
    CHECK_THROWS_AS(encode_ternary_rows(row.type, some, 1.f, out), argument_error);
    if (length > 1)
      CHECK_THROWS_AS(encode_ternary_rows(row.type, codes, 1.f, std::span(out).first(row.block_bytes)), argument_error);
  }
}

TEST_CASE("codec_encode: what is beyond a block's scale decodes as no number, and nothing is cast beyond its type",
          "[codec]") {
  for (const auto& row : intaglio::dtype_table) {
    if (!is_encodable(row.type) || row.block_elements == 1) continue;
    if (row.type == dtype::mxfp4) continue;  // its scale reaches as far as f32
    for (const float large : {3e38f, 1e30f, 1e19f, 1e15f, 1e10f}) {
      CAPTURE(row.name, large);
      std::vector<float> values(256, 1.f), again(256);
      values[7] = -large;
      values[9] = large;
      bytes out(static_cast<std::size_t>(row_bytes(row.type, 256)));
      CHECK_NOTHROW(encode_row(row.type, values, out));
      decode_row(row.type, out, again);
      CHECK_FALSE(codec_blocks::all_finite(again));
    }
  }
}

TEST_CASE("codec_encode: blocks of what is no number are refused with its offset", "[codec]") {
  for (const auto& row : intaglio::dtype_table) {
    if (!is_encodable(row.type)) continue;
    CAPTURE(row.name);
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      std::vector<float> values(512, 1.f);
      values[301] = bad;
      bytes out(static_cast<std::size_t>(row_bytes(row.type, 512)));
      if (row.block_elements == 1) CHECK_NOTHROW(encode_row(row.type, values, out));
      else
        CHECK_THROWS_WITH(encode_row(row.type, values, out),
                          ContainsSubstring("finite numbers for blocks of " + std::string(row.name) + ", found " +
                                            (std::isnan(bad) ? "NaN" : "infinity") + " at 301"));
    }
  }
}
