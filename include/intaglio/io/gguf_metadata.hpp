// SPDX-License-Identifier: MIT
// Metadata of a GGUF file: its keys, and accessors that check types. gguf_part.hpp reads the rest of the file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/gguf_value.hpp"

namespace intaglio::io {

/// The keys of a GGUF file, and their values, which are read from the file when they are asked for.
class gguf_metadata {
 public:
  const mapped_file& file() const { return file_; }
  const std::vector<gguf_value>& values() const { return values_; }

  /// The entry of a key; null where the file does not have the key.
  const gguf_value* find(std::string_view key) const {
    const auto at = std::lower_bound(by_key_.begin(), by_key_.end(), key,
                                     [&](std::size_t i, std::string_view k) { return values_[i].key < k; });
    return at != by_key_.end() && values_[*at].key == key ? &values_[*at] : nullptr;
  }

  /// The value of `key`, absent where the file does not have it. @throws file_error where it has another type.
  template <class T>
  std::optional<T> value(std::string_view key) const {
    static_assert(gguf_type_of<T> != gguf_type::array, "GGUF has no values of this type");
    const gguf_value* found = find(key);
    if (found == nullptr) return std::nullopt;
    expect_type(*found, found->type, gguf_type_of<T>);
    file_cursor cursor(file_);
    cursor.skip(found->offset, key);
    if constexpr (std::is_same_v<T, std::string>) return cursor.text(key, gguf_limits::string_bytes);
    else if constexpr (std::is_same_v<T, bool>) return cursor.number<std::uint8_t>(key) != 0;
    else return cursor.number<T>(key);
  }

  /// A number of any type in the file, absent where the file does not have the key: counts may be u16, i32 or u64.
  /// @throws file_error where it is no number, or T cannot hold it; an integer T accepts no real numbers
  template <class T>
  std::optional<T> number(std::string_view key) const {
    const gguf_value* found = find(key);
    if (found == nullptr) return std::nullopt;
    file_cursor cursor(file_);
    cursor.skip(found->offset, key);
    if (found->type == gguf_type::array) expect_type(*found, found->type, gguf_type_of<T>);
    return next_number<T>(cursor, *found);
  }
  /// The elements of an array of numbers of any type. @throws file_error also where it is no array
  template <class T>
  std::optional<std::vector<T>> numbers(std::string_view key) const {
    const gguf_value* found = find(key);
    if (found == nullptr) return std::nullopt;
    expect_type(*found, found->type, gguf_type::array);
    if (found->element == gguf_type_of<T>) return array<T>(key);
    if (size_of(found->element) == 0 || found->element == gguf_type::boolean)
      expect_type(*found, found->element, gguf_type_of<T>);
    file_cursor cursor(file_);
    cursor.skip(found->offset, key);
    std::vector<T> out(static_cast<std::size_t>(found->count));
    for (T& each : out) each = next_number<T>(cursor, *found);
    return out;
  }
  /// The elements of an array, absent where the file does not have the key. @throws file_error where it is no array of
  /// T.
  template <class T>
  std::optional<std::vector<T>> array(std::string_view key) const {
    const gguf_value* found = find(key);
    if (found == nullptr) return std::nullopt;
    expect_type(*found, found->type, gguf_type::array);
    expect_type(*found, found->element, gguf_type_of<T>);
    file_cursor cursor(file_);
    cursor.skip(found->offset, key);
    std::vector<T> out;
    if constexpr (std::is_same_v<T, std::string>) {
      // A string object needs more memory than an empty string needs in the file.
      if (found->count > gguf_limits::strings_returned)
        cursor.fail(found->offset, "key '" + printable(key) + "' has too many strings",
                    "at most " + std::to_string(gguf_limits::strings_returned), std::to_string(found->count));
      out.reserve(static_cast<std::size_t>(found->count));
      for (std::uint64_t i = 0; i < found->count; ++i) out.push_back(cursor.text(key, gguf_limits::string_bytes));
    } else if constexpr (std::is_same_v<T, bool>) {
      out.reserve(static_cast<std::size_t>(found->count));
      for (std::uint64_t i = 0; i < found->count; ++i) out.push_back(cursor.number<std::uint8_t>(key) != 0);
    } else {
      out.resize(static_cast<std::size_t>(found->count));
      file_.read(found->offset, std::as_writable_bytes(std::span(out)));
    }
    return out;
  }

