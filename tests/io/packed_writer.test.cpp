// SPDX-License-Identifier: MIT
#include "intaglio/io/packed_writer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "files.hpp"
#include "packed_bytes.hpp"

using Catch::Matchers::Equals;
using Catch::Matchers::MessageMatches;
using intaglio::argument_error;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

constexpr std::size_t chunk = packed_layout::chunk_bytes;

/// An index of weights. @param weights copies and bytes of each
packed_index index_of(std::vector<std::pair<std::uint32_t, std::uint64_t>> weights) {
  packed_index out;
  out.codec = "bf16";
  for (const auto& [copies, size] : weights)
    out.weights.push_back({.layout = "weight " + std::to_string(out.weights.size()), .copies = copies, .bytes = size});
  return out;
}
bytes noise(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  bytes out(size);
  for (auto& each : out) each = static_cast<std::byte>(random());
  return out;
}
std::ptrdiff_t files_in(const temporary_folder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

}  // namespace

TEST_CASE("packed writer: the header's bytes", "[packed]") {
  const bytes header =
      header_bytes({.version = 0x01020304, .layout_version = 5, .file_bytes = 6, .index_offset = 7, .index_bytes = 8});
  REQUIRE(header.size() == 64);
  CHECK(std::memcmp(header.data(), "intaglio\4\3\2\1\5\0\0\0\6\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0", 40) ==
        0);
  for (std::size_t i = 40; i < 56; ++i) CHECK(header[i] == std::byte{0});
  CHECK(packed_field<std::uint64_t>(header, 56) == checksum(std::span(header).first(56)));
  CHECK(packed_header().version == 12);
}

