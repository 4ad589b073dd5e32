// SPDX-License-Identifier: MIT
// One GGUF file: header, metadata and tensor list. All sizes that it claims are compared with the bytes in the file
// before memory is reserved.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/dtype.hpp"
#include "intaglio/core/family.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/gguf_metadata.hpp"
#include "intaglio/io/gguf_names.hpp"

namespace intaglio::io {

/// A tensor in GGUF's list: shape[0] is the fastest axis, so a matrix of `rows` outputs and `columns` inputs is
/// {columns, rows}.
struct gguf_tensor {
  std::string name;
  dtype type = dtype::f32;
  std::uint32_t dimensions = 1;
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};
  std::size_t part = 0;      ///< index of the file that holds it
  std::uint64_t offset = 0;  ///< of its bytes, from the start of that file
  std::uint64_t bytes = 0;
  std::uint64_t info_offset = 0;  ///< offset of its entry in the tensor list

  std::uint64_t columns() const { return shape[0]; }
  std::uint64_t rows() const { return shape[1] * shape[2] * shape[3]; }
};

/// A shape with the fastest axis first, as ggml prints it: "[2560, 640]".
inline std::string shape_text(const gguf_tensor& tensor) {
  std::string out = "[";
  for (std::uint32_t i = 0; i < tensor.dimensions; ++i) out += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return out + "]";
}

/// The name in ggml of a tensor type that this library does not read.
constexpr std::string_view unsupported_ggml_name(std::uint32_t id) {
  switch (id) {
    case 4:
    case 5:
      return "removed Q4_2 or Q4_3";
    case 9:
      return "Q8_1";
    case 15:
      return "Q8_K";
    case 31:
    case 32:
    case 33:
      return "removed interleaved Q4_0";
    case 36:
      return "I2_S of the BitNet fork, or a removed IQ4_NL";
    case 37:
      return "I8_S of the BitNet fork, or a removed IQ4_NL";
    case 38:
      return "TL1 of the BitNet fork, or a removed IQ4_NL";
    case 39:
      return "TL2 of the BitNet fork, or MXFP4";
    default:
      return "unknown";
  }
}

/// Bytes of a tensor of `rows` rows of `columns` elements; overflowed where u64 cannot hold them. Columns must be whole
/// blocks.
constexpr checked_size tensor_bytes(dtype type, checked_size columns, checked_size rows) {
  if (type == dtype::bcml1) rows = rows.round_up(64);
  const checked_size bytes = columns / info(type).block_elements * info(type).block_bytes * rows;
  return type == dtype::i2_s ? bytes + 32 : bytes;
}

/// One parsed file.
class gguf_part : public gguf_metadata {
 public:
  /// @param index  position among the parts of a split model
  /// @param bitnet whether the type ids of the BitNet fork are allowed; absent for a first part, which states it itself
  /// @throws file_error at the first fault
  gguf_part(mapped_file file, std::size_t index, std::optional<bool> bitnet)
      : gguf_metadata(std::move(file)), index_(index) {
    file_cursor cursor(file_);
    const auto [tensor_count, key_count] = read_header(cursor);
    read_values(cursor, key_count);
    if (!bitnet) refuse_later_part();
    bitnet_ = bitnet.value_or(architecture_is_bitnet());
    read_alignment();
    read_tensors(cursor, tensor_count);
    place_tensors(cursor);
  }

