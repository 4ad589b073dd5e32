// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <cstdio>

#include "../conformance.hpp"
#include "bad_files.hpp"
#include "bad_safetensors_files.hpp"

namespace {

void judge_all(const char* form) {
  const temporary_folder folder;
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(conformance("bitnet-tiny") / form / name, folder / name);
  for (const auto& path : {folder / "model.safetensors", folder / "config.json"})
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const auto sound = intaglio::io::check(folder.path());
  for (const auto& finding : sound.errors) FAIL_CHECK(finding.text);
  REQUIRE(sound.ok());
  bad_file_judge judge;
  bad_safetensors_folders(folder.path(), [&](const std::string& name, std::uint64_t size, verdict expected) {
    judge.judge(name, folder.path(), size, expected);
  }).all();
  std::printf("%zu malformed safetensors folders: median %.1f ms, worst %.1f ms\n", judge.count(), judge.median() * 1e3,
              judge.worst() * 1e3);
  CHECK(judge.count() >= 300);
  CHECK(judge.median() <= 0.020);
}

}  // namespace

TEST_CASE("malformed safetensors: every fault in a packed model is refused with a clear error", "[safetensors][bad]") {
  judge_all("hf-packed");
}

TEST_CASE("malformed safetensors: every fault in a model of bf16 masters is refused with a clear error",
          "[safetensors][bad]") {
  judge_all("hf-bf16");
}
