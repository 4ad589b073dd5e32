// SPDX-License-Identifier: MIT
// Falcon-H1, whose layers have a state and keys and values at once, against logits that numpy computes of tiny models
// (falcon_h1.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/check.hpp"
#include "intaglio/io/convert.hpp"
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

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/falcon_h1.py", {(folder / "models").string()});
    io::convert_options options;
    for (const char* model : {"normed", "tied"})
      for (const auto& [name, codec] :
           {std::pair{"converted.gguf", dtype::f32}, {"coded.gguf", dtype::q8_0}, {"narrow.gguf", dtype::bf16}}) {
        options.codec = codec;
        io::convert(folder / "models" / model, folder / "models" / model / name, options);
      }
    return folder / "models";
  }();
  return out;
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "falcon-h1", target, 256, shape);
}

/// Logits of a prompt. @param chunk tokens of a pass; 0: as the session likes
std::vector<float> logits_of(const io::checkpoint& file, const plan::planned& plan, const std::string& model,
                             const std::string& prompt, std::uint32_t chunk = 0) {
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  return session.logits(prompt_of(made() / model, prompt), chunk).logits;
}

}  // namespace

TEST_CASE("Falcon-H1 gives numpy's logits, decoded and in chunks", "[once]") {
  const std::string model = GENERATE("normed", "tied"), form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = planned(file, narrow ? plan::profiles::exact : plan::profiles::cpu);
  CHECK(plan::verify(plan.table()).empty());
  for (const auto& [prompt, chunk] : {std::pair{"p17", 0u}, {"p100", 0u}, {"p100", 7u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    CHECK(largest_difference(logits_of(file, plan, model, prompt, chunk),
                             read_floats(made() / model / (std::string(prompt) + ".logits"))) < (narrow ? 1e-2 : 1e-3));
  }
}

TEST_CASE("Falcon-H1 in Q8_0 stays near numpy's logits", "[once]") {
  const std::string model = GENERATE("normed", "tied");
  INFO(model);
  const io::checkpoint file = io::checkpoint::open(made() / model / "coded.gguf");
  CHECK(file.find("blk.0.ssm_in_xbc.weight")->stored.type == dtype::q8_0);
  const std::vector<float> found = logits_of(file, planned(file, plan::profiles::cpu), model, "p17"),
                           expected = read_floats(made() / model / "p17.logits");
  CHECK(largest_difference(found, expected) > 1e-4);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    ab += a * b, aa += a * a, bb += b * b;
  }
  CHECK(ab / std::sqrt(aa * bb) > 0.997);
}

TEST_CASE("matrices of a Falcon-H1's folder have its multipliers, as the converter's and those of a GGUF", "[once]") {
  for (const char* model : {"normed", "tied"}) {
    INFO(model);
    const io::checkpoint folder = io::checkpoint::open(made() / model),
                         theirs = io::checkpoint::open(made() / model / "model.gguf"),
                         mine = io::checkpoint::open(made() / model / "converted.gguf");
    CHECK(folder.config() == mine.config());
    CHECK(io::config_differences(folder.config(), theirs.config()).empty());
    CHECK(io::check(made() / model / "converted.gguf").ok());
    CHECK(io::gguf::open(made() / model / "converted.gguf").find_tensor("blk.1.ffn_norm") != nullptr);
    CHECK(folder.tensors().size() == theirs.tensors().size());
    for (const io::checkpoint_tensor& tensor : folder.tensors()) {
      INFO(tensor.stored.name);
      std::vector<float> a(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns)), b(a.size()), c(a);
      folder.read_f32(tensor, 0, tensor.stored.rows, a);
      mine.read_f32(mine.at(tensor.stored.name), 0, tensor.stored.rows, b);
      theirs.read_f32(theirs.at(tensor.stored.name), 0, tensor.stored.rows, c);
      CHECK(a == b);
      double apart = 0;
      for (std::size_t i = 0; i < a.size(); ++i)
        apart = (std::max)(apart, std::abs(static_cast<double>(a[i]) - static_cast<double>(c[i])) /
                                      (1e-3 + std::abs(static_cast<double>(c[i]))));
      CHECK(apart < 1e-6);
      std::vector<float> last(static_cast<std::size_t>(tensor.stored.columns));
      folder.read_f32(tensor, tensor.stored.rows - 1, 1, last);  // its factors are those of the last rows
      CHECK(std::equal(last.begin(), last.end(), a.end() - static_cast<std::ptrdiff_t>(last.size())));
    }
  }
}

TEST_CASE("a Falcon-H1's folder that is read into another codec is its converted file", "[once]") {
  const auto& [name, codec] = GENERATE(std::pair{"coded.gguf", dtype::q8_0}, std::pair{"narrow.gguf", dtype::bf16});
  INFO(name);
  const io::checkpoint folder = io::checkpoint::open(made() / "normed"),
                       file = io::checkpoint::open(made() / "normed" / name);
  const families::weight_types types{codec, codec, codec};
  const plan::planned plan = families::planned_of(folder.config(), types, "falcon-h1", plan::profiles::cpu, 256);
  CHECK(plan.table().hash == planned(file, plan::profiles::cpu).table().hash);
  CHECK(logits_of(folder, plan, "normed", "p17") == logits_of(file, plan, "normed", "p17"));
}

