// SPDX-License-Identifier: MIT
// Decoders with LayerNorms, from folders, from GGUF and converted, against numpy in float64 (layer_norm_decoders.py).
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
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

namespace {

constexpr std::array layer_norm_models{"cohere",   "cohere2",     "starcoder2", "stablelm", "stablelm_3b",
                                       "nemotron", "phi",         "gpt_neox",   "falcon",   "gpt2",
                                       "olmo",     "gpt_bigcode", "orion"};

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/layer_norm_decoders.py", {(folder / "models").string()});
    io::convert_options options;
    for (const char* model : layer_norm_models)
      for (const auto& [name, codec] :
           {std::pair{"converted.gguf", dtype::f32}, {"narrow.gguf", dtype::f16}, {"coded.gguf", dtype::q8_0}}) {
        options.codec = codec;
        io::convert(folder / "models" / model, folder / "models" / model / name, options);
      }
    return folder / "models";
  }();
  return out;
}

}  // namespace

TEST_CASE("decoders with LayerNorms give numpy's logits", "[once]") {
  const std::string model = GENERATE(from_range(layer_norm_models.begin(), layer_norm_models.end()));
  const std::string form = GENERATE("", "model.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) UNSCOPED_INFO(each);
  CHECK(file.warnings().empty());
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model,
                                                  narrow ? plan::profiles::exact : plan::profiles::cpu, 128);
  CHECK(plan::verify(plan.table()).empty());
  CHECK(plan.table().resident_decode.resident.empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  for (const auto& [prompt, chunk] : {std::pair{"p70", 0u}, {"p17", 5u}, {"p17", 1u}}) {
    INFO(prompt << " by " << chunk);
    session.reset();
    const logits_result found = session.logits(prompt_of(made() / model, prompt), chunk);
    CHECK(largest_difference(found.logits, read_floats(made() / model / (std::string(prompt) + ".logits"))) <
          (narrow ? 1e-2 : 1e-3));
  }
}

TEST_CASE("a folder of a decoder with LayerNorms, its GGUF and what is converted have one config", "[once]") {
  for (const char* const model : layer_norm_models) {
    INFO(model);
    const decoder_config folder = io::checkpoint::open(made() / model).config();
    for (const char* form : {"model.gguf", "converted.gguf"})
      CHECK(io::config_differences(folder, io::checkpoint::open(made() / model / form).config()) ==
            std::vector<std::string>{});
  }
}

TEST_CASE("tensors of a decoder with LayerNorms go back to safetensors, unless a family has them rearranged",
          "[once]") {
  const temporary_folder folder;
  io::convert_options options;
  options.codec = dtype::f32;
  for (const char* const model : {"cohere2", "starcoder2", "stablelm", "nemotron", "phi", "falcon", "olmo", "orion"}) {
    INFO(model);
    const auto copy = folder / model;
    std::filesystem::create_directory(copy);
    for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"})
      std::filesystem::copy_file(made() / model / file, copy / file);
    io::convert(made() / model / "model.gguf", copy / "model.safetensors", options);
    const io::checkpoint one = io::checkpoint::open(made() / model), other = io::checkpoint::open(copy);
    REQUIRE(one.tensors().size() == other.tensors().size());
    for (const io::checkpoint_tensor& each : one.tensors()) {
      const io::stored_tensor& stored = each.stored;
      std::vector<float> a(static_cast<std::size_t>(stored.rows * stored.columns)), b(a.size());
      one.read_f32(each, 0, stored.rows, a);
      other.read_f32(other.at(stored.name), 0, stored.rows, b);
      INFO(stored.name);
      CHECK(largest_difference(a, b) < 1e-6);
    }
  }
  for (const char* const model : {"gpt_neox", "gpt2"})
    CHECK_THROWS_AS(io::convert(made() / model, folder / "out.safetensors", options), argument_error);
}

TEST_CASE("what a GGUF of a decoder with LayerNorms states is used, or refused by its key", "[once]") {
  const temporary_folder folder;
  const auto opened = [&](const std::string& model, const std::string& key, std::uint32_t type, const bytes& value) {
    gguf_image image = gguf_image::of(made() / model / "model.gguf");
    for (auto& each : image.keys)
      if (each.name == key) each = {key, type, value};
    try {
      (void)io::checkpoint::open(write_bytes(folder / "changed.gguf", image.build()));
    } catch (const file_error& error) { return std::string(error.what()); }
    return std::string("accepted");
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(opened("gpt_neox", "gptneox.use_parallel_residual", 7, bytes_of(std::uint8_t{0})),
             ContainsSubstring("gptneox.use_parallel_residual': expected 1, found 0"));
  CHECK(opened("stablelm", "stablelm.use_parallel_residual", 7, bytes_of(std::uint8_t{1})) == "accepted");
  CHECK_THAT(opened("cohere", "command-r.logit_scale", 6, bytes_of(0.f)),
             ContainsSubstring("command-r.logit_scale': expected a number above 0"));
}

TEST_CASE("a decoder with LayerNorms in Q8_0 and f16 stays near numpy's logits", "[once]") {
  const std::string model = GENERATE(from_range(layer_norm_models.begin(), layer_norm_models.end()));
  const std::string form = GENERATE("narrow.gguf", "coded.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, model, plan::profiles::portable, 128);
  CHECK(plan::verify(plan.table()).empty());
  CHECK(plan.table().resident_decode.resident.empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  const auto found = session.logits(prompt_of(made() / model, "p70")).logits;
  const std::vector<float> expected = read_floats(made() / model / "p70.logits");
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = static_cast<double>(found[i]), b = static_cast<double>(expected[i]);
    ab += a * b, aa += a * a, bb += b * b;
  }
  CHECK(ab / std::sqrt(aa * bb) > (form == "narrow.gguf" ? 0.9999 : 0.998));
  const auto last = found.end() - static_cast<std::ptrdiff_t>(file.config().vocab_size);
  session.reset();
  const auto drawn = session.generate(prompt_of(made() / model, "p70"), {.temperature = 0, .max_tokens = 2}).ids;
  REQUIRE(!drawn.empty());
  CHECK(drawn.front() == static_cast<std::int32_t>(std::max_element(last, found.end()) - last));
}

TEST_CASE("sessions of decoders with LayerNorms in a batch draw what they draw alone", "[runtime]") {
  const std::string model = GENERATE("cohere2", "starcoder2", "phi", "gpt2");
  INFO(model);
  io::checkpoint file = io::checkpoint::open(made() / model);
  plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model, plan::profiles::cpu,
                                            128, {.slot_count = 3, .page_size = 16});
  both b(std::move(plan), std::move(file));
  check_mixed(b);
  const auto ids = prompt_of(made() / model, "p70");
  const batch_options options{{.temperature = 0.8f, .seed = 3}, 20};
  const auto alone = b.drawn_alone(ids, options);
  for (int i = 0; i < 2; ++i) {
    const batch_handle who = b.batch.join(ids, options);
    std::vector<std::int32_t> drawn;
    for (int step = 0; b.batch.active() != 0 && step < 200; ++step)
      for (const batch_token& token : b.batch.step(3))
        if (token.of.number == who.number) drawn.push_back(token.id);
    CHECK(drawn == alone);
    if (i == 1) CHECK(b.batch.cached_tokens(who) == 64);
  }
}
