// SPDX-License-Identifier: MIT
#include "intaglio/io/inspect.hpp"

#include <catch2/catch_test_macros.hpp>

#include "shared.hpp"

using namespace intaglio::io;

TEST_CASE("inspect: what the tool prints", "[inspect]") {
  const auto file = inspect(shared("models/fable-bitnet-i2_s.gguf"));
  CHECK(file.form == "gguf");
  CHECK(file.version == 3);
  CHECK(file.architecture == "bitnet-b1.58");
  CHECK(file.parameters == 8'927'488);
  CHECK(file.tokens == 4096);
  CHECK(file.metadata.size() == 28);
  CHECK(file.types.at("i2_s").first == 56);
  CHECK(file.tensors.at(2).shape == std::vector<std::uint64_t>{256, 256});
  CHECK_FALSE(file.problem);
  const auto folder = inspect(shared("models/fable-bitnet-packed"));
  CHECK(folder.form == "safetensors");
  CHECK(folder.architecture == "bitnet");
  CHECK(folder.parameters == 8'927'488);
  CHECK(folder.types.at("u8").first == 56);
  CHECK(folder.config == file.config);
  CHECK_THROWS_AS(inspect(shared("models/README.md")), intaglio::file_error);
  CHECK_THROWS_AS(inspect(shared("conformance/chat")), intaglio::file_error);
  const auto head = inspect(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf"));
  CHECK(head.config.has_value());
}
