// SPDX-License-Identifier: MIT
// The file of a saved session (docs/chat.md): tokens, the sampler's parameters, a note of the program and the KV cache,
// bound to a plan and to its weights. It is written as a whole or not at all, and read only after every byte was
// checked.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/checksum.hpp"
#include "intaglio/io/mapped_file.hpp"

namespace intaglio::io {

/// A saved session without the bytes of its cache.
struct session_record {
  std::uint64_t engraving = 0;  ///< hash of the plan
  std::uint64_t weights = 0;    ///< checksum of the weights
  std::uint32_t cached = 0;     ///< tokens whose keys and values are in the cache
  std::uint32_t written =
      0;  ///< positions that were written in the cache, including positions of passes that ran ahead
  std::uint64_t cache_bytes = 0;
  std::uint32_t adapter = 0;               ///< number of the adapter that keys and values come from; 0: none
  float adapter_scale = 0;                 ///< of that adapter; 0 without one
  std::array<std::uint32_t, 8> sampler{};  ///< kernels::state's words from temperature to seed_high
  std::vector<std::int32_t> tokens;        ///< fed or drawn tokens, by position
  std::string note;                        ///< a note of the program
};

/// The offsets of the fields; numbers are little-endian.
struct session_layout {
  static constexpr std::array<char, 8> magic{'i', 'n', 't', 'a', 'g', 's', 'e', 's'};
  static constexpr std::uint32_t version = 1;
  static constexpr std::uint64_t at_version = 8, at_note_bytes = 12, at_file_bytes = 16, at_engraving = 24,
                                 at_weights = 32, at_tokens = 40, at_cached = 44, at_written = 48, at_adapter = 52,
                                 at_cache_bytes = 56, at_sampler = 64, at_header_sum = 96, header_bytes = 104,
                                 sum_bytes = 8;
  /// Offset of the adapter's scale, where there is an adapter.
  static constexpr std::uint64_t at_adapter_scale = header_bytes;
  /// Offset of the tokens, after that scale.
  static constexpr std::uint64_t at_first_token(std::uint32_t adapter) {
    return header_bytes + (adapter == 0 ? 0 : sizeof(float));
  }
  static constexpr std::uint64_t at_cache(std::uint64_t tokens, std::uint64_t note_bytes, std::uint32_t adapter) {
    return at_first_token(adapter) + 4 * tokens + note_bytes;
  }
};

/// Writes a session file: construct, add the cache's bytes, commit. Unless commit() returned, the destination is
/// unchanged.
class session_writer {
 public:
  /// @error file_error: the destination accepts no file, the disk is full
  session_writer(const std::filesystem::path& path, const session_record& record)
      : file_(path), left_(record.cache_bytes) {
    using at = session_layout;
    std::array<std::byte, at::header_bytes> header{};
    const auto put = [&](std::uint64_t where, const auto& value) {
      std::memcpy(header.data() + where, &value, sizeof value);
    };
    put(0, at::magic);
    put(at::at_version, at::version);
    put(at::at_note_bytes, static_cast<std::uint32_t>(record.note.size()));
    put(at::at_file_bytes,
        at::at_cache(record.tokens.size(), record.note.size(), record.adapter) + record.cache_bytes + at::sum_bytes);
    put(at::at_engraving, record.engraving);
    put(at::at_weights, record.weights);
    put(at::at_tokens, static_cast<std::uint32_t>(record.tokens.size()));
    put(at::at_cached, record.cached);
    put(at::at_written, record.written);
    put(at::at_adapter, record.adapter);
    put(at::at_cache_bytes, record.cache_bytes);
    put(at::at_sampler, record.sampler);
    put(at::at_header_sum, checksum(std::span(header).first(at::at_header_sum)));
    add(header);
    if (record.adapter != 0) add(std::as_bytes(std::span(&record.adapter_scale, 1)));
    add(std::as_bytes(std::span(record.tokens)));
    add(std::as_bytes(std::span(record.note)));
  }

  /// Writes the next bytes of the cache; the record states their total. @error file_error: the disk is full
  void cache(std::span<const std::byte> bytes) {
    if (bytes.size() > left_)
      throw argument_error("cache of the session", std::to_string(left_) + " bytes more", std::to_string(bytes.size()));
    left_ -= bytes.size();
    add(bytes);
  }

  /// Bytes written so far.
  std::uint64_t size() const { return file_.size(); }

  /// @error file_error; argument_error: bytes of the cache are missing
  void commit() {
    if (left_ != 0) throw argument_error("cache of the session", std::to_string(left_) + " bytes more", "the end");
    const std::uint64_t sum = sum_.take();
    file_.write(std::as_bytes(std::span(&sum, 1)));
    file_.commit();
  }

 private:
  void add(std::span<const std::byte> bytes) {
    sum_.add(bytes);
    file_.write(bytes);
  }

