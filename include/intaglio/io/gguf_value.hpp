// SPDX-License-Identifier: MIT
// Key-value metadata of GGUF: value types, and the location of a value in its file. Layout: ggml's gguf.cpp, format
// versions 2 and 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "intaglio/io/file_cursor.hpp"

namespace intaglio::io {

/// Type of a metadata value, with the numbers in the file.
enum class gguf_type : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// The name of a type in errors.
constexpr std::string_view name(gguf_type type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  return static_cast<std::uint32_t>(type) < 13 ? names[static_cast<std::uint32_t>(type)] : "unknown";
}
/// Bytes of one value; 0 for string and array, which have a length of their own.
constexpr std::uint32_t size_of(gguf_type type) {
  constexpr std::uint32_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return static_cast<std::uint32_t>(type) < 13 ? sizes[static_cast<std::uint32_t>(type)] : 0;
}

/// The type of a value that is read as T.
template <class T>
inline constexpr gguf_type gguf_type_of = gguf_type::array;  // no type
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

/// A key with the location of its value. Values stay in the file, so a claimed length costs no memory.
struct gguf_value {
  std::string key;
  gguf_type type = gguf_type::u32;
  gguf_type element = gguf_type::u32;  ///< of an array, itself an array where arrays are nested; else equal to type
  std::uint64_t count = 1;             ///< elements of an array; else 1
  std::uint64_t offset = 0;            ///< of the value (of the first element), in the file
  std::uint64_t bytes = 0;             ///< from there to its end
};

/// Limits for reading; the largest published files are far below.
struct gguf_limits {
  static constexpr std::uint64_t keys = 65'536;
  static constexpr std::uint64_t tensors = 262'144;
  static constexpr std::uint64_t key_bytes = 65'535;
  static constexpr std::uint64_t tensor_name_bytes = 63;
  static constexpr std::uint64_t string_bytes = std::uint64_t{1} << 30;
  static constexpr std::uint64_t array_elements = std::uint64_t{1} << 30;
  static constexpr std::uint64_t array_depth = 8;  ///< arrays in arrays
  static constexpr std::uint64_t strings_returned = std::uint64_t{1} << 20;
  static constexpr std::uint64_t alignment = std::uint64_t{1} << 20;
};

/// Steps over one value and checks all sizes that it claims; `what` names its key in errors.
class gguf_value_walk {
 public:
  gguf_value_walk(file_cursor& cursor, std::string what) : cursor_(cursor), what_(std::move(what)) {}

  gguf_type type() {
    const std::uint64_t at = cursor_.offset();
    const auto id = cursor_.number<std::uint32_t>(what_);
    if (id > 12) cursor_.fail(at, what_ + ": value type is unknown", "0 to 12", std::to_string(id));
    return static_cast<gguf_type>(id);
  }
  /// Reads the element type and the number of elements of an array.
  std::pair<gguf_type, std::uint64_t> array_head() {
    const gguf_type element = type();
    const std::uint64_t at = cursor_.offset(), count = cursor_.number<std::uint64_t>(what_),
                        least = element == gguf_type::string  ? 8
                                : element == gguf_type::array ? 4 + 8
                                                              : size_of(element);
    if (count > gguf_limits::array_elements || !(checked_size{count} * least).fits(cursor_.left()))
      cursor_.fail(at, what_ + ": array runs past the end of the file",
                   "at most " + std::to_string(cursor_.left() / least) + " elements", std::to_string(count));
    return {element, count};
  }
  /// @param depth how many arrays the elements are in
  void skip(gguf_type element, std::uint64_t count, std::uint64_t depth = 0) {
    switch (element) {
      case gguf_type::string:
        for (std::uint64_t i = 0; i < count; ++i) skip_string();
        return;
      case gguf_type::boolean:
        for (std::uint64_t i = 0; i < count; ++i) skip_bool();
        return;
      case gguf_type::array:
        if (depth >= gguf_limits::array_depth && count != 0)
          cursor_.fail(cursor_.offset(), what_ + ": arrays nested too deep",
                       "at most " + std::to_string(gguf_limits::array_depth) + " levels", "more");
        for (std::uint64_t i = 0; i < count; ++i) {
          const auto [inner, inner_count] = array_head();
          skip(inner, inner_count, depth + 1);
        }
        return;
      default:
        cursor_.skip(count * size_of(element), what_);
    }
  }

 private:
  /// Checks only the length of a string; the accessors check its content.
  void skip_string() {
    const std::uint64_t at = cursor_.offset();
    const auto length = cursor_.number<std::uint64_t>(what_);
    if (length > gguf_limits::string_bytes || length > cursor_.left())
      cursor_.fail(at, what_ + ": string runs past the end of the file",
                   "at most " + std::to_string(cursor_.left()) + " bytes", std::to_string(length));
    cursor_.skip(length, what_);
  }
  void skip_bool() {
    const std::uint64_t at = cursor_.offset();
    if (const auto value = cursor_.number<std::uint8_t>(what_); value > 1)
      cursor_.fail(at, what_ + " is not a bool", "0 or 1", std::to_string(value));
  }

  file_cursor& cursor_;
  std::string what_;
};

/// Reads one key and steps over its value, checking all sizes that the value claims.
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
  gguf_value_walk walk(cursor, what);
  out.type = out.element = walk.type();
  if (out.type == gguf_type::array) std::tie(out.element, out.count) = walk.array_head();
  out.offset = cursor.offset();
  walk.skip(out.element, out.count, 1);
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
