// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint_data.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "../conformance.hpp"
#include "gguf_image.hpp"
#include "intaglio/io/bcml1_encode.hpp"
#include "intaglio/io/checkpoint.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio::io;

namespace {

gguf_image tiny() { return gguf_image::of(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf")); }
std::string refusal(const gguf_image& image) {
  const bytes file = image.build();
  try {
    checkpoint::open_gguf(file, "memory");
  } catch (const intaglio::file_error& problem) { return whole_text(problem); }
  return "accepted";
}

}  // namespace

TEST_CASE("checkpoint_data: rows are read by the range that was asked for", "[checkpoint]") {
  const auto model = checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  const auto& embedding = model.at("token_embd.weight");
  std::vector<float> all(4096 * 256), some(3 * 256);
  model.read_f32(embedding, 0, 4096, all);
  model.read_f32(embedding, 4093, 3, some);
  CHECK(std::equal(some.begin(), some.end(), all.end() - 3 * 256));
  CHECK_THROWS_AS(model.read_f32(embedding, 4094, 3, some), intaglio::argument_error);
  CHECK_THROWS_AS(model.read_f32(embedding, 0, 2, some), intaglio::argument_error);
  CHECK_THROWS_AS(model.at("no.such.tensor"), intaglio::argument_error);
  const auto& matrix = model.at("blk.0.attn_k.weight");
  const auto source = model.ternary(matrix);
  std::vector<std::int8_t> codes(2 * 256);
  source.rows(50, 2, codes);
  std::vector<float> values(2 * 256);
  model.read_f32(matrix, 50, 2, values);
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == static_cast<float>(codes[i]) * source.scale());
}

TEST_CASE("checkpoint_data: a packed matrix reads as scale times code", "[checkpoint]") {
  const auto model = checkpoint::open(conformance("bitnet-tiny") / "hf-packed");
  const auto& matrix = model.at("blk.1.ffn_down.weight");
  REQUIRE(matrix.stored.type == intaglio::dtype::u8);
  const auto source = model.ternary(matrix);
  std::vector<std::int8_t> codes(3 * 768);
  std::vector<float> values(codes.size());
  source.rows(253, 3, codes);
  model.read_f32(matrix, 253, 3, values);
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == static_cast<float>(codes[i]) * source.scale());
}

TEST_CASE("checkpoint_data: rows that turn together come in NeoX order from every form", "[checkpoint]") {
  static_assert(row_in_pairs(8, 0) == 0 && row_in_pairs(8, 1) == 2 && row_in_pairs(8, 4) == 1 &&
                row_in_pairs(8, 15) == 15 && row_in_pairs(8, 9) == 10);
  // Four of six channels turn, 0 with 2 and 1 with 3; 4 and 5 do not.
  static_assert(row_in_pairs(6, 0, 4) == 0 && row_in_pairs(6, 3, 4) == 2 && row_in_pairs(6, 1, 4) == 1 &&
                row_in_pairs(6, 4, 4) == 3 && row_in_pairs(6, 2, 4) == 4 && row_in_pairs(6, 5, 4) == 5 &&
                row_in_pairs(6, 6, 4) == 6);
  // Neighbours of the first 4 of 6 turn together.
  static_assert(row_in_pairs(6, 0, 4, true) == 0 && row_in_pairs(6, 3, 4, true) == 1 &&
                row_in_pairs(6, 1, 4, true) == 2 && row_in_pairs(6, 4, 4, true) == 3 &&
                row_in_pairs(6, 2, 4, true) == 4 && row_in_pairs(6, 11, 4, true) == 11);
  const auto pairs = checkpoint::open(conformance("llama-tiny") / "gguf/llama-tiny-f16.gguf"),
             halves = checkpoint::open(conformance("llama-tiny") / "hf");
  CHECK(pairs.at("blk.0.attn_q.weight").rows_in_pairs == 32);
  CHECK(pairs.at("blk.2.attn_k.weight").rows_in_pairs == 32);
  for (const char* name : {"blk.1.attn_v.weight", "blk.1.attn_output.weight", "blk.1.ffn_up.weight", "output.weight"})
    CHECK(pairs.at(name).rows_in_pairs == 0);
  for (const char* name : {"blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.1.attn_v.weight"}) {
    INFO(name);
    const auto &one = pairs.at(name), &other = halves.at(name);
    CHECK(other.rows_in_pairs == 0);
    for (const auto& [row0, count] :
         {std::pair<std::uint64_t, std::uint64_t>{0, one.stored.rows}, {31, 2}, {17, 1}, {5, 40}}) {
      const auto size = static_cast<std::size_t>(count * one.stored.columns);
      std::vector<float> x(size), y(size), raw(size);
      pairs.read_f32(one, row0, count, x);
      halves.read_f32(other, row0, count, y);
      CHECK((x == y));
      bytes stored(size * 2);
      pairs.read_rows(one, row0, count, stored);
      decode_row(intaglio::dtype::f16, stored, raw);
      CHECK((raw == y));
    }
    std::vector<float> room(3 * 256);
    CHECK_THROWS_AS(pairs.read_f32(one, one.stored.rows - 2, 3, room), intaglio::argument_error);
    bytes short_room(3 * 512 - 1);
    CHECK_THROWS_AS(pairs.read_rows(one, 0, 3, short_room), intaglio::argument_error);
  }
  const auto ternary = checkpoint::open(shared("models/fable-bitnet-i2_s.gguf"));
  bytes row(64);
  CHECK_THROWS_AS(ternary.read_rows(ternary.at("blk.0.attn_q.weight"), 0, 1, row), intaglio::argument_error);
}