  mapped_file release_file() && { return std::move(file_); }
  std::uint32_t version() const { return version_; }
  std::uint64_t data_offset() const { return data_offset_; }
  bool bitnet() const { return bitnet_; }
  const std::vector<gguf_tensor>& tensors() const { return tensors_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::pair<std::uint64_t, std::uint64_t> read_header(file_cursor& cursor) {
    std::array<char, 4> magic{};
    if (cursor.left() < 24) cursor.fail(0, "too short for a GGUF header", "24 bytes", std::to_string(cursor.left()));
    for (char& c : magic) c = cursor.number<char>("magic");
    if (std::string_view(magic.data(), 4) != "GGUF")
      cursor.fail(0, "not a GGUF file", "the magic 'GGUF'", "'" + printable({magic.data(), 4}) + "'");
    version_ = cursor.number<std::uint32_t>("version");
    if (version_ != 0 && (version_ & 0xFFFFu) == 0)
      cursor.fail(4, "the file has the other byte order (big-endian)", "little-endian", hexadecimal(version_));
    if (version_ != 2 && version_ != 3) cursor.fail(4, "GGUF version", "2 or 3", std::to_string(version_));
    const auto tensors = cursor.number<std::uint64_t>("tensor count");
    const auto keys = cursor.number<std::uint64_t>("key count");
    // The shortest possible entries: each has a name of one byte.
    check_count(cursor, 8, "tensor count", tensors, gguf_limits::tensors, 8 + 1 + 4 + 8 + 4 + 8);
    check_count(cursor, 16, "key count", keys, gguf_limits::keys, 8 + 1 + 4 + 1);
    return {tensors, keys};
  }
  static void check_count(const file_cursor& cursor, std::uint64_t at, std::string what, std::uint64_t count,
                          std::uint64_t limit, std::uint64_t least) {
    const std::uint64_t room = (std::min)(limit, cursor.left() / least);
    if (count > room)
      cursor.fail(at, what + " is more than the file can hold", "at most " + std::to_string(room),
                  std::to_string(count));
  }

  /// Refuses a later part: it has no keys and no meaning without the first.
  void refuse_later_part() const {
    const auto part = number<std::uint16_t>("split.no"), count = number<std::uint16_t>("split.count");
    if (!part || !count || *part == 0) return;
    const std::string name = file_.path().substr(file_.path().rfind('/') + 1);
    throw file_error(file_.path(), find("split.no")->offset, "this is not the first part of a split model",
                     printable(gguf_part_name(name, 0, *count)),
                     "part " + std::to_string(*part + 1) + " of " + std::to_string(*count));
  }
  std::string architecture() const {
    const gguf_value* found = find("general.architecture");
    return found != nullptr && found->type == gguf_type::string ? *value<std::string>("general.architecture") : "";
  }
  bool architecture_is_bitnet() const { return architecture().starts_with("bitnet"); }
  /// Whether the file may have I2_S. The fork writes ternary Llamas too, and `convert` all families that may be
  /// ternary.
  bool has_i2_s() const {
    const family* const of = family_with(&family::gguf_names, architecture());
    return bitnet_ || (of != nullptr && of->may_be_ternary);
  }

  void read_alignment() {
    const auto stated = value<std::uint32_t>("general.alignment");
    if (!stated) return;
    if (*stated == 0 || (*stated & (*stated - 1)) != 0 || *stated > gguf_limits::alignment)
      throw file_error(file_.path(), find("general.alignment")->offset, "general.alignment",
                       "a power of two up to " + std::to_string(gguf_limits::alignment), std::to_string(*stated));
    alignment_ = *stated;
  }

  [[gnu::cold]] void read_tensors(file_cursor& cursor, std::uint64_t count) {
    tensors_.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) tensors_.push_back(read_tensor(cursor, i));
    const std::vector<std::size_t> by_name = sorted_indices(
        tensors_.size(), [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
    for (std::size_t i = 1; i < by_name.size(); ++i)
      if (tensors_[by_name[i - 1]].name == tensors_[by_name[i]].name)
        cursor.fail(tensors_[by_name[i]].info_offset,
                    "tensor '" + printable(tensors_[by_name[i]].name, 70) + "' occurs twice", "once",
                    "also at offset " + hexadecimal(tensors_[by_name[i - 1]].info_offset));
  }

  [[gnu::cold]] gguf_tensor read_tensor(file_cursor& cursor, std::uint64_t number) {
    gguf_tensor out;
    out.part = index_;
    out.info_offset = cursor.offset();
    const std::string where = "tensor " + std::to_string(number);
    out.name = cursor.text(where + " name", gguf_limits::tensor_name_bytes);
    if (out.name.empty() || !is_printable(out.name))
      cursor.fail(out.info_offset, where + " has no proper name", "1 to 63 bytes of UTF-8 without control characters",
                  "'" + printable(out.name, 70) + "'");
    const std::string what = where + " '" + printable(out.name, 70) + "'";

    std::uint64_t at = cursor.offset();
    out.dimensions = cursor.number<std::uint32_t>(what);
    if (out.dimensions < 1 || out.dimensions > 4)
      cursor.fail(at, what + ": number of dimensions", "1 to 4", std::to_string(out.dimensions));
    checked_size elements = 1;
    at = cursor.offset();
    for (std::uint32_t i = 0; i < out.dimensions; ++i) {
      out.shape[i] = cursor.number<std::uint64_t>(what);
      elements = elements * out.shape[i];
    }
    const auto limit = static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)());
    if (!elements.fits(limit) || elements.value() == 0)
      cursor.fail(at, what + ": shape", "sizes of at least 1 with a product below 2^63", shape_text(out));

    at = cursor.offset();
    const auto id = cursor.number<std::uint32_t>(what);
    const auto type = dtype_from_ggml(id);
    // The BitNet fork has I2_S as 36 and TL2 as 39.
    if (!type || (*type == dtype::i2_s && !has_i2_s()) || (*type == dtype::mxfp4 && bitnet_))
      cursor.fail(at,
                  what + ": type " + std::to_string(id) + " (" + std::string(unsupported_ggml_name(id)) +
                      ") is not supported here",
                  supported_types(), std::to_string(id));
    out.type = *type;
    if (out.shape[0] % info(out.type).block_elements != 0)
      cursor.fail(at, what + ": a row is not whole blocks of " + std::string(intaglio::name(out.type)),
                  "a multiple of " + std::to_string(info(out.type).block_elements), shape_text(out));
    const checked_size bytes =
        tensor_bytes(out.type, out.shape[0], checked_size{out.shape[1]} * out.shape[2] * out.shape[3]);
    if (!bytes.fits(limit)) cursor.fail(at, what + ": size", "fewer than 2^63 bytes", shape_text(out));
    out.bytes = bytes.value();
    out.offset = cursor.number<std::uint64_t>(what);  // from the start of the data; place_tensors adds that start
    return out;
  }

