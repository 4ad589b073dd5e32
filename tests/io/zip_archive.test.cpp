// SPDX-License-Identifier: MIT
#include "intaglio/io/zip_archive.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "torch_image.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio::io;

namespace {

zip_image sound() {
  zip_image out;
  out.members.push_back({"top/one", "first"});
  out.members.push_back({"top/two", ""});
  out.members.push_back({"top/data/3", std::string(100, 'x'), 0, 0x0808, 0, 0, std::string("FB\x02\0ZZ", 6)});
  return out;
}
std::string refusal(const zip_image& image) {
  const bytes file = image.build();
  const auto mapped = mapped_file::from_memory(file, "memory");
  try {
    const zip_archive archive(mapped);
    for (const auto& member : archive.members()) check_member(mapped, member);
  } catch (const intaglio::file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("zip_archive: members and where their bytes are, in both widths") {
  for (const bool wide : {false, true}) {
    zip_image image = sound();
    image.zip64 = wide;
    const bytes file = image.build();
    const auto mapped = mapped_file::from_memory(file, "memory");
    const zip_archive archive(mapped);
    REQUIRE(archive.members().size() == 3);
    const zip_member* one = archive.find("top/one");
    REQUIRE(one != nullptr);
    CHECK(std::string_view(reinterpret_cast<const char*>(file.data()) + one->offset, 5) == "first");
    CHECK((archive.find("top/two")->bytes == 0 && archive.find("top/data/3")->bytes == 100 &&
           archive.find("top/data") == nullptr));
    CHECK(refusal(image) == "accepted");
  }
}

TEST_CASE("zip_archive: sizes after the data leave zeros in the header") {
  zip_image image = sound();
  std::string file = image.text();
  const auto header = file.find("PK\x03\x04", 40);
  REQUIRE(file.find("top/two", header) == header + 30);
  const auto third = file.find("PK\x03\x04", header + 4);
  file.replace(third + 14, 12, 12, '\0');
  const auto mapped = mapped_file::from_memory(std::as_bytes(std::span(file)), "memory");
  CHECK(zip_archive(mapped).find("top/data/3")->bytes == 100);
}

TEST_CASE("zip_archive: what a checkpoint has no need of is refused") {
  using edit = void (*)(zip_image&);
  const std::vector<std::pair<edit, std::string>> wrong{
      {[](zip_image& i) { i.after = "x"; }, "no end of a ZIP directory at the end of the file (download cut short?)"},
      {[](zip_image& i) { i.comment = "hello"; }, "no end of a ZIP directory"},
      {[](zip_image& i) { i.front = "#!/bin/sh\n"; }, "bytes in front of the first member: expected none, found 10"},
      {[](zip_image& i) { i.count = 2; }, "bytes after the last member of the ZIP directory"},
      {[](zip_image& i) { i.count = 4; }, "ZIP directory: expected 4 members, found 162 bytes"},
      {[](zip_image& i) { i.zip64 = true, i.count = std::int64_t{1} << 62; },
       "number of members: expected 1 to 262144"},
      {[](zip_image& i) { i.count = 0; }, "number of members: expected 1 to 262144, found 0"},
      {[](zip_image& i) { i.directory_offset = 5; }, "ZIP directory: expected one that ends at"},
      {[](zip_image& i) { i.zip64 = true, i.directory_offset = INT64_MAX; },
       "ZIP directory: expected one that ends at"},
      {[](zip_image& i) { i.members[0].method = 8; },
       "member 'top/one': compression method: expected 0 (stored), found 8"},
      {[](zip_image& i) { i.members[0].flags = 0x0801; },
       "member 'top/one': flags: expected neither encryption nor patches, found 0x801"},
      {[](zip_image& i) { i.members[0].maker = 3 << 8, i.members[0].attributes = 0xA1FF0000; },
       "member 'top/one': expected a plain file, found a link"},
      {[](zip_image& i) { i.members[0].maker = 3 << 8, i.members[0].attributes = 0x41FF0000; },
       "member 'top/one': expected a plain file, found another kind of file"},
      {[](zip_image& i) { i.members[1].name = "top/one"; }, "member 'top/one' occurs twice"},
      {[](zip_image& i) { i.members[1].header_offset = 0; }, "member 'top/two': overlaps 'top/one'"},
      {[](zip_image& i) { i.members[1].header_offset = 10'000; }, "member 'top/two': header"},
      {[](zip_image& i) { i.members[2].header_name = "top/data/4"; },
       "member 'top/data/3': name in its header: expected the same, found 'top/data/4'"},
      {[](zip_image& i) { i.members[2].size = 200; }, "member 'top/data/3': its data runs into the directory"},
      {[](zip_image& i) { i.members[0].size = 100; }, "overlaps 'top/one'"},
      {[](zip_image& i) { i.members[2].checksum = 1; },
       "member 'top/data/3': checksum of its bytes: expected 0x1, found 0x"},
      {[](zip_image& i) { i.members[2].directory_extra = std::string("\1\0\x08", 3); },
       "extra field: expected whole fields"}};
  for (const auto& [change, text] : wrong) {
    zip_image image = sound();
    change(image);
    CHECK_THAT(refusal(image), ContainsSubstring(text));
  }
  for (const unsigned version : {1u, 9u, 30u, 47u, 64u, 99u, 255u, 0x1400u, 0xFFFFu}) {
    zip_image image = sound();
    image.members[1].needed = static_cast<std::uint16_t>(version);
    CHECK_THAT(refusal(image), ContainsSubstring("member 'top/two': version needed to read it: expected a version of "
                                                 "ZIP up to 6.3, found " +
                                                 std::to_string(version / 10) + "."));
    image.members[1].needed = 20;
    image.members[1].header_needed = static_cast<std::uint16_t>(version);
    CHECK_THAT(refusal(image), ContainsSubstring("member 'top/two': version needed to read it"));
  }
  for (const unsigned version : {0u, 10u, 20u, 45u, 63u}) {
    zip_image image = sound();
    for (auto& each : image.members) each.needed = each.header_needed = static_cast<std::uint16_t>(version);
    CHECK(refusal(image) == "accepted");
  }
  {
    zip_image image = sound();
    image.members[0].maker = 0x0300 | 200;
    CHECK_THAT(refusal(image),
               ContainsSubstring("version that made it: expected a version of ZIP up to 6.3, found 20.0"));
    image.members[0].maker = 0x0300 | 31;
    CHECK(refusal(image) == "accepted");
    image.zip64 = true, image.zip64_needed = 99;
    CHECK_THAT(refusal(image), ContainsSubstring("zip64: version needed to read it"));
  }
  for (const char* name :
       {"", "/etc/passwd", "../up", "top/../up", "top//one", "top/", "a\\b", "c:d", "top/\x1b[2J", "./top"}) {
    zip_image image = sound();
    image.members[1].name = name;
    CHECK_THAT(refusal(image), ContainsSubstring("name of a member: expected a path inside the archive"));
  }
}

TEST_CASE("zip_archive: a file that is cut anywhere is refused") {
  for (const bool wide : {false, true}) {
    zip_image image = sound();
    image.zip64 = wide;
    const bytes file = image.build();
    for (std::size_t size = 1; size < file.size(); ++size) {
      const auto mapped = mapped_file::from_memory(std::span(file).first(size), "memory");
      REQUIRE_THROWS_AS(zip_archive(mapped), intaglio::file_error);
    }
  }
}
