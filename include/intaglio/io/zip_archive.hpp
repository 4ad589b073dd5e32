// SPDX-License-Identifier: MIT
// The central directory of a ZIP file whose members are stored without compression, as torch.save writes it. It has the
// offsets of the members' bytes, so they can be read in place. Nothing is unpacked. Layout: PKWARE's APPNOTE.TXT 6.3,
// with zip64.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/sorted_indices.hpp"
#include "intaglio/io/crc32.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// Limits of ZIP archives that are read.
struct zip_limits {
  static constexpr std::uint64_t members = 262'144;
  static constexpr std::size_t name_bytes = 1024;
};

/// A stored member: `bytes` bytes from `offset` of the file.
struct zip_member {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t checksum = 0;  ///< crc32 of them
};

/// The members of one file. It refuses what a checkpoint does not need: compression, encryption, links, folders,
/// several disks, text in front of the first member or after the directory, names that leave the folder, members that
/// overlap.
class zip_archive {
 public:
  /// @throws file_error at the first violated rule
  explicit zip_archive(const mapped_file& file) : file_(&file) {
    read_directory(find_directory());
    locate_members();
  }

  /// The members in the order of their bytes.
  const std::vector<zip_member>& members() const { return members_; }
  const zip_member* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &members_[at->second];
  }

 private:
  struct directory {
    std::uint64_t offset, bytes, count;
  };
  static constexpr std::uint32_t saturated = 0xFFFFFFFF;

  template <class T>
  static T number(std::span<const std::byte> bytes, std::size_t at) {
    T out;
    std::memcpy(&out, bytes.data() + at, sizeof(T));
    return out;
  }
  [[noreturn]] void refuse(std::uint64_t offset, std::string what, std::string expected = {},
                           std::string found = {}) const {
    throw file_error(file_->path(), offset, std::move(what), std::move(expected), std::move(found));
  }

  [[gnu::cold]] directory find_directory() const {
    constexpr std::uint64_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56;
    const std::uint64_t size = file_->size();
    if (size < end_bytes)
      refuse(0, "too short for a ZIP file", std::to_string(end_bytes) + " bytes or more", std::to_string(size));
    std::array<std::byte, end_bytes> end{};
    const std::uint64_t at = size - end_bytes;
    file_->read(at, end);
    if (number<std::uint32_t>(end, 0) != 0x06054B50)
      refuse(at, "no end of a ZIP directory at the end of the file (download cut short?)", "PK\\x05\\x06",
             "other bytes");
    const auto disk = number<std::uint16_t>(end, 4), first_disk = number<std::uint16_t>(end, 6),
               here = number<std::uint16_t>(end, 8), all = number<std::uint16_t>(end, 10);
    if (number<std::uint16_t>(end, 20) != 0)
      refuse(at + 20, "comment of the ZIP file", "none", "more bytes than are there");
    directory out{number<std::uint32_t>(end, 16), number<std::uint32_t>(end, 12), all};
    std::uint64_t directory_end = at;
    std::array<std::byte, locator_bytes> locator{};
    if (at >= locator_bytes + end64_bytes) file_->read(at - locator_bytes, locator);
    if (number<std::uint32_t>(locator, 0) == 0x07064B50) {
      directory_end = number<std::uint64_t>(locator, 8);
      if (directory_end != at - locator_bytes - end64_bytes || number<std::uint32_t>(locator, 4) != 0 ||
          number<std::uint32_t>(locator, 16) != 1)
        refuse(at - locator_bytes, "zip64 locator", "the record just before it, on one disk",
               hexadecimal(directory_end));
      std::array<std::byte, end64_bytes> end64{};
      file_->read(directory_end, end64);
      if (number<std::uint32_t>(end64, 0) != 0x06064B50 || number<std::uint64_t>(end64, 4) != end64_bytes - 12)
        refuse(directory_end, "zip64 end of the directory", "PK\\x06\\x06 and 44 bytes", "another record");
      expect_version(number<std::uint16_t>(end64, 12) & 0xFF, directory_end + 12, "zip64: version that made it", true);
      expect_version(number<std::uint16_t>(end64, 14), directory_end + 14, "zip64: version needed to read it", false);
      if (number<std::uint32_t>(end64, 16) != 0 || number<std::uint32_t>(end64, 20) != 0 ||
          number<std::uint64_t>(end64, 24) != number<std::uint64_t>(end64, 32))
        refuse(directory_end + 16, "zip64 end of the directory", "one disk", "several");
      const directory wide{number<std::uint64_t>(end64, 48), number<std::uint64_t>(end64, 40),
                           number<std::uint64_t>(end64, 32)};
      const auto agrees = [](std::uint64_t narrow, std::uint64_t mark, std::uint64_t value) {
        return narrow == mark || narrow == value;
      };
      if (!agrees(out.offset, saturated, wide.offset) || !agrees(out.bytes, saturated, wide.bytes) ||
          !agrees(out.count, 0xFFFF, wide.count))
        refuse(at, "the two ends of the ZIP directory disagree", "the same numbers", "others");
      out = wide;
    } else if (disk != 0 || first_disk != 0 || here != all) {
      refuse(at + 4, "ZIP file", "one disk", "several");
    }
    if (out.count == 0 || out.count > zip_limits::members)
      refuse(at + 10, "number of members", "1 to " + std::to_string(zip_limits::members), std::to_string(out.count));
    const checked_size stop = checked_size(out.offset) + out.bytes;
    if (!stop || stop.value() != directory_end)
      refuse(out.offset < size ? out.offset : at, "ZIP directory", "one that ends at " + hexadecimal(directory_end),
             "offset " + hexadecimal(out.offset) + ", " + std::to_string(out.bytes) + " bytes");
    return out;
  }

  /// Checks a version of ZIP, times ten: a version of APPNOTE.TXT 4.4.3.2, or 0, which miniz writes in PyTorch's files.
  /// @param made also accept versions between these, which programs that make files use for themselves
  void expect_version(unsigned found, std::uint64_t at, const std::string& what, bool made) const {
    constexpr unsigned known[] = {0, 10, 11, 20, 21, 25, 27, 45, 46, 50, 51, 52, 61, 62, 63};
    if (made ? found <= 63 : std::find(std::begin(known), std::end(known), found) != std::end(known)) return;
    refuse(at, what, "a version of ZIP up to 6.3", std::to_string(found / 10) + "." + std::to_string(found % 10));
  }

  [[gnu::cold]] void read_directory(const directory& where) {
    constexpr std::size_t fixed = 46;
    directory_offset_ = where.offset;
    if (where.count > where.bytes / fixed)
      refuse(where.offset, "ZIP directory", std::to_string(where.count) + " members",
             std::to_string(where.bytes) + " bytes");
    std::vector<std::byte> bytes(static_cast<std::size_t>(where.bytes));
    file_->read(where.offset, bytes);
    members_.reserve(static_cast<std::size_t>(where.count));
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < where.count; ++i) {
      const std::uint64_t entry = where.offset + at;
      if (bytes.size() - at < fixed)
        refuse(entry, "ZIP directory: member " + std::to_string(i), std::to_string(fixed) + " bytes",
               std::to_string(bytes.size() - at));
      const auto record = std::span<const std::byte>(bytes).subspan(at);
      if (number<std::uint32_t>(record, 0) != 0x02014B50)
        refuse(entry, "ZIP directory: member " + std::to_string(i), "PK\\x01\\x02", "other bytes");
      const std::size_t name_bytes = number<std::uint16_t>(record, 28), extra_bytes = number<std::uint16_t>(record, 30),
                        comment_bytes = number<std::uint16_t>(record, 32);
      const std::size_t whole = fixed + name_bytes + extra_bytes + comment_bytes;
      if (record.size() < whole)
        refuse(entry, "ZIP directory: member " + std::to_string(i), std::to_string(whole) + " bytes",
               std::to_string(record.size()));
      zip_member member;
      member.name.assign(reinterpret_cast<const char*>(record.data()) + fixed, name_bytes);
      check_name(member.name, entry);
      const std::string what = "member '" + printable(member.name, 70) + "'";
      const auto flags = number<std::uint16_t>(record, 8), method = number<std::uint16_t>(record, 10),
                 maker = number<std::uint16_t>(record, 4);
      expect_version(number<std::uint16_t>(record, 4) & 0xFF, entry + 4, what + ": version that made it", true);
      expect_version(number<std::uint16_t>(record, 6), entry + 6, what + ": version needed to read it", false);
      constexpr unsigned harmless = 0x0806 | 0x0008;  // UTF-8 names, kind of compression, sizes after the data
      if ((flags & ~harmless) != 0)
        refuse(entry + 8, what + ": flags", "neither encryption nor patches", hexadecimal(flags));
      if (method != 0) refuse(entry + 10, what + ": compression method", "0 (stored)", std::to_string(method));
      const auto mode = (maker >> 8) == 3 ? number<std::uint32_t>(record, 38) >> 28 : 8u;
      if (mode != 8 && mode != 0)
        refuse(entry + 38, what, "a plain file", mode == 0xA ? "a link" : "another kind of file");
      member.checksum = number<std::uint32_t>(record, 16);
      std::uint64_t packed = number<std::uint32_t>(record, 20), size = number<std::uint32_t>(record, 24),
                    header = number<std::uint32_t>(record, 42);
      read_zip64(record.subspan(fixed + name_bytes, extra_bytes), entry, what, size, packed, header);
      if (number<std::uint16_t>(record, 34) != 0)
        refuse(entry + 34, what, "disk 0", std::to_string(number<std::uint16_t>(record, 34)));
      if (packed != size) refuse(entry + 20, what + ": stored size", std::to_string(size), std::to_string(packed));
      member.offset = header;
      member.bytes = size;
      members_.push_back(std::move(member));
      at += whole;
    }
    if (at != bytes.size())
      refuse(where.offset + at, "bytes after the last member of the ZIP directory", "none",
             std::to_string(bytes.size() - at));
  }

  /// Reads the zip64 numbers. They are in this order, each only where the 32-bit number is saturated.
  void read_zip64(std::span<const std::byte> extra, std::uint64_t entry, const std::string& what, std::uint64_t& size,
                  std::uint64_t& packed, std::uint64_t& header) const {
    bool found = false;
    while (!extra.empty()) {
      if (extra.size() < 4 || extra.size() - 4 < number<std::uint16_t>(extra, 2))
        refuse(entry, what + ": extra field", "whole fields", std::to_string(extra.size()) + " bytes left");
      const std::size_t length = number<std::uint16_t>(extra, 2);
      if (number<std::uint16_t>(extra, 0) == 1) {
        if (found) refuse(entry, what + ": zip64 field", "once", "twice");
        found = true;
        auto wide = extra.subspan(4, length);
        for (std::uint64_t* value : {&size, &packed, &header}) {
          if (*value != saturated) continue;
          if (wide.size() < 8)
            refuse(entry, what + ": zip64 field", "a number of 8 bytes", std::to_string(wide.size()) + " bytes");
          *value = number<std::uint64_t>(wide, 0);
          wide = wide.subspan(8);
        }
      }
      extra = extra.subspan(4 + length);
    }
    if (!found && (size == saturated || packed == saturated || header == saturated))
      refuse(entry, what + ": zip64 field", "one, as numbers are saturated", "none");
  }

  void check_name(const std::string& name, std::uint64_t entry) const {
    bool plain = !name.empty() && name.size() <= zip_limits::name_bytes && is_printable(name) && name.front() != '/' &&
                 name.find('\\') == std::string::npos && name.find(':') == std::string::npos;
    for (std::size_t begin = 0; plain && begin <= name.size();) {
      const std::size_t end = (std::min)(name.find('/', begin), name.size());
      const std::string_view part = std::string_view(name).substr(begin, end - begin);
      plain = !part.empty() && part != "." && part != "..";
      begin = end + 1;
    }
    if (!plain) refuse(entry, "name of a member", "a path inside the archive", "'" + printable(name, 70) + "'");
  }

  /// Finds the members' bytes from their headers. Sorted by offset, no two may overlap, and the first starts the file.
  [[gnu::cold]] void locate_members() {
    constexpr std::uint64_t fixed = 30;
    sort_once(members_, [](const zip_member& a, const zip_member& b) { return a.offset < b.offset; });
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      zip_member& member = members_[i];
      const std::string what = "member '" + printable(member.name, 70) + "'";
      const std::uint64_t header = member.offset;
      if (i == 0 && header != 0) refuse(0, "bytes in front of the first member", "none", std::to_string(header));
      if (header < end)
        refuse(header, what + ": overlaps '" + printable(members_[i - 1].name, 70) + "'",
               "an offset from " + hexadecimal(end), hexadecimal(header));
      if (!range_inside(header, fixed, directory_offset_))
        refuse(header, what + ": header", "one before the directory at " + hexadecimal(directory_offset_),
               hexadecimal(header));
      std::array<std::byte, fixed> local{};
      file_->read(header, local);
      if (number<std::uint32_t>(local, 0) != 0x04034B50)
        refuse(header, what + ": header", "PK\\x03\\x04", "other bytes");
      expect_version(number<std::uint16_t>(local, 4), header + 4, what + ": version needed to read it", false);
      if (number<std::uint16_t>(local, 8) != 0)
        refuse(header + 8, what + ": compression method", "0 (stored)",
               std::to_string(number<std::uint16_t>(local, 8)));
      const std::uint64_t name_bytes = number<std::uint16_t>(local, 26),
                          data = header + fixed + name_bytes + number<std::uint16_t>(local, 28);
      if (!range_inside(data, member.bytes, directory_offset_))
        refuse(header, what + ": its data runs into the directory (download cut short?)",
               "at most " + std::to_string(directory_offset_ < data ? 0 : directory_offset_ - data) + " bytes",
               std::to_string(member.bytes));
      std::string name(static_cast<std::size_t>(name_bytes), '\0');
      file_->read(header + fixed, std::as_writable_bytes(std::span(name)));
      if (name != member.name)
        refuse(header + fixed, what + ": name in its header", "the same", "'" + printable(name, 70) + "'");
      const bool sizes_after = (number<std::uint16_t>(local, 6) & 8) != 0;
      for (const std::size_t at : {std::size_t{18}, std::size_t{22}})
        if (const auto size = number<std::uint32_t>(local, at);
            size != member.bytes && size != saturated && !(sizes_after && size == 0))
          refuse(header + at, what + ": size in its header", std::to_string(member.bytes), std::to_string(size));
      if (const auto sum = number<std::uint32_t>(local, 14); sum != member.checksum && !(sizes_after && sum == 0))
        refuse(header + 14, what + ": checksum in its header", hexadecimal(member.checksum), hexadecimal(sum));
      member.offset = data;
      end = data + member.bytes;
      if (!by_name_.emplace(member.name, i).second) refuse(header, what + " occurs twice", "once");
    }
  }

  const mapped_file* file_;
  std::uint64_t directory_offset_ = 0;
  std::vector<zip_member> members_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// Reads a member to its end in bounded memory. @throws file_error: its bytes differ from the bytes that were written
inline void check_member(const mapped_file& file, const zip_member& member) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>((std::min<std::uint64_t>)(member.bytes, std::uint64_t{1} << 20)));
  std::uint32_t sum = 0;
  for (std::uint64_t at = 0; at < member.bytes;) {
    const auto some =
        std::span(bytes).first(static_cast<std::size_t>((std::min<std::uint64_t>)(bytes.size(), member.bytes - at)));
    file.read(member.offset + at, some);
    sum = crc32(some, sum);
    at += some.size();
  }
  if (sum != member.checksum)
    throw file_error(file.path(), member.offset, "member '" + printable(member.name, 70) + "': checksum of its bytes",
                     hexadecimal(member.checksum), hexadecimal(sum));
}

}  // namespace intaglio::io
