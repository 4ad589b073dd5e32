// SPDX-License-Identifier: MIT
// tune: measures, keeps, is taken by the next start, and is forgotten.
#include "tool/program.hpp"

using namespace tool_test;

TEST_CASE("tune keeps what it found beside the pipelines, and the text stays") {
  const temporary_folder cache;
  const call_options apart{
      .environment = {{"XDG_CACHE_HOME", cache.path().string()}}, .input = {}, .stdout_path = {}, .signal = 0};
  const outcome before = call({"run", "-n", "16", "--seed", "7", "--quiet"}, apart);
  const outcome tuned = call({"tune", "--trial-ms", "0.2", "--turns", "1", "--json"}, apart);
  CAPTURE(tuned.err);
  REQUIRE(tuned.code == 0);
  const nlohmann::json found = tuned.json();
  CHECK(found["model"] == "fable");
  CHECK(found["decode_ms"].get<double>() > 0);
  CHECK(found["trials"].size() >= 2);
  CHECK(contains(tuned.err, " ms a token"));
  const std::string path = found["file"];
  REQUIRE(fs::exists(path));
  CHECK(path.starts_with(cache.path().string()));
  const outcome after = call({"run", "-n", "16", "--seed", "7", "--quiet"}, apart);
  CHECK(after.out == before.out);
  CHECK(after.err.empty());

  write(path, content(path) + "more");
  const outcome broken = call({"run", "-n", "16", "--seed", "7"}, apart);
  CHECK(broken.out == before.out);
  CHECK(contains(broken.err, "it is ignored, `intaglio tune` measures anew"));
  CHECK(contains(call({"tune", "--forget"}, apart).out, "forgot " + path));
  CHECK_FALSE(fs::exists(path));
  CHECK(contains(call({"tune", "--forget"}, apart).out, "nothing was kept for fable"));
}

TEST_CASE("tune says where it could keep nothing, and what it does not know") {
  const outcome nowhere = call(
      {"tune"}, {.environment = {{"XDG_CACHE_HOME", ""}, {"HOME", ""}}, .input = {}, .stdout_path = {}, .signal = 0});
  CHECK(nowhere.code == 1);
  CHECK(contains(nowhere.err, "XDG_CACHE_HOME or HOME with an absolute path"));
  CHECK(call({"tune", "--synthetic", "no_such_model"}).code == 2);
  CHECK(call({"tune", "--turns", "0"}).code == 2);
  CHECK(call({"tune", "--codec", "q4_0"}).code == 2);
}
