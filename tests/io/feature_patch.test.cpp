// SPDX-License-Identifier: MIT
#include "intaglio/io/feature_patch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <limits>

#include "../shared.hpp"
#include "files.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/reference/walk.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using intaglio::argument_error;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

constexpr std::size_t width = 64, features = 172;  // of stories260K

struct made_index {
  temporary_folder folder;
  feature_index index;
  made_index() : index(made(folder.path())) {}
  static feature_index made(const std::filesystem::path& to) {
    build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), to);
    return feature_index::open(to);
  }
  std::filesystem::path journal() const { return folder / feature_patch::default_file; }
  feature_patch open(bool writes = true) const { return {index, journal(), writes}; }
};

feature_change change(feature_edit edit, std::uint32_t layer, std::uint32_t feature, float seed = 1) {
  feature_change out{edit, layer, feature, {}};
  if (edit == feature_edit::insert || edit == feature_edit::update)
    for (std::size_t v = 0; v < 3; ++v)
      for (std::size_t i = 0; i < width; ++i)
        out.vectors[v].push_back(seed * static_cast<float>((i * 7 + v * 3) % 11) - 2);
  return out;
}
/// All vectors of a layer as changed.
std::array<std::vector<float>, 3> layer_of(const feature_patch& patch, std::uint32_t layer) {
  std::array<std::vector<float>, 3> out;
  for (const auto which : feature_vectors) {
    auto& values = out[static_cast<std::size_t>(which)];
    values.resize(patch.features(layer) * width);
    patch.read_f32(layer, which, 0, patch.features(layer), values);
  }
  return out;
}
std::vector<float> walked(const feature_patch& patch, std::uint32_t layer) {
  const auto v = layer_of(patch, layer);
  std::vector<float> x(width);
  for (std::size_t i = 0; i < width; ++i) x[i] = static_cast<float>(i % 5) - 1.5f;
  return intaglio::reference::full_walk({width, v[0], v[1], v[2]}, intaglio::activation::silu, x);
}

}  // namespace

TEST_CASE("feature patch: changes are read as if the vectors were so, now and later", "[feature_index]") {
  const made_index made;
  const bytes base = read_bytes(made.folder / "layer-0002.bin");
  feature_patch patch = made.open();
  const auto original = layer_of(patch, 2);
  const auto before = walked(patch, 2);
  patch.apply(change(feature_edit::insert, 2, features, 0.25f));
  patch.apply(change(feature_edit::update, 2, 5, 0.5f));
  patch.apply(change(feature_edit::remove, 2, 171));
  CHECK(patch.features(2) == features + 1);
  CHECK(patch.features(1) == features);

  // The same edits of the vectors by hand.
  auto expected = original;
  for (std::size_t v = 0; v < 3; ++v) {
    const auto put = [&](std::size_t feature, const std::vector<float>& values) {
      std::ranges::copy(values, expected[v].begin() + static_cast<std::ptrdiff_t>(feature * width));
    };
    expected[v].resize((features + 1) * width);
    put(features, change(feature_edit::insert, 2, features, 0.25f).vectors[v]);
    put(5, change(feature_edit::update, 2, 5, 0.5f).vectors[v]);
    put(171, std::vector<float>(width));
  }
  CHECK(layer_of(patch, 2) == expected);
  CHECK(walked(patch, 2) != before);
  std::vector<float> part(3 * width);
  patch.read_f32(2, feature_vector::down, 170, 3, part);
  CHECK(std::ranges::equal(part, std::span(expected[2]).subspan(170 * width, 3 * width)));

  CHECK_THROWS_MATCHES(made.open(), file_error,
                       MessageMatches(ContainsSubstring("another process is writing this journal")));
  const feature_patch reader = made.open(false);
  CHECK(reader.changes() == 3);
  CHECK(layer_of(reader, 2) == expected);
  CHECK(layer_of(reader, 0) == layer_of(patch, 0));
  CHECK((read_bytes(made.folder / "layer-0002.bin") == base));

  // Taken back, the walk is the original one.
  patch.apply({feature_edit::update,
               2,
               5,
               {std::vector<float>(original[0].begin() + 5 * width, original[0].begin() + 6 * width),
                std::vector<float>(original[1].begin() + 5 * width, original[1].begin() + 6 * width),
                std::vector<float>(original[2].begin() + 5 * width, original[2].begin() + 6 * width)}});
  patch.apply({feature_edit::update,
               2,
               171,
               {std::vector<float>(original[0].begin() + 171 * width, original[0].end()),
                std::vector<float>(original[1].begin() + 171 * width, original[1].end()),
                std::vector<float>(original[2].begin() + 171 * width, original[2].end())}});
  patch.apply(change(feature_edit::remove, 2, features));
  CHECK(walked(patch, 2) == before);
}

