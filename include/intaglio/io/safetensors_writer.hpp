// SPDX-License-Identifier: MIT
// Writes one safetensors file (github.com/huggingface/safetensors, format 1): header, then the tensors in declared
// order, without holes.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "intaglio/core/checked.hpp"
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/io/atomic_file.hpp"
#include "intaglio/io/safetensors.hpp"

namespace intaglio::io {

/// Writes a file in this order: declare tensors, begin(), their bytes in the declared order, finish().
class safetensors_writer {
 public:
  explicit safetensors_writer(const std::filesystem::path& path) : file_(path) {}

  /// Shape with the slowest axis first; empty: one number. @throws argument_error for a type that is no float, a name
  /// that is empty or taken, a shape without elements
  void add_tensor(std::string_view name, dtype type, std::span<const std::uint64_t> shape) {
    const char* stored = type == dtype::f32    ? "F32"
                         : type == dtype::f16  ? "F16"
                         : type == dtype::bf16 ? "BF16"
                                               : nullptr;
    checked_size bytes = info(type).block_bytes;
    for (const std::uint64_t size : shape) bytes = bytes * size;
    const checked_size end = checked_size{data_bytes_} + bytes;
    if (stored == nullptr || !end || bytes.value() == 0 || name.empty() || name == "__metadata__" ||
        header_.contains(name))
      throw argument_error("tensor", "a new name, elements, and f32, f16 or bf16",
                           "'" + printable(name, 70) + "' as " + std::string(intaglio::name(type)));
    header_[std::string(name)] = {{"dtype", stored},
                                  {"shape", std::vector<std::uint64_t>(shape.begin(), shape.end())},
                                  {"data_offsets", {data_bytes_, end.value()}}};
    data_bytes_ = end.value();
  }

  /// Writes the header. @throws argument_error where it is longer than readers take
  void begin() {
    header_["__metadata__"] = {{"format", "pt"}};
    std::string text = header_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    if (text.size() > safetensors_limits::header_bytes)
      throw argument_error("tensors",
                           "a header of at most " + std::to_string(safetensors_limits::header_bytes) + " bytes",
                           std::to_string(text.size()));
    const std::uint64_t length = text.size();
    file_.write(std::as_bytes(std::span(&length, 1)));
    file_.write(std::as_bytes(std::span(text)));
    start_ = file_.size();
  }

  /// Writes the next bytes of the data. @throws argument_error for more than the declared tensors have
  void write(std::span<const std::byte> bytes) {
    if (bytes.size() > data_bytes_ - (file_.size() - start_))
      throw argument_error("bytes", std::to_string(data_bytes_ - (file_.size() - start_)) + " more",
                           std::to_string(bytes.size()));
    file_.write(bytes);
  }

  /// Moves the finished file to its destination. @throws argument_error where bytes are missing, file_error where it
  /// cannot be moved
  void finish() {
    if (start_ == 0 || file_.size() - start_ != data_bytes_)
      throw argument_error("finish", std::to_string(data_bytes_) + " bytes of tensors",
                           std::to_string(start_ == 0 ? 0 : file_.size() - start_));
    file_.commit();
  }

  std::uint64_t data_bytes() const { return data_bytes_; }

 private:
  atomic_file file_;
  nlohmann::json header_ = nlohmann::json::object();
  std::uint64_t data_bytes_ = 0, start_ = 0;
};

}  // namespace intaglio::io
