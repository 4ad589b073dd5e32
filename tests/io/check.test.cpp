// SPDX-License-Identifier: MIT
#include "intaglio/io/check.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "gguf_image.hpp"
#include "shared.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio::io;

namespace {
gguf_image tiny() { return gguf_image::of(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf")); }
}  // namespace

TEST_CASE("check: reads all values and says how far it is", "[check]") {
  const temporary_folder folder;
  const auto path = write_bytes(folder / "model.gguf", tiny().build());
  std::size_t calls = 0;
  check_options options;
  options.progress = [&](const file_progress& progress) {
    CHECK(progress.tensors == calls++);
    CHECK(progress.total_tensors == 35);
    CHECK(progress.bytes < progress.total_bytes);
    CHECK_FALSE(progress.tensor.empty());
  };
  const auto report = check(path, options);
  CHECK(report.ok());
  CHECK(report.tensors == 35);
  CHECK(report.values == 2'626'304);
  CHECK(calls == 35);
}

TEST_CASE("check: goes on after a fault, up to as many as were asked for", "[check]") {
  const temporary_folder folder;
  gguf_image image = tiny();
  for (const char* name : {"blk.0.attn_q.weight", "blk.1.attn_q.weight", "blk.2.attn_q.weight"})
    image.tensor_at(name).data[5] = std::byte{0xFF};
  const auto path = write_bytes(folder / "model.gguf", image.build());
  const auto all = check(path);
  CHECK(all.errors.size() == 3);
  CHECK(all.tensors == 32);
  for (const auto& finding : all.errors)
    CHECK_THAT(finding.text, ContainsSubstring("ternary code: expected 0, 1 or 2, found 3"));
  check_options options;
  options.most_errors = 2;
  CHECK(check(path, options).errors.size() == 2);
}

TEST_CASE("check: weights without a config are judged by themselves", "[check]") {
  const temporary_folder folder;
  const auto sound = folder / "bare.safetensors";
  std::filesystem::copy_file(shared("models/fable-bitnet/model.safetensors"), sound);
  const auto report = check(sound);
  CHECK(report.ok());
  CHECK((report.tensors > 50 && report.values > 8'000'000));
  REQUIRE_FALSE(report.warnings.empty());
  CHECK_THAT(report.warnings[0].text,
             ContainsSubstring("bare.safetensors: neither config.json nor params.json beside it"));
  auto bytes = read_bytes(sound);
  bytes[bytes.size() - 1] = std::byte{0x7F}, bytes[bytes.size() - 2] = std::byte{0xFF};  // of bf16: NaN
  write_bytes(sound, bytes);
  const auto broken = check(sound);
  REQUIRE(broken.errors.size() == 1);
  CHECK_THAT(broken.errors[0].text, ContainsSubstring("bare.safetensors: offset 0x") &&
                                        ContainsSubstring("value: expected a finite number, found NaN"));
  write_bytes(sound, std::span(bytes).first(bytes.size() / 2));
  CHECK_THAT(check(sound).errors.at(0).text, ContainsSubstring("its data runs past the end of the file"));

  const auto torch = folder / "state.pth";
  std::filesystem::copy_file(shared("conformance/pth-cases/state_dict.pth"), torch);
  CHECK(check(torch).ok());
  CHECK(check(torch).tensors > 0);
  std::filesystem::copy_file(shared("conformance/pth-cases/must_be_refused.pth"), folder / "bad.pth");
  CHECK_FALSE(check(folder / "bad.pth").ok());
}

TEST_CASE("check: a fault keeps all that is wrong after one line", "[check]") {
  const temporary_folder folder;
  gguf_image image = tiny();
  std::erase_if(image.tensors, [](const auto& tensor) { return tensor.name.starts_with("blk.1."); });
  const auto report = check(write_bytes(folder / "model.gguf", image.build()));
  REQUIRE(report.errors.size() == 1);
  CHECK(report.errors[0].text.size() <= 400);
  CHECK(report.errors[0].text.find('\n') == std::string::npos);
  CHECK_THAT(report.errors[0].text, ContainsSubstring("(11 differences), the first: missing: blk.1.attn_norm.weight"));
  CHECK(report.errors[0].details.size() == 11);
}

TEST_CASE("check: a file that changes meanwhile is not vouched for", "[check]") {
  const temporary_folder folder;
  const auto path = write_bytes(folder / "model.gguf", tiny().build());
  check_options options;
  options.progress = [&](const file_progress& progress) {
    if (progress.tensors == 30) std::filesystem::resize_file(path, std::filesystem::file_size(path) + 1);
  };
  const auto report = check(path, options);
  REQUIRE(report.errors.size() == 1);
  CHECK_THAT(report.errors[0].text, ContainsSubstring("the file changed while it was in use"));
  CHECK(check(folder / "nothing").errors.size() == 1);
}
