// SPDX-License-Identifier: MIT
#include "intaglio/io/own_files.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "../conformance.hpp"
#include "files.hpp"
#include "intaglio/io/convert.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

std::string refusal(const std::filesystem::path& in, const std::filesystem::path& out) {
  try {
    io::convert_options options;
    options.codec = dtype::f16;
    io::convert(in, out, options);
  } catch (const argument_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("own_files: a model is not converted into its own file", "[convert]") {
  const temporary_folder folder;
  const auto file = folder / "model.gguf", link = folder / "link.gguf", other = folder / "other.gguf";
  std::filesystem::copy_file(shared("conformance/llama-tiny/gguf/llama-tiny-q4_k_m.gguf"), file);
  std::filesystem::permissions(file, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  std::filesystem::create_hard_link(file, link);
  const auto before = std::filesystem::file_size(file);
  for (const auto& out : {file, folder.path() / "." / "model.gguf", link})
    CHECK_THAT(refusal(file, out), ContainsSubstring("output: expected another file than those of the model, found"));
  CHECK(std::filesystem::file_size(file) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);  // nothing is left behind
  CHECK(refusal(file, other) == "accepted");
  CHECK(refusal(file, other) == "accepted");  // an earlier result is replaced

  const auto model = folder / "hf";
  std::filesystem::create_directory(model);
  for (const auto& each : std::filesystem::directory_iterator(shared("conformance/bitnet-tiny/hf-packed")))
    std::filesystem::copy_file(each.path(), model / each.path().filename());
  CHECK_THAT(refusal(model, model / "model.safetensors"), ContainsSubstring("another file than those of the model"));
  CHECK(refusal(model, model / "model.gguf") == "accepted");
}