  /// The types of weights that the library reads, as text. Types of one series are joined: q4_0/1/k.
  std::string supported_types() const {
    std::string out;
    std::string_view kind;
    for (const auto& row : dtype_table) {
      const bool is_weight = row.block_elements > 1 || row.type <= dtype::bf16;
      if (row.ggml_type < 0 || !is_weight || (row.type == dtype::i2_s && !has_i2_s()) ||
          (row.type == dtype::mxfp4 && bitnet_))
        continue;
      const std::size_t end = (std::min)(row.name.find('_'), row.name.size());
      if (end < row.name.size() && row.name.substr(0, end) == kind) out.append("/").append(row.name.substr(end + 1));
      else out.append(out.empty() ? "" : " ").append(row.name);
      kind = row.name.substr(0, end);
    }
    return out + (has_i2_s() ? "" : " (i2_s where general.architecture is of a family whose layers may be ternary)");
  }

  void place_tensors(const file_cursor& cursor) {
    data_offset_ = cursor.offset();
    if (tensors_.empty()) {
      if (cursor.left() >= alignment_) warn_trailing(cursor.offset());
      return;
    }
    const checked_size start = checked_size{cursor.offset()}.round_up(alignment_);
    if (!start.fits(file_.size()))
      cursor.fail(cursor.offset(), "the file ends before its tensor data (download cut short?)",
                  std::to_string(start.value()) + " bytes", std::to_string(file_.size()));
    data_offset_ = start.value();
    bool strict = true;
    checked_size running = 0;
    std::uint64_t end = data_offset_;
    for (gguf_tensor& tensor : tensors_) {
      const std::string what = "tensor '" + printable(tensor.name, 70) + "'";
      if (tensor.offset % alignment_ != 0)
        cursor.fail(tensor.info_offset, what + ": offset is not aligned", "a multiple of " + std::to_string(alignment_),
                    std::to_string(tensor.offset));
      strict = strict && running.valid() && tensor.offset == running.value();
      running = (running + tensor.bytes).round_up(alignment_);
      const checked_size begin = start + tensor.offset, last = begin + tensor.bytes;
      if (!last.fits(file_.size()))
        cursor.fail(tensor.info_offset, what + ": its data runs past the end of the file (download cut short?)",
                    last ? std::to_string(last.value()) + " bytes" : "an offset inside the file",
                    last ? std::to_string(file_.size()) : std::to_string(tensor.offset));
      tensor.offset = begin.value();
      end = (std::max)(end, last.value());
    }
    refuse_overlaps(cursor);
    if (!strict) warnings_.push_back("tensor data is not in the order of the tensor list or has holes");
    const checked_size padded = checked_size{end}.round_up(alignment_);
    if (padded.valid() && padded.value() < file_.size()) warn_trailing(padded.value());
  }

  void refuse_overlaps(const file_cursor& cursor) const {
    const std::vector<std::size_t> order = sorted_indices(
        tensors_.size(), [&](std::size_t a, std::size_t b) { return tensors_[a].offset < tensors_[b].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const gguf_tensor &before = tensors_[order[i - 1]], &after = tensors_[order[i]];
      if (before.offset + before.bytes > after.offset)
        cursor.fail(after.info_offset,
                    "tensors '" + printable(before.name, 70) + "' and '" + printable(after.name, 70) + "' overlap",
                    "data from " + hexadecimal(before.offset + before.bytes), hexadecimal(after.offset));
    }
  }

  void warn_trailing(std::uint64_t end) {
    warnings_.push_back(std::to_string(file_.size() - end) + " bytes follow the last tensor at offset " +
                        hexadecimal(end));
  }
  std::size_t index_ = 0;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32, data_offset_ = 0;
  bool bitnet_ = false;
  std::vector<gguf_tensor> tensors_;
  std::vector<std::string> warnings_;
};

}  // namespace intaglio::io