  atomic_file file_;
  running_checksum sum_;
  std::uint64_t left_;
};

/// A session file, checked to its last byte.
class session_reader {
 public:
  /// @error file_error naming offset, expected and found
  explicit session_reader(mapped_file file) : file_(std::move(file)) {
    read_header();
    check_sum();
    std::uint64_t at = session_layout::at_first_token(record_.adapter);
    if (record_.adapter != 0) read_scale();
    file_.read(at, std::as_writable_bytes(std::span(record_.tokens)));
    at += 4 * record_.tokens.size();
    file_.read(at, std::as_writable_bytes(std::span(record_.note)));
    file_.expect_unchanged();
  }

  const session_record& record() const noexcept { return record_; }
  const mapped_file& file() const noexcept { return file_; }
  std::uint64_t cache_offset() const noexcept {
    return session_layout::at_cache(record_.tokens.size(), record_.note.size(), record_.adapter);
  }
  /// Reads bytes of the cache from `at` on. @error file_error: the file was shortened meanwhile
  void cache(std::uint64_t at, std::span<std::byte> into) const { file_.read(cache_offset() + at, into); }

  [[noreturn]] void refuse(std::uint64_t offset, std::string what, std::string expected, std::string found) const {
    throw file_error(file_.path(), offset, std::move(what), std::move(expected), std::move(found));
  }

 private:
  void read_header() {
    using at = session_layout;
    if (file_.size() < at::header_bytes + at::sum_bytes)
      refuse(0, "saved session", "at least " + std::to_string(at::header_bytes + at::sum_bytes) + " bytes",
             std::to_string(file_.size()));
    std::array<std::byte, at::header_bytes> header{};
    file_.read(0, header);
    const auto get = [&](std::uint64_t where, auto& value) {
      std::memcpy(&value, header.data() + where, sizeof value);
    };
    if (std::memcmp(header.data(), at::magic.data(), at::magic.size()) != 0)
      refuse(0, "magic", "'intagses'", "another text");
    std::uint32_t version = 0, note_bytes = 0, tokens = 0;
    std::uint64_t sum = 0, file_bytes = 0;
    get(at::at_version, version);
    if (version != at::version)
      refuse(at::at_version, "version of the saved session", std::to_string(at::version), std::to_string(version));
    get(at::at_header_sum, sum);
    if (const std::uint64_t found = checksum(std::span(header).first(at::at_header_sum)); found != sum)
      refuse(0, "checksum of the header", hexadecimal(sum), hexadecimal(found));
    get(at::at_note_bytes, note_bytes);
    get(at::at_file_bytes, file_bytes);
    get(at::at_engraving, record_.engraving);
    get(at::at_weights, record_.weights);
    get(at::at_tokens, tokens);
    get(at::at_cached, record_.cached);
    get(at::at_written, record_.written);
    get(at::at_adapter, record_.adapter);
    get(at::at_cache_bytes, record_.cache_bytes);
    get(at::at_sampler, record_.sampler);
    if (file_bytes != file_.size())
      refuse(at::at_file_bytes, "size of the file (cut short?)", std::to_string(file_bytes) + " bytes",
             std::to_string(file_.size()));
    const std::uint64_t around = at::at_first_token(record_.adapter) + at::sum_bytes;
    const checked_size all =
        checked_size{at::at_cache(tokens, note_bytes, record_.adapter)} + record_.cache_bytes + at::sum_bytes;
    if (!all.valid() || all.value() != file_bytes)
      refuse(at::at_tokens, "tokens, note and cache",
             std::to_string(file_bytes < around ? 0 : file_bytes - around) + " bytes in all",
             std::to_string(tokens) + " tokens, " + std::to_string(note_bytes) + " and " +
                 std::to_string(record_.cache_bytes) + " bytes");
    if (record_.cached > tokens)
      refuse(at::at_cached, "tokens in the cache", "at most " + std::to_string(tokens), std::to_string(record_.cached));
    if (record_.written < record_.cached)
      refuse(at::at_written, "positions written", "at least " + std::to_string(record_.cached),
             std::to_string(record_.written));
    record_.tokens.resize(tokens);
    record_.note.resize(note_bytes);
  }

  void read_scale() {
    float& scale = record_.adapter_scale;
    file_.read(session_layout::at_adapter_scale, std::as_writable_bytes(std::span(&scale, 1)));
    if (!std::isfinite(scale) || scale == 0)
      refuse(session_layout::at_adapter_scale, "scale of the adapter", "a finite number other than 0",
             number_text(scale));
  }

  void check_sum() const {
    const std::uint64_t end = file_.size() - session_layout::sum_bytes;
    std::vector<std::byte> piece(static_cast<std::size_t>((std::min<std::uint64_t>)(end, std::uint64_t{1} << 20)));
    running_checksum sum;
    for (std::uint64_t at = 0; at < end;) {
      const auto part =
          std::span(piece).first(static_cast<std::size_t>((std::min<std::uint64_t>)(piece.size(), end - at)));
      file_.read(at, part);
      sum.add(part);
      at += part.size();
    }
    std::uint64_t expected = 0;
    file_.read(end, std::as_writable_bytes(std::span(&expected, 1)));
    if (const std::uint64_t found = sum.take(); found != expected)
      refuse(end, "checksum of the file", hexadecimal(expected), hexadecimal(found));
  }

  mapped_file file_;
  session_record record_;
};

}  // namespace intaglio::io
