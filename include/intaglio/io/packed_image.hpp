// SPDX-License-Identifier: MIT
// The weights of a packed file (docs/packed.md): a list of them with their offsets, and reads of any range with its
// checksums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/io/checksum.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// Bytes in front of the weights, the alignment of each weight, and the size of a chunk with a checksum of its own.
struct packed_layout {
  static constexpr std::string_view magic = "intaglio";
  static constexpr std::uint32_t version = 12;
  static constexpr std::uint64_t header_bytes = 64, data_offset = 4096, alignment = 256, chunk_bytes = 64 * 1024;
  static constexpr std::uint64_t chunks(std::uint64_t bytes) {
    return bytes / chunk_bytes + (bytes % chunk_bytes != 0);
  }
};

/// A weight in device layout, stored once or once for each layer.
struct packed_weight {
  std::string layout;        ///< its tensors and their layout: plan/weight_identity.hpp
  std::uint32_t copies = 1;  ///< one for each layer that has it, or one
  std::uint64_t bytes = 0;   ///< of a copy
  std::uint64_t offset =
      0;  ///< offset of the first copy in the file; each copy begins at the next multiple of packed_layout::alignment
  std::size_t first_sum = 0;  ///< index of the checksum of the first chunk of the first copy

  std::uint64_t step() const {
    return (bytes + packed_layout::alignment - 1) / packed_layout::alignment * packed_layout::alignment;
  }
};

/// The weights of a packed file, without config and vocabulary. Several threads may read at once.
struct packed_image {
  const mapped_file* file = nullptr;
  std::uint32_t layout_version = 0;  ///< plan::weight_layout_version of the program that wrote the file
  std::uint64_t index_offset = 0;
  std::string codec;  ///< of the layers' matrices, as the tools name it
  std::vector<packed_weight> weights;
  std::vector<std::uint64_t> sums;  ///< of all chunks, weight by weight, copy by copy

  const packed_weight* find(std::string_view layout) const {
    const auto at =
        std::find_if(weights.begin(), weights.end(), [&](const packed_weight& each) { return each.layout == layout; });
    return at == weights.end() ? nullptr : &*at;
  }

  /// Reads bytes [begin, begin + out.size()) of a copy. Every chunk of the range is read as a whole and compared with
  /// its checksum.
  /// @param out memory that is read as fast as it is written: chunks that are entirely in the range are checked there;
  /// after an exception it holds whatever was read
  /// @throws file_error: a checksum that differs, a file that was shortened meanwhile
  void read(const packed_weight& from, std::uint32_t copy, std::uint64_t begin, std::span<std::byte> out) const {
    if (out.empty()) return;
    constexpr std::uint64_t step = packed_layout::chunk_bytes;
    const std::uint64_t offset = from.offset + copy * from.step(), end = begin + out.size();
    const std::size_t sum = from.first_sum + static_cast<std::size_t>(copy * packed_layout::chunks(from.bytes));
    std::vector<std::byte> beside;  // a chunk that is only partly in the range
    for (std::uint64_t at = begin / step * step; at < end; at += step) {
      const auto bytes = static_cast<std::size_t>((std::min)(step, from.bytes - at));
      const std::uint64_t first = (std::max)(begin, at), last = (std::min)(end, at + bytes);
      const auto wanted = out.subspan(static_cast<std::size_t>(first - begin), static_cast<std::size_t>(last - first));
      const bool whole = wanted.size() == bytes;
      if (!whole) beside.resize(bytes);
      const std::span<std::byte> chunk = whole ? wanted : std::span(beside);
      file->read(offset + at, chunk);
      expect_sum(offset + at, chunk, sums[sum + static_cast<std::size_t>(at / step)], from.layout);
      if (!whole) std::memcpy(wanted.data(), chunk.data() + (first - at), wanted.size());
    }
  }

  /// Compares the chunks of a copy that begin in [begin, end) with their checksums, in place.
  /// @param mapped the file
  /// @throws file_error: a checksum that differs
  void expect(const packed_weight& of, std::uint32_t copy, std::uint64_t begin, std::uint64_t end,
              std::span<const std::byte> mapped) const {
    constexpr std::uint64_t step = packed_layout::chunk_bytes;
    const std::uint64_t offset = of.offset + copy * of.step();
    const std::size_t sum = of.first_sum + static_cast<std::size_t>(copy * packed_layout::chunks(of.bytes));
    for (std::uint64_t at = (begin + step - 1) / step * step; at < (std::min)(end, of.bytes); at += step)
      expect_sum(offset + at,
                 mapped.subspan(static_cast<std::size_t>(offset + at),
                                static_cast<std::size_t>((std::min)(step, of.bytes - at))),
                 sums[sum + static_cast<std::size_t>(at / step)], of.layout);
  }

  /// @throws file_error: bytes other than 0 after a copy, up to where the next one begins
  void expect_padding(const packed_weight& of, std::uint32_t copy) const {
    const std::uint64_t offset = of.offset + copy * of.step() + of.bytes;
    std::vector<std::byte> bytes(static_cast<std::size_t>(of.step() - of.bytes));
    file->read(offset, bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != std::byte{0})
        throw file_error(file->path(), offset + i, "padding", "0", std::to_string(std::to_integer<int>(bytes[i])));
  }

 private:
  void expect_sum(std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t expected,
                  const std::string& what) const {
    if (const std::uint64_t found = checksum(bytes); found != expected)
      throw file_error(file->path(), offset,
                       "checksum of " + std::to_string(bytes.size()) + " bytes of '" + printable(what, 160) + "'",
                       hexadecimal(expected), hexadecimal(found));
  }
};

}  // namespace intaglio::io
