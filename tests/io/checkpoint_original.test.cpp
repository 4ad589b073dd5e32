// SPDX-License-Identifier: MIT
#include "intaglio/io/checkpoint_original.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "intaglio/io/check.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "original_model.hpp"
#include "shared.hpp"

using Catch::Matchers::ContainsSubstring;
using intaglio::dtype;
using namespace intaglio::io;

namespace {

std::string refusal(const original_model& files) {
  try {
    checkpoint::open(files.made.path());
  } catch (const intaglio::file_error& problem) { return whole_text(problem); }
  return "accepted";
}
std::vector<float> all(const checkpoint& model, const std::string& name) {
  const auto& tensor = model.at(name);
  std::vector<float> out(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns));
  model.read_f32(tensor, 0, tensor.stored.rows, out);
  return out;
}

}  // namespace

TEST_CASE("checkpoint_original: shards are joined by rows or by columns, and heads come in NeoX order") {
  for (const std::uint64_t shards : {std::uint64_t{1}, std::uint64_t{2}}) {
    CAPTURE(shards);
    const original_model files;
    files.write(shards);
    const auto model = checkpoint::open(files.made.path());
    CHECK(model.tensors().size() == 12);
    CHECK(model.warnings() ==
          std::vector<std::string>{model.path() + ": neither tokenizer.json nor tokenizer.model in this folder"});
    for (const auto& [name, shape] : files.shapes) {
      INFO(name);
      const std::string as = *gguf_name_of_original(name);
      const auto& tensor = model.at(as);
      CHECK(tensor.rows_in_pairs == (as.ends_with("attn_q.weight") || as.ends_with("attn_k.weight") ? 4 : 0));
      const auto got = all(model, as);
      for (std::uint64_t r = 0; r < tensor.stored.rows; ++r)
        for (std::uint64_t c = 0; c < tensor.stored.columns; ++c)
          REQUIRE(got[static_cast<std::size_t>(r * tensor.stored.columns + c)] ==
                  original_model::value(name, tensor.rows_in_pairs != 0 ? row_in_pairs(4, r) : r, c));
      std::vector<float> raw(static_cast<std::size_t>(tensor.stored.columns)), values(raw.size());
      model.read_rows(tensor, tensor.stored.rows - 1, 1, std::as_writable_bytes(std::span(raw)));
      model.read_f32(tensor, tensor.stored.rows - 1, 1, values);
      CHECK(raw == values);
    }
    CHECK(check(files.made.path()).ok());
  }
}

TEST_CASE(
    "checkpoint_original: what params.json leaves out is in the tensors, and an engraved context may be another") {
  original_model files;
  files.params = R"({"dim":8,"n_layers":1,"n_heads":2,"n_kv_heads":1,"hidden_dim":12,"vocab_size":-1,"norm_eps":1e-5})";
  files.shapes.erase("output.weight");
  files.shapes["rope.freqs"] = {2};
  files.write(2);
  const auto model = checkpoint::open(files.made.path());
  CHECK((model.config().vocab_size == 10 && model.config().tie_word_embeddings &&
         model.find("output.weight") == nullptr));
  auto engraved = model.config();
  engraved.max_position_embeddings = 512;
  CHECK(model.differences(engraved).empty());
  engraved.vocab_size = 11;
  CHECK(model.differences(engraved) == std::vector<std::string>{"vocab_size: engraved 11, file 10"});
}