 protected:
  explicit gguf_metadata(mapped_file file) : file_(std::move(file)) {}

  [[gnu::cold]] void read_values(file_cursor& cursor, std::uint64_t count) {
    values_.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) values_.push_back(read_gguf_value(cursor, i));
    by_key_ =
        sorted_indices(values_.size(), [&](std::size_t a, std::size_t b) { return values_[a].key < values_[b].key; });
    for (std::size_t i = 1; i < by_key_.size(); ++i)
      if (values_[by_key_[i - 1]].key == values_[by_key_[i]].key)
        cursor.fail(values_[by_key_[i]].offset,
                    "key " + std::to_string(by_key_[i]) + " '" + printable(values_[by_key_[i]].key) + "' occurs twice",
                    "once", "also key " + std::to_string(by_key_[i - 1]));
  }

  mapped_file file_;

 private:
  /// Calls `with` with the value at the cursor in its type, or without a value where it is no number.
  template <class With>
  static void with_number(file_cursor& cursor, const gguf_value& of, With&& with) {
    switch (of.element) {
      case gguf_type::u8:
        return with(cursor.number<std::uint8_t>(of.key));
      case gguf_type::i8:
        return with(cursor.number<std::int8_t>(of.key));
      case gguf_type::u16:
        return with(cursor.number<std::uint16_t>(of.key));
      case gguf_type::i16:
        return with(cursor.number<std::int16_t>(of.key));
      case gguf_type::u32:
        return with(cursor.number<std::uint32_t>(of.key));
      case gguf_type::i32:
        return with(cursor.number<std::int32_t>(of.key));
      case gguf_type::u64:
        return with(cursor.number<std::uint64_t>(of.key));
      case gguf_type::i64:
        return with(cursor.number<std::int64_t>(of.key));
      case gguf_type::f32:
        return with(cursor.number<float>(of.key));
      case gguf_type::f64:
        return with(cursor.number<double>(of.key));
      case gguf_type::boolean:
      case gguf_type::string:
      case gguf_type::array:
        return with(nullptr);
    }
  }
  template <class T>
  T next_number(file_cursor& cursor, const gguf_value& of) const {
    const std::uint64_t at = cursor.offset();
    T out{};
    with_number(cursor, of, [&](auto value) {
      using found = decltype(value);
      if constexpr (std::is_same_v<found, std::nullptr_t> || (std::is_floating_point_v<found> && std::is_integral_v<T>))
        expect_type(of, of.element, gguf_type_of<T>);
      else if constexpr (std::is_integral_v<T>) {
        if (!std::in_range<T>(value))
          throw file_error(file_.path(), at, "key '" + printable(of.key) + "'",
                           "a number from " + std::to_string((std::numeric_limits<T>::min)()) + " to " +
                               std::to_string((std::numeric_limits<T>::max)()),
                           std::to_string(value));
        out = static_cast<T>(value);
      } else {
        out = real_of<T>(static_cast<double>(value));
      }
    });
    return out;
  }
  /// A double beyond the range of float would be infinite, which no key may be.
  template <class T>
  static T real_of(double value) {
    const double most = static_cast<double>((std::numeric_limits<T>::max)());
    if (value > most) return std::numeric_limits<T>::infinity();
    if (value < -most) return -std::numeric_limits<T>::infinity();
    return static_cast<T>(value);
  }
  void expect_type(const gguf_value& value, gguf_type found, gguf_type expected) const {
    if (found != expected)
      throw file_error(file_.path(), value.offset, "key '" + printable(value.key) + "' has another type",
                       std::string(io::name(expected)), std::string(io::name(found)));
  }

  std::vector<gguf_value> values_;
  std::vector<std::size_t> by_key_;  ///< indices of values_ in the order of keys
};

}  // namespace intaglio::io
