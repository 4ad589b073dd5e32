// SPDX-License-Identifier: MIT
// Key-value metadata of GGUF: value types, and the place of a value in its file. Layout: ggml's gguf.cpp, formats
// version 2 and 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "intaglio/io/file_cursor.hpp"

namespace intaglio::io {

/// Type of a metadata value; numbers as in the file.
enum class gguf_type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

constexpr std::string_view name(gguf_type type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  return static_cast<std::uint32_t>(type) < 13 ? names[static_cast<std::uint32_t>(type)] : "unknown";
}
/// Bytes of one value; 0 for string and array, which say their own length.
constexpr std::uint32_t size_of(gguf_type type) {
  constexpr std::uint32_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return static_cast<std::uint32_t>(type) < 13 ? sizes[static_cast<std::uint32_t>(type)] : 0;
}

template <class T>
inline constexpr gguf_type gguf_type_of = gguf_type::array;  // no such type
template <>
inline constexpr gguf_type gguf_type_of<std::uint8_t> = gguf_type::u8;
template <>
inline constexpr gguf_type gguf_type_of<std::int8_t> = gguf_type::i8;
template <>
inline constexpr gguf_type gguf_type_of<std::uint16_t> = gguf_type::u16;
template <>
inline constexpr gguf_type gguf_type_of<std::int16_t> = gguf_type::i16;
template <>
inline constexpr gguf_type gguf_type_of<std::uint32_t> = gguf_type::u32;
template <>
inline constexpr gguf_type gguf_type_of<std::int32_t> = gguf_type::i32;
template <>
inline constexpr gguf_type gguf_type_of<float> = gguf_type::f32;
template <>
inline constexpr gguf_type gguf_type_of<bool> = gguf_type::boolean;
template <>
inline constexpr gguf_type gguf_type_of<std::string> = gguf_type::string;
template <>
inline constexpr gguf_type gguf_type_of<std::uint64_t> = gguf_type::u64;
template <>
inline constexpr gguf_type gguf_type_of<std::int64_t> = gguf_type::i64;
template <>
inline constexpr gguf_type gguf_type_of<double> = gguf_type::f64;

/// One key with the place of its value. Values stay in the file, so that a claimed length costs no memory.
struct gguf_value {
  std::string key;
  gguf_type type = gguf_type::u32;
  gguf_type element = gguf_type::u32;  ///< of an array; else the same as type
  std::uint64_t count = 1;             ///< elements of an array; else 1
  std::uint64_t offset = 0;            ///< of the value (of the first element), in the file
  std::uint64_t bytes = 0;             ///< from there to its end
};

/// Limits of what is read; the largest published files stay far below.
struct gguf_limits {
  static constexpr std::uint64_t keys = 65'536;
  static constexpr std::uint64_t tensors = 262'144;
  static constexpr std::uint64_t key_bytes = 65'535;
  static constexpr std::uint64_t tensor_name_bytes = 63;
  static constexpr std::uint64_t string_bytes = std::uint64_t{1} << 30;
  static constexpr std::uint64_t array_elements = std::uint64_t{1} << 30;
  static constexpr std::uint64_t strings_returned = std::uint64_t{1} << 20;
  static constexpr std::uint64_t alignment = std::uint64_t{1} << 20;
};

/// Reads one key and steps over its value, checking everything that the value claims.
/// @param number position of the key in the file, for errors
inline gguf_value read_gguf_value(file_cursor& cursor, std::uint64_t number) {
  const std::uint64_t start = cursor.offset();
  const std::string where = "key " + std::to_string(number);
  gguf_value out;
  out.key = cursor.text(where, gguf_limits::key_bytes);
  if (out.key.empty()) cursor.fail(start, where + " is empty");
  if (!is_printable(out.key))
    cursor.fail(start, where + " is not a name", "UTF-8 without control characters", "'" + printable(out.key) + "'");
  const std::string what = where + " '" + printable(out.key) + "'";

  const auto known_type = [&](std::string_view role, bool may_be_array) {
    const std::uint64_t at = cursor.offset();
    const auto id = cursor.number<std::uint32_t>(what);
    if (id > 12 || (id == 9 && !may_be_array))
      cursor.fail(at, what + ": " + std::string(role) + " is unknown", may_be_array ? "0 to 12" : "0 to 12, no array",
                  std::to_string(id));
    return static_cast<gguf_type>(id);
  };
  // A string is checked here only for its length; what an element says is for the accessors.
  const auto skip_string = [&] {
    const std::uint64_t at = cursor.offset();
    const auto length = cursor.number<std::uint64_t>(what);
    if (length > gguf_limits::string_bytes || length > cursor.left())
      cursor.fail(at, what + ": string runs past the end of the file",
                  "at most " + std::to_string(cursor.left()) + " bytes", std::to_string(length));
    cursor.skip(length, what);
  };
  const auto check_bool = [&] {
    const std::uint64_t at = cursor.offset();
    if (const auto value = cursor.number<std::uint8_t>(what); value > 1)
      cursor.fail(at, what + " is not a bool", "0 or 1", std::to_string(value));
  };

  out.type = out.element = known_type("value type", true);
  if (out.type == gguf_type::array) {
    out.element = known_type("element type", false);
    const std::uint64_t at = cursor.offset();
    out.count = cursor.number<std::uint64_t>(what);
    const std::uint64_t least = out.element == gguf_type::string ? 8 : size_of(out.element);
    if (out.count > gguf_limits::array_elements || !(checked_size{out.count} * least).fits(cursor.left()))
      cursor.fail(at, what + ": array runs past the end of the file",
                  "at most " + std::to_string(cursor.left() / least) + " elements", std::to_string(out.count));
  }
  out.offset = cursor.offset();
  if (out.element == gguf_type::string)
    for (std::uint64_t i = 0; i < out.count; ++i) skip_string();
  else if (out.element == gguf_type::boolean)
    for (std::uint64_t i = 0; i < out.count; ++i) check_bool();
  else cursor.skip(out.count * size_of(out.element), what);
  out.bytes = cursor.offset() - out.offset;
  if (out.type == gguf_type::string) {
    file_cursor again(cursor.file());
    again.skip(out.offset, what);
    const std::string text = again.text(what, gguf_limits::string_bytes);
    if (!is_utf8(text) || text.find('\0') != std::string::npos)
      cursor.fail(out.offset, what + " is not text", "UTF-8 without NUL", "'" + printable(text) + "'");
  }
  return out;
}

}  // namespace intaglio::io
