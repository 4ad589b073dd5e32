// SPDX-License-Identifier: MIT
#include <intaglio/gpu/cache_file.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::gpu;

namespace {

detail::cache_key some_key() {
  detail::cache_key key;
  key.device.fill(1);
  key.driver.fill(2);
  key.driver_version = 3;
  key.plan = 4;
  return key;
}

}  // namespace

TEST_CASE("a framed cache comes back as it was") {
  const std::string file = detail::frame_cache(some_key(), "note", std::string("data\0data", 9));
  std::string note, data;
  CHECK(detail::unframe_cache(some_key(), file, note, data).empty());
  CHECK(note == "note");
  CHECK(data == std::string("data\0data", 9));
}

TEST_CASE("every changed byte, every cut and every tail is noticed") {
  const std::string file = detail::frame_cache(some_key(), "note", "some data of a driver");
  std::string note, data;
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string broken = file;
      broken[at] = static_cast<char>(broken[at] ^ change);
      CHECK_FALSE(detail::unframe_cache(some_key(), broken, note, data).empty());
    }
    CHECK_FALSE(detail::unframe_cache(some_key(), file.substr(0, at), note, data).empty());
  }
  CHECK_FALSE(detail::unframe_cache(some_key(), file + "x", note, data).empty());
  CHECK(note.empty());
  CHECK(data.empty());
}

TEST_CASE("a sound cache of another driver, device or plan is not ours") {
  const std::string file = detail::frame_cache(some_key(), "", "data");
  std::string note, data;
  for (int field = 0; field < 5; ++field) {
    detail::cache_key other = some_key();
    if (field == 0) other.device[15] = 9;
    if (field == 1) other.driver[0] = 9;
    if (field == 2) other.driver_version = 9;
    if (field == 3) other.plan = 9;
    if (field == 4) other.api_version = 9;
    CHECK(detail::unframe_cache(other, file, note, data).find("another driver, device or plan") != std::string::npos);
  }
}

TEST_CASE("the checksum sees exchanged words and changed high bits") {
  CHECK(detail::checksum("aaaaaaaabbbbbbbb") != detail::checksum("bbbbbbbbaaaaaaaa"));
  CHECK(detail::checksum(std::string_view("aaaaaaa\x01", 8)) != detail::checksum(std::string_view("aaaaaaa\x81", 8)));
  CHECK(detail::checksum("") != detail::checksum(std::string_view("\0", 1)));
}

TEST_CASE("the folder follows the XDG rule") {
  const auto keep = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? std::string(value) : std::string();
  };
  const std::string cache = keep("XDG_CACHE_HOME"), home = keep("HOME");
  ::setenv("XDG_CACHE_HOME", "/x/cache", 1);
  ::setenv("HOME", "/x", 1);
  CHECK(default_cache_folder() == "/x/cache/intaglio");
  ::setenv("XDG_CACHE_HOME", "not/absolute", 1);
  CHECK(default_cache_folder() == "/x/.cache/intaglio");
  ::unsetenv("HOME");
  CHECK(default_cache_folder().empty());
  ::setenv("HOME", home.c_str(), 1);
  if (cache.empty()) ::unsetenv("XDG_CACHE_HOME");
  else ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
}
