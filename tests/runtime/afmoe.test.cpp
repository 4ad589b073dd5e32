// SPDX-License-Identifier: MIT
// AFMoE (Arcee Trinity), whose attention has a gate and whose FFNs have norms on both sides, against logits that numpy
// computes of tiny models (afmoe.py).
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
#include "intaglio/io/tokenizer.hpp"
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

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/afmoe.py", {(folder / "models").string()});
    io::convert_options options;
    for (const char* model : {"apart", "tied"})
      for (const auto& [name, codec] : {std::pair{"converted.gguf", dtype::f32}, {"coded.gguf", dtype::q8_0}}) {
        options.codec = codec;
        io::convert(folder / "models" / model, folder / "models" / model / name, options);
      }
    return folder / "models";
  }();
  return out;
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "afmoe", target, 256, shape);
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

TEST_CASE("AFMoE gives numpy's logits, decoded and in chunks", "[once]") {
  const std::string model = GENERATE("apart", "tied"), form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = planned(file, narrow ? plan::profiles::exact : plan::profiles::cpu);
  CHECK(plan::verify(plan.table()).empty());
  for (const auto& [prompt, chunk] : {std::pair{"p70", 0u}, {"p70", 7u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    CHECK(largest_difference(logits_of(file, plan, model, prompt, chunk),
                             read_floats(made() / model / (std::string(prompt) + ".logits"))) < (narrow ? 1e-2 : 1e-3));
  }
}

TEST_CASE("AFMoE in Q8_0 stays near numpy's logits", "[once]") {
  const std::string model = GENERATE("apart", "tied");
  INFO(model);
  const io::checkpoint file = io::checkpoint::open(made() / model / "coded.gguf");
  CHECK(file.find("blk.0.attn_gate.weight")->stored.type == dtype::q8_0);
  const std::vector<float> found = logits_of(file, planned(file, plan::profiles::cpu), model, "p17"),
                           expected = read_floats(made() / model / "p17.logits");
  CHECK(largest_difference(found, expected) > 1e-4);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    ab += a * b, aa += a * a, bb += b * b;
  }
  CHECK(ab / std::sqrt(aa * bb) > 0.99);
}

TEST_CASE("an AFMoE's folder, its GGUF and what is converted have one config and the same tensors", "[once]") {
  for (const char* model : {"apart", "tied"}) {
    INFO(model);
    const io::checkpoint folder = io::checkpoint::open(made() / model);
    for (const char* form : {"model.gguf", "converted.gguf"}) {
      const io::checkpoint file = io::checkpoint::open(made() / model / form);
      CHECK(io::config_differences(folder.config(), file.config()) == std::vector<std::string>{});
      CHECK(folder.config() == file.config());
      CHECK(file.tensors().size() == folder.tensors().size());
      for (const io::checkpoint_tensor& tensor : folder.tensors()) {
        INFO(form << " " << tensor.stored.name);
        std::vector<float> mine(static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns)), its(mine);
        folder.read_f32(tensor, 0, tensor.stored.rows, mine);
        file.read_f32(file.at(tensor.stored.name), 0, tensor.stored.rows, its);
        CHECK(mine == its);
      }
    }
    CHECK(io::check(made() / model / "converted.gguf").ok());
    const auto config = folder.config();
    CHECK((config.routed_scaling_factor == 2.826f && config.use_expert_bias && config.norm_topk_prob));
    CHECK((config.is_windowed(0) && !config.is_windowed(config.sliding_window_pattern - 1)));
  }
}

TEST_CASE("the tokenizer of an AFMoE cuts digits by three from the right, from all its files", "[once]") {
  for (const char* form : {"", "model.gguf", "converted.gguf"}) {
    INFO(form);
    const io::checkpoint file = io::checkpoint::open(made() / "apart" / form);
    REQUIRE(file.vocabulary());
    CHECK(file.vocabulary()->pre_tokenizer == "afmoe");
    const io::tokenizer words(*file.vocabulary());
    CHECK(words.decode(words.encode("ab 1234")) == "ab 1234");
  }
}

