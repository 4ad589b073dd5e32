// SPDX-License-Identifier: MIT
#include "intaglio/io/codec_ternary.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "files.hpp"
#include "intaglio/io/codec_encode.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using namespace intaglio::io;

namespace {

std::vector<std::int8_t> random_codes(std::size_t count) {
  std::mt19937 random(11);
  std::vector<std::int8_t> out(count);
  for (auto& code : out) code = static_cast<std::int8_t>(static_cast<int>(random() % 3) - 1);
  return out;
}

/// Puts codes one by one by the layouts' formulas.
bytes i2_s(const std::vector<std::int8_t>& codes, std::size_t columns, i2s_layout layout, float scale) {
  std::vector<std::uint8_t> out(codes.size() / 4 + 32);
  for (std::size_t e = 0; e < codes.size(); ++e) {
    const std::size_t row = e / columns, column = e % columns;
    std::size_t byte = 0, shift = 0;
    if (layout == i2s_layout::block128) {
      byte = 32 * (e / 128) + e % 32;
      shift = 6 - 2 * (e % 128 / 32);
    } else if (layout == i2s_layout::block64) {
      byte = 16 * (e / 64) + e % 16;
      shift = 6 - 2 * (e % 64 / 16);
    } else {
      byte = row / 4 * columns + column;
      shift = 6 - 2 * (row % 4);
    }
    out[byte] = static_cast<std::uint8_t>(out[byte] | (codes[e] + 1) << shift);
  }
  std::memcpy(out.data() + codes.size() / 4, &scale, 4);
  const auto view = std::as_bytes(std::span(out));
  return {view.begin(), view.end()};
}

struct source {
  bytes data;
  mapped_file file;
  stored_tensor tensor;
  source(bytes raw, dtype type, std::uint64_t rows, std::uint64_t columns)
      : data(std::move(raw)), file(mapped_file::from_memory(data, "memory")),
        tensor{"matrix", type, rows, columns, &file, 0, data.size()} {}
};

std::vector<std::int8_t> all_codes(const ternary_tensor& tensor) {
  std::vector<std::int8_t> out(static_cast<std::size_t>(tensor.tensor().rows * tensor.tensor().columns));
  tensor.rows(0, tensor.tensor().rows, out);
  return out;
}
template <class Read>
std::string refusal(Read&& read) {
  try {
    read();
  } catch (const intaglio::file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("ternary: I2_S in its three layouts, whole and by rows", "[ternary]") {
  const auto codes = random_codes(24 * 256);
  for (const i2s_layout layout : {i2s_layout::block128, i2s_layout::block64, i2s_layout::rows4}) {
    INFO(name(layout));
    const source s(i2_s(codes, 256, layout, 0.375f), dtype::i2_s, 24, 256);
    const ternary_tensor tensor(s.tensor, {layout});
    CHECK(tensor.scale() == 0.375f);
    CHECK((all_codes(tensor) == codes));
    std::vector<std::int8_t> some(5 * 256);
    tensor.rows(17, 5, some);
    CHECK(std::equal(some.begin(), some.end(), codes.begin() + 17 * 256));
    CHECK_THROWS_AS(tensor.rows(20, 5, some), intaglio::argument_error);
    CHECK_THROWS_AS(tensor.rows(~std::uint64_t{0}, 5, some), intaglio::argument_error);
    CHECK_THROWS_AS(tensor.rows(17, 4, some), intaglio::argument_error);
  }
  // Our own encoder writes the first.
  bytes encoded(codes.size() / 4);
  encode_ternary_rows(dtype::i2_s, codes, 0.375f, encoded);
  const auto tail = i2_s_tail(0.375f);
  encoded.insert(encoded.end(), tail.begin(), tail.end());
  CHECK(encoded == i2_s(codes, 256, i2s_layout::block128, 0.375f));
}

TEST_CASE("ternary: a matrix larger than one chunk", "[ternary]") {
  const auto codes = random_codes(std::size_t{1200} * 4096);
  const source s(i2_s(codes, 4096, i2s_layout::block128, 2.f), dtype::i2_s, 1200, 4096);
  CHECK((all_codes(ternary_tensor(s.tensor)) == codes));
}

TEST_CASE("ternary: TQ1_0, TQ2_0 and floats written from codes read back", "[ternary]") {
  auto codes = random_codes(16 * 512);
  std::fill(codes.begin(), codes.begin() + 300, std::int8_t{0});
  for (const dtype type : {dtype::tq1_0, dtype::tq2_0, dtype::f32, dtype::f16, dtype::bf16}) {
    INFO(intaglio::name(type));
    bytes encoded(static_cast<std::size_t>(row_bytes(type, 512) * 16));
    encode_ternary_rows(type, codes, 0.40625f, encoded);
    const source s(encoded, type, 16, 512);
    const ternary_tensor tensor(s.tensor, {i2s_layout::block128, 0.f, 2.f});
    CHECK(tensor.scale() == 0.8125f);
    CHECK((all_codes(tensor) == codes));
  }
  // ggml's quantisers give a block of zeros the scale 0.
  for (const dtype type : {dtype::tq1_0, dtype::tq2_0}) {
    std::vector<float> values(codes.begin(), codes.end());
    bytes encoded(static_cast<std::size_t>(row_bytes(type, values.size())));
    encode_row(type, values, encoded);
    const auto block = static_cast<std::size_t>(row_bytes(type, 256));
    REQUIRE(encoded[block - 1] == std::byte{0});
    const source s(encoded, type, 16, 512);
    CHECK(ternary_tensor(s.tensor).scale() == 1.f);
    CHECK((all_codes(ternary_tensor(s.tensor)) == codes));
  }
}

TEST_CASE("ternary: packed rows a quarter apart", "[ternary]") {
  const auto codes = random_codes(12 * 8);
  std::vector<std::uint8_t> packed(3 * 8);
  for (std::size_t r = 0; r < 12; ++r)
    for (std::size_t c = 0; c < 8; ++c)
      packed[r % 3 * 8 + c] =
          static_cast<std::uint8_t>(packed[r % 3 * 8 + c] | (codes[r * 8 + c] + 1) << (2 * (r / 3)));
  const auto view = std::as_bytes(std::span(packed));
  const source s({view.begin(), view.end()}, dtype::u8, 12, 8);
  const ternary_tensor tensor(s.tensor, {i2s_layout::block128, 0.5f});
  CHECK(tensor.scale() == 0.5f);
  CHECK((all_codes(tensor) == codes));
  std::vector<std::int8_t> some(6 * 8);
  tensor.rows(2, 6, some);
  CHECK(std::equal(some.begin(), some.end(), codes.begin() + 2 * 8));
}

TEST_CASE("ternary: packed rows whose bytes are no multiple of eight", "[ternary]") {
  // Four rows of three columns: code (r + c) % 3 - 1.
  bytes packed(3);
  for (std::size_t r = 0; r < 4; ++r)
    for (std::size_t c = 0; c < 3; ++c) packed[c] |= static_cast<std::byte>((r + c) % 3 << (2 * r));
  const source s(packed, dtype::u8, 4, 3);
  const auto codes = all_codes(ternary_tensor(s.tensor, {i2s_layout::block128, 0.5f}));
  for (std::size_t i = 0; i < 12; ++i) CHECK(codes[i] == static_cast<int>((i / 3 + i % 3) % 3) - 1);
  packed[2] = std::byte{0b11'00'00'00};  // of row 3
  const source bad(packed, dtype::u8, 4, 3);
  CHECK_THAT(refusal([&] {
               all_codes(ternary_tensor(bad.tensor, {i2s_layout::block128, 0.5f}));
             }),
             ContainsSubstring("offset 0x2") && ContainsSubstring("ternary code"));
}

TEST_CASE("ternary: masters by mean magnitude, half to even", "[ternary]") {
  // Mean magnitude 1: 0.5 rounds to 0, 1.5 to 2 and so to 1.
  const std::vector<float> values{0.5f, -0.5f, 1.5f, -1.5f, 0.75f, -1.25f, 2.f, 0.f};
  const auto view = std::as_bytes(std::span(values));
  const source s({view.begin(), view.end()}, dtype::f32, 1, 8);
  const ternary_tensor tensor(s.tensor);
  CHECK(tensor.scale() == 1.f);
  CHECK(all_codes(tensor) == std::vector<std::int8_t>{0, 0, 1, -1, 1, -1, 1, 0});

  // The scale of a bf16 master is a bf16 number; codes come of the unrounded mean.
  const std::vector<float> mixed{1.f, 1.0078125f, 0.f, 0.f};
  bytes half(8);
  encode_row(dtype::bf16, mixed, half);
  const source t(half, dtype::bf16, 1, 4);
  CHECK(ternary_tensor(t.tensor).scale() == intaglio::f32_from_bf16(intaglio::bf16_from_f32(2.0078125f / 4)));

  // And of f16 masters an f16 number.
  encode_row(dtype::f16, mixed, half);
  const source v(half, dtype::f16, 1, 4);
  CHECK(ternary_tensor(v.tensor).scale() ==
        intaglio::f32_from_f16(
            intaglio::f16_from_f32((1.f + intaglio::f32_from_f16(intaglio::f16_from_f32(1.0078125f))) / 4)));
  // However the I2_S tensors of the file are laid out, masters are not.
  CHECK(ternary_tensor(v.tensor, {i2s_layout::rows4}).scale() == ternary_tensor(v.tensor).scale());

  // Nothing but zeros: the least scale there is.
  const source zeros(bytes(64), dtype::f32, 4, 4);
  CHECK(ternary_tensor(zeros.tensor).scale() == 1e-5f);
  CHECK(all_codes(ternary_tensor(zeros.tensor)) == std::vector<std::int8_t>(16));
}

TEST_CASE("ternary: faults name the tensor and the offset", "[ternary]") {
  const auto codes = random_codes(8 * 128);
  for (const i2s_layout layout : {i2s_layout::block128, i2s_layout::block64, i2s_layout::rows4}) {
    bytes data = i2_s(codes, 128, layout, 1.f);
    data[200] |= std::byte{0xFF};
    const source s(data, dtype::i2_s, 8, 128);
    const std::string text = refusal([&] { all_codes(ternary_tensor(s.tensor, {layout})); });
    CHECK_THAT(text, ContainsSubstring("offset 0xc8") && ContainsSubstring("'matrix'") &&
                         ContainsSubstring("ternary code") && ContainsSubstring("found 3"));
  }
  for (const float scale :
       {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const source s(i2_s(codes, 128, i2s_layout::block128, scale), dtype::i2_s, 8, 128);
    CHECK_THAT(refusal([&] { ternary_tensor t(s.tensor); }),
               ContainsSubstring("offset 0x100") && ContainsSubstring("scale"));
    const source u(bytes(64), dtype::u8, 16, 16);
    CHECK_THAT(refusal([&] { ternary_tensor t(u.tensor, {i2s_layout::block128, scale}); }), ContainsSubstring("scale"));
    if (!(scale > 0.f && std::isfinite(scale)))
      CHECK_THAT(refusal([&] {
                   ternary_tensor t(u.tensor, {i2s_layout::block128, 1.f, scale});
                 }),
                 ContainsSubstring("scale"));
  }
  const auto many = random_codes(8 * 256);
  for (const dtype type : {dtype::tq1_0, dtype::tq2_0}) {
    bytes data(static_cast<std::size_t>(row_bytes(type, 256) * 8));
    encode_ternary_rows(type, many, 0.5f, data);
    const std::size_t block = static_cast<std::size_t>(row_bytes(type, 256));
    data[6 * block - 1] = std::byte{0x3C};  // 1.something instead of 0.5
    const source s(data, type, 8, 256);
    CHECK_THAT(refusal([&] { all_codes(ternary_tensor(s.tensor)); }),
               ContainsSubstring("block 5") && ContainsSubstring("unlike the other blocks'"));
    for (std::size_t b = 0; b < 8; ++b) data[b * block + block - 1] = data[b * block + block - 2] = std::byte{0};
    const source zero(data, type, 8, 256);
    CHECK_THAT(refusal([&] { ternary_tensor t(zero.tensor); }), ContainsSubstring("scale of all blocks"));
  }
  bytes three(static_cast<std::size_t>(row_bytes(dtype::tq2_0, 256)));
  encode_ternary_rows(dtype::tq2_0, std::span(many).first(256), 0.5f, three);
  three[41] |= std::byte{0x0C};
  const source t(three, dtype::tq2_0, 1, 256);
  CHECK_THAT(
      refusal([&] { all_codes(ternary_tensor(t.tensor)); }),
      ContainsSubstring("offset 0x29") && ContainsSubstring("ternary code: expected 0, 1 or 2, found 3 in byte"));
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> masters{1.f, 2.f, value, 0.f};
    const auto view = std::as_bytes(std::span(masters));
    const source m({view.begin(), view.end()}, dtype::f32, 1, 4);
    CHECK_THAT(refusal([&] { ternary_tensor(m.tensor); }),
               ContainsSubstring("offset 0x8") && ContainsSubstring("value: expected a finite number"));
  }
  // Shapes of which nothing holds: empty, past 64 bits, rows that do not share bytes by four, and too many bytes.
  const bytes some(64);
  const auto file = mapped_file::from_memory(some, "memory");
  const auto shaped = [&](dtype type, std::uint64_t rows, std::uint64_t columns,
                          i2s_layout layout = i2s_layout::block128) {
    return refusal([&] { ternary_tensor({"matrix", type, rows, columns, &file, 0, some.size()}, {layout, 1.f}); });
  };
  CHECK_THAT(shaped(dtype::f32, 0, 16), ContainsSubstring("columns divisible by it, found [0, 16]"));
  CHECK_THAT(shaped(dtype::f32, 16, 0), ContainsSubstring("columns divisible by it, found [16, 0]"));
  CHECK_THAT(shaped(dtype::u8, std::uint64_t{1} << 62, 4),
             ContainsSubstring("columns divisible by it, found [4611686018427387904, 4]"));
  CHECK_THAT(shaped(dtype::f32, std::uint64_t{1} << 59, 16), ContainsSubstring("'matrix': size"));
  CHECK_THAT(shaped(dtype::u8, 6, 16),
             ContainsSubstring("packed by four rows: expected rows divisible by 4, found [6, 16]"));
  CHECK_THAT(shaped(dtype::i2_s, 2, 64, i2s_layout::rows4),
             ContainsSubstring("packed by four rows: expected rows divisible by 4, found [2, 64]"));
  CHECK_THAT(shaped(dtype::f32, 3, 4), ContainsSubstring("size: expected 48 bytes for [3, 4], found 64"));
  CHECK_THAT(shaped(dtype::f32, 5, 4), ContainsSubstring("size: expected 80 bytes for [5, 4], found 64"));
  const source short_one(bytes(63), dtype::i2_s, 1, 128);
  CHECK_THAT(refusal([&] { ternary_tensor t(short_one.tensor); }),
             ContainsSubstring("64 bytes") && ContainsSubstring("found 63"));
  const source odd(bytes(132), dtype::i2_s, 4, 100);
  CHECK_THAT(refusal([&] { ternary_tensor t(odd.tensor); }), ContainsSubstring("blocks of 128"));
  const source wrong(bytes(64), dtype::i32, 4, 4);
  CHECK_THAT(refusal([&] { ternary_tensor t(wrong.tensor); }), ContainsSubstring("i32"));
}