TEST_CASE("checkpoint_data: BCML1 is read by panels, and its bad values are named by them", "[checkpoint]") {
  auto image = gguf_image::of(conformance("llama-tiny") / "gguf/llama-tiny-f32.gguf");
  std::vector<std::pair<std::string, std::vector<float>>> expected;
  for (const char* name : {"blk.0.ffn_down.weight", "blk.1.attn_q.weight"}) {
    auto& tensor = image.tensor_at(name);
    const bcml1_layout layout{tensor.shape[1], tensor.shape[0]};
    bytes panels(static_cast<std::size_t>(layout.bytes()));
    encode_bcml1(intaglio::dtype::f32, tensor.data, layout, panels);
    expected.emplace_back(name, std::vector<float>(static_cast<std::size_t>(layout.rows * layout.columns)));
    decode_bcml1(panels, layout, 0, layout.rows, expected.back().second);
    tensor.type = static_cast<std::uint32_t>(intaglio::bcml1_ggml_type);
    tensor.data = panels;
  }
  bytes file = image.build();
  const auto model = checkpoint::open_gguf(file, "memory");
  for (const auto& [name, values] : expected) {
    const auto& tensor = model.at(name);
    REQUIRE(tensor.stored.type == intaglio::dtype::bcml1);
    const auto columns = static_cast<std::size_t>(tensor.stored.columns);
    for (const auto& [row0, count] : {std::pair<std::size_t, std::size_t>{0, 256}, {60, 70}, {129, 1}}) {
      std::vector<float> some(count * columns);
      model.read_f32(tensor, row0, count, some);
      for (std::size_t row = 0; row < count; ++row) {
        const auto at = static_cast<std::size_t>(
                            tensor.rows_in_pairs == 0 ? row0 + row : row_in_pairs(tensor.rows_in_pairs, row0 + row)) *
                        columns;
        REQUIRE(std::equal(some.begin() + static_cast<std::ptrdiff_t>(row * columns),
                           some.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns),
                           values.begin() + static_cast<std::ptrdiff_t>(at)));
      }
    }
  }
  bytes row(480);
  CHECK_THROWS_AS(model.read_rows(model.at("blk.0.ffn_down.weight"), 0, 1, row), intaglio::argument_error);
  // The offset of a block of row 130 becomes NaN.
  auto& broken = image.tensor_at("blk.0.ffn_down.weight");
  const bcml1_layout layout{256, 768};
  broken.data[static_cast<std::size_t>(4 * layout.at(130, 10)) + 3] = std::byte{0x7E};
  file = image.build();
  const auto bad = checkpoint::open_gguf(file, "memory");
  std::vector<float> all(256 * 768);
  CHECK_THROWS_WITH(bad.read_f32(bad.at("blk.0.ffn_down.weight"), 0, 256, all),
                    ContainsSubstring("blk.0.ffn_down.weight") &&
                        ContainsSubstring("value in the panel of rows from 128: expected a finite number, found NaN"));
}

TEST_CASE("checkpoint_data: a value that is no number is refused with its offset", "[checkpoint]") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    gguf_image image = tiny();
    std::memcpy(image.tensor_at("blk.1.ffn_norm.weight").data.data() + 400, &bad, 4);
    const bytes file = image.build();
    const auto model = checkpoint::open_gguf(file, "memory");
    const auto& norm = model.at("blk.1.ffn_norm.weight");
    std::vector<float> values(256);
    try {
      model.read_f32(norm, 0, 1, values);
      FAIL("read");
    } catch (const intaglio::file_error& problem) {
      CHECK(problem.offset() == norm.stored.offset + 400);
      CHECK_THAT(problem.what(),
                 ContainsSubstring("tensor 'blk.1.ffn_norm.weight': value: expected a finite number, found " +
                                   std::string(bad < 0 ? "infinity" : "NaN")));
    }
  }
}

