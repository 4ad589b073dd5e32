// SPDX-License-Identifier: MIT
// Models with latent attention from folders, from GGUF of newer and of older converters, and converted: their configs
// and values are compared with each other and with what numpy wrote (tests/runtime/latent_attention.py).
#include "intaglio/io/latent_tensors.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "gguf_image.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/io/lora_adapter.hpp"
#include "lora_files.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

/// Folder of the models, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/latent_attention.py", {(folder / "models").string()});
    return folder / "models";
  }();
  return out;
}

std::vector<float> values_of(const io::checkpoint& model, const std::string& name) {
  const io::checkpoint_tensor& tensor = model.at(name);
  std::vector<float> out(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns));
  model.read_f32(tensor, 0, tensor.stored.rows, out);
  return out;
}
/// Values of a tensor, read by a number of rows at a time and as bytes.
std::vector<float> values_by_rows(const io::checkpoint& model, const std::string& name, std::uint64_t step) {
  const io::checkpoint_tensor& tensor = model.at(name);
  const dtype type = tensor.stored.type;
  std::vector<float> out(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns));
  for (std::uint64_t row = 0; row < tensor.stored.rows; row += step) {
    const std::uint64_t some = (std::min)(step, tensor.stored.rows - row);
    std::vector<std::byte> bytes(static_cast<std::size_t>(some * io::row_bytes(type, tensor.stored.columns)));
    model.read_rows(tensor, row, some, bytes);
    io::decode_row(type, bytes,
                   std::span(out).subspan(static_cast<std::size_t>(row * tensor.stored.columns),
                                          static_cast<std::size_t>(some * tensor.stored.columns)));
  }
  return out;
}
std::vector<float> raw(const gguf_image& image, const std::string& name) {
  const bytes& data = const_cast<gguf_image&>(image).tensor_at(name).data;
  std::vector<float> out(data.size() / sizeof(float));
  std::memcpy(out.data(), data.data(), data.size());
  return out;
}
template <class Edit>
io::checkpoint edited(const std::filesystem::path& file, Edit&& edit) {
  gguf_image image = gguf_image::of(file);
  edit(image);
  const temporary_folder folder;
  return io::checkpoint::open_gguf(write_bytes(folder / "model.gguf", image.build()));
}
template <class Edit>
std::string refusal(const std::filesystem::path& file, Edit&& edit) {
  try {
    edited(file, edit);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

constexpr std::uint64_t heads = 4, first = 32, turned = 16, value = 48, latent = 64;

}  // namespace

TEST_CASE("latent_tensors: a folder, GGUF of both kinds and what is converted have one config and the same values") {
  const std::string model = GENERATE("v2_lite", "flash", "halves");
  INFO(model);
  io::convert_options options;
  options.codec = dtype::f32;
  const std::filesystem::path converted = made() / model / "converted.gguf", again = made() / model / "again.gguf";
  io::convert(made() / model, converted, options);
  io::convert(made() / model / "old.gguf", again, options);
  const io::checkpoint folder = io::checkpoint::open(made() / model);
  const decoder_config& c = folder.config();
  CHECK((c.model_type == architecture::deepseek2 && c.head_dim == first + turned && c.rotary_dim == turned));
  CHECK((c.kv_lora_rank == latent && c.v_head_dim == value && c.num_key_value_heads == 1));
  CHECK(c.q_lora_rank == (model == "v2_lite" ? 0 : 32));
  for (const char* form : {"model.gguf", "old.gguf", "converted.gguf", "again.gguf"}) {
    INFO(form);
    const io::checkpoint other = io::checkpoint::open(made() / model / form);
    for (const std::string& line : other.warnings()) CHECK_THAT(line, ContainsSubstring("draft tokens"));
    CHECK(io::config_differences(c, other.config()) == std::vector<std::string>{});
    CHECK(other.config() == c);
    REQUIRE(other.tensors().size() == folder.tensors().size());
    for (const io::checkpoint_tensor& tensor : folder.tensors()) {
      INFO(tensor.stored.name);
      CHECK(values_of(other, tensor.stored.name) == values_of(folder, tensor.stored.name));
      CHECK(values_by_rows(other, tensor.stored.name, 5) == values_of(folder, tensor.stored.name));
    }
  }
}

TEST_CASE("latent_tensors: convert writes keys and tensors as llama.cpp's converter does") {
  const std::string model = GENERATE("v2_lite", "flash", "halves");
  INFO(model);
  io::convert_options options;
  options.codec = dtype::f32;
  const temporary_folder folder;
  io::convert(made() / model, folder / "model.gguf", options);
  const io::gguf own = io::gguf::open(folder / "model.gguf"), other = io::gguf::open(made() / model / "model.gguf");
  const gguf_image one = gguf_image::of(folder / "model.gguf"), two = gguf_image::of(made() / model / "model.gguf");
  for (const gguf_image::tensor& tensor : two.tensors) {
    INFO(tensor.name);
    if (tensor.name.find("blk.3.") != std::string::npos) continue;  // drafts tokens
    const auto found = std::find_if(one.tensors.begin(), one.tensors.end(),
                                    [&](const gguf_image::tensor& each) { return each.name == tensor.name; });
    REQUIRE(found != one.tensors.end());
    CHECK((found->shape == tensor.shape && found->type == tensor.type && found->data == tensor.data));
  }
  for (const gguf_image::key& key : two.keys) {
    INFO(key.name);
    if (!key.name.starts_with("deepseek2.")) continue;
    if (key.name.ends_with(".nextn_predict_layers") || key.name.ends_with(".block_count")) continue;
    const io::gguf_value* const found = own.first().find(key.name);
    REQUIRE(found != nullptr);
    if (found->type == io::gguf_type::f32)
      CHECK(std::fabs(*own.value<float>(key.name) - *other.value<float>(key.name)) < 1e-7f);
    else if (found->type == io::gguf_type::boolean) CHECK(*own.value<bool>(key.name) == *other.value<bool>(key.name));
    else if (found->type != io::gguf_type::string)
      CHECK(*own.number<std::uint32_t>(key.name) == *other.number<std::uint32_t>(key.name));
  }
}

TEST_CASE("latent_tensors: rows are split by heads, rotated rows have NeoX's order, keys' matrices are transposed") {
  const gguf_image file = gguf_image::of(made() / "v2_lite" / "old.gguf");
  const io::checkpoint model = io::checkpoint::open(made() / "v2_lite" / "old.gguf");
  const std::vector<float> both = raw(file, "blk.1.attn_kv_b.weight"), q = raw(file, "blk.1.attn_q.weight"),
                           joint = raw(file, "blk.1.attn_kv_a_mqa.weight");
  const std::vector<float> keys = values_of(model, "blk.1.attn_k_b.weight"),
                           values = values_of(model, "blk.1.attn_v_b.weight"),
                           q_first = values_of(model, "blk.1.attn_q_nope.weight"),
                           q_turned = values_of(model, "blk.1.attn_q_rope.weight"),
                           k_turned = values_of(model, "blk.1.attn_k_rope.weight");
  const std::uint64_t hidden = model.config().hidden_size;
  for (std::uint64_t h = 0; h < heads; ++h) {
    for (std::uint64_t l = 0; l < latent; ++l)
      for (std::uint64_t n = 0; n < first; ++n)
        REQUIRE(keys[(h * latent + l) * first + n] == both[(h * (first + value) + n) * latent + l]);
    for (std::uint64_t v = 0; v < value; ++v)
      for (std::uint64_t l = 0; l < latent; ++l)
        REQUIRE(values[(h * value + v) * latent + l] == both[(h * (first + value) + first + v) * latent + l]);
    for (std::uint64_t n = 0; n < first; ++n)
      REQUIRE(q_first[(h * first + n) * hidden] == q[(h * (first + turned) + n) * hidden]);
    for (std::uint64_t i = 0; i < turned; ++i) {
      const std::uint64_t pair = i % (turned / 2) * 2 + i / (turned / 2);
      REQUIRE(q_turned[(h * turned + i) * hidden + 3] == q[(h * (first + turned) + first + pair) * hidden + 3]);
      REQUIRE(k_turned[i * hidden + 3] == joint[(latent + pair) * hidden + 3]);
    }
  }
  CHECK(model.at("blk.1.attn_kv_latent.weight").in_place());  // mapped, as before
  CHECK(model.at("blk.1.attn_v_b.weight").dimensions == 3);
}

TEST_CASE("latent_tensors: keys in blocks along the latent vector are read as f16, and a warning says so") {
  const io::checkpoint floats = io::checkpoint::open(made() / "v2_lite" / "old.gguf");
  std::vector<float> decoded;
  const io::checkpoint coded = edited(made() / "v2_lite" / "old.gguf", [&](gguf_image& image) {
    for (int layer = 0; layer < 3; ++layer) {
      gguf_image::tensor& both = image.tensor_at("blk." + std::to_string(layer) + ".attn_kv_b.weight");
      std::vector<float> values(both.data.size() / sizeof(float));
      std::memcpy(values.data(), both.data.data(), both.data.size());
      both.type = static_cast<std::uint32_t>(info(dtype::q8_0).ggml_type);
      both.data.resize(static_cast<std::size_t>(io::row_bytes(dtype::q8_0, values.size())));
      io::encode_row(dtype::q8_0, values, both.data);
      io::decode_row(dtype::q8_0, both.data, values);
      if (layer == 2) decoded = values;
    }
  });
  REQUIRE(coded.warnings().size() == 1);
  CHECK_THAT(coded.warnings()[0],
             ContainsSubstring("keys of attn_kv_b, in blocks of q8_0 along the latent vector, are computed as f16"));
  const io::checkpoint_tensor& keys = coded.at("blk.2.attn_k_b.weight");
  CHECK((keys.stored.type == dtype::f16 && !keys.in_place() && keys.stored.rows == heads * latent));
  CHECK(coded.at("blk.2.attn_v_b.weight").stored.type == dtype::q8_0);
  const std::vector<float> found = values_of(coded, "blk.2.attn_k_b.weight"),
                           values = values_of(coded, "blk.2.attn_v_b.weight");
  for (std::uint64_t h = 0; h < heads; ++h) {
    for (std::uint64_t l = 0; l < latent; ++l)
      for (std::uint64_t n = 0; n < first; ++n)
        REQUIRE(found[(h * latent + l) * first + n] ==
                f32_from_f16(f16_from_f32(decoded[(h * (first + value) + n) * latent + l])));
    for (std::uint64_t i = 0; i < value * latent; ++i)
      REQUIRE(values[h * value * latent + i] == decoded[(h * (first + value) + first) * latent + i]);
  }
  CHECK(values_by_rows(coded, "blk.2.attn_k_b.weight", 7) == found);
}

TEST_CASE("latent_tensors: matrices of both kinds in one file, and heads' matrices of two dimensions, are read once") {
  const auto file = made() / "flash" / "model.gguf";
  const gguf_image old = gguf_image::of(made() / "flash" / "old.gguf");
  const io::checkpoint usual = io::checkpoint::open(file);
  const io::checkpoint model = edited(file, [&](gguf_image& image) {
    for (int layer = 0; layer < 3; ++layer)
      image.tensors.push_back(
          const_cast<gguf_image&>(old).tensor_at("blk." + std::to_string(layer) + ".attn_kv_b.weight"));
    gguf_image::tensor& keys = image.tensor_at("blk.0.attn_k_b.weight");
    keys.shape = {first, latent * heads};
  });
  CHECK(std::any_of(model.warnings().begin(), model.warnings().end(), [](const std::string& line) {
    return line.find("3 tensors attn_kv_b are not read: attn_k_b and attn_v_b are beside them") != line.npos;
  }));
  CHECK(values_of(model, "blk.0.attn_k_b.weight") == values_of(usual, "blk.0.attn_k_b.weight"));
}

TEST_CASE("latent_tensors: GGUF's keys of latent attention are read, or refused by name") {
  const auto lite = made() / "v2_lite" / "model.gguf", flash = made() / "flash" / "model.gguf";
  const std::string prefix = "deepseek2.";
  const auto refused = [&](const std::filesystem::path& file, const std::string& key, auto value) {
    return refusal(file, [&](gguf_image& image) { image.set(prefix + key, value); });
  };
  CHECK_THAT(refusal(lite, [&](gguf_image& image) { image.remove(prefix + "rope.scaling.yarn_log_multiplier"); }),
             ContainsSubstring("yarn_log_multiplier': expected a number above 0 beside rope.scaling.type yarn"));
  CHECK_THAT(refused(lite, "expert_group_count", std::uint32_t{8}),
             ContainsSubstring("n_group: expected a number of equal groups, each with at least 2 of 8 experts"));
  CHECK_THAT(refused(lite, "expert_group_count", std::uint32_t{4}),
             ContainsSubstring("topk_group: expected less than n_group 4"));
  const io::checkpoint grouped = edited(flash, [&](gguf_image& image) {
    image.set(prefix + "expert_group_count", std::uint32_t{4});
    image.set(prefix + "expert_group_used_count", std::uint32_t{2});
  });
  CHECK((grouped.config().n_group == 4 && grouped.config().topk_group == 2));
  CHECK_THAT(refused(lite, "expert_gating_func", std::uint32_t{2}), ContainsSubstring("expected 1, a softmax"));
  CHECK_THAT(refused(flash, "expert_gating_func", std::uint32_t{1}), ContainsSubstring("expected 2, a sigmoid"));
  CHECK_THAT(refused(lite, "attention.key_length", std::uint32_t{48}),
             ContainsSubstring("attention.key_length': expected 80 as the cache's rows are wide"));
  CHECK_THAT(refused(lite, "attention.head_count_kv", std::uint32_t{2}), ContainsSubstring("expected 1 or 4"));
  CHECK_THAT(refused(lite, "attention.temperature_scale", 0.1f), ContainsSubstring("attention.temperature_scale"));
  CHECK_THAT(refusal(lite, [&](gguf_image& image) { image.remove(prefix + "attention.kv_lora_rank"); }),
             ContainsSubstring("attention.kv_lora_rank': expected a number"));
  // Files of older converters leave out what the tensors show.
  const io::checkpoint silent = edited(flash, [&](gguf_image& image) {
    image.remove(prefix + "expert_gating_func");
    image.remove(prefix + "expert_weights_norm");
  });
  CHECK((silent.config().use_expert_bias && !silent.config().norm_topk_prob));
  CHECK(score_of(silent.config()) == expert_score::logistic);
  CHECK(score_of(io::checkpoint::open(lite).config()) == expert_score::probability);
  const float scale = io::checkpoint::open(lite).config().attention_multiplier;
  CHECK(std::fabs(scale - std::pow(1 + 0.1 * 0.707 * std::log(8.0), 2) / std::sqrt(48.0)) < 1e-7);
}

TEST_CASE("latent_tensors: an adapter of such a model is refused by one sentence") {
  const temporary_folder folder;
  testing::lora_file{.tensors = {"blk.0.attn_output.weight"}, .architecture = "deepseek2"}.write(
      folder / "lora.gguf", io::gguf::open(made() / "v2_lite" / "model.gguf"));
  io::checkpoint model = io::checkpoint::open(made() / "v2_lite" / "model.gguf");
  CHECK_THROWS_WITH(io::lora_adapter(folder / "lora.gguf").merge_into(model, 1),
                    ContainsSubstring("an adapter of a model without latent attention (MLA)"));
}