TEST_CASE("feature patch: a removed feature's index takes a new one, and a restored one is the index's own",
          "[feature_index]") {
  const made_index made;
  feature_patch patch = made.open();
  const auto original = layer_of(patch, 3);
  CHECK(patch.next_feature(3) == features);
  patch.apply(change(feature_edit::remove, 3, 8));
  CHECK(patch.next_feature(3) == 8);
  patch.apply(change(feature_edit::insert, 3, 8, 0.5f));
  patch.apply(change(feature_edit::insert, 3, features, 0.25f));
  patch.apply(change(feature_edit::remove, 3, 11));
  CHECK(patch.features(3) == features + 1);
  const std::vector<changed_feature> expected{
      {3, 8, feature_edit::update}, {3, 11, feature_edit::remove}, {3, features, feature_edit::insert}};
  CHECK(patch.changed() == expected);
  CHECK(made.open(false).changed() == expected);
  for (const std::uint32_t f : {8u, 11u}) patch.apply(change(feature_edit::restore, 3, f));
  CHECK_THROWS_MATCHES(patch.apply(change(feature_edit::restore, 3, features)), argument_error,
                       MessageMatches(ContainsSubstring("a feature that the index has")));
  patch.apply(change(feature_edit::remove, 3, features));
  auto again = layer_of(made.open(false), 3);
  for (std::size_t v = 0; v < 3; ++v) {
    CHECK(std::ranges::all_of(again[v].begin() + static_cast<std::ptrdiff_t>(original[v].size()), again[v].end(),
                              [](float value) { return value == 0; }));
    again[v].resize(original[v].size());
  }
  CHECK(again == original);
}

TEST_CASE("feature patch: cut anywhere, it has the whole records before the cut and takes new ones",
          "[feature_index]") {
  const made_index made;
  std::vector<std::size_t> ends{16};
  {
    feature_patch patch = made.open();
    for (const auto& each : {change(feature_edit::insert, 0, features), change(feature_edit::remove, 1, 3),
                             change(feature_edit::update, 4, 171, 2)}) {
      patch.apply(each);
      ends.push_back(std::filesystem::file_size(made.journal()));
    }
  }
  const bytes whole = read_bytes(made.journal());
  for (std::size_t size = 0; size <= whole.size(); size += size < 40 || whole.size() - size < 40 ? 1 : 13) {
    INFO("cut to " << size);
    write_bytes(made.journal(), std::span(whole).first(size));
    std::size_t records = 0;
    while (records + 1 < ends.size() && ends[records + 1] <= size) ++records;
    feature_patch patch = made.open();
    CHECK(patch.changes() == records);
    patch.apply(change(feature_edit::remove, 3, 7));
    CHECK(made.open(false).changes() == records + 1);
  }
  // No wrong bit of a whole record is missed.
  for (const std::size_t at : {ends[0] + 4, ends[0] + 100, ends[1] + 9, ends[2] + 30}) {
    bytes damaged = whole;
    damaged[at] ^= std::byte{1};
    write_bytes(made.journal(), damaged);
    CHECK_THROWS_AS(made.open(false), file_error);
  }
  bytes damaged = whole;
  damaged[ends[0] + 100] ^= std::byte{1};
  write_bytes(made.journal(), damaged);
  CHECK_THROWS_MATCHES(made.open(), file_error,
                       MessageMatches(ContainsSubstring("patch.journal: offset 0x10: record 0 is damaged")));
}

