// SPDX-License-Identifier: MIT
// Apertus, whose FFNs have no gate and use xIELU with parameters of each layer, against logits that numpy computes of
// tiny models (apertus.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gpu/checked_device.hpp"
#include "intaglio/families/file_types.hpp"
#include "intaglio/io/check.hpp"
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

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/apertus.py", {(folder / "models").string()});
    io::convert_options options;
    for (const char* model : {"each", "one"}) {
      const auto from = folder / "models" / model;
      for (const auto& [name, codec] : {std::pair{"converted.gguf", dtype::f32}, {"coded.gguf", dtype::q8_0}}) {
        options.codec = codec;
        io::convert(from, from / name, options);
      }
      io::convert(from / "model.gguf", from / "again.gguf", options);
    }
    return folder / "models";
  }();
  return out;
}

plan::planned planned(const io::checkpoint& file, const plan::profile& target, const plan::batch_shape& shape = {}) {
  return families::planned_of(file.config(), families::types_of(file).types, "apertus", target, 256, shape);
}

std::vector<float> logits_of(const io::checkpoint& file, const plan::planned& plan, const std::string& model,
                             const std::string& prompt, std::uint32_t chunk = 0) {
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  return session.logits(prompt_of(made() / model, prompt), chunk).logits;
}

/// The vector of a layer's activation, as reading gives it.
std::array<float, 4> factors(const io::checkpoint& file, std::uint32_t layer) {
  std::array<float, 4> out{};
  file.read_f32(file.at("blk." + std::to_string(layer) + ".ffn_act.weight"), 0, 1, out);
  return out;
}