TEST_CASE("packed writer: weights at their offsets with their sums, whatever the pieces", "[packed]") {
  const temporary_folder folder;
  const auto index = index_of({{1, 3}, {2, 2 * chunk + 1}, {3, 0}, {1, chunk}, {1, 256}});
  const bytes small = noise(3), first = noise(2 * chunk + 1), second = noise(2 * chunk + 2), whole = noise(chunk),
              aligned = noise(256);
  const std::vector<std::span<const std::byte>> copies{small, first, std::span(second).first(first.size()), whole,
                                                       aligned};
  bytes files[3];
  const std::size_t pieces[3] = {~std::size_t{0}, 40'001, chunk};
  for (std::size_t way = 0; way < 3; ++way) {
    packed_writer out(folder / "file", index, 9);
    CHECK(out.size() == packed_layout::data_offset);
    for (auto copy : copies)
      while (!copy.empty()) {
        const auto piece = copy.first(std::min(pieces[way], copy.size()));
        out.write(piece);
        out.write({});
        copy = copy.subspan(piece.size());
      }
    out.commit();
    files[way] = read_bytes(folder / "file");
    CHECK(out.size() == files[way].size());
  }
  CHECK(files[0] == files[1]);
  CHECK(files[0] == files[2]);
  const bytes& file = files[0];

  // The layout of docs/packed.md: header, zeros to 4096, each copy at a multiple of 256, zeros between them, the index,
  // its checksum.
  std::size_t at = packed_layout::data_offset;
  bytes wanted(at);
  std::vector<std::uint64_t> sums;
  for (const auto& copy : copies) {
    wanted.insert(wanted.end(), copy.begin(), copy.end());
    wanted.resize((wanted.size() + 255) / 256 * 256);
    for (std::size_t i = 0; i < copy.size(); i += chunk)
      sums.push_back(checksum(copy.subspan(i, std::min(chunk, copy.size() - i))));
  }
  const auto index_offset = packed_field<std::uint64_t>(file, 24), index_bytes = packed_field<std::uint64_t>(file, 32);
  REQUIRE(index_offset == wanted.size());
  CHECK(packed_field<std::uint32_t>(file, 12) == 9);
  CHECK(packed_field<std::uint64_t>(file, 16) == file.size());
  REQUIRE(index_offset + index_bytes + 8 == file.size());
  CHECK((std::equal(wanted.begin() + 64, wanted.end(), file.begin() + 64)));
  const auto tail =
      std::span(file).subspan(static_cast<std::size_t>(index_offset), static_cast<std::size_t>(index_bytes));
  CHECK(packed_field<std::uint64_t>(file, file.size() - 8) == checksum(tail));
  const std::string path = "file";
  packed_index_reader reader(tail, index_offset, path);
  packed_index found;
  packed_fields(reader, found);
  CHECK(reader.left() == 0);
  CHECK(found.codec == "bf16");
  CHECK(found.sums == sums);
  REQUIRE(found.weights.size() == 5);
  CHECK((found.weights[1].layout == "weight 1" && found.weights[1].copies == 2 &&
         found.weights[1].bytes == 2 * chunk + 1));
}

TEST_CASE("packed writer: sums that the caller's index has already are not written", "[packed]") {
  const temporary_folder folder;
  auto index = index_of({{1, 3}});
  packed_writer(folder / "without", index, 1).write(noise(3));  // not committed
  bytes files[2];
  for (int way = 0; way < 2; ++way) {
    packed_writer out(folder / "file", index, 1);
    out.write(noise(3));
    out.commit();
    files[way] = read_bytes(folder / "file");
    index.sums = {1, 2, 3};
  }
  CHECK(files[0] == files[1]);
}

TEST_CASE("packed writer: bytes end within a copy", "[packed]") {
  const temporary_folder folder;
  packed_writer out(folder / "file", index_of({{2, 10}}), 1);
  const bytes content = noise(11);
  CHECK_THROWS_MATCHES(out.write(content), argument_error,
                       MessageMatches(Equals("bytes of a packed weight: expected at most 10, found 11")));
  out.write(std::span(content).first(4));
  CHECK_THROWS_MATCHES(out.write(std::span(content).first(7)), argument_error,
                       MessageMatches(Equals("bytes of a packed weight: expected at most 6, found 7")));
  CHECK(out.size() == packed_layout::data_offset + 4);  // what was refused was not written
  out.write(std::span(content).first(6));
  out.write(std::span(content).first(10));
  CHECK_THROWS_MATCHES(out.write(std::span(content).first(1)), argument_error,
                       MessageMatches(Equals("bytes of a packed weight: expected at most 0, found 1")));
  out.commit();
  CHECK(files_in(folder) == 1);
}

TEST_CASE("packed writer: nothing remains of a file that is not whole", "[packed]") {
  const temporary_folder folder;
  const bytes content = noise(10);
  {
    packed_writer out(folder / "file", index_of({{2, 10}}), 1);
    out.write(content);
    CHECK_THROWS_MATCHES(out.commit(), argument_error,
                         MessageMatches(Equals("packed file: expected 4608 bytes of header and weights, found 4352")));
    CHECK(files_in(folder) == 1);  // its temporary one
  }
  CHECK(files_in(folder) == 0);
  write_text(folder / "file", "before");
  { packed_writer out(folder / "file", index_of({{1, 10}}), 1); }
  CHECK(read_bytes(folder / "file").size() == 6);
  CHECK_THROWS_AS(packed_writer(folder / "none" / "file", index_of({{1, 10}}), 1), file_error);
}

TEST_CASE("packed writer: no weights, or none of any bytes", "[packed]") {
  const temporary_folder folder;
  for (const auto& index : {index_of({}), index_of({{4, 0}})}) {
    packed_writer out(folder / "file", index, 1);
    CHECK_THROWS_AS(out.write(noise(1)), argument_error);
    out.commit();
    const bytes file = read_bytes(folder / "file");
    CHECK(packed_field<std::uint64_t>(file, 24) == packed_layout::data_offset);
    CHECK(packed_field<std::uint64_t>(file, 16) == file.size());
  }
}
