// SPDX-License-Identifier: MIT
#include "intaglio/io/gguf.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "../conformance.hpp"
#include "gguf_image.hpp"
#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/gguf_writer.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

std::filesystem::path tiny() { return shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"); }

template <class Read>
std::string refusal(Read&& read) {
  try {
    read();
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

/// Parts of the tiny model: the keys and no tensor, then the tensors in two halves.
std::vector<std::filesystem::path> split_model(const std::filesystem::path& folder) {
  const auto whole = gguf_image::of(tiny());
  std::vector<std::filesystem::path> paths;
  for (std::uint16_t part = 0; part < 3; ++part) {
    gguf_image image;
    if (part == 0) image.keys = whole.keys;
    image.set("split.no", part);
    image.set("split.count", std::uint16_t{3});
    image.set("split.tensors.count", static_cast<std::int32_t>(whole.tensors.size()));
    const std::size_t half = whole.tensors.size() / 2;
    if (part == 1)
      image.tensors.assign(whole.tensors.begin(), whole.tensors.begin() + static_cast<std::ptrdiff_t>(half));
    if (part == 2) image.tensors.assign(whole.tensors.begin() + static_cast<std::ptrdiff_t>(half), whole.tensors.end());
    paths.push_back(write_bytes(folder / ("tiny-0000" + std::to_string(part + 1) + "-of-00003.gguf"), image.build()));
  }
  return paths;
}

}  // namespace

TEST_CASE("gguf: keys and tensors of the tiny model", "[gguf]") {
  const auto file = gguf::open(tiny());
  CHECK(file.first().version() == 3);
  CHECK(file.value<std::string>("general.architecture") == "bitnet-b1.58");
  CHECK(file.value<std::uint32_t>("bitnet-b1.58.block_count") == 3u);
  CHECK(file.value<float>("bitnet-b1.58.rope.freq_base") == 500'000.f);
  CHECK(file.value<bool>("tokenizer.ggml.add_bos_token") == true);
  CHECK_FALSE(file.value<std::uint32_t>("no.such.key"));
  CHECK(file.array<std::string>("tokenizer.ggml.tokens")->size() == 1024);
  CHECK(file.array<float>("tokenizer.ggml.scores")->at(1023) == 0.f);
  CHECK_FALSE(file.array<float>("no.such.key"));
  CHECK(file.tensors().size() == 35);
  CHECK(file.warnings().empty());
  const auto* tensor = file.find_tensor("blk.0.ffn_down.weight");
  REQUIRE(tensor != nullptr);
  CHECK(tensor->type == dtype::i2_s);
  CHECK(shape_text(*tensor) == "[768, 256]");
  CHECK(tensor->bytes == 768 * 256 / 4 + 32);
  CHECK(tensor->offset == 34944 + 525312);
  CHECK_THAT(refusal([&] { file.value<std::int32_t>("bitnet-b1.58.block_count"); }),
             ContainsSubstring("expected i32, found u32"));
  CHECK_THAT(refusal([&] { file.value<std::string>("tokenizer.ggml.tokens"); }),
             ContainsSubstring("expected string, found array"));
  CHECK_THAT(refusal([&] { file.array<std::uint8_t>("tokenizer.ggml.scores"); }),
             ContainsSubstring("expected u8, found f32"));
}

TEST_CASE("gguf: version 2 and memory read alike", "[gguf]") {
  auto image = gguf_image::of(tiny());
  image.version = 2;
  const bytes file = image.build();
  const auto two = gguf::from_memory(file, "memory");
  CHECK(two.first().version() == 2);
  CHECK(two.tensors().size() == 35);
  CHECK(checkpoint::open_gguf(file, "memory").config() == checkpoint::open_gguf(tiny()).config());
}

TEST_CASE("gguf: a file of keys alone opens, but is no model", "[gguf]") {
  auto image = gguf_image::of(tiny());
  image.tensors.clear();
  const bytes file = image.build();
  const auto vocabulary_only = gguf::from_memory(file, "memory");
  CHECK(vocabulary_only.warnings().empty());
  CHECK(gguf_vocabulary(vocabulary_only).tokens.size() == 1024);
  CHECK_THAT(refusal([&] { checkpoint::open_gguf(file, "memory"); }), ContainsSubstring("35 differences"));
}

TEST_CASE("gguf: split models open from their first part", "[gguf]") {
  const temporary_folder folder;
  const auto parts = split_model(folder.path());
  const auto file = gguf::open(parts[0]);
  CHECK(file.parts().size() == 3);
  CHECK(file.tensors().size() == 35);
  const auto model = checkpoint::open_gguf(parts[0]), whole = checkpoint::open_gguf(tiny());
  std::vector<std::int8_t> a(768 * 256), b(a.size());
  for (const char* name : {"blk.0.ffn_down.weight", "blk.2.ffn_up.weight"}) {
    const auto &there = model.at(name), &here = whole.at(name);
    model.ternary(there).rows(0, there.stored.rows, a);
    whole.ternary(here).rows(0, here.stored.rows, b);
    CHECK((a == b));
  }
}

TEST_CASE("gguf: split models whose parts do not belong together are refused", "[gguf]") {
  const temporary_folder folder;
  const auto parts = split_model(folder.path());
  CHECK_THAT(refusal([&] { gguf::open(parts[1]); }),
             ContainsSubstring("not the first part") && ContainsSubstring("tiny-00001-of-00003.gguf"));

  const bytes two = read_bytes(parts[1]), three = read_bytes(parts[2]);
  write_bytes(parts[2], two);
  CHECK_THAT(refusal([&] { gguf::open(parts[0]); }),
             ContainsSubstring("00003-of-00003") && ContainsSubstring("split.no"));
  std::filesystem::remove(parts[2]);
  CHECK_THAT(refusal([&] { gguf::open(parts[0]); }),
             ContainsSubstring("missing") && ContainsSubstring("tiny-00003-of-00003.gguf"));

  write_bytes(parts[2], three);
  auto image = gguf_image::of(parts[2]);
  image.tensors[0].name = "token_embd.weight";  // also in the second part
  write_bytes(parts[2], image.build());
  CHECK_THAT(refusal([&] { gguf::open(parts[0]); }), ContainsSubstring("is in two parts"));
  image.tensors.erase(image.tensors.begin());
  write_bytes(parts[2], image.build());
  CHECK_THAT(refusal([&] { gguf::open(parts[0]); }),
             ContainsSubstring("split.tensors.count") && ContainsSubstring("found 34"));
  image = gguf_image::of(parts[2]);
  image.set<std::string>("general.architecture", "llama");
  write_bytes(parts[2], image.build());
  CHECK_THAT(refusal([&] { gguf::open(parts[0]); }), ContainsSubstring("another model"));
  std::filesystem::rename(parts[0], folder / "other.gguf");
  CHECK_THAT(refusal([&] { gguf::open(folder / "other.gguf"); }), ContainsSubstring("PREFIX-00001-of-00003.gguf"));
}

TEST_CASE("gguf: what the keys of a split model may say", "[gguf]") {
  const temporary_folder folder;
  auto image = gguf_image::of(tiny());
  // One part of one is a whole model, wherever it is.
  image.set("split.no", std::uint16_t{0});
  image.set("split.count", std::uint16_t{1});
  const bytes alone = image.build();
  CHECK(gguf::from_memory(alone, "memory").tensors().size() == 35);
  CHECK(gguf::open(write_bytes(folder / "alone.gguf", alone)).parts().size() == 1);
  image.set("split.count", std::uint16_t{2});
  const bytes first = image.build();
  CHECK_THAT(refusal([&] { gguf::from_memory(first, "memory"); }),
             ContainsSubstring("one part of a split model cannot stand alone: expected 1 part, found 2"));
  image.remove("split.no");
  CHECK_THAT(refusal([&] { gguf::open(write_bytes(folder / "x-00001-of-00002.gguf", image.build())); }),
             ContainsSubstring("x-00001-of-00002.gguf, found no split.no"));

  const auto parts = split_model(folder.path());
  const auto changed = [&](std::size_t part, auto&& edit) {
    const bytes sound = read_bytes(parts[part]);
    auto altered = gguf_image::of(parts[part]);
    edit(altered);
    write_bytes(parts[part], altered.build());
    const std::string text = refusal([&] { gguf::open(parts[0]); });
    write_bytes(parts[part], sound);
    return text;
  };
  CHECK(changed(2, [](auto&) {}) == "accepted");
  CHECK_THAT(changed(2, [](auto& i) { i.set("split.count", std::uint16_t{4}); }),
             ContainsSubstring("expected split.no 2 of 3, found 2 of 4"));
  CHECK_THAT(changed(2, [](auto& i) { i.remove("split.no"); }),
             ContainsSubstring("expected split.no 2 of 3, found no split keys"));
  CHECK_THAT(changed(2, [](auto& i) { i.remove("split.count"); }),
             ContainsSubstring("expected split.no 2 of 3, found no split keys"));
  CHECK(changed(1, [](auto& i) { i.template set<std::string>("general.architecture", "bitnet-b1.58"); }) == "accepted");
  CHECK_THAT(changed(0, [](auto& i) { i.set("split.tensors.count", std::int32_t{-1}); }),
             ContainsSubstring("split.tensors.count: expected -1, found 35"));
  CHECK(changed(0, [](auto& i) { i.remove("split.tensors.count"); }) == "accepted");
}

TEST_CASE("gguf: missing parts are listed as far as a line goes", "[gguf]") {
  const temporary_folder folder;
  const std::string prefix(20, 'p');
  gguf_image image = gguf_image::of(tiny());
  image.tensors.clear();
  image.set("split.no", std::uint16_t{0});
  image.set("split.count", std::uint16_t{9});
  const std::string text =
      refusal([&] { gguf::open(write_bytes(folder / (prefix + "-00001-of-00009.gguf"), image.build())); });
  CHECK_THAT(text, ContainsSubstring(prefix + "-00002-of-00009.gguf, " + prefix + "-00003-of-00009.gguf") &&
                       !ContainsSubstring("-00009-of-00009.gguf"));
}
