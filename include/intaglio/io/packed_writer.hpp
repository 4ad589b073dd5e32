// SPDX-License-Identifier: MIT
// Writes a packed file (docs/packed.md) from front to back: the weights' bytes as they come, then the index with their
// checksums. The header, which has the offset of the index, needs only sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/packed_index.hpp"

namespace intaglio::io {

/// The fixed part at the front of a packed file.
struct packed_header {
  std::uint32_t version = packed_layout::version, layout_version = 0;
  std::uint64_t file_bytes = 0, index_offset = 0,
                index_bytes = 0;  ///< the index's checksum, 8 bytes, follows it and ends the file
};

/// The header's bytes, its checksum after them.
inline std::vector<std::byte> header_bytes(const packed_header& of) {
  std::vector<std::byte> out(packed_layout::header_bytes);
  const auto put = [&](std::size_t at, const auto& value) { std::memcpy(out.data() + at, &value, sizeof value); };
  std::memcpy(out.data(), packed_layout::magic.data(), packed_layout::magic.size());
  put(8, of.version);
  put(12, of.layout_version);
  put(16, of.file_bytes);
  put(24, of.index_offset);
  put(32, of.index_bytes);
  put(56, checksum(std::span(out).first(56)));
  return out;
}

/// One writer at a time; nothing remains unless commit() returned.
class packed_writer {
 public:
  /// @param index without the checksums
  /// @throws file_error: the file cannot be made
  packed_writer(const std::filesystem::path& path, packed_index index, std::uint32_t layout_version)
      : index_(std::move(index)), file_(path) {
    std::size_t sums = 0;
    std::uint64_t end = packed_layout::data_offset;
    for (const packed_weight& each : index_.weights) {
      sums += static_cast<std::size_t>(each.copies * packed_layout::chunks(each.bytes));
      end += each.copies * each.step();
    }
    index_.sums.assign(sums, 0);
    const std::uint64_t size = index_bytes().size();
    index_.sums.clear();
    index_offset_ = end;
    auto front = header_bytes({packed_layout::version, layout_version, end + size + 8, end, size});
    front.resize(packed_layout::data_offset);
    file_.write(front);
  }

  /// Writes the next bytes of the current copy of a weight; they must end within it.
  /// @throws argument_error: more bytes than are left of it; file_error
  void write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    while (weight_ < index_.weights.size() && index_.weights[weight_].bytes == 0) ++weight_;
    const std::uint64_t left = weight_ < index_.weights.size() ? index_.weights[weight_].bytes - done_ : 0;
    if (bytes.size() > left)
      throw argument_error("bytes of a packed weight", "at most " + std::to_string(left), std::to_string(bytes.size()));
    const packed_weight& weight = index_.weights[weight_];
    file_.write(bytes);
    while (!bytes.empty()) {
      const std::uint64_t until =
          (std::min)((done_ / packed_layout::chunk_bytes + 1) * packed_layout::chunk_bytes, weight.bytes);
      const auto some = bytes.first(static_cast<std::size_t>((std::min<std::uint64_t>)(until - done_, bytes.size())));
      sum_.add(some);
      done_ += some.size();
      if (done_ == until) index_.sums.push_back(sum_.take());
      bytes = bytes.subspan(some.size());
    }
    if (done_ != weight.bytes) return;
    const std::vector<std::byte> padding(static_cast<std::size_t>(weight.step() - weight.bytes));
    file_.write(padding);
    done_ = 0;
    if (++copy_ == weight.copies) copy_ = 0, ++weight_;
  }

  /// Puts the file at its destination.
  /// @throws argument_error: not all weights were written; file_error
  void commit() {
    if (file_.size() != index_offset_)
      throw argument_error("packed file", std::to_string(index_offset_) + " bytes of header and weights",
                           std::to_string(file_.size()));
    const auto bytes = index_bytes();
    file_.write(bytes);
    const std::uint64_t sum = checksum(bytes);
    file_.write(std::as_bytes(std::span(&sum, 1)));
    file_.commit();
  }

  std::uint64_t size() const { return file_.size(); }

 private:
  std::vector<std::byte> index_bytes() const {
    packed_index_writer out;
    packed_fields(out, index_);
    return std::move(out).bytes();
  }

  packed_index index_;
  atomic_file file_;
  std::uint64_t index_offset_ = 0, done_ = 0;
  std::size_t weight_ = 0;
  std::uint32_t copy_ = 0;
  running_checksum sum_;
};

}  // namespace intaglio::io
