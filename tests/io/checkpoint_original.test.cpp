// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint_original.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <map>

#include "intaglio/io/check.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "torch_image.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using namespace intaglio::io;

namespace {

/// A model of one layer whose tensors are f32: element i of a tensor is a function of the tensor's name and of i.
struct original {
  temporary_folder made;
  std::string params = R"({"dim":8,"n_layers":1,"n_heads":2,"n_kv_heads":1,"hidden_dim":12,"vocab_size":10,"norm_eps":1e-5})";
  std::map<std::string, std::vector<std::uint64_t>> shapes{
      {"tok_embeddings.weight", {10, 8}}, {"norm.weight", {8}}, {"output.weight", {10, 8}}, {"layers.0.attention_norm.weight", {8}}, {"layers.0.ffn_norm.weight", {8}},
      {"layers.0.attention.wq.weight", {8, 8}}, {"layers.0.attention.wk.weight", {4, 8}}, {"layers.0.attention.wv.weight", {4, 8}}, {"layers.0.attention.wo.weight", {8, 8}},
      {"layers.0.feed_forward.w1.weight", {12, 8}}, {"layers.0.feed_forward.w2.weight", {8, 12}}, {"layers.0.feed_forward.w3.weight", {12, 8}}};

  static float value(const std::string& name, std::uint64_t row, std::uint64_t column) {
    return static_cast<float>(std::hash<std::string>{}(name) % 1000) + static_cast<float>(row) + static_cast<float>(column) / 64.f;
  }
  /// Cut as tensor parallelism cuts: embedding, wo and w2 by columns, the others by rows.
  void write(std::uint64_t shards, const std::function<void(std::uint64_t, std::vector<std::pair<std::string, std::string>>&, std::vector<std::pair<std::string, std::string>>&)>& edit = {}) const {
    write_text(made / "params.json", params);
    for (std::uint64_t shard = 0; shard < shards; ++shard) {
      std::vector<std::pair<std::string, std::string>> tensors, storages;
      for (const auto& [name, shape] : shapes) {
        const bool matrix = shape.size() == 2, by_columns = matrix && (name.starts_with("tok") || name.find("wo") != name.npos || name.find("w2") != name.npos);
        std::uint64_t rows = matrix ? shape[0] : 1, columns = shape.back(), row0 = 0, column0 = 0;
        if (by_columns) columns /= shards, column0 = shard * columns;
        else if (matrix) rows /= shards, row0 = shard * rows;
        std::string data;
        for (std::uint64_t r = 0; r < rows; ++r)
          for (std::uint64_t c = 0; c < columns; ++c) data += packed(value(name, row0 + r, column0 + c));
        const std::string key = std::to_string(storages.size());
        const auto r = static_cast<std::int64_t>(rows), c = static_cast<std::int64_t>(columns);
        const auto storage = pickled::storage("FloatStorage", key, r * c);
        tensors.emplace_back(name, matrix ? pickled::tensor(storage, 0, {r, c}, {c, 1}) : pickled::tensor(storage, 0, {c}, {1}));
        storages.emplace_back(key, data);
      }
      if (edit) edit(shard, tensors, storages);
      write_bytes(made / ("consolidated.0" + std::to_string(shard) + ".pth"), torch_image(pickled::file(pickled::dict(tensors)), storages).build());
    }
  }
  std::string refusal() const {
    try {
      checkpoint::open(made.path());
    } catch (const intaglio::file_error& problem) {
      return problem.what();
    }
    return "accepted";
  }
};

std::vector<float> all(const checkpoint& model, const std::string& name) {
  const auto& tensor = model.at(name);
  std::vector<float> out(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns));
  model.read_f32(tensor, 0, tensor.stored.rows, out);
  return out;
}

}  // namespace

TEST_CASE("checkpoint_original: shards are joined by rows or by columns, and heads come in NeoX order") {
  for (const std::uint64_t shards : {1, 2}) {
    CAPTURE(shards);
    const original files;
    files.write(shards);
    const auto model = checkpoint::open(files.made.path());
    CHECK(model.tensors().size() == 12);
    CHECK(model.warnings() == std::vector<std::string>{"neither tokenizer.json nor tokenizer.model in this folder"});
    for (const auto& [name, shape] : files.shapes) {
      INFO(name);
      const std::string as = *gguf_name_of_original(name);
      const auto& tensor = model.at(as);
      CHECK(tensor.rows_in_pairs == (as.ends_with("attn_q.weight") || as.ends_with("attn_k.weight") ? 4 : 0));
      const auto got = all(model, as);
      for (std::uint64_t r = 0; r < tensor.stored.rows; ++r)
        for (std::uint64_t c = 0; c < tensor.stored.columns; ++c)
          REQUIRE(got[static_cast<std::size_t>(r * tensor.stored.columns + c)] == original::value(name, tensor.rows_in_pairs != 0 ? row_in_pairs(4, r) : r, c));
      std::vector<float> raw(static_cast<std::size_t>(tensor.stored.columns)), values(raw.size());
      model.read_rows(tensor, tensor.stored.rows - 1, 1, std::as_writable_bytes(std::span(raw)));
      model.read_f32(tensor, tensor.stored.rows - 1, 1, values);
      CHECK(raw == values);
    }
    CHECK(check(files.made.path()).ok());
  }
}