TEST_CASE("checkpoint_data: how a list of tensors differs from the config's is reported at once", "[checkpoint]") {
  gguf_image image = tiny();
  std::erase_if(image.tensors, [](const auto& tensor) { return tensor.name == "blk.1.attn_q.weight"; });
  image.tensors.push_back({"surplus", {32}, 0, bytes(128)});
  std::swap(image.tensor_at("blk.0.ffn_up.weight").shape[0], image.tensor_at("blk.0.ffn_up.weight").shape[1]);
  image.tensor_at("output_norm.weight").type = 26;
  image.tensor_at("blk.2.attn_norm.weight").shape = {64, 2, 2};
  image.tensor_at("blk.2.attn_v.weight").shape = {256, 64, 2};
  const std::string text = refusal(image);
  CHECK_THAT(text, ContainsSubstring("6 differences") && ContainsSubstring("missing: blk.1.attn_q.weight [256, 256]") &&
                       ContainsSubstring("not part of the model: surplus") &&
                       ContainsSubstring("shape of blk.0.ffn_up.weight: expected [768, 256], found [256, 768]") &&
                       ContainsSubstring("type of output_norm.weight: expected f32 f16 bf16, found i32"));
  CHECK_THAT(
      text,
      ContainsSubstring("shape of blk.2.attn_norm.weight: expected [256], found [4, 64] of 3 dimensions") &&
          ContainsSubstring("shape of blk.2.attn_v.weight: expected [128, 256], found [128, 256] of 3 dimensions"));
  // One line however many they are, and all of them after it.
  image = tiny();
  image.set("bitnet-b1.58.block_count", std::uint32_t{20});
  const std::string many = refusal(image);
  CHECK_THAT(many, ContainsSubstring("the tensors do not fit the model's config (187 differences)") &&
                       ContainsSubstring("missing: blk.3.attn_norm.weight [256]") &&
                       ContainsSubstring("missing: blk.19.ffn_down.weight"));
  CHECK(std::count(many.begin(), many.end(), '\n') == 187);
  CHECK(many.find('\n') <= 400);
}

TEST_CASE("checkpoint_data: a factor beside a ternary matrix multiplies its scale", "[checkpoint]") {
  const temporary_folder made;
  gguf_image image = gguf_image::of(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-tq2_0.gguf");
  const auto plain = checkpoint::open(write_bytes(made / "plain.gguf", image.build()));
  image.tensors.push_back({"blk.1.ffn_up.scale", {1}, 0, bytes_of(0.25f)});
  const auto scaled = checkpoint::open(write_bytes(made / "scaled.gguf", image.build()));
  CHECK(scaled.tensors().size() == plain.tensors().size());
  for (const char* name : {"blk.1.ffn_up.weight", "blk.0.ffn_up.weight", "blk.1.ffn_gate.weight"}) {
    CAPTURE(name);
    const float factor = std::string_view(name) == "blk.1.ffn_up.weight" ? 0.25f : 1.f;
    CHECK(scaled.ternary(scaled.at(name)).scale() == plain.ternary(plain.at(name)).scale() * factor);
  }
}

TEST_CASE("checkpoint_data: a factor is a number above 0 beside its matrix", "[checkpoint]") {
  need_shared();
  const auto with = [](float factor, auto&& edit) {
    gguf_image image = tiny();
    image.tensors.push_back({"blk.0.attn_q.scale", {1}, 0, bytes_of(factor)});
    edit(image);
    return refusal(image);
  };
  const auto as_is = [](auto&) {};
  CHECK(with(0.25f, as_is) == "accepted");
  for (const float factor :
       {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    CHECK_THAT(with(factor, as_is),
               ContainsSubstring("tensor 'blk.0.attn_q.scale': expected a finite number above 0, found "));
  const auto drop = [](gguf_image& image, std::string_view name) {
    std::erase_if(image.tensors, [&](const auto& tensor) { return tensor.name == name; });
  };
  CHECK_THAT(with(0.25f, [&](auto& i) { drop(i, "blk.0.attn_q.weight"); }),
             ContainsSubstring("2 differences") && ContainsSubstring("missing: blk.0.attn_q.weight") &&
                 ContainsSubstring("a factor without its matrix: blk.0.attn_q.scale"));
  const auto all_before = [&](auto& i) {
    for (const char* name : {"token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight"}) drop(i, name);
    i.set("bitnet-b1.58.vocab_size", std::uint32_t{1024});
  };
  CHECK_THAT(with(0.25f, all_before), ContainsSubstring("4 differences") &&
                                          ContainsSubstring("a factor without its matrix: blk.0.attn_q.scale"));
}
