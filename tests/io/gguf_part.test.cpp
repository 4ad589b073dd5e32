// SPDX-License-Identifier: MIT
#include "intaglio/io/gguf_part.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "gguf_image.hpp"
#include "shared.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::checked_size;
using intaglio::dtype;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();

/// A part of a BitNet model with a vector of 3 f32 and a matrix [2, 128] of I2_S, which begins at 32 after the header.
gguf_image small() {
  gguf_image out;
  out.set<std::string>("general.architecture", "bitnet-b1.58");
  out.set("general.alignment", std::uint32_t{32});
  out.tensors = {{"vector", {3}, 0, bytes(12, std::byte{1})}, {"matrix", {128, 2}, 36, bytes(96, std::byte{2})}};
  return out;
}
gguf_part parsed(const bytes& file, std::optional<bool> bitnet = std::nullopt) {
  return {mapped_file::from_memory(file, "memory"), 0, bitnet};
}
std::string refusal(const bytes& file, std::optional<bool> bitnet = std::nullopt) {
  try {
    parsed(file, bitnet);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}
template <class Edit>
std::string with(Edit&& edit) {
  gguf_image image = small();
  edit(image);
  return refusal(image.build());
}

}  // namespace

TEST_CASE("gguf_part: keys, tensors and their offsets", "[gguf]") {
  const bytes file = small().build();
  const gguf_part part = parsed(file);
  CHECK(part.version() == 3);
  CHECK(part.bitnet());
  CHECK(part.values().size() == 2);
  REQUIRE(part.tensors().size() == 2);
  const auto &vector = part.tensors()[0], &matrix = part.tensors()[1];
  CHECK((vector.name == "vector" && vector.type == dtype::f32 && vector.dimensions == 1 && vector.columns() == 3 &&
         vector.rows() == 1 && vector.bytes == 12));
  CHECK((matrix.type == dtype::i2_s && matrix.columns() == 128 && matrix.rows() == 2 && matrix.bytes == 96));
  CHECK(shape_text(matrix) == "[128, 2]");
  CHECK((vector.offset == part.data_offset() && matrix.offset == part.data_offset() + 32 &&
         part.data_offset() % 32 == 0));
  CHECK((file[vector.offset] == std::byte{1} && file[matrix.offset + 95] == std::byte{2}));
  CHECK(part.warnings().empty());
  CHECK(part.find("general.alignment") != nullptr);
  CHECK(part.find("general.alignmen") == nullptr);
  CHECK(part.find("z") == nullptr);
}

