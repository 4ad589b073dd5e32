// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint_packed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <random>

#include "bad_files.hpp"
#include "intaglio/io/inspect.hpp"
#include "packed_files.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;
using namespace intaglio::io;
using namespace packed_files;

namespace {

std::string refusal(std::span<const std::byte> file) {
  try {
    checkpoint::open_packed(file, "model.packed");
  } catch (const file_error& problem) {
    CHECK(std::string(problem.what()).starts_with("model.packed: "));
    return problem.what();
  }
  return "accepted";
}
template <class Edit>
std::string refusal_of(Edit&& edit) {
  packed_index index = small_index();
  edit(index);
  return refusal(file_of(index));
}

}  // namespace

TEST_CASE("checkpoint_packed: what is written is read", "[packed]") {
  const packed_index index = small_index();
  const bytes file = file_of(index);
  const auto model = checkpoint::open_packed(file, "model.packed");
  CHECK(model.config() == index.config);
  CHECK(model.stated_architecture() == "llama");
  CHECK(model.states_context());
  CHECK(model.tensors().empty());
  const io::vocabulary &words = *model.vocabulary(), &wanted = *index.vocabulary;
  CHECK(words.source == "model.packed");
  CHECK((words.tokens == wanted.tokens && words.scores == wanted.scores && words.token_types == wanted.token_types &&
         words.merges == wanted.merges));
  CHECK((words.model == "gpt2" && words.pre_tokenizer == "llama-bpe" && words.chat_template == "{{ messages }}"));
  CHECK(
      (words.bos_id == 3 && !words.eos_id && words.add_bos == true && words.ignore_merges == false && !words.add_eos));
  REQUIRE(model.packed() != nullptr);
  const packed_image& image = *model.packed();
  CHECK(image.layout_version == 7);
  CHECK(image.codec == "q8_0");
  REQUIRE(image.weights.size() == 3);
  for (std::size_t w = 0; w < 3; ++w)
    for (std::uint32_t copy = 0; copy < image.weights[w].copies; ++copy) {
      const packed_weight& each = image.weights[w];
      CHECK(each.layout == index.weights[w].layout);
      CHECK((each.offset + copy * each.step()) % packed_layout::alignment == 0);
      const auto content = noise(each.bytes, static_cast<unsigned>(10 * w) + copy);
      for (const auto& [begin, size] : {std::pair<std::uint64_t, std::uint64_t>{0, each.bytes},
                                        {each.bytes / 2, each.bytes / 4},
                                        {each.bytes - 1, 1}}) {
        std::vector<std::byte> got(static_cast<std::size_t>(size));
        image.read(each, copy, begin, got);
        CHECK(std::equal(got.begin(), got.end(), content.begin() + static_cast<std::ptrdiff_t>(begin)));
      }
    }
  CHECK(image.find("a layer's") == &image.weights[1]);
  CHECK(image.find("none") == nullptr);
}

TEST_CASE("checkpoint_packed: opened, checked and inspected as any model", "[packed]") {
  const temporary_folder folder;
  const auto path = write_bytes(folder / "model", file_of(sound_index()));
  CHECK(checkpoint::open(path).packed() != nullptr);
  const auto report = io::check(path);
  for (const auto& finding : report.errors) FAIL_CHECK(finding.text);
  CHECK((report.packed && report.tensors == 5 && report.values == 3 + 3 * 70'000 + 131'072));
  const auto seen = io::inspect(path);
  CHECK((seen.form == "packed" && seen.version == packed_layout::version && seen.tensors.size() == 3));
  CHECK((!seen.tokens && !seen.problem));
  CHECK_THROWS_AS(io::convert(path, folder / "out.gguf", {.codec = dtype::f16}), file_error);
}

