// SPDX-License-Identifier: MIT
// safetensors, one file: u64 header length, JSON header, data. Rules: safetensors/src/tensor.rs (validate), and no
// duplicate names.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/file_cursor.hpp"
#include "intaglio/io/folder_tensor.hpp"
#include "intaglio/io/json_text.hpp"

namespace intaglio::io {

/// Limits of safetensors files that are read.
struct safetensors_limits {
  static constexpr std::uint64_t header_bytes = 100'000'000;
  static constexpr std::size_t tensors = 262'144;
  static constexpr std::size_t metadata_entries = 65'536;
  static constexpr std::size_t name_bytes = 1024;
  static constexpr std::size_t dimensions = 8;
};

/// A tensor in the header's list, row-major.
using safetensors_tensor = folder_tensor;

/// A type of safetensors: its name, bytes of an element, and the library's type, if it reads such values.
struct safetensors_dtype {
  std::string_view name;
  std::uint32_t bytes;
  std::optional<dtype> type;
};
/// All types of safetensors.
inline constexpr safetensors_dtype safetensors_dtypes[] = {
    {"BOOL", 1, std::nullopt},    {"U8", 1, dtype::u8},   {"I8", 1, dtype::i8},     {"F8_E5M2", 1, std::nullopt},
    {"F8_E4M3", 1, std::nullopt}, {"I16", 2, dtype::i16}, {"U16", 2, std::nullopt}, {"F16", 2, dtype::f16},
    {"BF16", 2, dtype::bf16},     {"I32", 4, dtype::i32}, {"U32", 4, dtype::u32},   {"F32", 4, dtype::f32},
    {"F64", 8, dtype::f64},       {"I64", 8, dtype::i64}, {"U64", 8, std::nullopt},
};

/// Reads the header without building a document: it needs memory for the tensor list only.
class safetensors_header_reader : public json_reader {
 public:
  using json_reader::json_reader;
  std::vector<safetensors_tensor> tensors;
  std::vector<std::array<std::uint64_t, 2>> ranges;  ///< data_offsets of each

  bool null() override { return wrong("null"); }
  bool boolean(bool) override { return wrong("a truth value"); }
  bool binary(json::binary_t&) override { return wrong("binary"); }
  bool number_integer(json::number_integer_t value) override { return wrong(std::to_string(value)); }
  bool number_float(json::number_float_t, const std::string& text) override { return wrong(printable(text, 40)); }
  bool number_unsigned(json::number_unsigned_t value) override {
    if (scope_ != scope::list) return wrong(std::to_string(value));
    if (field_ == "shape") {
      if (tensors.back().shape.size() == safetensors_limits::dimensions)
        refuse(where() + ": number of dimensions", "at most " + std::to_string(safetensors_limits::dimensions), "more");
      tensors.back().shape.push_back(value);
    } else {
      if (offsets_ == 2) refuse(where() + ": data_offsets", "[begin, end]", "more numbers");
      ranges.back()[offsets_++] = value;
    }
    return true;
  }
  bool string(std::string& value) override {
    if (scope_ == scope::metadata) return true;
    if (scope_ != scope::entry || field_ != "dtype") return wrong("'" + printable(value, 40) + "'");
    for (const auto& row : safetensors_dtypes)
      if (row.name == value) {
        tensors.back().stored_type = row.name;
        tensors.back().type = row.type;
        return true;
      }
    std::string known;
    for (const auto& row : safetensors_dtypes) known.append(known.empty() ? "" : " ").append(row.name);
    refuse(where() + ": dtype", known, "'" + printable(value, 40) + "'");
  }
  bool start_object(std::size_t) override {
    if (scope_ == scope::outside) scope_ = scope::header;
    else if (scope_ == scope::header) {
      if (name_ == "__metadata__") {
        scope_ = scope::metadata;
      } else {
        scope_ = scope::entry;
        tensors.emplace_back().name = name_;
        ranges.push_back({});
        fields_ = 0;
      }
    } else return wrong("an object");
    return true;
  }
  bool end_object() override {
    if (scope_ == scope::entry && fields_ != 7)
      refuse(where() + " lacks a field", "dtype, shape and data_offsets", std::to_string(std::popcount(fields_)));
    scope_ = scope_ == scope::header ? scope::outside : scope::header;
    return true;
  }
  bool start_array(std::size_t) override {
    if (scope_ != scope::entry || field_ == "dtype") return wrong("an array");
    scope_ = scope::list;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (field_ == "data_offsets" && offsets_ != 2)
      refuse(where() + ": data_offsets", "[begin, end]", std::to_string(offsets_) + " numbers");
    scope_ = scope::entry;
    return true;
  }
  bool key(std::string& name) override {
    if (scope_ == scope::header) {
      if (name.empty() || name.size() > safetensors_limits::name_bytes || !is_printable(name))
        refuse("tensor name",
               "1 to " + std::to_string(safetensors_limits::name_bytes) + " bytes without control characters",
               "'" + printable(name, 70) + "'");
      if (!names_.insert(name).second) refuse("tensor '" + printable(name, 70) + "' occurs twice", "once");
      if (names_.size() > safetensors_limits::tensors)
        refuse("number of tensors", "at most " + std::to_string(safetensors_limits::tensors), "more");
      name_ = name;
    } else if (scope_ == scope::metadata) {
      if (!metadata_.insert(name).second) refuse("__metadata__ key '" + printable(name, 70) + "' occurs twice", "once");
      if (metadata_.size() > safetensors_limits::metadata_entries)
        refuse("number of __metadata__ entries", "at most " + std::to_string(safetensors_limits::metadata_entries),
               "more");
    } else {
      const unsigned bit = name == "dtype" ? 1u : name == "shape" ? 2u : name == "data_offsets" ? 4u : 0u;
      if (bit == 0) refuse(where() + ": field", "dtype, shape, data_offsets", "'" + printable(name, 40) + "'");
      if (fields_ & bit) refuse(where() + ": field '" + name + "' occurs twice", "once");
      fields_ |= bit;
      field_ = name;
    }
    return true;
  }

