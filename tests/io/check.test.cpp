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

TEST_CASE("check: goes on behind a fault, up to as many as were asked for", "[check]") {
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
