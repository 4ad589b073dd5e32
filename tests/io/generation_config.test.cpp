// SPDX-License-Identifier: MIT
#include "intaglio/io/generation_config.hpp"

#include <catch2/catch_test_macros.hpp>

#include "io/files.hpp"

using namespace intaglio;
using io::read_generation_config;
using ids = std::vector<std::int64_t>;

namespace {

io::generation_config read(const temporary_folder& folder, const std::string& text) {
  write_text(folder / "generation_config.json", text);
  return read_generation_config(folder / "generation_config.json");
}

}  // namespace

TEST_CASE("generation_config: the ends of a generation are a number, a list, or null") {
  const temporary_folder folder;
  CHECK(read(folder, R"({"eos_token_id": 2})").eos_ids == ids{2});
  CHECK(read(folder, R"({"eos_token_id": [2, 337]})").eos_ids == ids{2, 337});
  CHECK(read(folder, R"({"eos_token_id": -1})").eos_ids == ids{-1});
  CHECK(read(folder, R"({"eos_token_id": null})").eos_ids.empty());
  CHECK(read(folder, R"({"eos_token_id": []})").eos_ids.empty());
  CHECK(read(folder, "{}").eos_ids.empty());
  for (const char* wrong : {R"({"eos_token_id": "2"})", R"({"eos_token_id": [[2]]})", R"({"eos_token_id": 2.5})",
                            R"({"eos_token_id": {"id": 2}})", R"({"eos_token_id": 99999999999999999999})", "[]", "{"}) {
    INFO(wrong);
    CHECK_THROWS_AS(read(folder, wrong), file_error);
  }
}

TEST_CASE("generation_config: every other key is named as unused") {
  const temporary_folder folder;
  const auto found = read(folder, R"({"eos_token_id": 2, "do_sample": true, "temperature": 0.8, "made_up": [1]})");
  REQUIRE(found.unused.size() == 3);
  for (const auto& [key, value] : {std::pair{"do_sample", "true"}, {"temperature", "0.8"}, {"made_up", "[1]"}})
    CHECK(std::any_of(found.unused.begin(), found.unused.end(),
                      [&](const io::unused_key& each) { return each.key == key && each.value == value; }));
  CHECK(found.warnings.empty());
}

TEST_CASE("generation_config: a key that changes greedy text is a warning, unless its value is neutral") {
  const temporary_folder folder;
  for (const io::text_changing_key& each : io::text_changing_keys) {
    const std::string key(each.key);
    INFO(key);
    const auto found = read(folder, "{\"" + key + "\": 1.25}");
    REQUIRE(found.warnings.size() == 1);
    CHECK(found.warnings[0].find("generation_config.json: " + key + " 1.25 is not used") != std::string::npos);
    CHECK(read(folder, "{\"" + key + "\": null}").warnings.empty());
    if (each.neutral)
      CHECK(read(folder, "{\"" + key + "\": " + (*each.neutral == 0 ? "0" : "1.0") + "}").warnings.empty());
    else CHECK(read(folder, "{\"" + key + "\": []}").warnings.empty());
  }
}
