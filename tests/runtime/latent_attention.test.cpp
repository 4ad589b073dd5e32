// SPDX-License-Identifier: MIT
// Models with latent attention (MLA) from folders, from GGUF of newer and of older converters, and converted, against
// numpy in float64 (latent_attention.py), which expands keys and values for each head.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
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
#include "runtime/logits_apart.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

constexpr std::array tiny_latents{"v2_lite", "v2", "flash", "halves"};

/// Folder of the models and their logits, made once.
const std::filesystem::path& made() {
  static const temporary_folder folder;
  static const std::filesystem::path out = [] {
    run_python("tests/runtime/latent_attention.py", {(folder / "models").string()});
    io::convert_options options;
    options.codec = dtype::f32;
    for (const char* model : tiny_latents)
      io::convert(folder / "models" / model, folder / "models" / model / "converted.gguf", options);
    return folder / "models";
  }();
  return out;
}

}  // namespace

TEST_CASE("models with latent attention give numpy's logits, decoded and in chunks", "[once]") {
  const std::string model = GENERATE("v2_lite", "v2", "flash", "halves");
  const std::string form = GENERATE("", "model.gguf", "old.gguf", "converted.gguf");
  INFO(model << " " << form);
  const io::checkpoint file = io::checkpoint::open(made() / model / form);
  for (const std::string& each : file.warnings()) CHECK(each.ends_with("layers that draft tokens are not read"));
  const bool narrow = form == "model.gguf";  // keys and values in f16, as on GPUs
  const plan::planned plan = families::planned_of(file.config(), families::types_of(file).types, model,
                                                  narrow ? plan::profiles::exact : plan::profiles::cpu, 128);
  CHECK(plan::verify(plan.table()).empty());
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

TEST_CASE("models with latent attention are computed in blocks, from older files too", "[once]") {
  const std::string model = GENERATE("v2_lite", "flash");
  const std::string form = GENERATE("old", "converted");
  INFO(model << " " << form);
  const temporary_folder folder;
  if (form == "old") {  // keys in blocks along the latent vector
    gguf_image image = gguf_image::of(made() / model / "old.gguf");
    for (gguf_image::tensor& tensor : image.tensors) {
      if (!tensor.name.ends_with(".attn_kv_b.weight")) continue;
      std::vector<float> values(tensor.data.size() / sizeof(float));
      std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
      tensor.type = static_cast<std::uint32_t>(info(dtype::q8_0).ggml_type);
      tensor.data.resize(static_cast<std::size_t>(io::row_bytes(dtype::q8_0, values.size())));
      io::encode_row(dtype::q8_0, values, tensor.data);
    }
    write_bytes(folder / "model.gguf", image.build());
  } else {
    io::convert_options options;
    options.codec = dtype::q8_0;
    io::convert(made() / model, folder / "model.gguf", options);
  }
  const io::checkpoint file = io::checkpoint::open(folder / "model.gguf");
  const plan::planned plan =
      families::planned_of(file.config(), families::types_of(file).types, model, plan::profiles::cpu, 128);
  CHECK(plan::verify(plan.table()).empty());
  checked_device on;
  const std::array<const plan::table*, 1> tables{&plan.table()};
  basic_session session(on.device, tables, file, {.cache_folder = ""});
  const std::vector<float> found = session.logits(prompt_of(made() / model, "p17")).logits;
  CHECK(logits_cosine(found, read_floats(made() / model / "p17.logits")) > 0.998);
}