TEST_CASE("gguf_part: values of a type, or a sentence about the other one", "[gguf]") {
  gguf_image image = small();
  image.set("a.u16", std::uint16_t{65'535});
  image.set("a.bool", true);
  image.set("a.f64", -0.5);
  bytes three = bytes_of(std::uint32_t{6});
  append(three, std::uint64_t{3});
  for (const float x : {1.f, 2.f, 3.f}) append(three, x);
  image.keys.push_back({"a.list", 9, three});
  const bytes file = image.build();
  const gguf_part part = parsed(file);
  CHECK(part.value<std::uint16_t>("a.u16") == 65'535);
  CHECK(part.value<bool>("a.bool") == true);
  CHECK(part.value<double>("a.f64") == -0.5);
  CHECK(part.value<std::string>("general.architecture") == "bitnet-b1.58");
  CHECK(part.array<float>("a.list") == std::vector<float>{1, 2, 3});
  CHECK_FALSE(part.value<float>("a.none"));
  CHECK_FALSE(part.array<float>("a.none"));
  CHECK_THROWS_AS(part.value<std::int16_t>("a.u16"), file_error);
  CHECK_THROWS_AS(part.value<float>("a.list"), file_error);
  CHECK_THROWS_AS(part.array<std::uint16_t>("a.u16"), file_error);
  CHECK_THROWS_AS(part.array<double>("a.list"), file_error);
}

TEST_CASE("gguf_part: an array of a million strings is not handed out", "[gguf]") {
  for (const std::uint64_t count : {gguf_limits::strings_returned, gguf_limits::strings_returned + 1}) {
    gguf_image image;
    bytes texts = bytes_of(std::uint32_t{8});
    append(texts, count);
    texts.resize(texts.size() + 8 * static_cast<std::size_t>(count));  // empty ones
    image.keys.push_back({"a.texts", 9, texts});
    const bytes file = image.build();
    const gguf_part part = parsed(file);
    if (count == gguf_limits::strings_returned) CHECK(part.array<std::string>("a.texts")->size() == count);
    else try {
        part.array<std::string>("a.texts");
        FAIL("handed out");
      } catch (const file_error& problem) {
        CHECK_THAT(problem.what(),
                   ContainsSubstring("key 'a.texts' has too many strings: expected at most 1048576, found 1048577"));
      }
  }
}

TEST_CASE("gguf_part: bytes of a tensor at the borders of 64 bits", "[gguf]") {
  struct extent {
    dtype type;
    checked_size columns, rows;
    std::optional<std::uint64_t> bytes;
  };
  const std::uint64_t half = std::uint64_t{1} << 63;
  for (const extent& each : {
           extent{dtype::f32, 3, 5, 60},
           extent{dtype::f32, checked_size::overflowed(), 5, {}},
           extent{dtype::f32, 3, checked_size::overflowed(), {}},
           extent{dtype::f32, half / 2, 1, {}},  // a row
           extent{dtype::f32, half / 2 - 1, 1, top - 3},
           extent{dtype::f32, half / 4, 2, {}},  // all rows
           extent{dtype::i8, half - 1, 2, top - 1},
           extent{dtype::i8, half, 2, {}},
           extent{dtype::i8, top, 1, top},
           extent{dtype::i8, top, 2, {}},
           extent{dtype::i8, 0, top, 0},
           extent{dtype::q8_0, 32, 2, 68},
           extent{dtype::q8_0, half, 1, half / 16 * 17},
           extent{dtype::q8_0, half, 2, {}},
           extent{dtype::i2_s, 128, 2, 96},  // and the scale after them
           extent{dtype::i2_s, half, 7, half / 4 * 7 + 32},
           extent{dtype::i2_s, half, 8, {}},
           extent{dtype::i2_s, 128, top / 32, {}},  // but for the scale they would fit
           extent{dtype::i2_s, 128, top / 32 - 1, top - 31},
       }) {
    CAPTURE(intaglio::name(each.type), each.columns.valid(), each.columns.value(), each.rows.valid(),
            each.rows.value());
    const checked_size found = tensor_bytes(each.type, each.columns, each.rows);
    CHECK(found.valid() == each.bytes.has_value());
    if (found.valid() && each.bytes) CHECK(found.value() == *each.bytes);
  }
}

TEST_CASE("gguf_part: claims about a tensor are refused where they do not hold", "[gguf]") {
  CHECK(with([](auto&) {}) == "accepted");
  CHECK_THAT(with([](auto& i) { i.tensors[0].name = "matrix"; }),
             ContainsSubstring("tensor 'matrix' occurs twice: expected once"));
  CHECK_THAT(with([](auto& i) { i.tensors[0].name = ""; }), ContainsSubstring("tensor 0 has no proper name"));
  CHECK_THAT(with([](auto& i) { i.tensors[0].name = "a\nb"; }),
             ContainsSubstring("without control characters, found 'a\\x0ab'"));
  CHECK_THAT(with([](auto& i) { i.tensors[0].name.assign(64, 'n'); }),
             ContainsSubstring("tensor 0 name is too long: expected at most 63 bytes, found 64"));
  CHECK_THAT(with([](auto& i) { i.tensors[0].shape = {}; }),
             ContainsSubstring("number of dimensions: expected 1 to 4, found 0"));
  CHECK_THAT(with([](auto& i) {
               i.tensors[0].shape = {1, 1, 1, 1, 3};
             }),
             ContainsSubstring("number of dimensions: expected 1 to 4, found 5"));
  CHECK_THAT(with([](auto& i) {
               i.tensors[0].shape = {3, 0};
             }),
             ContainsSubstring("sizes of at least 1 with a product below 2^63, found [3, 0]"));
  CHECK_THAT(with([](auto& i) {
               i.tensors[0].shape = {1ull << 32, 1ull << 32};
             }),
             ContainsSubstring("a product below 2^63"));
  CHECK_THAT(with([](auto& i) { i.tensors[0].shape = {1ull << 62, 2}; }), ContainsSubstring("a product below 2^63"));
  CHECK_THAT(with([](auto& i) { i.tensors[0].shape = {1ull << 62}; }),
             ContainsSubstring("fewer than 2^63 bytes, found [4611686018427387904]"));
  CHECK_THAT(with([](auto& i) {
               i.tensors[1].shape = {64, 4};
             }),
             ContainsSubstring("a row is not whole blocks of i2_s: expected a multiple of 128, found [64, 4]"));
  CHECK_THAT(with([](auto& i) { i.tensors[1].offset = 33; }),
             ContainsSubstring("offset is not aligned: expected a multiple of 32, found 33"));
  CHECK_THAT(with([](auto& i) { i.tensors[1].offset = 64; }),
             ContainsSubstring("its data runs past the end of the file"));
  CHECK_THAT(with([](auto& i) { i.tensors[1].offset = top - 31; }),
             ContainsSubstring("expected an offset inside the file, found 18446744073709551584"));
  CHECK_THAT(with([](auto& i) { i.tensors[1].offset = 0; }),
             ContainsSubstring("tensors 'vector' and 'matrix' overlap"));
}

TEST_CASE("gguf_part: codecs that are not read are named", "[gguf]") {
  const std::vector<std::pair<std::uint32_t, const char*>> foreign{{4, "removed Q4_2 or Q4_3"},
                                                                   {5, "removed Q4_2 or Q4_3"},
                                                                   {9, "Q8_1"},
                                                                   {15, "Q8_K"},
                                                                   {31, "removed interleaved Q4_0"},
                                                                   {32, "removed interleaved Q4_0"},
                                                                   {33, "removed interleaved Q4_0"},
                                                                   {37, "I8_S of the BitNet fork, or a removed IQ4_NL"},
                                                                   {38, "TL1 of the BitNet fork, or a removed IQ4_NL"},
                                                                   {39, "TL2 of the BitNet fork, or MXFP4"},
                                                                   {43, "unknown"},
                                                                   {~0u, "unknown"}};
  for (const auto& [id, name] : foreign) {
    const std::string text = with([id = id](auto& i) { i.tensors[0].type = id; });
    CHECK_THAT(text, ContainsSubstring("tensor 0 'vector': type " + std::to_string(id) + " (" + name +
                                       ") is not supported here: expected f32 ") &&
                         ContainsSubstring(" i2_s"));
  }
  // I2_S is used by BitNets and ternary Llamas; later parts of a model get the model's architecture.
  const std::string other = with([](auto& i) { i.template set<std::string>("general.architecture", "gemma2"); });
  CHECK_THAT(other,
             ContainsSubstring("type 36 (I2_S of the BitNet fork, or a removed IQ4_NL)") &&
                 ContainsSubstring("(i2_s where general.architecture is of a family whose layers may be ternary)"));
  gguf_image later = small();
  later.keys.clear();
  CHECK_THAT(refusal(later.build()), ContainsSubstring("type 36"));
  CHECK_THAT(refusal(later.build(), false), ContainsSubstring("type 36"));
  CHECK(refusal(later.build(), true) == "accepted");
  // The architecture's key of another type says nothing.
  CHECK_THAT(with([](auto& i) { i.set("general.architecture", std::uint32_t{7}); }), ContainsSubstring("type 36"));
}

TEST_CASE("gguf_part: a header that is none", "[gguf]") {
  const bytes sound = small().build();
  const auto cut = [&](std::size_t size) {
    return refusal(bytes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size)));
  };
  CHECK_THAT(cut(23), ContainsSubstring("too short for a GGUF header: expected 24 bytes, found 23"));
  CHECK_THAT(cut(24), ContainsSubstring("is more than the file can hold"));
  for (const auto& path :
       {shared("conformance/bitnet-tiny/manifest.json"), shared("models/fable-bitnet/model.safetensors")}) {
    const bytes other = read_bytes(path);
    CHECK_THAT(refusal(other), ContainsSubstring("not a GGUF file: expected the magic 'GGUF'"));
  }
  CHECK_THAT(with([](auto& i) { i.version = 0x03000000; }),
             ContainsSubstring("the file has the other byte order (big-endian): expected little-endian"));
  for (const std::uint32_t version : {0u, 1u, 4u})
    CHECK_THAT(with([&](auto& i) { i.version = version; }),
               ContainsSubstring("GGUF version: expected 2 or 3, found " + std::to_string(version)));
  CHECK(with([](auto& i) { i.version = 2; }) == "accepted");
  CHECK_THAT(with([](auto& i) { i.keys.push_back(i.keys[0]); }),
             ContainsSubstring("key 2 'general.architecture' occurs twice: expected once, found also key 0"));
  // Where the tensor list ends the data would have to be aligned, and begin.
  std::vector<gguf_field> fields;
  small().build(&fields);
  std::size_t header = 0;
  for (const auto& field : fields)
    if (field.name.starts_with("tensor ")) header = field.offset + field.size;
  REQUIRE(header % 32 != 0);
  CHECK_THAT(cut(header),
             ContainsSubstring("the file ends before its tensor data (download cut short?): expected " +
                               std::to_string((header + 31) / 32 * 32) + " bytes, found " + std::to_string(header)));
}

TEST_CASE("gguf_part: other alignments, holes and other orders are accepted; trailing bytes are counted", "[gguf]") {
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u, 1u << 20}) {
    gguf_image image = small();
    image.alignment = alignment;
    image.set("general.alignment", alignment);
    const bytes file = image.build();
    CHECK(parsed(file).warnings().empty());
    CHECK(parsed(file).data_offset() % alignment == 0);
  }
  for (const std::uint32_t alignment : {0u, 3u, 1u << 21}) {
    CHECK_THAT(with([&](auto& i) { i.set("general.alignment", alignment); }),
               ContainsSubstring("general.alignment: expected a power of two up to 1048576, found " +
                                 std::to_string(alignment)));
  }
  // The matrix, a hole of 32 bytes, the vector.
  gguf_image image = small();
  image.tensors[0].offset = 128;
  image.tensors[1].offset = 0;
  bytes file = image.build();
  file.resize(file.size() - 128);
  const std::size_t data = file.size();
  file.resize(data + 96, std::byte{2});
  file.resize(data + 128);
  file.resize(data + 140, std::byte{1});
  const gguf_part part = parsed(file);
  CHECK((part.tensors()[0].offset == data + 128 && part.tensors()[1].offset == data));
  CHECK(part.warnings() == std::vector<std::string>{"tensor data is not in the order of the tensor list or has holes"});

  bytes longer = small().build();
  const std::size_t end = longer.size();
  longer.resize(end + 100);
  CHECK(parsed(longer).warnings() ==
        std::vector<std::string>{"100 bytes follow the last tensor at offset " + intaglio::hexadecimal(end)});
  // A file that has only keys: its padding may be shorter than the alignment.
  gguf_image keys = small();
  keys.tensors.clear();
  bytes only = keys.build();
  only.resize(only.size() + 31);
  CHECK(parsed(only).warnings().empty());
  only.resize(only.size() + 1);
  CHECK(parsed(only).warnings().size() == 1);
}

TEST_CASE("gguf_part: names of the parts of a split model", "[gguf]") {
  CHECK(gguf_part_name("tiny-00002-of-00003.gguf", 0, 3) == "tiny-00001-of-00003.gguf");
  CHECK(gguf_part_name("tiny-00002-of-00003.gguf", 2, 3) == "tiny-00003-of-00003.gguf");
  CHECK(gguf_part_name("tiny-00001-of-00003.gguf", 65'534, 65'535) == "tiny-65535-of-65535.gguf");
  CHECK(gguf_part_name("tiny-00001-of-00003.gguf", 99'999, 100'000) == "tiny-100000-of-100000.gguf");
  CHECK(gguf_part_name("short", 0, 2) == "-00001-of-00002.gguf");
  const auto split = [](std::uint16_t number) {
    return with([=](auto& i) { i.set("split.no", number), i.set("split.count", std::uint16_t{3}); });
  };
  CHECK(split(0) == "accepted");
  CHECK_THAT(split(1),
             ContainsSubstring(
                 "this is not the first part of a split model: expected -00001-of-00003.gguf, found part 2 of 3"));
  CHECK(with([](auto& i) { i.set("split.no", std::uint16_t{1}); }) == "accepted");  // of how many is not said
}
