// SPDX-License-Identifier: MIT
#include "intaglio/io/safetensors_model.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bad_safetensors_files.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace intaglio::io;

namespace {

constexpr const char* index_name = "model.safetensors.index.json";

/// A shard with one f32 of that name.
void write_shard(const std::filesystem::path& path, const std::string& tensor) {
  const std::string header = R"({")" + tensor + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  write_bytes(path, safetensors_image::join(header, bytes(4)));
}
/// Tensors a and b in files of their own, under an index.
struct sharded {
  temporary_folder folder;
  explicit sharded(const std::string& index) {
    write_shard(folder / "one.safetensors", "a");
    write_shard(folder / "two.safetensors", "b");
    write_text(folder / index_name, index);
  }
};
std::string refusal(const std::filesystem::path& folder) {
  try {
    safetensors_model::open(folder);
  } catch (const intaglio::file_error& problem) { return problem.what(); }
  return "accepted";
}
std::string refused(const std::string& index) { return refusal(sharded(index).folder.path()); }
std::string map(const std::string& entries) { return R"({"weight_map":{)" + entries + "}}"; }
const std::string sound = R"("a":"one.safetensors","b":"two.safetensors")";

}  // namespace

TEST_CASE("safetensors_model: shards are read as the index lists them", "[safetensors]") {
  const sharded made(map(sound));
  const auto model = safetensors_model::open(made.folder.path());
  REQUIRE(model.files().size() == 2);
  REQUIRE(model.tensors().size() == 2);
  CHECK((model.tensors()[0].name == "a" && model.tensors()[0].file == 0));
  CHECK((model.tensors()[1].name == "b" && model.tensors()[1].file == 1));
  CHECK(model.warnings().empty());
  // One file comes before an index.
  write_shard(made.folder / "model.safetensors", "c");
  CHECK(safetensors_model::open(made.folder.path()).tensors().size() == 1);
  REQUIRE(safetensors_model::open(made.folder.path()).warnings().size() == 1);
  CHECK_THAT(safetensors_model::open(made.folder.path()).warnings()[0],
             ContainsSubstring("model.safetensors.index.json: not read: model.safetensors is beside it"));
  const temporary_folder empty;
  CHECK_THAT(
      refusal(empty.path()),
      ContainsSubstring(
          "no weights in this folder: expected model.safetensors or model.safetensors.index.json, found neither"));
}

TEST_CASE("safetensors_model: everything in an index but its map is stepped over", "[safetensors]") {
  CHECK(refused(R"({"metadata":{"format":"pt","x":[1,-2,0.5,null,true,{"total_size":7}]},"weight_map":{)" + sound +
                R"(},"more":-3,"rest":"text"})") == "accepted");
  const auto warnings = [](const std::string& metadata) {
    return safetensors_model::open(
               sharded(R"({"metadata":)" + metadata + R"(,"weight_map":{)" + sound + "}}").folder.path())
        .warnings();
  };
  CHECK(warnings(R"({"total_size":8})").empty());
  CHECK(warnings(R"({"total_parameters":9})").empty());
  REQUIRE(warnings(R"({"total_size":9})").size() == 1);
  CHECK_THAT(warnings(R"({"total_size":9})")[0],
             ContainsSubstring("metadata.total_size is 9, the tensors have 8 bytes"));
}

