// SPDX-License-Identifier: MIT
// The objects that a data.pkl of torch.save describes: storages and views of them; and the limits of what is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "intaglio/core/dtype.hpp"

namespace intaglio::io {

/// Limits of files of torch.save that are read.
struct torch_limits {
  static constexpr std::uint64_t pickle_bytes = std::uint64_t{16} << 20;
  static constexpr std::size_t values = std::size_t{1} << 18;  ///< of a pickle, and elements of all its containers
  static constexpr std::size_t depth = 32;                     ///< of dicts in dicts
  static constexpr std::size_t container_depth = 256;          ///< of containers in containers
  /// Values of a container when everything in it is written out as often as it occurs.
  static constexpr std::uint64_t expanded_values = std::uint64_t{1} << 20;
  static constexpr std::size_t dimensions = 8;
  static constexpr std::size_t name_bytes = 1024;
  static constexpr std::size_t key_bytes = 64;
  static constexpr std::uint64_t repeated_elements = std::uint64_t{1}
                                                     << 24;  ///< of a tensor with more elements than its storage
};

/// A kind of storage; `type` is absent where the library does not read such values.
struct torch_storage_type {
  std::string_view global, name;
  std::uint32_t bytes;
  std::optional<dtype> type;
};
/// The kinds of storages of torch.
inline constexpr torch_storage_type torch_storage_types[] = {
    {"FloatStorage", "float32", 4, dtype::f32},      {"HalfStorage", "float16", 2, dtype::f16},
    {"BFloat16Storage", "bfloat16", 2, dtype::bf16}, {"DoubleStorage", "float64", 8, dtype::f64},
    {"LongStorage", "int64", 8, dtype::i64},         {"IntStorage", "int32", 4, dtype::i32},
    {"ShortStorage", "int16", 2, dtype::i16},        {"CharStorage", "int8", 1, dtype::i8},
    {"ByteStorage", "uint8", 1, dtype::u8},          {"BoolStorage", "bool", 1, std::nullopt},
};

/// Elements in the member data/KEY of the archive.
struct torch_storage {
  const torch_storage_type* type = nullptr;
  std::string key;
  std::uint64_t elements = 0;
};

/// A view of a storage; offset and strides are in elements, and every element is inside the storage.
struct torch_view {
  std::string name;
  std::size_t storage = 0;  ///< index into torch_pickle::storages
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> shape, strides;
};

}  // namespace intaglio::io
