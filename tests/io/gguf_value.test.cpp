// SPDX-License-Identifier: MIT
#include "intaglio/io/gguf_value.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "gguf_image.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using intaglio::file_error;
using namespace intaglio::io;

namespace {

static_assert(name(gguf_type::u8) == "u8" && name(gguf_type::boolean) == "bool" && name(gguf_type::f64) == "f64" &&
              name(static_cast<gguf_type>(13)) == "unknown");
static_assert(size_of(gguf_type::i16) == 2 && size_of(gguf_type::f64) == 8 && size_of(gguf_type::string) == 0 &&
              size_of(gguf_type::array) == 0);
static_assert(size_of(static_cast<gguf_type>(13)) == 0);
static_assert(gguf_type_of<float> == gguf_type::f32 && gguf_type_of<std::uint64_t> == gguf_type::u64 &&
              gguf_type_of<char> == gguf_type::array);

constexpr std::uint32_t array = 9;
constexpr std::uint64_t limitless = std::numeric_limits<std::uint64_t>::max();

template <class... Parts>
bytes joined(const Parts&... parts) {
  bytes out;
  (out.insert(out.end(), parts.begin(), parts.end()), ...);
  return out;
}
/// "a", so that its type is at 9 and its value at 13.
bytes entry(std::uint32_t type, const bytes& value) { return joined(text_bytes("a"), bytes_of(type), value); }
bytes list(std::uint32_t element, std::uint64_t count, const bytes& values = {}) {
  return entry(array, joined(bytes_of(element), bytes_of(count), values));
}

gguf_value read(const bytes& file, std::uint64_t* end = nullptr) {
  const auto memory = mapped_file::from_memory(file, "memory");
  file_cursor cursor(memory);
  const auto out = read_gguf_value(cursor, 7);
  if (end != nullptr) *end = cursor.offset();
  return out;
}
struct refusal {
  std::string text;
  std::optional<std::uint64_t> offset;
};
refusal refused(const bytes& file) {
  try {
    read(file);
  } catch (const file_error& problem) { return {problem.what(), problem.offset()}; }
  return {"accepted", std::nullopt};
}

}  // namespace

TEST_CASE("gguf_value: a value of every type is found and stepped over", "[gguf]") {
  for (std::uint32_t type = 0; type < 13; ++type) {
    if (type == array) continue;
    CAPTURE(type);
    const bytes one =
        type == 8 ? text_bytes("caf\xC3\xA9") : bytes(size_of(static_cast<gguf_type>(type)), std::byte{1});
    std::uint64_t end = 0;
    const bytes single = joined(entry(type, one), bytes(3));
    const gguf_value alone = read(single, &end);
    CHECK(alone.key == "a");
    CHECK((alone.type == static_cast<gguf_type>(type) && alone.element == alone.type && alone.count == 1));
    CHECK(alone.offset == 13);
    CHECK(alone.bytes == one.size());
    CHECK(end == 13 + one.size());

    const bytes three = joined(list(type, 3, joined(one, one, one)), bytes(3));
    const gguf_value many = read(three, &end);
    CHECK((many.type == gguf_type::array && many.element == static_cast<gguf_type>(type) && many.count == 3));
    CHECK(many.offset == 25);
    CHECK(many.bytes == 3 * one.size());
    CHECK(end == 25 + 3 * one.size());
    CHECK(read(list(type, 0)).bytes == 0);
  }
}

TEST_CASE("gguf_value: arrays in arrays are stepped over, down to a depth", "[gguf]") {
  const auto inner = [](std::uint32_t element, std::uint64_t count, const bytes& values) {
    return joined(bytes_of(element), bytes_of(count), values);
  };
  const bytes numbers = inner(4, 2, bytes(8)), words = inner(8, 1, text_bytes("word")), none = inner(6, 0, {}),
              nested = inner(array, 2, joined(numbers, none)), all = joined(numbers, words, none, nested);
  std::uint64_t end = 0;
  const gguf_value found = read(joined(list(array, 4, all), bytes(3)), &end);
  CHECK((found.type == gguf_type::array && found.element == gguf_type::array && found.count == 4));
  CHECK(found.bytes == all.size());
  CHECK(end == 25 + all.size());
  CHECK(read(list(array, 0)).bytes == 0);
  bytes deep = numbers;
  for (std::uint64_t level = 2; level < gguf_limits::array_depth; ++level) deep = inner(array, 1, deep);
  CHECK_NOTHROW(read(list(array, 1, deep)));
  CHECK_THAT(refused(list(array, 1, inner(array, 1, deep))).text,
             ContainsSubstring("arrays nested too deep: expected at most 8 levels, found more"));
}