TEST_CASE("checkpoint_original: the tokenizer beside the weights, if it is one") {
  original_model files;
  files.write(1);
  write_text(files.made / "tokenizer.model", "IQ== 0\nIg== 1\n");
  CHECK_THAT(refusal(files),
             ContainsSubstring("tokenizer.model: offset 0x0: ranks of the list: expected 128000 as Llama 3 has or "
                               "151329 as GLM-4 has (for another model put its tokenizer.json beside it), found 2"));
  std::filesystem::copy_file(shared("conformance/mistral-tiny/orig/tokenizer.model"), files.made / "tokenizer.model",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(
      refusal(files),
      ContainsSubstring("tokenizer.model: more tokens than the embedding has rows: expected at most 10, found 1000"));
  write_text(files.made / "tokenizer.model", "\x0B");
  CHECK_THAT(refusal(files), ContainsSubstring("tokenizer.model: offset 0x1: protobuf: wire type of field 1"));
}

TEST_CASE("checkpoint_original: tensors with strides are read by them") {
  const original_model files;
  // wv as it would be after a transposition: the same values, column after column.
  files.write(1, [](std::uint64_t, auto& tensors, auto& storages) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].first == "layers.0.attention.wv.weight") {
        std::string data;
        for (std::uint64_t c = 0; c < 8; ++c)
          for (std::uint64_t r = 0; r < 4; ++r) data += packed(original_model::value(tensors[i].first, r, c));
        storages[i].second = data;
        tensors[i].second = pickled::tensor(pickled::storage("FloatStorage", storages[i].first, 32), 0, {4, 8}, {1, 4});
      }
  });
  const auto model = checkpoint::open(files.made / "consolidated.00.pth");
  CHECK_FALSE(model.at("blk.0.attn_v.weight").in_place());
  const auto got = all(model, "blk.0.attn_v.weight");
  for (std::uint64_t i = 0; i < 32; ++i)
    REQUIRE(got[static_cast<std::size_t>(i)] == original_model::value("layers.0.attention.wv.weight", i / 8, i % 8));
}

TEST_CASE("checkpoint_original: shards that do not belong together are refused") {
  original_model files;
  files.write(2, [](std::uint64_t shard, auto& tensors, auto& storages) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (shard == 1 && tensors[i].first == "norm.weight") storages[i].second[5] = '\x33';
  });
  CHECK_THAT(refusal(files), ContainsSubstring("norm.weight: expected the same values in all shards, found others in"));
  files.write(2, [](std::uint64_t shard, auto& tensors, auto&) {
    if (shard == 1) std::erase_if(tensors, [](const auto& each) { return each.first == "output.weight"; });
  });
  CHECK_THAT(refusal(files), ContainsSubstring("output.weight: expected in each of 2 shards, found in 1"));
  files.write(2, [](std::uint64_t shard, auto& tensors, auto& storages) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (shard == 1 && tensors[i].first == "output.weight")
        tensors[i].second = pickled::tensor(pickled::storage("FloatStorage", storages[i].first, 40), 0, {4, 8}, {8, 1});
  });
  CHECK_THAT(refusal(files),
             ContainsSubstring("output.weight: expected alike in all shards, found [5, 8] and [4, 8] of float32"));
  files.write(2);
  std::filesystem::rename(files.made / "consolidated.01.pth", files.made / "consolidated.02.pth");
  CHECK_THAT(refusal(files), ContainsSubstring("shards are missing: expected 2 from consolidated.00.pth on, found "
                                               "consolidated.00.pth is the last in order"));
  std::filesystem::remove(files.made / "consolidated.02.pth");
  CHECK_THAT(refusal(files),
             ContainsSubstring("shape of layers.0.feed_forward.w1.weight: expected [12, 8], found [6, 8]"));
  std::filesystem::remove(files.made / "consolidated.00.pth");
  CHECK_THAT(refusal(files), ContainsSubstring("no weights in this folder: expected consolidated.00.pth, found none"));
}

TEST_CASE("checkpoint_original: one of PyTorch's files stands for its folder, if it is of it") {
  const original_model files;
  files.write(1);
  std::filesystem::copy_file(files.made / "consolidated.00.pth", files.made / "other.pth");
  CHECK_THROWS_WITH(checkpoint::open(files.made / "other.pth"),
                    ContainsSubstring("other.pth: none of its folder's weights: expected ") &&
                        ContainsSubstring("consolidated.00.pth, found another file"));
  std::filesystem::remove(files.made / "params.json");
  CHECK_THROWS_WITH(checkpoint::open(files.made / "consolidated.00.pth"),
                    ContainsSubstring("weights without a config: expected config.json or params.json beside the file"));
}

