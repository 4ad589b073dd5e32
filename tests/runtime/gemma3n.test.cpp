// SPDX-License-Identifier: MIT
// Gemma 3n, from a folder, from GGUF and converted, against numpy (gemma3n.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/convert.hpp"
#include "intaglio/plan/verify.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "io/gguf_image.hpp"
#include "numpy_models.hpp"
#include "python.hpp"
#include "runtime/batch_and_alone.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Folder of the model and its logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/gemma3n.py", {(folder / "model").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    io::convert(folder / "model", folder / "model/converted.gguf", options);
    io::convert(folder / "model/converted.gguf", folder / "model/again.gguf", options);
    options.codec = dtype::q8_0;
    io::convert(folder / "model/model.gguf", folder / "model/coded.gguf", options);
    return folder / "model";
  }();
  return out;
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "gemma3n", target, 256, shape);
}

/// The distance from 1 of the smallest cosine between two tokens' logits, and the largest difference.
struct apart {
  double largest = 0, angle = 0;
};
apart difference(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  apart out;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    out.largest = (std::max)(out.largest, std::abs(a - b));
    ab += a * b, aa += a * a, bb += b * b;
  }
  out.angle = 1 - ab / std::sqrt(aa * bb);
  return out;
}

}  // namespace

TEST_CASE("a Gemma 3n gives numpy's logits, decoded and in chunks", "[once]") {
  const std::string form = GENERATE("", "model.gguf", "converted.gguf", "again.gguf");
  INFO(form);
  const io::checkpoint file = io::checkpoint::open(made() / form);
  const bool folder = form.empty();  // has tensors of towers
  REQUIRE(file.warnings().size() == (folder ? 2 : form == "model.gguf" ? 1 : 0));
  if (folder) CHECK_THAT(file.warnings().front(), ContainsSubstring("2 tensors of the vision model are not read"));
  if (!file.warnings().empty())
    CHECK_THAT(file.warnings().back(),
               ContainsSubstring("18 tensors of layers that use another layer's keys and values are ignored"));
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = planned(file, narrow ? plan::profiles::exact : plan::profiles::cpu);
  CHECK(plan::verify(plan.table()).empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  for (const auto& [prompt, chunk] : {std::pair{"p17", 0u}, {"p100", 0u}, {"p100", 7u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    session.reset();
    const apart found = difference(session.logits(prompt_of(made(), prompt), chunk).logits,
                                   read_floats(made() / (std::string(prompt) + ".logits")));
    CHECK(found.largest < (narrow ? 2e-2 : 1e-3));
  }
}

TEST_CASE("a Gemma 3n in Q8_0 stays near numpy's logits", "[once]") {
  const io::checkpoint file = io::checkpoint::open(made() / "coded.gguf");
  CHECK(file.find("blk.0.ffn_gate.weight")->stored.type == dtype::q8_0);
  CHECK(file.find("altup_proj.1.weight")->stored.type == dtype::q8_0);
  CHECK(file.find("blk.0.altup_router.weight")->stored.type == dtype::f32);
  const plan::planned plan = planned(file, plan::profiles::cpu);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  const apart found = difference(session.logits(prompt_of(made(), "p17")).logits, read_floats(made() / "p17.logits"));
  CHECK(found.largest > 1e-4);
  CHECK(found.angle < 0.01);
}

TEST_CASE("a Gemma 3n's folder, its GGUF and what is converted have one config", "[once]") {
  const decoder_config folder = io::checkpoint::open(made()).config();
  for (const char* form : {"model.gguf", "converted.gguf", "coded.gguf"}) {
    INFO(form);
    const decoder_config found = io::checkpoint::open(made() / form).config();
    for (const std::string& each : io::config_differences(folder, found)) FAIL_CHECK(each);
    CHECK(found == folder);
  }
  CHECK(folder.sparse_layers == layer_set::all_but(4));
  CHECK(std::abs(folder.sparse_deviations - 0.84162f) < 1e-5f);
}

TEST_CASE("sessions of a Gemma 3n in a batch draw what they draw alone", "[runtime]") {
  io::checkpoint file = io::checkpoint::open(made());
  plan::planned plan = planned(file, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
}

TEST_CASE("a Gemma 3n says with drafts what it says without", "[runtime]") {
  const io::checkpoint file = io::checkpoint::open(made());
  const plan::planned plan = planned(file, plan::profiles::cpu);
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back(20 + i % 7);
  const auto said = [&](std::uint32_t drafts) {
    session.reset();
    return session.generate(ids, {.max_tokens = 32, .stop_at_end = false, .prompt_lookup_num_tokens = drafts});
  };
  const generation plain = said(0), drafted = said(4);
  CHECK(plain.ids == drafted.ids);
  CHECK(drafted.timings.drafted_tokens != 0);
}

TEST_CASE("what a config of a Gemma 3n states fits together, or is refused by its key", "[once]") {
  const temporary_folder folder;
  const auto refusal = [&](const auto& change) {
    std::ifstream in(made() / "config.json");
    nlohmann::json root = nlohmann::json::parse(in);
    change(root["text_config"]);
    std::ofstream(folder / "config.json") << root;
    try {
      (void)io::read_hf_config(folder / "config.json");
    } catch (const file_error& error) {
      CHECK(std::string_view(error.what()).size() <= 400);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto with = [&](const char* key, const nlohmann::json& value) {
    return refusal([&](nlohmann::json& text) { text[key] = value; });
  };
  CHECK(refusal([](nlohmann::json&) {}) == "accepted");
  std::vector<int> widths(12, 128);
  CHECK(with("intermediate_size", 128) == "accepted");
  widths[5] = 64;
  CHECK_THAT(with("intermediate_size", widths), ContainsSubstring("intermediate_size[5]") &&
                                                    ContainsSubstring("128 as in layer 0: one width for all layers"));
  widths.pop_back();
  CHECK_THAT(with("intermediate_size", widths), ContainsSubstring("12 numbers as num_hidden_layers, found 11"));
  CHECK_THAT(with("altup_active_idx", 1), ContainsSubstring("altup_active_idx") && ContainsSubstring("expected 0"));
  CHECK_THAT(with("altup_correct_scale", false), ContainsSubstring("altup_correct_scale"));
  CHECK_THAT(with("altup_coef_clip", 100.0), ContainsSubstring("expected 120, found 100"));
  CHECK_THAT(with("altup_coef_clip", nullptr), ContainsSubstring("expected 120, found null"));
  CHECK_THAT(with("altup_num_inputs", 1), ContainsSubstring("altup_num_inputs: expected 2 to 8, found 1"));
  CHECK_THAT(with("laurel_rank", 0), ContainsSubstring("laurel_rank: expected 1 to"));
  CHECK_THAT(with("hidden_size_per_layer_input", 0), ContainsSubstring("hidden_size_per_layer_input"));
  CHECK_THAT(with("vocab_size_per_layer_input", 321), ContainsSubstring("at most vocab_size 320, found 321"));
  CHECK_THAT(with("activation_sparsity_pattern", std::vector<double>(11, 0.5)),
             ContainsSubstring("12 numbers, found 11"));
  std::vector<double> parts(12, 0.5);
  parts[3] = 0.75;
  CHECK_THAT(with("activation_sparsity_pattern", parts),
             ContainsSubstring("activation_sparsity_pattern[3]") && ContainsSubstring("0, or 0.5 as in other layers"));
  parts[3] = 1;
  CHECK_THAT(with("activation_sparsity_pattern", parts), ContainsSubstring("a number from 0, below 1"));
  CHECK_THAT(with("attn_logit_softcapping", 50.0), ContainsSubstring("attn_logit_softcapping"));
}

TEST_CASE("what a GGUF of a Gemma 3n states of its layers fits together, or is refused by its key", "[once]") {
  const temporary_folder folder;
  const auto refusal = [&](const std::string& key, std::uint32_t type, const bytes& value) {
    gguf_image image = gguf_image::of(made() / "model.gguf");
    for (auto& each : image.keys)
      if (each.name == key) each = {key, type, value};
    try {
      (void)io::checkpoint::open(write_bytes(folder / "changed.gguf", image.build()));
    } catch (const file_error& error) {
      CHECK(std::string_view(error.what()).size() <= 400);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto number = [](std::uint32_t value) { return bytes_of(value); };
  const auto list = [](const std::vector<float>& values) {
    bytes out = bytes_of(std::uint32_t{6});
    append(out, std::uint64_t{values.size()});
    for (const float each : values) append(out, each);
    return out;
  };
  CHECK(refusal("gemma3n.attention.shared_kv_layers", 4, number(6)) == "accepted");
  CHECK_THAT(refusal("gemma3n.attention.shared_kv_layers", 6, bytes_of(5.5f)),
             ContainsSubstring("a whole number below gemma3n.block_count 12, found 5.5"));
  CHECK_THAT(refusal("gemma3n.attention.shared_kv_layers", 6, bytes_of(12.f)), ContainsSubstring("found 12"));
  CHECK_THAT(refusal("gemma3n.altup.active_idx", 4, number(2)), ContainsSubstring("expected 0, found 2"));
  CHECK_THAT(refusal("gemma3n.altup.num_inputs", 4, number(3)), ContainsSubstring("altup_proj.weight: expected 128"));
  std::vector<float> scales(12, 1.5f);
  CHECK(refusal("gemma3n.activation_sparsity_scale", 9, list(scales)) == "accepted");
  scales[2] = 1.25f;
  CHECK_THAT(refusal("gemma3n.activation_sparsity_scale", 9, list(scales)),
             ContainsSubstring("1.5 as in other layers, or minus infinity, found 1.25 in layer 2"));
  scales[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(refusal("gemma3n.activation_sparsity_scale", 9, list(scales)), ContainsSubstring("up to 9"));
  scales.pop_back();
  CHECK_THAT(refusal("gemma3n.activation_sparsity_scale", 9, list(scales)), ContainsSubstring("12 numbers, found 11"));
}