TEST_CASE("checkpoint_packed: a writer that was not given all leaves nothing", "[packed]") {
  const temporary_folder folder;
  {
    packed_writer out(folder / "file", small_index(), 1);
    out.write(noise(3, 0));
    CHECK_THROWS_AS(out.commit(), argument_error);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("packed_writer: more bytes than a weight has are refused", "[packed][bad]") {
  const temporary_folder folder;
  packed_index index = small_index();
  index.weights[0].bytes = 0;  // as if it were not there
  packed_writer out(folder / "file", index, 7);
  const auto content = noise(index.weights[1].bytes + 1, 1);
  CHECK_THROWS_AS(out.write(content), argument_error);
  CHECK_NOTHROW(out.write(std::span(content).first(content.size() - 1)));
}

TEST_CASE("checkpoint_packed: a sealed index that says what cannot be is refused by its offset", "[packed][bad]") {
  CHECK_THAT(refusal_of([](packed_index& i) { i.config.head_dim = 0; }), ContainsSubstring("head_dim"));
  CHECK_THAT(refusal_of([](packed_index& i) { i.vocabulary->tokens.resize(9); }),
             ContainsSubstring("tokens: expected at most 8, the rows of the embedding, found 9"));
  CHECK_THAT(refusal_of([](packed_index& i) { i.weights[0].copies = 4; }),
             ContainsSubstring("weight 'one': copies: expected 1 to 3, one a layer, found 4"));
  CHECK_THAT(refusal_of([](packed_index& i) {
               i.weights[0].bytes = 0;
               i.weights.erase(i.weights.begin() + 1, i.weights.end());
             }),
             ContainsSubstring("bytes: expected 1 to"));
  CHECK_THAT(refusal_of([](packed_index& i) { i.weights[2].layout = "one"; }),
             ContainsSubstring("weight 'one': expected one of these, found two"));
  CHECK_THAT(refusal_of([](packed_index& i) { i.weights.assign(4097, {.layout = "w", .copies = 1, .bytes = 1}); }),
             ContainsSubstring("at most 4096"));
}

TEST_CASE("checkpoint_packed: damage below the checksums is refused by its offset", "[packed][bad]") {
  const bytes sound = file_of(small_index());
  const auto index = static_cast<std::size_t>(packed_field<std::uint64_t>(sound, 24)),
             size = static_cast<std::size_t>(packed_field<std::uint64_t>(sound, 32));
  const auto with = [&](std::size_t at, auto value) {
    bytes file = sound;
    set_packed_field(std::span(file), at, value);
    reseal(file);
    return refusal(file);
  };
  CHECK_THAT(with(0, 'I'), ContainsSubstring("magic"));
  CHECK_THAT(with(8, std::uint32_t{2}), ContainsSubstring("offset 0x8: version of the packed file: expected " +
                                                          std::to_string(packed_layout::version) + ", found 2"));
  CHECK_THAT(with(16, std::uint64_t{sound.size() + 1}), ContainsSubstring("offset 0x10: size of the file"));
  // An index that reaches into the weights, and one that begins after its offset.
  CHECK_THAT(with(24, std::uint64_t{index - 256}), ContainsSubstring("offset 0x18: offset of the index"));
  CHECK_THAT(with(24, std::uint64_t{index + 1}), ContainsSubstring("offset of the index"));
  CHECK_THAT(with(24, ~std::uint64_t{0}), ContainsSubstring("offset of the index"));
  CHECK_THAT(with(32, ~std::uint64_t{0}), ContainsSubstring("offset 0x20: size of the index"));
  CHECK_THAT(with(32, std::uint64_t{sound.size()}), ContainsSubstring("size of the index"));
  CHECK_THAT(with(40, std::uint8_t{1}), ContainsSubstring("reserved bytes"));
  CHECK_THAT(with(100, std::uint8_t{1}),
             ContainsSubstring("offset 0x64: padding after the header: expected 0, found 1"));
  // Any four bytes of the index as the largest number: a count, a size, a length, a value. Those after the
  // vocabulary's end are checksums.
  for (std::size_t at = index; at + 4 <= index + size; ++at) {
    bytes file = sound;
    set_packed_field(std::span(file), at, 0xFFFFFFFFu);
    reseal(file);
    refusal(file);
  }
  // The index cut, its size stated: every field is missed.
  for (std::size_t left = 0; left < size; left += 3) {
    bytes file(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(index + left));
    file.resize(file.size() + 8);
    set_packed_field(std::span(file), 16, std::uint64_t{file.size()});
    set_packed_field(std::span(file), 32, std::uint64_t{left});
    reseal(file);
    CHECK(refusal(file) != "accepted");
  }
  // One weight more than there is room for, and one checksum less.
  bytes file = sound;
  const std::size_t copies =
      index + size - 8 * 9 - 4 - 12;  // of the last weight: nine checksums and their count follow its copies and bytes
  CHECK(packed_field<std::uint64_t>(file, copies + 4) == 131'072);
  CHECK_THAT(with(copies + 4, std::uint64_t{131'073}), ContainsSubstring("where the index begins"));
  CHECK_THAT(with(copies + 4, std::uint64_t{65'536}), ContainsSubstring("end of the weights"));
  CHECK_THAT(with(copies + 4, std::uint64_t{1} << 49), ContainsSubstring("where the index begins"));
  CHECK_THAT(with(copies, std::uint32_t{3}), ContainsSubstring("where the index begins"));
  CHECK_THAT(with(index + size - 8 * 9 - 4, std::uint32_t{8}), ContainsSubstring("end of the index"));
}

TEST_CASE("checkpoint_packed: every damaged or cut file is refused in time", "[packed][bad]") {
  const temporary_folder folder;
  const bytes sound = file_of(sound_index());
  const auto path = folder / "bad";
  CHECK(io::check(write_bytes(path, sound)).ok());
  bad_file_judge judge;
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{63}, std::size_t{64}, std::size_t{4095},
                                 std::size_t{4104}, sound.size() / 2, sound.size() - 8, sound.size() - 1}) {
    write_bytes(path, std::span(sound).first(size));
    judge.judge("cut to " + std::to_string(size), path, sound.size(), verdict::refused);
  }
  // Every byte of the header, then some of each part: padding, weights, index, its checksum.
  std::mt19937 random(5);
  for (std::size_t at = 0; at < sound.size(); at += at < 64 ? 1 : at + 700 > sound.size() ? 7 : 1 + random() % 2500) {
    bytes file = sound;
    file[at] ^= static_cast<std::byte>(1u << random() % 8);
    write_bytes(path, file);
    judge.judge("byte " + std::to_string(at), path, sound.size(), verdict::refused);
  }
  std::printf("%zu malformed packed files: median %.1f ms, worst %.1f ms\n", judge.count(), judge.median() * 1e3,
              judge.worst() * 1e3);
  CHECK(judge.count() >= 300);
}