 private:
  enum class scope : std::uint8_t { outside, header, metadata, entry, list };

  std::string where() const { return "tensor '" + printable(name_, 70) + "'"; }
  bool wrong(std::string found) const {
    switch (scope_) {
      case scope::header:
        refuse(where(), "an object", std::move(found));
      case scope::metadata:
        refuse("__metadata__", "text values", std::move(found));
      case scope::entry:
        refuse(where() + ": " + field_, field_ == "dtype" ? "text" : "a list of whole numbers from 0",
               std::move(found));
      case scope::outside:
      case scope::list:
        break;  // outside there is only the object that the file begins with
    }
    refuse(where() + ": " + field_, "whole numbers from 0 to 2^64-1", std::move(found));
  }

  scope scope_ = scope::outside;
  std::string name_, field_;
  unsigned fields_ = 0, offsets_ = 0;
  std::set<std::string> names_, metadata_;
};

/// One parsed safetensors file.
class safetensors_file {
 public:
  using tensor = safetensors_tensor;
  static constexpr std::string_view name = "model.safetensors", ending = ".safetensors";

  /// @throws file_error at the first violated rule
  explicit safetensors_file(mapped_file file) : file_(std::move(file)) {
    file_cursor cursor(file_);
    const auto length = cursor.number<std::uint64_t>("header length");
    if (length > safetensors_limits::header_bytes || length > cursor.left() || length < 2)
      cursor.fail(0, "header length",
                  "2 to " + std::to_string((std::min)(safetensors_limits::header_bytes, cursor.left())),
                  std::to_string(length));
    std::string header(static_cast<std::size_t>(length), '\0');
    file_.read(8, std::as_writable_bytes(std::span(header)));
    if (header.front() != '{')
      cursor.fail(8, "the header is no JSON object", "{", "'" + printable({header.data(), 1}) + "'");
    safetensors_header_reader reader(file_.path(), 8);
    read_json(header, file_.path(), 8, reader);
    tensors_ = std::move(reader.tensors);
    place_tensors(reader.ranges, 8 + length);
  }

  const mapped_file& file() const { return file_; }
  const std::vector<safetensors_tensor>& tensors() const { return tensors_; }
  mapped_file release_file() && { return std::move(file_); }

 private:
  /// Checks that tensors, sorted by offset, fill the data without gap, overlap or rest.
  [[gnu::cold]] void place_tensors(const std::vector<std::array<std::uint64_t, 2>>& ranges, std::uint64_t data) {
    const std::vector<std::size_t> order =
        sorted_indices(tensors_.size(), [&](std::size_t a, std::size_t b) { return ranges[a] < ranges[b]; });
    std::uint64_t end = 0;
    std::string before = "the header";
    for (const std::size_t i : order) {
      safetensors_tensor& entry = tensors_[i];
      const std::string what = "tensor '" + printable(entry.name, 70) + "'";
      const auto [first, last] = ranges[i];
      if (last < first) refuse(data, what + ": data_offsets", "begin <= end", pair(ranges[i]));
      if (first != end)
        refuse(data + end, what + (first < end ? ": overlaps " : ": leaves a hole after ") + before,
               "data from " + std::to_string(end), pair(ranges[i]));
      if (last > file_.size() - data)
        refuse(data, what + ": its data runs past the end of the file (download cut short?)",
               "at most " + std::to_string(file_.size() - data), pair(ranges[i]));
      checked_size bytes = 1;
      for (const auto& row : safetensors_dtypes)
        if (row.name == entry.stored_type) bytes = row.bytes;
      bool empty = false;
      for (const std::uint64_t size : entry.shape) empty = empty || size == 0;
      for (const std::uint64_t size : entry.shape) bytes = bytes * size;
      // 2^40 x 0 x 2^40 is empty in any order of multiplication.
      if (empty ? last != first : !bytes || bytes.value() != last - first)
        refuse(data + first, what + ": shape and data_offsets disagree",
               bytes ? std::to_string(bytes.value()) + " bytes" : "fewer than 2^64 bytes",
               std::to_string(last - first));
      entry.offset = data + first;
      entry.bytes = last - first;
      end = last;
      before = what;
    }
    if (data + end != file_.size())
      refuse(data + end, std::to_string(file_.size() - data - end) + " bytes follow the last tensor",
             "the end of the file", {});
  }
  static std::string pair(const std::array<std::uint64_t, 2>& range) {
    return "[" + std::to_string(range[0]) + ", " + std::to_string(range[1]) + "]";
  }
  [[noreturn, gnu::cold]] void refuse(std::uint64_t offset, std::string_view what, std::string_view expected,
                                      std::string_view found) const {
    throw file_error(file_.path(), offset, what, expected, found);
  }

  mapped_file file_;
  std::vector<safetensors_tensor> tensors_;
};

}  // namespace intaglio::io
