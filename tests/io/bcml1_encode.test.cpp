// SPDX-License-Identifier: MIT
#include "intaglio/io/bcml1_encode.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "../shared.hpp"
#include "files.hpp"
#include "intaglio/io/codec_encode.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using namespace intaglio::io;

namespace {

bytes as_type(dtype type, std::span<const float> values) {
  bytes out(values.size() * intaglio::info(type).block_bytes);
  encode_row(type, values, out);
  return out;
}
bytes encoded(dtype type, std::span<const float> values, const bcml1_layout& layout,
              const bcml1_options& options = {}) {
  bytes out(static_cast<std::size_t>(layout.bytes()), std::byte{0xAB});
  encode_bcml1(type, as_type(type, values), layout, out, options);
  return out;
}
std::uint64_t fnv1a(std::span<const std::byte> of) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : of) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100000001b3u;
  return hash;
}

}  // namespace

TEST_CASE("bcml1_encode: blocks are those of CGML's compressor, word for word", "[bcml1]") {
  std::ifstream file(shared("vectors/bcml1_blocks.json"));
  const auto ramp = [](auto&& rule) {
    std::vector<float> out(32);
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(rule(static_cast<int>(i)));
    return out;
  };
  std::size_t cases = 0;
  const auto document = nlohmann::json::parse(file);
  for (const auto& each : document.at("cases")) {
    const auto input = each.at("input").get<std::string>();
    INFO(input << " " << each.at("source"));
    std::vector<float> values;
    if (input == "ramp: v[i] = i/31") values = ramp([](int i) { return i / 31.; });
    else if (input == "constant: v[i] = 0.25") values = ramp([](int) { return 0.25; });
    else if (input == "zeros") values = ramp([](int) { return 0.; });
    else if (input == "v[i] = ((i*7+3)%17 - 8)/16") values = ramp([](int i) { return ((i * 7 + 3) % 17 - 8) / 16.; });
    else if (input == "v[i] = sin(i) (as float32, then fp16 for fp16 source)")
      values = ramp([](int i) { return std::sin(static_cast<double>(i)); });
    else if (input == "outlier: v[i] = 0.01*(i%5), v[13] = -6")
      values = ramp([](int i) { return i == 13 ? -6. : 0.01 * (i % 5); });
    else FAIL("no rule for this input");
    const auto words = each.at("u32").get<std::array<std::uint32_t, 5>>();
    for (const auto path : {bcml1::path::fastest, bcml1::path::portable}) {
      const bytes out = encoded(each.at("source") == "fp16" ? dtype::f16 : dtype::f32, values, {1, 32},
                                {.threads = 1, .progress = {}, .path = path});
      for (std::size_t i = 0; i < 5; ++i) {
        std::uint32_t word;
        std::memcpy(&word, out.data() + 256 * i, 4);
        CHECK(word == words[i]);
      }
    }
    ++cases;
  }
  CHECK(cases == 12);
}

TEST_CASE("bcml1_encode: whole tensors are those of CGML's compressor, on any number of threads", "[bcml1]") {
  std::ifstream file(shared("vectors/bcml1_panels.json"));
  std::size_t cases = 0;
  const auto document = nlohmann::json::parse(file);
  for (const auto& each : document.at("cases")) {
    const bcml1_layout layout{each.at("height"), each.at("width")};
    INFO(layout.rows << " x " << layout.columns);
    std::vector<float> values;
    for (std::uint64_t r = 0; r < layout.rows; ++r)
      for (std::uint64_t c = 0; c < layout.columns; ++c)
        values.push_back(static_cast<float>(static_cast<int>((r * 37 + c * 101 + (r * c) % 13) % 251) - 125) / 64.f);
    for (const unsigned threads : {1u, 3u, 0u})
      for (const auto path : {bcml1::path::fastest, bcml1::path::portable}) {
        const bytes out = encoded(dtype::f16, values, layout, {.threads = threads, .progress = {}, .path = path});
        CHECK(out.size() == each.at("bytes"));
        std::array<std::uint32_t, 8> first;
        std::memcpy(first.data(), out.data(), 32);
        CHECK(first == each.at("first8").get<std::array<std::uint32_t, 8>>());
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(fnv1a(out)));
        CHECK(text == each.at("fnv1a64").get<std::string>());
      }
    ++cases;
  }
  CHECK(cases == 4);
}

