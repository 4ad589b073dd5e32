// SPDX-License-Identifier: MIT
#include "intaglio/io/session_file.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "files.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::file_error;
namespace io = intaglio::io;

namespace {

using layout = io::session_layout;

io::session_record some_record(std::size_t cache_bytes) {
  io::session_record out;
  out.engraving = 0x1122334455667788, out.weights = 0x99aabbccddeeff00;
  out.tokens = {7, 8, 9}, out.cached = 2, out.written = 5, out.note = "a note";
  out.cache_bytes = cache_bytes;
  for (std::uint32_t i = 0; i < 8; ++i) out.sampler[i] = i;
  return out;
}
void save(const std::filesystem::path& path, std::size_t cache_bytes, std::byte fill) {
  io::session_writer file(path, some_record(cache_bytes));
  file.cache(bytes(cache_bytes / 2, fill));
  file.cache(bytes(cache_bytes - cache_bytes / 2, fill));
  file.commit();
}
/// What is wrong with the file, empty: nothing.
std::string fault(const std::filesystem::path& path) {
  try {
    const io::session_reader file{io::mapped_file(path)};
    return {};
  } catch (const file_error& error) { return error.what(); }
}
template <class T>
bytes changed(bytes from, std::uint64_t at, T value, bool sound_header = true) {
  std::memcpy(from.data() + at, &value, sizeof value);
  const std::uint64_t sum = io::checksum(std::span(from).first(layout::at_header_sum));
  if (sound_header) std::memcpy(from.data() + layout::at_header_sum, &sum, sizeof sum);
  return from;
}

}  // namespace

TEST_CASE("session_file: what is read is what was written", "[session_file]") {
  const temporary_folder folder;
  save(folder / "s", 1000, std::byte{3});
  const io::session_reader file{io::mapped_file(folder / "s")};
  const io::session_record &found = file.record(), expected = some_record(1000);
  CHECK(found.engraving == expected.engraving);
  CHECK(found.weights == expected.weights);
  CHECK(found.cached == 2);
  CHECK(found.written == 5);
  CHECK(found.sampler == expected.sampler);
  CHECK(found.tokens == expected.tokens);
  CHECK(found.note == expected.note);
  bytes cache(999);
  file.cache(1, cache);
  CHECK(cache == bytes(999, std::byte{3}));
  CHECK(file.file().size() == file.cache_offset() + 1000 + 8);

  io::session_writer short_of(folder / "t", some_record(10));
  CHECK_THROWS_AS(short_of.cache(bytes(11)), intaglio::argument_error);
  CHECK_THROWS_AS(short_of.commit(), intaglio::argument_error);
}

TEST_CASE("session_file: an adapter is in front of the tokens", "[session_file]") {
  const temporary_folder folder;
  const auto save_with = [&](float scale) {
    io::session_record with = some_record(16);
    with.adapter = 3, with.adapter_scale = scale;
    io::session_writer file(folder / "s", with);
    file.cache(bytes(16, std::byte{5}));
    file.commit();
  };
  save_with(-0.5f);
  const io::session_reader file{io::mapped_file(folder / "s")};
  CHECK(file.record().adapter == 3);
  CHECK(file.record().adapter_scale == -0.5f);
  CHECK(file.record().tokens == some_record(16).tokens);
  CHECK(file.record().note == "a note");
  bytes cache(16);
  file.cache(0, cache);
  CHECK(cache == bytes(16, std::byte{5}));
  CHECK(file.file().size() == file.cache_offset() + 16 + 8);
  for (const float scale : {0.0f, HUGE_VALF}) {
    save_with(scale);
    CHECK_THAT(fault(folder / "s"), ContainsSubstring("offset 0x68: scale of the adapter: expected a finite number"));
  }
}

TEST_CASE("session_file: every changed byte and every cut is refused", "[session_file]") {
  const temporary_folder folder;
  save(folder / "s", 64, std::byte{3});
  const bytes sound = read_bytes(folder / "s");
  const auto path = folder / "bad";
  const auto text_of = [&](std::span<const std::byte> content) { return fault(write_bytes(path, content)); };
  for (std::size_t i = 0; i < sound.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(text_of(changed(sound, i, sound[i] ^ std::byte{0x10}, false)).empty());
    CHECK_FALSE(text_of(std::span(sound).first(i)).empty());
  }
  bytes longer = sound;
  longer.push_back({});
  CHECK_THAT(text_of(longer),
             ContainsSubstring("offset 0x10: size of the file (cut short?): expected 194 bytes, found 195"));
  CHECK_THAT(text_of(std::span(sound).first(50)),
             ContainsSubstring("offset 0x0: saved session: expected at least 112 bytes, found 50"));
  CHECK_THAT(text_of(changed(sound, 0, 'x')),
             ContainsSubstring("offset 0x0: magic: expected 'intagses', found another text"));
  CHECK_THAT(text_of(changed(sound, layout::at_version, 2u)),
             ContainsSubstring("offset 0x8: version of the saved session: expected 1, found 2"));
  CHECK_THAT(text_of(changed(sound, layout::at_tokens, 4u, false)),
             ContainsSubstring("offset 0x0: checksum of the header: expected 0x"));
  // Fields that a sound checksum does not make right.
  CHECK_THAT(
      text_of(changed(sound, layout::at_tokens, 0xffffffffu)),
      ContainsSubstring("offset 0x28: tokens, note and cache: expected 82 bytes in all, found 4294967295 tokens"));
  CHECK_THAT(text_of(changed(sound, layout::at_cache_bytes, ~std::uint64_t{0})),
             ContainsSubstring("offset 0x28: tokens, note and cache"));
  CHECK_THAT(text_of(changed(sound, layout::at_cached, 4u)),
             ContainsSubstring("offset 0x2c: tokens in the cache: expected at most 3, found 4"));
  CHECK_THAT(text_of(changed(sound, layout::at_written, 1u)),
             ContainsSubstring("offset 0x30: positions written: expected at least 2, found 1"));
  CHECK_THAT(text_of(changed(sound, layout::at_adapter, 1u)),
             ContainsSubstring("offset 0x28: tokens, note and cache: expected 78 bytes in all, found 3 tokens"));
  CHECK_THAT(text_of(changed(sound, sound.size() - 10, std::byte{9})),
             ContainsSubstring("offset 0xba: checksum of the file: expected 0x"));
}

TEST_CASE("session_file: a full disk and a kill leave the old file whole", "[session_file]") {
  const temporary_folder folder;
  const auto path = folder / "s";
  save(path, 5000, std::byte{1});
  const bytes old = read_bytes(path);
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::rlimit small = before;
  small.rlim_cur = 4096;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string text = "written";
  try {
    save(path, 5000, std::byte{2});
  } catch (const file_error& problem) { text = problem.what(); }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(text, ContainsSubstring("cannot write: File too large"));
  CHECK(read_bytes(path) == old);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);

  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (unsigned fill = 0;; ++fill) save(path, 400'000, std::byte(fill & 0xff));
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 1700 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK(fault(path).empty());
  }
}
