// SPDX-License-Identifier: MIT
// Adapters for tests, and the same change made in a copy of the model's file.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "intaglio/io/codec_encode.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/io/gguf_writer.hpp"

namespace intaglio::testing {

inline float lora_value(std::size_t i, std::size_t seed) {
  return static_cast<float>((i * 7919 + seed * 104'729 + i * i % 13) % 201) / 1000.f - 0.1f;
}

struct lora_file {
  std::vector<std::string> tensors{"blk.0.attn_q.weight", "blk.1.ffn_down.weight", "blk.1.attn_v.weight",
                                   "output.weight"};
  std::uint64_t rank = 4;
  float alpha = 8;
  std::string architecture = "llama";
  dtype type = dtype::f32;

  /// @param edit may set keys and declare tensors of its own, which have no bytes that matter
  void write(const std::filesystem::path& path, const io::gguf& model,
             const std::function<void(io::gguf_writer&)>& edit = {}) const {
    io::gguf_writer out(path);
    out.set("general.type", "adapter");
    out.set("adapter.type", "lora");
    out.set("general.architecture", architecture);
    out.set("adapter.lora.alpha", alpha);
    for (const std::string& each : tensors) {
      const io::gguf_tensor& of = *model.find_tensor(each);
      out.add_tensor(each + ".lora_a", type, std::vector<std::uint64_t>{of.columns(), rank});
      out.add_tensor(each + ".lora_b", type, std::vector<std::uint64_t>{rank, of.rows()});
    }
    if (edit) edit(out);
    out.begin();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      for (const bool second : {false, true}) {
        const std::vector<float> values = part(*model.find_tensor(tensors[i]), i, second);
        std::vector<std::byte> bytes(static_cast<std::size_t>(io::row_bytes(type, values.size())));
        io::encode_row(type, values, bytes);
        out.write(bytes);
      }
    out.finish();
  }
  std::vector<float> part(const io::gguf_tensor& of, std::size_t which, bool second) const {
    std::vector<float> out(static_cast<std::size_t>(rank * (second ? of.rows() : of.columns())));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = lora_value(i, 2 * which + (second ? 1 : 0));
    return out;
  }
};

/// A copy of a model's file whose matrices have what the adapter adds, rounded as their codec does.
inline void write_merged(const std::filesystem::path& path, const std::filesystem::path& model, const lora_file& of,
                         float scale) {
  std::ifstream in(model, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const io::gguf parsed = io::gguf::open(model);
  for (std::size_t t = 0; t < of.tensors.size(); ++t) {
    const io::gguf_tensor& to = *parsed.find_tensor(of.tensors[t]);
    const std::vector<float> a = of.part(to, t, false), b = of.part(to, t, true);
    const auto columns = static_cast<std::size_t>(to.columns());
    const auto row_bytes = static_cast<std::size_t>(io::row_bytes(to.type, columns));
    std::vector<float> row(columns);
    for (std::size_t r = 0; r < to.rows(); ++r) {
      const auto its_row = std::as_writable_bytes(std::span(bytes))
                               .subspan(static_cast<std::size_t>(to.offset) + r * row_bytes, row_bytes);
      io::decode_row(to.type, its_row, row);
      for (std::size_t k = 0; k < of.rank; ++k) {
        const float weight = scale * (of.alpha / static_cast<float>(of.rank)) * b[r * of.rank + k];
        for (std::size_t i = 0; i < columns; ++i) row[i] += weight * a[k * columns + i];
      }
      io::encode_row(to.type, row, its_row);
    }
  }
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace intaglio::testing
