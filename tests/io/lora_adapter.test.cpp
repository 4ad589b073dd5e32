// SPDX-License-Identifier: MIT
// What an adapter adds to a model's values, and what is no adapter of the model.
#include "intaglio/io/lora_adapter.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "lora_files.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

std::filesystem::path base(const std::string& type = "f32") {
  return conformance("llama-tiny") / ("gguf/llama-tiny-" + type + ".gguf");
}
std::string refusal(const std::filesystem::path& adapter, const std::filesystem::path& model) {
  io::checkpoint to = io::checkpoint::open(model);
  try {
    io::lora_adapter(adapter).merge_into(to, 1);
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}
bool has(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  CHECK(text.size() <= 400);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("lora_adapter: values are those of the file with the change made in it, rows in pairs too") {
  const temporary_folder folder;
  const lora_file lora;
  lora.write(folder / "lora.gguf", io::gguf::open(base()));
  write_merged(folder / "merged.gguf", base(), lora, 0.5f);
  io::checkpoint found = io::checkpoint::open(base());
  const std::size_t warnings = found.warnings().size();
  io::lora_adapter(folder / "lora.gguf").merge_into(found, 0.5f);
  CHECK(found.warnings().size() == warnings);
  const io::checkpoint expected = io::checkpoint::open(folder / "merged.gguf"), before = io::checkpoint::open(base());
  std::size_t changed = 0;
  for (const io::checkpoint_tensor& each : found.tensors()) {
    const auto size = static_cast<std::size_t>(each.stored.rows * each.stored.columns);
    std::vector<float> own(size), wanted(size), old(size);
    found.read_f32(each, 0, each.stored.rows, own);
    expected.read_f32(expected.at(each.stored.name), 0, each.stored.rows, wanted);
    before.read_f32(before.at(each.stored.name), 0, each.stored.rows, old);
    INFO(each.stored.name);
    CHECK(own == wanted);
    changed += own != old;
    if (!each.added.empty()) CHECK_THROWS_AS(found.ternary(each), file_error);
  }
  CHECK(changed == lora.tensors.size());
}

TEST_CASE("lora_adapter: what is rounded anew is said, with its size") {
  const temporary_folder folder;
  const lora_file lora{.type = dtype::f16};
  lora.write(folder / "lora.gguf", io::gguf::open(base("q8_0")));
  io::checkpoint to = io::checkpoint::open(base("q8_0"));
  io::lora_adapter(folder / "lora.gguf").merge_into(to, 1);
  REQUIRE(!to.warnings().empty());
  has(to.warnings().back(), "4 matrices of q8_0 are decoded, added to and encoded anew; rounding is 0.0");
}

TEST_CASE("lora_adapter: no adapter, another model's, and tensors of no weight are refused by name") {
  const temporary_folder folder;
  const io::gguf model = io::gguf::open(base());
  const auto path = folder / "lora.gguf";
  const auto refused = [&](const lora_file& of, std::string_view part,
                           const std::function<void(io::gguf_writer&)>& edit = {}) {
    of.write(path, model, edit);
    return has(refusal(path, base()), part);
  };
  refused({.architecture = "qwen3"}, "general.architecture: expected 'llama', the model's, found 'qwen3'");
  refused({.tensors = {"token_embd.weight"}},
          "tensor 'token_embd.weight.lora_a': expected an adapter of other matrices");
  refused({.tensors = {"output_norm.weight"}}, "tensor 'output_norm.weight.lora_a'");
  refused({.alpha = HUGE_VALF}, "adapter.lora.alpha: expected a finite number");
  refused({}, "adapter.alora.invocation_tokens", [](io::gguf_writer& out) {
    out.set_array<std::uint32_t>("adapter.alora.invocation_tokens", std::vector<std::uint32_t>{1});
  });
  const auto with = [&](const char* name, std::vector<std::uint64_t> shape, std::string_view part) {
    io::gguf_writer out(path);
    out.set("general.type", "adapter");
    out.set("adapter.type", "lora");
    out.set("general.architecture", "llama");
    out.set("adapter.lora.alpha", 8.f);
    out.add_tensor(name, dtype::f32, shape);
    if (std::string_view(name).ends_with("_a"))
      out.add_tensor(std::string(name, std::string_view(name).size() - 1) + "b", dtype::f32,
                     std::vector<std::uint64_t>{4, 256});
    out.begin();
    out.write(std::vector<std::byte>(static_cast<std::size_t>(4 * shape[0] * shape[1])));
    if (std::string_view(name).ends_with("_a")) out.write(std::vector<std::byte>(4 * 4 * 256));
    out.finish();
    has(refusal(path, base()), part);
  };
  with("blk.9.attn_q.weight.lora_a", {256, 4}, "tensor 'blk.9.attn_q.weight.lora_a': expected a tensor of the model");
  with("blk.0.attn_q.weight.lora_a", {128, 4}, "tensor 'blk.0.attn_q.weight.lora_a': expected [256, rank]");
  with("blk.0.attn_q.weight.lora_a", {256, 3}, "tensor 'blk.0.attn_q.weight.lora_a': expected [256, rank]");
  with("blk.0.attn_q.weight.lora_b", {4, 256}, "tensor 'blk.0.attn_q.weight.lora_b': expected the tensor's name with");
  with("blk.0.attn_q.weight", {256, 4}, "tensor 'blk.0.attn_q.weight': expected the tensor's name with");
  has(refusal(base(), base()), "general.type");
  lora_file{}.write(path, model);
  has(refusal(path, conformance("llama-tiny") / "hf"), "expected");
  CHECK(refusal(path, base()) == "accepted");
}

TEST_CASE("lora_choice: a file, and a scale after its last colon") {
  const auto check = [](const char* text, const char* file, float scale) {
    const io::lora_choice found(text);
    CHECK(found.file == file);
    CHECK(found.scale == scale);
  };
  check("a.gguf", "a.gguf", 1);
  check("a.gguf:0.5", "a.gguf", 0.5f);
  check("C:a.gguf", "C:a.gguf", 1);
  check("x:a.gguf:-2", "x:a.gguf", -2);
  CHECK_THROWS_AS(io::lora_choice(""), argument_error);
  CHECK_THROWS_AS(io::lora_choice(":3"), argument_error);
}