TEST_CASE("checkpoint_original: what params.json leaves out is in the tensors, and an engraved context may be another") {
  original files;
  files.params = R"({"dim":8,"n_layers":1,"n_heads":2,"n_kv_heads":1,"hidden_dim":12,"vocab_size":-1,"norm_eps":1e-5})";
  files.shapes.erase("output.weight");
  files.shapes["rope.freqs"] = {2};
  files.write(2);
  const auto model = checkpoint::open(files.made.path());
  CHECK((model.config().vocab_size == 10 && model.config().tie_word_embeddings && model.find("output.weight") == nullptr));
  auto engraved = model.config();
  engraved.max_position_embeddings = 512;
  CHECK(model.differences(engraved).empty());
  engraved.vocab_size = 11;
  CHECK(model.differences(engraved) == std::vector<std::string>{"vocab_size: engraved 11, file 10"});
}

TEST_CASE("checkpoint_original: tensors with strides are read by them") {
  const original files;
  // wv as it would be after a transposition: the same values, column after column.
  files.write(1, [](std::uint64_t, auto& tensors, auto& storages) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].first == "layers.0.attention.wv.weight") {
        std::string data;
        for (std::uint64_t c = 0; c < 8; ++c)
          for (std::uint64_t r = 0; r < 4; ++r) data += packed(original::value(tensors[i].first, r, c));
        storages[i].second = data;
        tensors[i].second = pickled::tensor(pickled::storage("FloatStorage", storages[i].first, 32), 0, {4, 8}, {1, 4});
      }
  });
  const auto model = checkpoint::open(files.made / "consolidated.00.pth");
  CHECK_FALSE(model.at("blk.0.attn_v.weight").in_place());
  const auto got = all(model, "blk.0.attn_v.weight");
  for (std::uint64_t i = 0; i < 32; ++i) REQUIRE(got[static_cast<std::size_t>(i)] == original::value("layers.0.attention.wv.weight", i / 8, i % 8));
}

TEST_CASE("checkpoint_original: shards that do not belong together are refused") {
  original files;
  files.write(2, [](std::uint64_t shard, auto& tensors, auto& storages) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (shard == 1 && tensors[i].first == "norm.weight") storages[i].second[5] = '\x33';
  });
  CHECK_THAT(files.refusal(), ContainsSubstring("norm.weight: expected the same values in all shards, found others in"));
  files.write(2, [](std::uint64_t shard, auto& tensors, auto&) {
    if (shard == 1) std::erase_if(tensors, [](const auto& each) { return each.first == "output.weight"; });
  });
  CHECK_THAT(files.refusal(), ContainsSubstring("output.weight: expected in each of 2 shards, found in 1"));
  files.write(2, [](std::uint64_t shard, auto& tensors, auto& storages) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (shard == 1 && tensors[i].first == "output.weight") tensors[i].second = pickled::tensor(pickled::storage("FloatStorage", storages[i].first, 40), 0, {4, 8}, {8, 1});
  });
  CHECK_THAT(files.refusal(), ContainsSubstring("output.weight: expected alike in all shards, found [5, 8] and [4, 8] of float32"));
  files.write(2);
  std::filesystem::rename(files.made / "consolidated.01.pth", files.made / "consolidated.02.pth");
  CHECK_THAT(files.refusal(), ContainsSubstring("shards are missing: expected 2 from consolidated.00.pth on, found consolidated.00.pth is the last in order"));
  std::filesystem::remove(files.made / "consolidated.02.pth");
  CHECK_THAT(files.refusal(), ContainsSubstring("shape of layers.0.feed_forward.w1.weight: expected [12, 8], found [6, 8]"));
  std::filesystem::remove(files.made / "consolidated.00.pth");
  CHECK_THAT(files.refusal(), ContainsSubstring("no weights in this folder: expected consolidated.00.pth, found none"));
}

TEST_CASE("checkpoint_original: one of PyTorch's files stands for its folder, if it is of it") {
  const original files;
  files.write(1);
  std::filesystem::copy_file(files.made / "consolidated.00.pth", files.made / "other.pth");
  CHECK_THROWS_WITH(checkpoint::open(files.made / "other.pth"), ContainsSubstring("other.pth: none of its folder's weights: expected ") && ContainsSubstring("consolidated.00.pth, found another file"));
  std::filesystem::remove(files.made / "params.json");
  CHECK_THROWS_WITH(checkpoint::open(files.made / "consolidated.00.pth"), ContainsSubstring("PyTorch's file without a config: expected config.json or params.json beside it, found neither"));
}