TEST_CASE("checkpoint_original: Mixtral's experts become one tensor a kind, whichever way they were cut") {
  struct mixture : original_model {
    mixture() {
      params.insert(params.size() - 1, R"(,"moe":{"num_experts":3,"num_experts_per_tok":2})");
      for (const char* name :
           {"layers.0.feed_forward.w1.weight", "layers.0.feed_forward.w2.weight", "layers.0.feed_forward.w3.weight"})
        shapes.erase(name);
      shapes["layers.0.feed_forward.gate.weight"] = {3, 8};
      for (const char* number : {"0", "1", "2"}) {
        const std::string front = std::string("layers.0.feed_forward.experts.") + number;
        shapes[front + ".w1.weight"] = shapes[front + ".w3.weight"] = {12, 8};
        shapes[front + ".w2.weight"] = {8, 12};
      }
    }
  };
  mixture files;
  files.write(1);
  const auto model = checkpoint::open(files.made.path());
  CHECK((model.config().num_local_experts == 3 && model.config().num_experts_per_tok == 2));
  const std::pair<const char*, const char*> kinds[] = {
      {"ffn_gate_exps", "w1"}, {"ffn_up_exps", "w3"}, {"ffn_down_exps", "w2"}};
  const auto expect_experts = [&](const checkpoint& of, std::uint64_t experts) {
    for (const auto& [gguf, own] : kinds) {
      INFO(gguf);
      const auto& tensor = of.at("blk.0." + std::string(gguf) + ".weight");
      CHECK(tensor.dimensions == 3);
      const std::uint64_t rows = tensor.stored.rows / experts;
      const auto got = all(of, "blk.0." + std::string(gguf) + ".weight");
      for (std::uint64_t r = 0; r < tensor.stored.rows; ++r)
        for (std::uint64_t c = 0; c < tensor.stored.columns; ++c)
          REQUIRE(
              got[static_cast<std::size_t>(r * tensor.stored.columns + c)] ==
              original_model::value("layers.0.feed_forward.experts." + std::to_string(r / rows) + "." + own + ".weight",
                                    r % rows, c));
    }
  };
  expect_experts(model, 3);
  CHECK(check(files.made.path()).ok());
  files.shapes["layers.0.feed_forward.gate.weight"] = {4, 8};  // halves of it are taken from this shape
  files.params.replace(files.params.find("\"num_experts\":3"), 15, "\"num_experts\":4");
  for (const char* own : {"w1", "w2", "w3"})
    files.shapes["layers.0.feed_forward.experts.3." + std::string(own) + ".weight"] =
        files.shapes["layers.0.feed_forward.experts.0." + std::string(own) + ".weight"];
  files.write(2);
  const auto cut = checkpoint::open(files.made.path());
  CHECK(cut.at("blk.0.ffn_down_exps.weight").stored.rows == 32);
  expect_experts(cut, 4);

  mixture missing;
  missing.shapes.erase("layers.0.feed_forward.experts.1.w2.weight");
  missing.write(1);
  CHECK_THAT(refusal(missing), ContainsSubstring("experts of blk.0.ffn_down_exps.weight: expected 3, found 2"));
  mixture wide;
  wide.shapes["layers.0.feed_forward.experts.1.w2.weight"] = {8, 13};
  wide.write(1);
  CHECK_THAT(refusal(wide),
             ContainsSubstring("shape of layers.0.feed_forward.experts.1.w2.weight: expected [8, 12], found [8, 13]"));
  mixture more;
  more.shapes["layers.0.feed_forward.experts.3.w2.weight"] = {8, 12};
  more.write(1);
  CHECK_THAT(refusal(more), ContainsSubstring("not part of the model: layers.0.feed_forward.experts.3.w2.weight"));
}