TEST_CASE("sessions of an AFMoE in a batch draw what they draw alone", "[runtime]") {
  const std::string model = GENERATE("apart", "tied");
  INFO(model);
  io::checkpoint file = io::checkpoint::open(made() / model);
  plan::planned plan = planned(file, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
}

TEST_CASE("what a folder or a GGUF of an AFMoE states and is not computed is refused by its key", "[once]") {
  const temporary_folder folder;
  const auto config = nlohmann::json::parse(std::ifstream(made() / "tied" / "config.json"));
  std::filesystem::copy(made() / "tied" / "model.safetensors", folder / "model.safetensors");
  const auto refusal = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = config;
    changed[key] = value;
    std::ofstream(folder / "config.json") << changed;
    try {
      (void)io::checkpoint::open(folder.path());
    } catch (const file_error& error) { return std::string(error.what()); }
    return std::string("accepted");
  };
  CHECK(refusal("load_balance_coeff", 5e-4) == "accepted");
  CHECK_THAT(refusal("mup_enabled", false), ContainsSubstring("mup_enabled: expected true, found false"));
  CHECK_THAT(refusal("mup_enabled", nullptr), ContainsSubstring("mup_enabled: expected true, found nothing"));
  CHECK_THAT(refusal("route_norm", false), ContainsSubstring("route_norm: expected true, found false"));
  CHECK_THAT(refusal("score_func", "softmax"), ContainsSubstring("score_func: expected \"sigmoid\""));
  CHECK_THAT(refusal("num_expert_groups", 2), ContainsSubstring("num_expert_groups: expected 1, found 2"));
  CHECK_THAT(refusal("n_group", 2), ContainsSubstring("n_group: expected 1"));
  CHECK_THAT(refusal("sliding_window", nullptr), ContainsSubstring("sliding_window: expected a number above 0"));
  CHECK_THAT(refusal("sliding_window", 0), ContainsSubstring("sliding_window: expected a number above 0, found 0"));
  CHECK_THAT(refusal("global_attn_every_n_layers", 1), ContainsSubstring("sliding_window: expected none"));
  CHECK_THAT(refusal("layer_types", {"chunked_attention"}),
             ContainsSubstring("expected sliding_attention or full_attention"));
  CHECK_THAT(refusal("hidden_act", "swiglu"), ContainsSubstring("hidden_act: expected"));
  CHECK_THAT(refusal("num_shared_experts", 1), ContainsSubstring("ffn_gate_shexp"));
  CHECK_THAT(refusal("num_dense_layers", 3), ContainsSubstring("blk.2."));

  gguf_image image = gguf_image::of(made() / "tied" / "model.gguf");
  const auto refused = [&](const char* key, auto value, auto before) {
    image.set(std::string("afmoe.") + key, value);
    std::string out = "accepted";
    try {
      (void)io::checkpoint::open(write_bytes(folder / "changed.gguf", image.build()));
    } catch (const file_error& error) { out = error.what(); }
    image.set(std::string("afmoe.") + key, before);
    return out;
  };
  CHECK_THAT(refused("attention.sliding_window", 0u, 24u),
             ContainsSubstring("sliding_window: expected a number above"));
  CHECK_THAT(refused("expert_gating_func", 1u, 2u), ContainsSubstring("expert_gating_func': expected 2, a sigmoid"));
  CHECK_THAT(refused("expert_group_count", 4u, 1u), ContainsSubstring("expert_group_count': expected 1 or 0, found 4"));
  CHECK_THAT(refused("rope.freq_base_swa", 5e5f, 10'000.f),
             ContainsSubstring("freq_base_swa': expected 10000 as rope.freq_base"));
  CHECK(refused("expert_weights_scale", 1.f, 2.826f) == "accepted");
}
