// SPDX-License-Identifier: MIT
#include "intaglio/io/adapter_set.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "lora_files.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a model holds adapters one behind the other, each with its own factor, behind one of zeros", "[io]") {
  const temporary_folder folder;
  const auto path = conformance("llama-tiny") / "gguf/llama-tiny-f16.gguf";
  const io::gguf file = io::gguf::open(path);
  lora_file first, second;
  first.tensors = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"};
  second.tensors = {"blk.1.attn_q.weight"};
  second.rank = 11, second.alpha = 3;
  first.write(folder / "first.gguf", file), second.write(folder / "second.gguf", file);
  io::checkpoint model = io::checkpoint::open(path);
  io::adapter_set adapters;
  adapters.add("first", folder / "first.gguf"), adapters.add("second", folder / "second.gguf");
  adapters.hold_in(model);
  CHECK(adapters.number_of("second") == 2);
  CHECK(!adapters.number_of("third"));
  CHECK(adapters.rank() == 16);
  CHECK(adapters.type() == dtype::f32);
  CHECK(adapters.matrices() == std::vector<std::string>{"attn_q.weight", "ffn_down.weight"});
  std::uint64_t bytes = 0;
  const std::uint32_t layers = model.config().num_hidden_layers;
  for (const std::string name : {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"})
    for (const char* which : {".lora_a", ".lora_b"}) {
      const io::checkpoint_tensor& of = model.at(name + which);
      CHECK(of.stored.rows % 3 == 0);
      bytes += of.stored.bytes * layers;  // all have as much room
      std::vector<float> zeros(static_cast<std::size_t>(of.stored.rows / 3 * of.stored.columns));
      model.read_f32(of, 0, of.stored.rows / 3, zeros);
      CHECK(std::all_of(zeros.begin(), zeros.end(), [](float each) { return each == 0; }));
    }
  CHECK(adapters.bytes() == bytes);
  // Row 5 of b of the second adapter, whose heads are in pairs of rows in the file.
  const io::checkpoint_tensor& b = model.at("blk.1.attn_q.weight.lora_b");
  CHECK(b.rows_in_pairs == model.at("blk.1.attn_q.weight").rows_in_pairs);
  const std::vector<float> values = second.part(*file.find_tensor("blk.1.attn_q.weight"), 0, true);
  std::vector<float> found(16);
  const std::uint64_t rows = b.stored.rows / 3;
  model.read_f32(b, 2 * rows, 1, found);
  for (std::size_t i = 0; i < 16; ++i) CHECK(found[i] == (i < 11 ? values[i] * (3.f / 11.f) : 0.f));
}

TEST_CASE("values that f16 holds are held so", "[io]") {
  const temporary_folder folder;
  const auto path = conformance("llama-tiny") / "gguf/llama-tiny-f16.gguf";
  lora_file lora;
  lora.tensors = {"blk.0.attn_q.weight"};
  lora.type = dtype::f16;
  lora.write(folder / "lora.gguf", io::gguf::open(path));
  io::checkpoint model = io::checkpoint::open(path);
  io::adapter_set adapters;
  adapters.add("lora", folder / "lora.gguf");
  adapters.hold_in(model);
  CHECK(adapters.type() == dtype::f16);
}

TEST_CASE("adapters that do not fit a model are refused by name", "[io]") {
  const temporary_folder folder;
  const auto path = conformance("llama-tiny") / "gguf/llama-tiny-f16.gguf";
  const auto hold = [&](const lora_file& of) {
    of.write(folder / "lora.gguf", io::gguf::open(path));
    io::checkpoint model = io::checkpoint::open(path);
    io::adapter_set adapters;
    adapters.add("lora", folder / "lora.gguf");
    adapters.hold_in(model);
  };
  lora_file other;
  other.architecture = "qwen2";
  CHECK_THROWS_WITH(hold(other), ContainsSubstring("general.architecture"));
  lora_file head;  // has one of the head
  CHECK_THROWS_WITH(hold(head), ContainsSubstring("output.weight") && ContainsSubstring("requests can choose"));
  io::adapter_set adapters;
  adapters.add("lora", folder / "lora.gguf");
  CHECK_THROWS_WITH(adapters.add("lora", folder / "lora.gguf"), ContainsSubstring("a name of its own"));
  CHECK_THROWS_AS(adapters.add("", folder / "lora.gguf"), argument_error);
  CHECK_THROWS_AS(adapters.add("model", path), file_error);
}