/// What opening a file says, or "accepted".
template <class Open>
std::string refusal_of(Open&& open) {
  try {
    open();
  } catch (const file_error& error) {
    std::string out = error.what();
    for (const std::string& line : error.details()) out += "\n" + line;
    return out;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Apertus gives numpy's logits, decoded and in chunks", "[once]") {
  const std::string model = GENERATE("each", "one"), form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = planned(file, narrow ? plan::profiles::exact : plan::profiles::cpu);
  CHECK(plan::verify(plan.table()).empty());
  for (const auto& [prompt, chunk] : {std::pair{"p17", 0u}, {"p70", 0u}, {"p70", 7u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    CHECK(largest_difference(logits_of(file, plan, model, prompt, chunk),
                             read_floats(made() / model / (std::string(prompt) + ".logits"))) < (narrow ? 1e-2 : 1e-3));
  }
}

TEST_CASE("Apertus in Q8_0 stays near numpy's logits", "[once]") {
  const std::string model = GENERATE("each", "one");
  INFO(model);
  const io::checkpoint file = io::checkpoint::open(made() / model / "coded.gguf");
  CHECK(file.find("blk.0.ffn_up.weight")->stored.type == dtype::q8_0);
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

TEST_CASE("a folder of Apertus, its GGUF and what is converted are one model", "[once]") {
  for (const std::string model : {"each", "one"}) {
    INFO(model);
    const io::checkpoint folder = io::checkpoint::open(made() / model);
    CHECK(folder.config().hidden_act == activation::xielu);
    for (const char* form : {"model.gguf", "converted.gguf", "again.gguf"}) {
      INFO(form);
      const io::checkpoint other = io::checkpoint::open(made() / model / form);
      CHECK(io::config_differences(folder.config(), other.config()) == std::vector<std::string>{});
      for (std::uint32_t layer = 0; layer < folder.config().num_hidden_layers; ++layer)
        CHECK(factors(folder, layer) == factors(other, layer));
    }
    CHECK(io::check(made() / model / "converted.gguf").ok());
    CHECK(io::check(made() / model).ok());
    const io::gguf file = io::gguf::open(made() / model / "converted.gguf");
    CHECK(file.find_tensor("blk.0.ffn_act.weight") == nullptr);
    CHECK(file.array<float>("xielu.alpha_p")->size() == 3);
  }
  const std::array<float, 4> one = factors(io::checkpoint::open(made() / "one"), 2);
  CHECK(std::abs(one[0] - std::log1p(std::exp(0.25))) < 1e-7);
  CHECK(std::abs(one[1] - (0.5 + std::log1p(std::exp(-0.5)))) < 1e-7);
  CHECK((one[2] == 0.5f && one[3] == -0.375f));
}

TEST_CASE("safetensors of Apertus have a folder's names, and parameters as the folder has them", "[once]") {
  const temporary_folder copy;
  std::filesystem::copy_file(made() / "each" / "config.json", copy / "config.json");
  io::convert_options options;
  options.codec = dtype::f32;
  io::convert(made() / "each" / "model.gguf", copy / "model.safetensors", options);
  const auto theirs = io::safetensors_model::open(made() / "each"), mine = io::safetensors_model::open(copy.path());
  CHECK(mine.tensors().size() == theirs.tensors().size());
  for (const io::safetensors_tensor& tensor : theirs.tensors()) {
    INFO(tensor.name);
    const auto written = std::find_if(mine.tensors().begin(), mine.tensors().end(),
                                      [&](const io::safetensors_tensor& each) { return each.name == tensor.name; });
    REQUIRE(written != mine.tensors().end());
    CHECK(written->shape == tensor.shape);
    std::vector<std::byte> a(static_cast<std::size_t>(tensor.bytes)), b(a.size());
    theirs.files()[tensor.file].file().read(tensor.offset, a);
    mine.files()[written->file].file().read(written->offset, b);
    CHECK(a == b);
  }
}

TEST_CASE("sessions of an Apertus in a batch draw what they draw alone", "[runtime]") {
  io::checkpoint file = io::checkpoint::open(made() / "each");
  plan::planned plan = planned(file, plan::profiles::cpu, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
}

TEST_CASE("a folder of Apertus without xIELU or without its parameters is refused", "[once]") {
  const temporary_folder folder;
  const auto config = nlohmann::json::parse(std::ifstream(made() / "each" / "config.json"));
  const auto weights = made() / "each" / "model.safetensors";
  std::filesystem::copy(weights, folder / "model.safetensors");
  const auto changed = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json with = config;
    with[key] = value;
    std::ofstream(folder / "config.json") << with;
    return refusal_of([&] { (void)io::checkpoint::open(folder.path()); });
  };
  CHECK(changed("use_cache", false) == "accepted");
  CHECK_THAT(changed("hidden_act", "silu"), ContainsSubstring("hidden_act: expected xielu, found 'silu'"));
  CHECK_THAT(changed("hidden_act", "XIELU"), ContainsSubstring("hidden_act: expected xielu, found 'XIELU'"));
  CHECK_THAT(changed("model_type", "arcee"), ContainsSubstring("hidden_act: expected relu2, silu or"));
  CHECK_THAT(changed("qk_norm", false), ContainsSubstring("qk_norm: expected true, found false"));
  CHECK_THAT(changed("post_norm", true), ContainsSubstring("post_norm: expected false, found true"));
  CHECK_THAT(changed("mlp_bias", true), ContainsSubstring("the config states biases"));
  CHECK_THAT(changed("num_hidden_layers", 2),
             ContainsSubstring("not part of the model: model.layers.2.mlp.act_fn.alpha_p"));
  CHECK_THAT(changed("num_hidden_layers", 4),
             ContainsSubstring("xIELU's alpha_p of layer 3: expected a number, found none"));
}

TEST_CASE("a GGUF of Apertus without parameters for its layers is refused by their key", "[once]") {
  const temporary_folder folder;
  const auto opened = [&](const gguf_image& image) {
    const auto path = write_bytes(folder / "changed.gguf", image.build());
    return refusal_of([&] { (void)io::checkpoint::open(path); });
  };
  gguf_image image = gguf_image::of(made() / "one" / "model.gguf");
  CHECK(opened(image) == "accepted");
  image.set("xielu.gamma", 1.f);
  const auto warnings = io::checkpoint::open(write_bytes(folder / "more.gguf", image.build())).warnings();
  CHECK((warnings.size() == 1 && warnings[0].ends_with("key 'xielu.gamma' is unknown and not read")));
  gguf_image::key& eps = image.at("xielu.eps");
  eps.type = static_cast<std::uint32_t>(io::gguf_type::array), eps.value.clear();
  append(eps.value, static_cast<std::uint32_t>(io::gguf_type::f32));
  append(eps.value, std::uint64_t{2});
  append(eps.value, std::array{-1e-6f, -1e-6f});
  CHECK_THAT(opened(image), ContainsSubstring("key 'xielu.eps'") &&
                                ContainsSubstring("expected a number for each of 3 layers, or one for all, found 2"));
  image.set("xielu.eps", NAN);
  CHECK_THAT(opened(image), ContainsSubstring("found a number that is not finite"));
  image.set("xielu.eps", -1e-6f);
  image.remove("xielu.beta");
  CHECK_THAT(opened(image), ContainsSubstring("key 'xielu.beta'") && ContainsSubstring("found no such key"));
}
