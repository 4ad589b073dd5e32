// SPDX-License-Identifier: MIT
// Opens a packed file (docs/packed.md) as a checkpoint without tensors: config, vocabulary and the weights in device
// layout. Header and index are first compared with their checksums, so a later fault means that they were written
// wrong.
#pragma once

#include <array>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint_builder.hpp"
#include "intaglio/io/packed_writer.hpp"

namespace intaglio::io {

/// Reads header and index of a packed file.
class packed_reader {
 public:
  explicit packed_reader(const mapped_file& file) : file_(file) {
    read_header();
    std::vector<std::byte> bytes(static_cast<std::size_t>(header_.index_bytes) + 8);
    file_.read(header_.index_offset, bytes);
    const auto fields = std::span<const std::byte>(bytes).first(bytes.size() - 8);
    std::uint64_t expected = 0;
    std::memcpy(&expected, bytes.data() + fields.size(), 8);
    if (const std::uint64_t found = checksum(fields); found != expected)
      refuse(header_.index_offset, "checksum of the index", hexadecimal(expected), hexadecimal(found));
    packed_index_reader with(fields, header_.index_offset, file_.path());
    packed_fields(with, index_);
    if (with.left() != 0)
      refuse(with.at(), "end of the index", "nothing after the last checksum", std::to_string(with.left()) + " bytes");
    check_config(index_.config, file_.path());
    check_vocabulary();
    place_weights();
  }

  packed_index& index() { return index_; }
  const packed_header& header() const { return header_; }

 private:
  static constexpr std::size_t most_weights = 4096;                    // a plan has about a dozen
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50;  // bytes of one weight: sums of several cannot
                                                                       // overflow

  [[noreturn]] void refuse(std::uint64_t offset, std::string what, std::string expected, std::string found) const {
    throw file_error(file_.path(), offset, std::move(what), std::move(expected), std::move(found));
  }

  void read_header() {
    if (file_.size() < packed_layout::data_offset + 8)
      refuse(0, "packed file", "at least " + std::to_string(packed_layout::data_offset + 8) + " bytes",
             std::to_string(file_.size()));
    std::array<std::byte, packed_layout::header_bytes> bytes{};
    file_.read(0, bytes);
    const auto get = [&](std::size_t at, auto& value) { std::memcpy(&value, bytes.data() + at, sizeof value); };
    if (std::memcmp(bytes.data(), packed_layout::magic.data(), packed_layout::magic.size()) != 0)
      refuse(0, "magic", "'intaglio'", "another text");
    get(8, header_.version);
    if (header_.version != packed_layout::version)
      refuse(8, "version of the packed file", std::to_string(packed_layout::version), std::to_string(header_.version));
    std::uint64_t expected = 0;
    get(56, expected);
    if (const std::uint64_t found = checksum(std::span(bytes).first(56)); found != expected)
      refuse(0, "checksum of the header", hexadecimal(expected), hexadecimal(found));
    get(12, header_.layout_version);
    get(16, header_.file_bytes);
    get(24, header_.index_offset);
    get(32, header_.index_bytes);
    if (std::any_of(bytes.begin() + 40, bytes.begin() + 56, [](std::byte each) { return each != std::byte{0}; }))
      refuse(40, "reserved bytes", "16 times 0", "others");
    if (header_.file_bytes != file_.size())
      refuse(16, "size of the file (download cut short?)", std::to_string(header_.file_bytes) + " bytes",
             std::to_string(file_.size()));
    const std::uint64_t room = file_.size() - packed_layout::data_offset - 8;
    if (header_.index_bytes > room)
      refuse(32, "size of the index", "at most " + std::to_string(room), std::to_string(header_.index_bytes));
    if (header_.index_offset != file_.size() - 8 - header_.index_bytes)
      refuse(24, "offset of the index", std::to_string(file_.size() - 8 - header_.index_bytes),
             std::to_string(header_.index_offset));
    std::vector<std::byte> gap(packed_layout::data_offset - packed_layout::header_bytes);
    file_.read(packed_layout::header_bytes, gap);
    for (std::size_t i = 0; i < gap.size(); ++i)
      if (gap[i] != std::byte{0})
        refuse(packed_layout::header_bytes + i, "padding after the header", "0",
               std::to_string(std::to_integer<int>(gap[i])));
  }

