// SPDX-License-Identifier: MIT
// Files of torch.save, written by hand: a pickle out of its opcodes, a ZIP out of its members.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files.hpp"
#include "intaglio/io/crc32.hpp"

/// Little-endian bytes of a number.
template <class T>
std::string packed(T number) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &number, sizeof(T));
  return out;
}

/// Opcodes as text, each function leaving one value on the stack.
namespace pickled {

inline std::string text(std::string_view value) {
  return "X" + packed(static_cast<std::uint32_t>(value.size())) + std::string(value);
}
inline std::string number(std::int64_t value) { return "\x8A\x08" + packed(value); }
inline std::string tuple(std::initializer_list<std::string> parts) {
  std::string out = "(";
  for (const auto& part : parts) out += part;
  return out + "t";
}
inline std::string numbers(const std::vector<std::int64_t>& values) {
  std::string out = "(";
  for (const auto value : values) out += number(value);
  return out + "t";
}
inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string storage(std::string_view type, std::string_view key, std::int64_t elements) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(elements)}) + "Q";
}
inline std::string ordered_dict() { return global("collections", "OrderedDict") + ")R"; }
inline std::string tensor(const std::string& from, std::int64_t offset, const std::vector<std::int64_t>& shape,
                          const std::vector<std::int64_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({from, number(offset), numbers(shape), numbers(strides), "\x89", ordered_dict()}) + "R";
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out = "}(";
  for (const auto& [key, value] : members) out += text(key) + value;
  return out + "u";
}
inline std::string file(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace pickled

/// A ZIP file to be damaged: numbers of the records are those of the members unless they are set.
struct zip_image {
  struct member {
    std::string name, data;
    std::uint16_t method = 0, flags = 0x0800, maker = 0;
    std::uint32_t attributes = 0;
    std::string extra{}, directory_extra{};
    std::string header_name{};                   ///< empty: `name`
    std::int64_t size = -1, header_offset = -1;  ///< -1: as they are
    std::int64_t checksum = -1;
    std::uint16_t needed = 20, header_needed = 20;  ///< version of ZIP
  };
  std::vector<member> members;
  std::string front, after, comment;
  std::int64_t count = -1, directory_offset = -1, directory_bytes = -1;
  bool zip64 = false;
  std::uint16_t zip64_needed = 45;

  member& at(std::string_view name) {
    for (auto& each : members)
      if (each.name == name) return each;
    throw std::out_of_range(std::string(name));
  }

  std::string text() const {
    std::string out = front, directory;
    for (const member& each : members) {
      const auto header = static_cast<std::uint32_t>(each.header_offset >= 0 ? each.header_offset
                                                                             : static_cast<std::int64_t>(out.size()));
      const auto size =
          static_cast<std::uint32_t>(each.size >= 0 ? each.size : static_cast<std::int64_t>(each.data.size()));
      const auto sum = each.checksum >= 0 ? static_cast<std::uint32_t>(each.checksum)
                                          : intaglio::io::crc32(std::as_bytes(std::span(each.data)));
      const std::string& name = each.header_name.empty() ? each.name : each.header_name;
      out += "PK\x03\x04" + packed(each.header_needed) + packed(each.flags) + packed(each.method) +
             packed<std::uint32_t>(0) + packed(sum) + packed(size) + packed(size) +
             packed(static_cast<std::uint16_t>(name.size())) + packed(static_cast<std::uint16_t>(each.extra.size())) +
             name + each.extra + each.data;
      std::string extra = each.directory_extra;
      if (zip64)
        extra += packed<std::uint16_t>(1) + packed<std::uint16_t>(24) + packed<std::uint64_t>(size) +
                 packed<std::uint64_t>(size) + packed<std::uint64_t>(header);
      const std::uint32_t saturated = 0xFFFFFFFF;
      directory += "PK\x01\x02" + packed(each.maker) + packed(each.needed) + packed(each.flags) + packed(each.method) +
                   packed<std::uint32_t>(0) + packed(sum) + packed(zip64 ? saturated : size) +
                   packed(zip64 ? saturated : size) + packed(static_cast<std::uint16_t>(each.name.size())) +
                   packed(static_cast<std::uint16_t>(extra.size())) + packed<std::uint16_t>(0) +
                   packed<std::uint16_t>(0) + packed<std::uint16_t>(0) + packed(each.attributes) +
                   packed(zip64 ? saturated : header) + each.name + extra;
    }
    const auto offset =
        static_cast<std::uint64_t>(directory_offset >= 0 ? directory_offset : static_cast<std::int64_t>(out.size()));
    const auto bytes = static_cast<std::uint64_t>(directory_bytes >= 0 ? directory_bytes
                                                                       : static_cast<std::int64_t>(directory.size()));
    const auto entries = static_cast<std::uint64_t>(count >= 0 ? count : static_cast<std::int64_t>(members.size()));
    out += directory;
    if (zip64) {
      const auto record = static_cast<std::uint64_t>(out.size());
      out += "PK\x06\x06" + packed<std::uint64_t>(44) + packed<std::uint16_t>(45) + packed(zip64_needed) +
             packed<std::uint64_t>(0) + packed(entries) + packed(entries) + packed(bytes) + packed(offset);
      out += "PK\x06\x07" + packed<std::uint32_t>(0) + packed(record) + packed<std::uint32_t>(1);
    }
    out += "PK\x05\x06" + packed<std::uint32_t>(0);
    const auto narrow = static_cast<std::uint16_t>(zip64 ? 0xFFFF : entries);
    out += packed(narrow) + packed(narrow) + packed(static_cast<std::uint32_t>(zip64 ? 0xFFFFFFFF : bytes)) +
           packed(static_cast<std::uint32_t>(zip64 ? 0xFFFFFFFF : offset));
    return out + packed(static_cast<std::uint16_t>(comment.size())) + comment + after;
  }
  bytes build() const {
    const std::string all = text();
    const auto view = std::as_bytes(std::span(all));
    return {view.begin(), view.end()};
  }
};

/// A sound file of torch.save: the pickle, and storages by their keys.
inline zip_image torch_image(const std::string& pickle,
                             const std::vector<std::pair<std::string, std::string>>& storages) {
  zip_image out;
  out.members.push_back({"model/data.pkl", pickle});
  out.members.push_back({"model/byteorder", "little"});
  for (const auto& [key, data] : storages) out.members.push_back({"model/data/" + key, data});
  out.members.push_back({"model/version", "3\n"});
  return out;
}