TEST_CASE("feature patch: what was acknowledged outlives a kill", "[feature_index]") {
  const made_index made;
  for (int round = 0; round < 6; ++round) {
    std::filesystem::remove(made.journal());
    int line[2];
    REQUIRE(::pipe(line) == 0);
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      feature_patch patch = made.open();
      for (std::uint32_t i = 0;; ++i) {
        patch.apply(change(feature_edit::insert, i % 5, features + i / 5, 0.1f));
        const char done = 1;
        if (::write(line[1], &done, 1) != 1) ::_exit(1);
      }
    }
    ::close(line[1]);
    char byte;
    std::size_t acknowledged = 0;
    for (int wanted = 3 + 5 * round; wanted > 0 && ::read(line[0], &byte, 1) == 1; --wanted) ++acknowledged;
    ::kill(child, SIGKILL);
    while (::read(line[0], &byte, 1) == 1) ++acknowledged;
    ::close(line[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const feature_patch patch = made.open();
    CHECK(patch.changes() >= acknowledged);
    CHECK(patch.changes() <= acknowledged + 1);
    std::vector<float> values(width);
    patch.read_f32(2, feature_vector::up, features, 1, values);
    CHECK(values == change(feature_edit::insert, 2, features, 0.1f).vectors[1]);
  }
}

TEST_CASE("feature patch: records with the right checksum that no writer writes are refused by their offset",
          "[feature_index]") {
  const made_index made;
  made.open().apply(change(feature_edit::remove, 4, 1));
  const bytes head = [&] {
    bytes all = read_bytes(made.journal());
    all.resize(16);
    return all;
  }();
  const auto record = [](std::uint32_t edit, std::uint32_t layer, std::uint32_t feature,
                         std::span<const float> vectors = {}) {
    const std::uint32_t words[] = {0x54504649, edit, layer, feature};
    const auto begin = std::as_bytes(std::span(words));
    const auto values = std::as_bytes(vectors);
    bytes out(begin.begin(), begin.end());
    out.insert(out.end(), values.begin(), values.end());
    const std::uint32_t sum = crc32(out);
    const auto end = std::as_bytes(std::span(&sum, 1));
    out.insert(out.end(), end.begin(), end.end());
    return out;
  };
  std::vector<float> numbers(3 * width, 1.f), wrong = numbers;
  wrong[width + 3] = std::numeric_limits<float>::quiet_NaN();
  const std::pair<bytes, std::string> table[] = {
      {record(0, 0, 0), "record 0 is damaged"},
      {record(5, 0, 0), "record 0 is damaged"},
      {record(3, 5, 0), "expected a layer of 5, found remove of feature 0 of layer 5"},
      {record(3, 0xFFFFFFFFu, 0), "expected a layer of 5"},
      {record(3, 0, features), "expected a feature of 172"},
      {record(4, 0, features), "expected a feature of 172"},
      {record(1, 0, features + 1, numbers), "expected a new feature after the last, 172"},
      {record(1, 0, 3, numbers), "expected a new feature after the last, 172"},
      {record(2, 0, features, numbers), "expected a feature of 172"},
      {record(2, 0, 3, wrong), "expected finite numbers"},
  };
  for (const auto& [each, words] : table) {
    INFO(words);
    bytes whole = head;
    whole.insert(whole.end(), each.begin(), each.end());
    write_bytes(made.journal(), whole);
    CHECK_THROWS_MATCHES(made.open(false), file_error,
                         MessageMatches(ContainsSubstring("offset 0x10: record 0") && ContainsSubstring(words)));
  }
  bytes good = head;
  for (const auto& each : {record(2, 0, 3, numbers), record(4, 0, 3)})
    good.insert(good.end(), each.begin(), each.end());
  write_bytes(made.journal(), good);
  CHECK(made.open(false).changes() == 2);
}

TEST_CASE("feature patch: what an index cannot have is refused", "[feature_index]") {
  const made_index made;
  feature_patch patch = made.open();
  const auto refused = [&](const feature_change& each, const std::string& words) {
    CHECK_THROWS_MATCHES(patch.apply(each), argument_error, MessageMatches(ContainsSubstring(words)));
  };
  refused(change(feature_edit::update, 5, 0), "expected a layer of 5, found update of feature 0 of layer 5");
  refused(change(feature_edit::insert, 0, 3), "expected a new feature after the last, 172");
  refused(change(feature_edit::update, 0, 172), "expected a feature of 172");
  refused(change(feature_edit::remove, 0, 172), "expected a feature of 172");
  feature_change bad = change(feature_edit::update, 0, 1);
  bad.vectors[1].pop_back();
  refused(bad, "expected three vectors of 64");
  bad.vectors[1].push_back(std::numeric_limits<float>::quiet_NaN());
  refused(bad, "expected finite numbers");
  CHECK(patch.changes() == 0);
  CHECK(std::filesystem::file_size(made.journal()) == 0);
  patch.apply(change(feature_edit::remove, 4, 1));
  std::vector<float> room(width);
  CHECK_THROWS_AS(patch.read_f32(0, feature_vector::gate, 172, 1, room), argument_error);
  CHECK_THROWS_MATCHES(made.open(false).apply(change(feature_edit::remove, 4, 1)), argument_error,
                       MessageMatches(ContainsSubstring("opened for writing")));

  const temporary_folder other;
  build_feature_index(shared("models/stories260k/stories260K-f32.gguf"), other.path(),
                      {.codec = intaglio::dtype::bf16});
  const feature_index rounded = feature_index::open(other.path());
  CHECK_THROWS_MATCHES(feature_patch(rounded, made.journal(), false), file_error,
                       MessageMatches(ContainsSubstring("offset 0x8: a journal of another index")));
  write_text(other / "x", "something else altogether");
  CHECK_THROWS_MATCHES(feature_patch(rounded, other / "x", false), file_error,
                       MessageMatches(ContainsSubstring("not a journal of changes")));
  CHECK_THROWS_MATCHES(feature_patch(rounded, other / "no/folder", true), file_error,
                       MessageMatches(ContainsSubstring("cannot open")));
  CHECK(feature_patch(rounded, other / "none", false).changes() == 0);
}
