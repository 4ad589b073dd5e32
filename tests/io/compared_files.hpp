// SPDX-License-Identifier: MIT
// Compares tensors of files for the tests of io/convert.hpp.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string_view>
#include <vector>

#include "files.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/gguf.hpp"

namespace compared_files {

using namespace intaglio::io;

inline bytes data_of(const gguf& file, const gguf_tensor& tensor) {
  bytes out(static_cast<std::size_t>(tensor.bytes));
  file.first().file().read(tensor.offset, out);
  return out;
}
inline bytes data_of(const gguf& file, std::string_view name) { return data_of(file, *file.find_tensor(name)); }

/// Every matrix of two models in codes and scale, every norm in values.
inline void expect_same(const std::filesystem::path& one, const std::filesystem::path& two) {
  const auto a = checkpoint::open(one), b = checkpoint::open(two);
  CHECK(a.tensors().size() == b.tensors().size());
  for (const auto& tensor : a.tensors()) {
    INFO(tensor.stored.name);
    const auto& other = b.at(tensor.stored.name);
    const auto size = static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns);
    if (tensor.role == tensor_role::matrix && a.config().model_type == intaglio::architecture::bitnet) {
      std::vector<std::int8_t> x(size), y(size);
      const auto from = a.ternary(tensor), to = b.ternary(other);
      CHECK(from.scale() == to.scale());
      from.rows(0, tensor.stored.rows, x);
      to.rows(0, tensor.stored.rows, y);
      CHECK((x == y));
    } else {
      std::vector<float> x(size), y(size);
      a.read_f32(tensor, 0, tensor.stored.rows, x);
      b.read_f32(other, 0, tensor.stored.rows, y);
      CHECK((x == y));
    }
  }
}

}  // namespace compared_files
