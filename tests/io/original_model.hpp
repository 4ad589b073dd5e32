// SPDX-License-Identifier: MIT
// A tiny model of Meta's and Mistral's own form, written by hand in any number of shards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "torch_image.hpp"

/// A model of one layer whose tensors are f32: element i of a tensor is a function of the tensor's name and of i.
struct original_model {
  temporary_folder made;
  std::string params =
      R"({"dim":8,"n_layers":1,"n_heads":2,"n_kv_heads":1,"hidden_dim":12,"vocab_size":10,"norm_eps":1e-5})";
  std::map<std::string, std::vector<std::uint64_t>> shapes{{"tok_embeddings.weight", {10, 8}},
                                                           {"norm.weight", {8}},
                                                           {"output.weight", {10, 8}},
                                                           {"layers.0.attention_norm.weight", {8}},
                                                           {"layers.0.ffn_norm.weight", {8}},
                                                           {"layers.0.attention.wq.weight", {8, 8}},
                                                           {"layers.0.attention.wk.weight", {4, 8}},
                                                           {"layers.0.attention.wv.weight", {4, 8}},
                                                           {"layers.0.attention.wo.weight", {8, 8}},
                                                           {"layers.0.feed_forward.w1.weight", {12, 8}},
                                                           {"layers.0.feed_forward.w2.weight", {8, 12}},
                                                           {"layers.0.feed_forward.w3.weight", {12, 8}}};

  static float value(const std::string& name, std::uint64_t row, std::uint64_t column) {
    return static_cast<float>(std::hash<std::string>{}(name) % 1000) + static_cast<float>(row) +
           static_cast<float>(column) / 64.f;
  }
  /// Cut as tensor parallelism cuts: embedding, wo and w2 by columns, the others by rows.
  void write(std::uint64_t shards,
             const std::function<void(std::uint64_t, std::vector<std::pair<std::string, std::string>>&,
                                      std::vector<std::pair<std::string, std::string>>&)>& edit = {}) const {
    write_text(made / "params.json", params);
    for (std::uint64_t shard = 0; shard < shards; ++shard) {
      std::vector<std::pair<std::string, std::string>> tensors, storages;
      for (const auto& [name, shape] : shapes) {
        const bool matrix = shape.size() == 2,
                   by_columns = matrix && (name.starts_with("tok") || name.find("wo") != name.npos ||
                                           name.find("w2") != name.npos);
        std::uint64_t rows = matrix ? shape[0] : 1, columns = shape.back(), row0 = 0, column0 = 0;
        if (by_columns) columns /= shards, column0 = shard * columns;
        else if (matrix) rows /= shards, row0 = shard * rows;
        std::string data;
        for (std::uint64_t r = 0; r < rows; ++r)
          for (std::uint64_t c = 0; c < columns; ++c) data += packed(value(name, row0 + r, column0 + c));
        const std::string key = std::to_string(storages.size());
        const auto r = static_cast<std::int64_t>(rows), c = static_cast<std::int64_t>(columns);
        const auto storage = pickled::storage("FloatStorage", key, r * c);
        tensors.emplace_back(
            name, matrix ? pickled::tensor(storage, 0, {r, c}, {c, 1}) : pickled::tensor(storage, 0, {c}, {1}));
        storages.emplace_back(key, data);
      }
      if (edit) edit(shard, tensors, storages);
      write_bytes(made / ("consolidated.0" + std::to_string(shard) + ".pth"),
                  torch_image(pickled::file(pickled::dict(tensors)), storages).build());
    }
  }
};