  void check_vocabulary() const {
    if (!index_.vocabulary) return;
    if (index_.vocabulary->tokens.size() > index_.config.vocab_size)
      refuse(header_.index_offset, "tokens",
             "at most " + std::to_string(index_.config.vocab_size) + ", the rows of the embedding",
             std::to_string(index_.vocabulary->tokens.size()));
  }

  /// Checks that weights follow one another, so that none can overlap another.
  void place_weights() {
    if (index_.weights.size() > most_weights)
      refuse(header_.index_offset, "weights", "at most " + std::to_string(most_weights),
             std::to_string(index_.weights.size()));
    std::uint64_t at = packed_layout::data_offset, sums = 0;
    for (packed_weight& each : index_.weights) {
      const std::string what = "weight '" + printable(each.layout, 160) + "'";
      if (each.copies == 0 || each.copies > index_.config.num_hidden_layers)
        refuse(header_.index_offset, what + ": copies",
               "1 to " + std::to_string(index_.config.num_hidden_layers) + ", one a layer",
               std::to_string(each.copies));
      if (each.bytes == 0 || each.bytes > most_bytes)
        refuse(header_.index_offset, what + ": bytes", "1 to " + std::to_string(most_bytes),
               std::to_string(each.bytes));
      each.offset = at;
      each.first_sum = static_cast<std::size_t>(sums);
      const checked_size end = checked_size{at} + checked_size{each.copies} * each.step();
      if (!end.fits(header_.index_offset))
        refuse(
            header_.index_offset, what + ": end",
            "at most " + std::to_string(header_.index_offset) + ", where the index begins",
            std::to_string(each.copies) + " times " + std::to_string(each.bytes) + " bytes from " + std::to_string(at));
      at = end.value();
      sums += each.copies * packed_layout::chunks(each.bytes);
      for (const packed_weight* before = index_.weights.data(); before != &each; ++before)
        if (before->layout == each.layout) refuse(header_.index_offset, what, "one of these", "two");
    }
    if (at != header_.index_offset)
      refuse(at, "end of the weights", std::to_string(header_.index_offset) + ", where the index begins",
             std::to_string(at));
    if (sums != index_.sums.size())
      refuse(header_.index_offset, "checksums", std::to_string(sums), std::to_string(index_.sums.size()));
  }

  const mapped_file& file_;
  packed_header header_;
  packed_index index_;
};

/// Turns an opened packed file into a checkpoint.
[[gnu::cold]] inline checkpoint checkpoint_from_packed(mapped_file opened) {
  checkpoint_builder builder(opened.path(), {});
  const mapped_file* const file = builder.adopt(std::move(opened));
  packed_reader reader(*file);
  packed_index& index = reader.index();
  builder.config() = index.config;
  builder.stated_architecture() = std::move(index.stated_architecture);
  if (!index.states_context) builder.context_unstated();
  builder.pooling() = index.pooling;
  if (index.vocabulary) index.vocabulary->source = file->path();
  builder.vocabulary() = std::move(index.vocabulary);
  return std::move(builder).finish_packed({file, reader.header().layout_version, reader.header().index_offset,
                                           std::move(index.codec), std::move(index.weights), std::move(index.sums)});
}

inline checkpoint checkpoint::open_packed(const std::filesystem::path& path) {
  return checkpoint_from_packed(mapped_file(path));
}
inline checkpoint checkpoint::open_packed(std::span<const std::byte> bytes, const std::string& name) {
  return checkpoint_from_packed(mapped_file::from_memory(bytes, name));
}

}  // namespace intaglio::io