TEST_CASE("safetensors_model: an index that is none", "[safetensors]") {
  for (const char* text : {"7", "-7", "0.5", "null", "true"})
    CHECK_THAT(refused(text), ContainsSubstring("not an index: expected a JSON object"));
  for (const char* text :
       {"{}", "[]", "\"text\"", R"({"weight_map":{}})", R"({"metadata":{"weight_map":{"a":"one.safetensors"}}})"})
    CHECK_THAT(refused(text), ContainsSubstring("the index lists no tensors"));
  for (const char* value : {"7", "-7", "null", "[]", "false"})
    CHECK_THAT(refused(std::string(R"({"weight_map":)") + value + "}"),
               ContainsSubstring("weight_map: 'weight_map': expected the name of a file"));
  for (const char* value : {"7", "-7", "0.5", "null", "true", "[]", "{}"})
    CHECK_THAT(refused(map(R"("a":)" + std::string(value))),
               ContainsSubstring("weight_map: 'a': expected the name of a file"));
  CHECK_THAT(refused(R"({"weight_map":{)" + sound + R"(},"weight_map":{}})"),
             ContainsSubstring("key 'weight_map' occurs twice: expected once"));
  CHECK_THAT(refused(map(sound + R"(,"a":"two.safetensors")")),
             ContainsSubstring("tensor 'a' is listed twice: expected once"));
  std::string keys;
  for (int i = 0; i < 64; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  CHECK_THAT(refused("{" + keys + R"("weight_map":{}})"),
             ContainsSubstring("number of keys: expected at most 64, found more"));
  CHECK_THAT(refused(R"({"x":)" + std::string(64, '[') + std::string(64, ']') + "}"),
             ContainsSubstring("JSON nested too deep: expected at most 64 levels"));
  CHECK_THAT(refused(map(sound) + "}"), ContainsSubstring("not valid JSON"));
  const sharded large(map(sound));
  std::filesystem::resize_file(large.folder / index_name, safetensors_limits::header_bytes + 1);
  CHECK_THAT(refusal(large.folder.path()),
             ContainsSubstring("too large for an index: expected at most 100000000, found 100000001"));
}

TEST_CASE("safetensors_model: a shard is a plain name beside the index", "[safetensors]") {
  for (const char* name :
       {"", ".safetensors", ".hidden.safetensors", "../one.safetensors", "sub/one.safetensors", "/one.safetensors",
        "sub\\\\one.safetensors", "c:one.safetensors", "one.bin", "one\\u000a.safetensors"})
    CHECK_THAT(refused(map(R"("a":")" + std::string(name) + "\"")),
               ContainsSubstring("weight_map: 'a': expected a file name that ends in .safetensors, without folders"));
  const std::string longest(255 - 12, 'n');
  CHECK_THAT(refused(map(R"("a":")" + longest + "n.safetensors\"")), ContainsSubstring("without folders"));
  CHECK_THAT(refused(map(R"("a":")" + longest + ".safetensors\"")), ContainsSubstring("shards are missing"));
}

TEST_CASE("safetensors_model: shards that are missing, or hold other tensors", "[safetensors]") {
  CHECK_THAT(
      refused(map(sound + R"(,"c":"three.safetensors","d":"four.safetensors")")),
      ContainsSubstring("shards are missing: expected 4 files, found none of: three.safetensors, four.safetensors"));
  std::string many;
  for (int i = 0; i < 9; ++i)
    many += (i ? "," : "") + std::string("\"t") + std::to_string(i) + "\":\"" + std::string(40, 'x') +
            std::to_string(i) + ".safetensors\"";
  CHECK_THAT(refused(map(many)), ContainsSubstring(std::string(40, 'x') + "1.safetensors") &&
                                     !ContainsSubstring(std::string(40, 'x') + "8.safetensors"));
  CHECK_THAT(
      refused(map(R"("a":"two.safetensors","b":"one.safetensors")")),
      ContainsSubstring("model.safetensors.index.json: weight_map: 'b': expected two.safetensors, which has this "
                        "tensor, found one.safetensors"));
  CHECK_THAT(
      refused(map(R"("a":"one.safetensors","c":"two.safetensors")")),
      ContainsSubstring("model.safetensors.index.json: weight_map: 'b': expected two.safetensors, which has this "
                        "tensor, found no such tensor"));
  CHECK_THAT(refused(map(sound + R"(,"c":"one.safetensors")")),
             ContainsSubstring("model.safetensors.index.json: weight_map: 'c': expected a file that has this tensor, "
                               "found one.safetensors, which has none of this name"));
}
