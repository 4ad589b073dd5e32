// SPDX-License-Identifier: MIT
#include "intaglio/io/absent_families.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "intaglio/io/checkpoint.hpp"
#include "io/gguf_image.hpp"
#include "paths.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

std::set<std::string> names_of(std::string_view list) {
  std::istringstream words{std::string(list)};
  std::set<std::string> out;
  for (std::string word; words >> word;) out.insert(word);
  return out;
}

std::string refusal(const std::filesystem::path& path) {
  try {
    (void)io::checkpoint::open(path);
  } catch (const file_error& error) { return error.what(); }
  return "accepted";
}

/// A GGUF file of an architecture, without other keys.
gguf_image image_of(const std::string& architecture) {
  gguf_image image;
  image.set<std::string>("general.architecture", architecture);
  return image;
}

}  // namespace

TEST_CASE("a family is computed or is said to be absent, not both, and the docs name each", "[io][family]") {
  std::set<std::string> all;
  for (const io::absent_family& each : io::absent_families)
    for (const std::string& name : names_of(each.names)) {
      INFO(name);
      CHECK(all.insert(name).second);
      CHECK(family_with(&family::config_names, name) == nullptr);
      CHECK(family_with(&family::gguf_names, name) == nullptr);
    }
  std::ifstream file(in_source("docs/models.md"));
  std::stringstream page;
  page << file.rdbuf();
  for (const io::absent_family& each : io::absent_families) {
    INFO(each.missing);
    CHECK(page.str().find("| " + std::string(each.missing) + " |") != std::string::npos);
  }
  for (const family& each : families_table)
    for (const std::string& name : names_of(each.config_names)) {
      INFO(name);
      CHECK(page.str().find("`" + name + "`") != std::string::npos);
    }
}

TEST_CASE("files of absent families are refused by a sentence that names what is missing", "[io][family]") {
  const temporary_folder folder, files;
  for (const io::absent_family& each : io::absent_families)
    for (const std::string& name : names_of(each.names)) {
      INFO(name);
      const std::string found = "found '" + name + "', which needs " + std::string(each.missing);
      std::ofstream(folder / "config.json") << R"({"model_type": ")" << name << R"("})";
      const std::string of_folder = refusal(folder / ".");
      CHECK_THAT(of_folder, ContainsSubstring("expected a family that is computed here (docs/models.md), " + found));
      CHECK(of_folder.size() <= 400);
      const std::string of_file = refusal(write_bytes(files / "model.gguf", image_of(name).build()));
      CHECK_THAT(of_file, ContainsSubstring(found));
      CHECK(of_file.size() <= 400);
    }
  CHECK(refusal(write_bytes(files / "model.gguf", image_of("refact").build())).find("ALiBi") != std::string::npos);
}

TEST_CASE("a Baichuan of 13B, which has ALiBi, is refused in both formats", "[io][family]") {
  const temporary_folder folder, files;
  const auto of = [&](std::uint32_t layers) {
    std::ofstream(folder / "config.json")
        << R"({"model_type":"baichuan","hidden_size":5120,"intermediate_size":13696,"num_attention_heads":40,)"
        << R"("vocab_size":64000,"model_max_length":4096,"rms_norm_eps":1e-6,"num_hidden_layers":)" << layers << "}";
    gguf_image image = image_of("baichuan");
    for (const auto& [key, value] : {std::pair{"embedding_length", 5120u},
                                     {"block_count", layers},
                                     {"feed_forward_length", 13696u},
                                     {"attention.head_count", 40u},
                                     {"context_length", 4096u},
                                     {"vocab_size", 64000u}})
      image.set("baichuan." + std::string(key), std::uint32_t{value});
    image.set("baichuan.attention.layer_norm_rms_epsilon", 1e-6f);
    return std::pair{refusal(folder / "."), refusal(write_bytes(files / "model.gguf", image.build()))};
  };
  const auto [in_folder, in_gguf] = of(40);
  CHECK_THAT(in_folder, ContainsSubstring("a baichuan with it has ALiBi, which is not computed, found 40"));
  CHECK_THAT(in_gguf, ContainsSubstring("a baichuan with it has ALiBi, which is not computed, found 40"));
  // Other numbers of layers are refused by nothing but the absent weights.
  const auto [rotated, rotated_gguf] = of(32);
  CHECK_THAT(rotated + rotated_gguf, !ContainsSubstring("ALiBi") && !ContainsSubstring("accepted"));
}
