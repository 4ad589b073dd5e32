// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <cstdio>

#include "../conformance.hpp"
#include "bad_files.hpp"

namespace {

void judge_all(const std::string& base) {
  const temporary_folder folder;
  const auto path = folder / "bad.gguf";
  bad_file_judge judge;
  bad_gguf_files(gguf_image::of(base), [&](const std::string& name, const bytes& file, verdict expected) {
    write_bytes(path, file);
    judge.judge(name, path, file.size(), expected);
  }).all();
  std::printf("%zu malformed GGUF files: median %.1f ms, worst %.1f ms\n", judge.count(), judge.median() * 1e3,
              judge.worst() * 1e3);
  CHECK(judge.count() >= 300);
  CHECK(judge.median() <= 0.020);
}

}  // namespace

TEST_CASE("malformed GGUF: every fault in an I2_S model is refused with a clear error", "[gguf][bad]") {
  judge_all(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf");
}

TEST_CASE("malformed GGUF: every fault in a TQ2_0 model is refused with a clear error", "[gguf][bad]") {
  judge_all(conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-tq2_0.gguf");
}

TEST_CASE("malformed GGUF: the sound file that the faults are made from passes", "[gguf][bad]") {
  const temporary_folder folder;
  for (const char* name : {"b158-i2_s", "b158-tq2_0"}) {
    const auto image =
        gguf_image::of(conformance("bitnet-tiny") / "gguf" / ("bitnet-tiny-" + std::string(name) + ".gguf"));
    const auto report = intaglio::io::check(write_bytes(folder / "good.gguf", image.build()));
    for (const auto& finding : report.errors) FAIL_CHECK(finding.text);
    CHECK(report.ok());
    CHECK(report.tensors == image.tensors.size());
  }
}

TEST_CASE("malformed GGUF: cutting the file while it is open gives an error, not a signal", "[gguf][bad]") {
  const temporary_folder folder;
  const auto path =
      write_bytes(folder / "model.gguf", read_bytes(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf")));
  const auto model = intaglio::io::checkpoint::open(path);
  std::filesystem::resize_file(path, 40'000);
  std::vector<std::int8_t> codes(256 * 256);
  CHECK_THROWS_AS(model.ternary(model.at("blk.0.attn_q.weight")), intaglio::file_error);
  std::vector<float> row(256);
  CHECK_THROWS_AS(model.read_f32(model.at("token_embd.weight"), 1023, 1, row), intaglio::file_error);
  CHECK_THROWS_AS(model.expect_unchanged(), intaglio::file_error);
}