TEST_CASE("bcml1_encode: both ways give the same words, of every type and magnitude", "[bcml1]") {
  std::mt19937 random(11);
  const bcml1_layout layout{67, 300};
  for (int kind = 0; kind < 6; ++kind) {
    std::vector<float> values(static_cast<std::size_t>(layout.rows * layout.columns));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float v = static_cast<float>(random()) * 0x1p-31f - 1.f;
      // Common, tiny (subnormal f16), equal, zeros of both signs, one spike, and steps that fall on halves.
      values[i] = kind == 0   ? v
                  : kind == 1 ? v * 1e-7f
                  : kind == 2 ? static_cast<float>(i / 64)
                  : kind == 3 ? (random() % 2 == 0 ? 0.f : -0.f)
                  : kind == 4 ? (i % 61 == 0 ? 60000.f : v)
                              : static_cast<float>(random() % 31);
    }
    if (kind == 1) values[5] = -1e-42f;
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
      CAPTURE(kind, intaglio::name(type));
      const bytes fast = encoded(type, values, layout, {.threads = 2, .progress = {}, .path = bcml1::path::fastest});
      REQUIRE((fast == encoded(type, values, layout, {.threads = 1, .progress = {}, .path = bcml1::path::portable})));
      // Halves of a step plus what rounding the header to f16 adds.
      std::vector<float> rounded(values.size()), again(values.size());
      decode_row(type, as_type(type, values), rounded);
      decode_bcml1(fast, layout, 0, layout.rows, again);
      for (std::size_t row = 0; row < layout.rows; ++row)
        for (std::size_t column = 0; column < layout.columns; column += 32) {
          const std::size_t at = row * static_cast<std::size_t>(layout.columns) + column,
                            length = std::min<std::size_t>(32, static_cast<std::size_t>(layout.columns) - column);
          const auto [least, most] = std::minmax_element(rounded.begin() + static_cast<std::ptrdiff_t>(at),
                                                         rounded.begin() + static_cast<std::ptrdiff_t>(at + length));
          const float range = *most - *least,
                      bound = range / 30.f + (range + std::max(std::fabs(*least), std::fabs(*most))) * 0x1p-11f +
                              16 * 0x1p-25f;
          for (std::size_t i = at; i < at + length; ++i) REQUIRE(std::fabs(again[i] - rounded[i]) <= bound);
        }
    }
  }
}

TEST_CASE("bcml1_encode: progress is reported in order and ends at the whole", "[bcml1]") {
  const bcml1_layout layout{200, 32};
  const std::vector<float> values(6400, 0.5f);
  std::vector<std::uint64_t> seen;
  encoded(dtype::f16, values, layout,
          {.threads = 3,
           .progress = [&](std::uint64_t bytes, std::uint64_t total) { seen.push_back(total == 12800 ? bytes : 0); },
           .path = {}});
  CHECK(seen == std::vector<std::uint64_t>{4096, 8192, 12288, 12800});
  // What the callback throws ends the work.
  CHECK_THROWS_AS(encoded(dtype::f16, values, layout,
                          {.threads = 2,
                           .progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); },
                           .path = {}}),
                  std::runtime_error);
}

TEST_CASE("bcml1_encode: an output at an odd address", "[bcml1]") {
  const bcml1_layout layout{65, 64};
  std::vector<float> values(65 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97);
  bytes out(static_cast<std::size_t>(layout.bytes()) + 1);
  encode_bcml1(dtype::f32, as_type(dtype::f32, values), layout, std::span(out).subspan(1));
  CHECK((bytes(out.begin() + 1, out.end()) == encoded(dtype::f32, values, layout)));
}

TEST_CASE("bcml1_encode: values without a code are refused with their row and columns", "[bcml1]") {
  const bcml1_layout layout{70, 100};
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16})
    for (const auto path : {bcml1::path::fastest, bcml1::path::portable})
      for (const auto& [row, column] : {std::pair<std::size_t, std::size_t>{0, 0}, {69, 63}, {64, 99}})
        for (const float bad : {std::nanf(""), INFINITY, -INFINITY, 1e6f, -1e6f}) {
          if (type == dtype::f16 && std::fabs(bad) == 1e6f) continue;
          CAPTURE(intaglio::name(type), row, column, bad);
          std::vector<float> values(7000, 1.f);
          values[row * 100 + column] = bad;
          const std::string what = std::isnan(bad) ? "NaN" : std::isinf(bad) ? "infinity" : "a larger one";
          CHECK_THROWS_WITH(
              encoded(type, values, layout, {.threads = 2, .progress = {}, .path = path}),
              ContainsSubstring("finite numbers within the range of f16, found " + what + " in row " +
                                std::to_string(row) + ", columns from " + std::to_string(column / 32 * 32)));
        }
}

TEST_CASE("bcml1_encode: other types and sizes that do not fit together", "[bcml1]") {
  const bcml1_layout layout{64, 32};
  const bytes in(4096);
  bytes out(1280);
  CHECK_NOTHROW(encode_bcml1(dtype::f16, in, layout, out));
  CHECK_THROWS_AS(encode_bcml1(dtype::q8_0, in, layout, out), intaglio::argument_error);
  CHECK_THROWS_AS(encode_bcml1(dtype::f32, in, layout, out), intaglio::argument_error);
  CHECK_THROWS_AS(encode_bcml1(dtype::f16, in, layout, std::span(out).first(1276)), intaglio::argument_error);
  CHECK_NOTHROW(encode_bcml1(dtype::f16, {}, {0, 32}, {}));
}
