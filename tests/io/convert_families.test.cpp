// SPDX-License-Identifier: MIT
// A folder of each family, converted, against the GGUF that llama.cpp's converter made of it (shared/conformance2).
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/check.hpp"
#include "intaglio/io/convert.hpp"

using intaglio::dtype;
using namespace intaglio::io;

TEST_CASE("convert: a family's folder becomes the tensors of llama.cpp's converter", "[unsanitized][convert]") {
  const std::string model =
      GENERATE("qwen3-tiny", "qwen3moe-tiny", "qwen2-tiny", "smollm3-tiny", "granite-tiny", "phi3-tiny", "olmo2-tiny");
  INFO(model);
  const std::filesystem::path from = conformance(model, "conformance2", "confgen2.py");
  const temporary_folder folder;
  const auto out = folder / "out.gguf";
  convert_options options;
  options.codec = dtype::f32;
  convert(from / "hf", out, options);
  CHECK(check(out).ok());

  const gguf mine = gguf::open(out), theirs = gguf::open(from / ("gguf/" + model + "-f32.gguf"));
  CHECK(mine.tensors().size() == theirs.tensors().size());
  for (const gguf_tensor& tensor : theirs.tensors()) {
    INFO(tensor.name);
    const gguf_tensor* const found = mine.find_tensor(tensor.name);
    REQUIRE(found != nullptr);
    CHECK((found->shape == tensor.shape && found->dimensions == tensor.dimensions));
    REQUIRE((found->type == tensor.type && found->bytes == tensor.bytes));
    bytes a(static_cast<std::size_t>(tensor.bytes)), b(a.size());
    mine.first().file().read(found->offset, a);
    theirs.first().file().read(tensor.offset, b);
    CHECK((a == b));
  }
  const auto again = checkpoint::open(out), published = checkpoint::open(from / "hf");
  for (const std::string& line : again.differences(published.config())) CHECK(line == "none");
  CHECK(again.warnings().empty());
}