TEST_CASE("gguf_value: what ends early is refused wherever it ends", "[gguf]") {
  for (const bytes& whole : {entry(10, bytes(8)), entry(8, text_bytes("text")), list(4, 2, bytes(8)),
                             list(8, 2, joined(text_bytes("x"), text_bytes("yz"))), list(7, 2, bytes(2))}) {
    CHECK_NOTHROW(read(whole));
    for (std::size_t size = 1; size < whole.size(); ++size) {
      const auto found = refused(bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      CAPTURE(size, found.text);
      CHECK_THAT(found.text,
                 ContainsSubstring("memory: offset ") && ContainsSubstring("key 7") && ContainsSubstring("expected "));
      CHECK(found.offset <= size);
    }
  }
}

TEST_CASE("gguf_value: a claim that does not hold is refused where it stands", "[gguf]") {
  struct fault {
    bytes file;
    std::uint64_t offset;
    const char* says;
  };
  const std::string control = "a\x1b[2J", half = "a\xC3", nul("a\0b", 3);
  const std::vector<fault> faults{
      {joined(text_bytes(""), bytes(16)), 0, "key 7 is empty"},
      {joined(text_bytes(control), bytes(16)), 0, "expected UTF-8 without control characters, found 'a\\x1b[2J'"},
      {joined(text_bytes(half), bytes(16)), 0, "found 'a\\xc3'"},
      {joined(text_bytes(std::string(gguf_limits::key_bytes + 1, 'k')), bytes(16)), 0,
       "key 7 is too long: expected at most 65535 bytes, found 65536"},
      {joined(bytes_of(limitless), bytes(16)), 0, "expected at most 24 bytes, found 18446744073709551615"},
      {entry(13, bytes(8)), 9, "key 7 'a': value type is unknown: expected 0 to 12, found 13"},
      {entry(0xFFFFFFFF, bytes(8)), 9, "found 4294967295"},
      {list(array, 1, bytes(8)), 17, "array runs past the end of the file: expected at most 0 elements, found 1"},
      {list(array, 1, joined(bytes_of(std::uint32_t{4}), bytes_of(std::uint64_t{2}), bytes(4))), 29,
       "expected at most 1 elements, found 2"},
      {list(array, 1, joined(bytes_of(std::uint32_t{13}), bytes_of(std::uint64_t{0}))), 25, "found 13"},
      {list(13, 0, bytes(8)), 13, "found 13"},
      {entry(7, bytes(1, std::byte{2})), 13, "key 7 'a' is not a bool: expected 0 or 1, found 2"},
      {list(7, 2, joined(bytes(1, std::byte{1}), bytes(1, std::byte{255}))), 26, "found 255"},
      {entry(8, joined(bytes_of(limitless), bytes(4))), 13, "expected at most 4 bytes, found 18446744073709551615"},
      {entry(8, joined(bytes_of(std::uint64_t{5}), bytes(4))), 13, "expected at most 4 bytes, found 5"},
      {list(8, 2, joined(text_bytes("x"), bytes_of(std::uint64_t{9}), bytes(4))), 34,
       "expected at most 4 bytes, found 9"},
      {entry(8, text_bytes(nul)), 13, "is not text: expected UTF-8 without NUL"},
      {entry(8, text_bytes(half)), 13, "found 'a\\xc3'"},
      // Counts whose bytes do not fit, wrap to what would fit, or are many more than any file has.
      {list(4, 3, bytes(11)), 17, "array runs past the end of the file: expected at most 2 elements, found 3"},
      {list(10, std::uint64_t{1} << 61, bytes(16)), 17, "expected at most 2 elements"},
      {list(8, std::uint64_t{1} << 61, bytes(16)), 17, "expected at most 2 elements"},
      {list(0, limitless, bytes(16)), 17, "expected at most 16 elements, found 18446744073709551615"},
  };
  for (const auto& [file, offset, says] : faults) {
    const auto found = refused(file);
    CHECK_THAT(found.text, ContainsSubstring(says));
    CHECK(found.offset == offset);
  }
}

TEST_CASE("gguf_value: limits hold where the file would have room", "[gguf]") {
  // A sparse file of more than a GiB, of which only the first bytes are read.
  const temporary_folder folder;
  const auto refused_in = [&](const bytes& start) {
    const auto path = write_bytes(folder / "large", start);
    std::filesystem::resize_file(path, (std::uint64_t{1} << 30) + 4096);
    const mapped_file file(path);
    file_cursor cursor(file);
    try {
      read_gguf_value(cursor, 0);
    } catch (const file_error& problem) { return std::string(problem.what()); }
    return std::string("accepted");
  };
  CHECK(refused_in(list(0, gguf_limits::array_elements)) == "accepted");
  CHECK_THAT(refused_in(list(0, gguf_limits::array_elements + 1)),
             ContainsSubstring("array runs past the end of the file"));
  CHECK_THAT(refused_in(entry(8, bytes_of(gguf_limits::string_bytes + 1))), EndsWith("found 1073741825"));
}