TEST_CASE("a session of a Falcon-H1 goes on from copies of its states and caches, saved and restored", "[runtime]") {
  const io::checkpoint file = io::checkpoint::open(made() / "normed");
  const plan::planned plan = planned(file, plan::profiles::cpu);
  for (std::uint32_t layer = 0; layer < file.config().num_hidden_layers; ++layer)
    CHECK((plan.table().cache_of(layer).kept_bytes != 0 && plan.table().cache_of(layer).key_bytes != 0));
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session one(on.device, tables, file, {.cache_folder = ""}),
      other(on.device, tables, file, {.cache_folder = ""});
  auto ids = prompt_of(made() / "normed", "p100");
  const auto said = [](basic_session& of, const std::vector<std::int32_t>& prompt) {
    return of.generate(prompt, {.max_tokens = 12, .stop_at_end = false});
  };
  const generation first = said(one, ids);
  CHECK(first.ids == said(other, ids).ids);
  const generation again = said(one, ids);  // from its copy in front of the last token
  CHECK((again.ids == first.ids && again.timings.cached_tokens == 99));
  auto branch = ids;
  branch[85] = 11;
  other.reset();
  const generation parted = said(one, branch);
  CHECK((parted.ids == said(other, branch).ids && parted.timings.cached_tokens == 64));
  const temporary_folder folder;
  one.save(folder / "session");
  other.restore(folder / "session");
  const std::vector<std::int32_t> after{5, 6, 7};
  CHECK(one.logits(after).logits == other.logits(after).logits);
}

TEST_CASE("sessions of a Falcon-H1 in a batch draw what they draw alone, from states of others too", "[runtime]") {
  const std::string model = GENERATE("normed", "tied");
  INFO(model);
  io::checkpoint file = io::checkpoint::open(made() / model);
  plan::planned plan = planned(file, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
  const auto ids = prompt_of(made() / model, "p100");
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 20};
  const auto alone = b.drawn_alone(ids, options);
  for (const std::uint32_t cached : {0u, 96u, 96u}) {
    const batch_handle who = b.batch.join(ids, options);
    std::vector<std::int32_t> drawn;
    for (int i = 0; b.batch.active() != 0 && i < 500; ++i)
      for (const batch_token& token : b.batch.step(3)) drawn.push_back(token.id);
    CHECK(drawn == alone);
    CHECK(b.batch.cached_tokens(who) == cached);
  }
}

TEST_CASE("what a folder or a GGUF of a Falcon-H1 states and is not computed is refused by its key", "[once]") {
  const temporary_folder folder;
  const auto config = nlohmann::json::parse(std::ifstream(made() / "normed" / "config.json"));
  std::filesystem::copy(made() / "normed" / "model.safetensors", folder / "model.safetensors");
  const auto refusal = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = config;
    changed[key] = value;
    std::ofstream(folder / "config.json") << changed;
    try {
      (void)io::checkpoint::open(folder.path());
    } catch (const file_error& error) { return std::string(error.what()); }
    return std::string("accepted");
  };
  CHECK_THAT(refusal("mamba_norm_before_gate", true), ContainsSubstring("expected false beside mamba_rms_norm"));
  CHECK_THAT(refusal("mamba_conv_bias", false), ContainsSubstring("mamba_conv_bias: expected true"));
  CHECK_THAT(refusal("mamba_d_head", 16), ContainsSubstring("expected 12 as mamba_d_ssm / mamba_n_heads, found 16"));
  CHECK_THAT(refusal("mamba_d_ssm", 100), ContainsSubstring("a divisor of mamba_d_ssm 100, found 8"));
  CHECK_THAT(refusal("mamba_n_groups", 3), ContainsSubstring("found 8"));
  CHECK_THAT(refusal("ssm_multipliers", {1, 1, 1, 1}), ContainsSubstring("ssm_multipliers: expected 5 numbers"));
  CHECK_THAT(refusal("mlp_multipliers", {1, 0}), ContainsSubstring("expected a number above 0, found 0"));
  CHECK_THAT(refusal("key_multiplier", -1), ContainsSubstring("key_multiplier: expected a number above 0, found -1"));
  CHECK_THAT(refusal("attn_layer_indices", {1}), ContainsSubstring("attn_layer_indices: expected none"));
  CHECK_THAT(refusal("time_step_limit", {0.01, 0.1}), ContainsSubstring("time_step_limit"));
  CHECK_THAT(refusal("hidden_act", "gelu_pytorch_tanh"), ContainsSubstring("hidden_act: expected silu"));
  CHECK_THAT(refusal("mamba_rms_norm", false), ContainsSubstring("not part of the model"));
  CHECK_THAT(refusal("projectors_bias", true), ContainsSubstring("the config states biases"));
  CHECK(refusal("mamba_chunk_size", 256) == "accepted");

  gguf_image image = gguf_image::of(made() / "tied" / "model.gguf");
  const auto opened = [&] { return io::checkpoint::open(write_bytes(folder / "changed.gguf", image.build())); };
  image.set("falcon-h1.ssm.has_mup", false);
  CHECK(opened().warnings().empty());
  image.set("falcon-h1.ssm.has_mup", true);  // of files whose matrices have no multipliers
  CHECK_THROWS_AS(opened(), file_error);
  image.set("falcon-h1.ssm.has_mup", false);
  image.set("falcon-h1.logit_scale", 0.f);
  CHECK_THROWS_AS(opened(), file_error);
}
