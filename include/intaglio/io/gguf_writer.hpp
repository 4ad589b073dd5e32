// SPDX-License-Identifier: MIT
// Writes GGUF version 3 in the strict form: tensors in the order of the list, each padded to the alignment, without
// gaps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/gguf_part.hpp"

namespace intaglio::io {

/// Writes a file in this order: declare keys and tensors, begin(), the tensors' bytes in the declared order, finish().
class gguf_writer {
 public:
  explicit gguf_writer(const std::filesystem::path& path) : name_(path.string()), file_(path) {}

  /// Adds a key with a number, bool or text. @throws argument_error for a key that is empty or was set before
  template <class T>
  void set(std::string_view key, const T& value) {
    static_assert(gguf_type_of<T> != gguf_type::array, "GGUF has no values of this type");
    start_key(key, gguf_type_of<T>);
    put_value(value);
  }
  void set(std::string_view key, std::string_view value) { set<std::string>(key, std::string(value)); }
  void set(std::string_view key, const char* value) { set<std::string>(key, value); }
  /// Adds a key with an array.
  template <class T>
  void set_array(std::string_view key, std::span<const T> values) {
    static_assert(gguf_type_of<T> != gguf_type::array, "GGUF has no values of this type");
    start_key(key, gguf_type::array);
    put(static_cast<std::uint32_t>(gguf_type_of<T>));
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put_value(value);
  }
  /// Copies a key of another file, byte for byte.
  void copy(const gguf_part& from, const gguf_value& value) {
    start_key(value.key, value.type);
    if (value.type == gguf_type::array) {
      put(static_cast<std::uint32_t>(value.element));
      put(value.count);
    }
    const std::size_t at = keys_.size();
    keys_.resize(at + static_cast<std::size_t>(value.bytes));
    from.file().read(value.offset, std::span(keys_).subspan(at));
  }

  /// Declares a tensor; shape with the fastest axis first. @throws argument_error where the type or the shape cannot be
  /// stored
  void add_tensor(std::string_view name, dtype type, std::span<const std::uint64_t> shape) {
    const auto& layout = info(type);
    checked_size rows = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) rows = rows * shape[i];
    const bool whole = !shape.empty() && shape.size() <= 4 && shape[0] % layout.block_elements == 0;
    const checked_size bytes = whole ? tensor_bytes(type, shape[0], rows) : checked_size::overflowed();
    if (layout.ggml_type < 0 || !bytes || bytes.value() == 0 || name.empty() ||
        name.size() > gguf_limits::tensor_name_bytes)
      throw argument_error("tensor", "a name of 1 to 63 bytes and 1 to 4 dimensions of whole blocks of a GGUF type",
                           "'" + printable(name, 70) + "' as " + std::string(layout.name));
    put_text(infos_, name);
    put(infos_, static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) put(infos_, size);
    put(infos_, static_cast<std::uint32_t>(layout.ggml_type));
    put(infos_, data_bytes_);
    tensors_.emplace_back(std::string(name), bytes.value());
    data_bytes_ = (checked_size{data_bytes_} + bytes).round_up(alignment).value();
  }

  /// Writes header, keys and tensor list.
  void begin() {
    std::vector<std::byte> head;
    for (const char c : std::string_view("GGUF")) put(head, c);
    put(head, std::uint32_t{3});
    put(head, static_cast<std::uint64_t>(tensors_.size()));
    put(head, key_count_);
    file_.write(head);
    file_.write(keys_);
    file_.write(infos_);
    if (!tensors_.empty()) pad();
    left_ = tensors_.empty() ? 0 : tensors_[0].second;
  }

  /// Writes the next bytes of the current tensor. @throws argument_error for more bytes than the declared tensors have
  void write(std::span<const std::byte> bytes) {
    if (next_ >= tensors_.size() || bytes.size() > left_)
      throw argument_error("bytes",
                           std::to_string(left_) + " more of tensor '" +
                               (next_ < tensors_.size() ? printable(tensors_[next_].first, 70) : "") + "'",
                           std::to_string(bytes.size()));
    file_.write(bytes);
    left_ -= bytes.size();
    if (left_ != 0) return;
    pad();
    ++next_;
    left_ = next_ < tensors_.size() ? tensors_[next_].second : 0;
  }

  /// Moves the finished file to its destination. @throws argument_error where bytes are missing, file_error where it
  /// cannot be moved
  void finish() {
    if (next_ != tensors_.size())
      throw argument_error(
          "finish", "all tensors written",
          std::to_string(tensors_.size() - next_) + " of " + std::to_string(tensors_.size()) + " missing");
    file_.commit();
  }

  /// Bytes of all tensors, with padding.
  std::uint64_t data_bytes() const { return data_bytes_; }

 private:
  static constexpr std::uint64_t alignment = 32;

  template <class T>
  static void put(std::vector<std::byte>& to, const T& value) {
    const std::size_t at = to.size();
    to.resize(at + sizeof(T));
    std::memcpy(to.data() + at, &value, sizeof(T));
  }
  static void put_text(std::vector<std::byte>& to, std::string_view text) {
    put(to, static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void put(const T& value) {
    put(keys_, value);
  }
  template <class T>
  void put_value(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) put_text(keys_, value);
    else if constexpr (std::is_same_v<T, bool>) put(static_cast<std::uint8_t>(value));
    else put(value);
  }
  void start_key(std::string_view key, gguf_type type) {
    for (const std::string& other : key_names_)
      if (other == key) throw argument_error("key", "one that was not set before", "'" + printable(key) + "'");
    if (key.empty() || key.size() > gguf_limits::key_bytes)
      throw argument_error("key", "1 to 65535 bytes", std::to_string(key.size()));
    key_names_.emplace_back(key);
    ++key_count_;
    put_text(keys_, key);
    put(static_cast<std::uint32_t>(type));
  }
  void pad() {
    constexpr std::array<std::byte, alignment> zeros{};
    file_.write(std::span(zeros).first(static_cast<std::size_t>((alignment - file_.size() % alignment) % alignment)));
  }

  std::string name_;
  atomic_file file_;
  std::vector<std::byte> keys_, infos_;
  std::vector<std::string> key_names_;
  std::vector<std::pair<std::string, std::uint64_t>> tensors_;
  std::uint64_t key_count_ = 0, data_bytes_ = 0, left_ = 0;
  std::size_t next_ = 0;
};

}  // namespace intaglio::io
