// SPDX-License-Identifier: MIT
#include "intaglio/io/safetensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bad_safetensors_files.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio;

namespace {

std::string refusal(const std::string& header, std::size_t data) {
  const temporary_folder folder;
  try {
    const io::safetensors_file file(
        io::mapped_file(write_bytes(folder / "a.safetensors", safetensors_image::join(header, bytes(data)))));
  } catch (const file_error& problem) { return problem.what(); }
  return "accepted";
}

}  // namespace

TEST_CASE("safetensors: tensors in the order of their data") {
  const temporary_folder folder;
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"U64","shape":[0,7],)"
      R"("data_offsets":[16,16]}})";
  const io::safetensors_file file(
      io::mapped_file(write_bytes(folder / "a.safetensors", safetensors_image::join(header, bytes(16)))));
  REQUIRE(file.tensors().size() == 3);
  std::map<std::string, io::safetensors_tensor> by_name;
  for (const auto& tensor : file.tensors()) by_name[tensor.name] = tensor;
  CHECK(by_name["b"].offset == 8 + header.size() + 4);
  CHECK(by_name["b"].bytes == 12);
  CHECK(by_name["b"].shape == std::vector<std::uint64_t>{2, 3});
  CHECK(by_name["b"].type == dtype::bf16);
  CHECK(by_name["a"].shape.empty());
  CHECK(by_name["a"].bytes == 4);
  CHECK_FALSE(by_name["none"].type);
  CHECK(by_name["none"].stored_type == "U64");
}

TEST_CASE("safetensors: what is wrong is named with expected and found") {
  CHECK(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4) == "accepted");
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("shape and data_offsets disagree: expected 8 bytes, found 4"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],)"
                     R"("data_offsets":[2,6]}})",
                     6),
             ContainsSubstring("tensor 'b': overlaps tensor 'a'"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
             ContainsSubstring("leaves a hole after the header"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3),
             ContainsSubstring("download cut short?"));
  CHECK_THAT(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9),
             ContainsSubstring("5 bytes follow the last tensor"));
  CHECK_THAT(refusal(R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("tensor name: expected 1 to 1024 bytes without control characters, found ''"));
  CHECK_THAT(refusal(R"({")" + std::string(1025, 'n') + R"(":{}})", 4),
             ContainsSubstring("tensor name: expected 1 to 1024 bytes"));
  CHECK_THAT(refusal("[]", 0), ContainsSubstring("the header is no JSON object: expected {, found '['"));
  std::string metadata;
  for (std::size_t i = 0; i <= io::safetensors_limits::metadata_entries; ++i)
    metadata += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  CHECK_THAT(refusal(R"({"__metadata__":{)" + metadata + "}}", 0),
             ContainsSubstring("number of __metadata__ entries: expected at most 65536, found more"));
  CHECK_THAT(refusal(R"({"a\u001b[2J":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
             ContainsSubstring("without control characters, found 'a\\x1b[2J'"));
}
