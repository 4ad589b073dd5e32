// SPDX-License-Identifier: MIT
// The walk commands on fable: what docs/walk.md shows, and what they refuse.
#include "tool/program.hpp"

#include "shared.hpp"

using namespace tool_test;

namespace {

std::string fable() { return shared("models/fable-bitnet-i2_s.gguf").string(); }
const std::string prompt = "One day, a little cat named";

}  // namespace

TEST_CASE("walk: a fact put into fable changes its story, folded too, and the original comes back") {
  need_shared();
  const temporary_folder folder;
  const std::string index = folder / "index", folded = folder / "folded.gguf";
  REQUIRE(call({"index", fable(), "-o", index}).code == 0);
  const auto walk = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "walk");
    arguments.insert(arguments.end(), {"-m", fable()});
    return call(arguments);
  };
  const outcome before = walk({"run", index, "-p", prompt, "-n", "4"});
  CHECK(before.code == 0);
  CHECK(contains(before.out, prompt + " Kitty"));
  const outcome inserted = walk({"edit", index, "insert", "--layer", "4", "--prompt", prompt, "--says", " Bob"});
  CHECK(inserted.code == 0);
  CHECK(contains(inserted.out, "2 changes in the journal"));
  CHECK(contains(walk({"run", index, "-p", prompt, "-n", "4"}).out, prompt + " Bob"));
  CHECK(walk({"run", index, "-p", prompt, "-n", "4", "--base"}).out == before.out);
  REQUIRE(call({"fold", fable(), index, "-o", folded}).code == 0);
  CHECK(contains(call({"run", "-m", folded, "-p", prompt, "-n", "4"}).out, "Bob"));
  const auto changed = walk({"edit", index, "list", "--json"}).json();
  REQUIRE(changed["changed"].size() == 1);
  const std::string feature = std::to_string(changed["changed"][0]["feature"].get<int>());
  CHECK(walk({"edit", index, "remove", "--layer", "4", "--feature", feature}).code == 0);
  CHECK(walk({"edit", index, "restore", "--layer", "4", "--feature", feature}).code == 0);
  CHECK(walk({"run", index, "-p", prompt, "-n", "4"}).out == before.out);

  const auto trace =
      walk({"trace", index, "-p", "the cat", "-n", "1", "--top", "3", "--html", folder / "trace.html", "--json"})
          .json();
  CHECK(trace["tokens"].size() == 4);
  CHECK(trace["fired"].size() == 4 * 8 * 3);
  CHECK(trace["fired"][0]["score"].get<double>() > 0);
  CHECK(trace["promotes"][0]["tokens"].size() == 5);
  CHECK(contains(content(folder / "trace.html"), "grid-template-columns"));
  const auto on_device =
      walk({"trace", index, "-p", "the cat", "-n", "1", "--top", "3", "--on-device", "--json"}).json();
  CHECK(on_device["tokens"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(on_device["tokens"][i]["id"] == trace["tokens"][i]["id"]);
  REQUIRE(on_device["fired"].size() == trace["fired"].size());
  for (std::size_t i = 0; i < on_device["fired"].size(); ++i) {
    const double found = on_device["fired"][i]["contribution"].get<double>(),
                 expected = trace["fired"][i]["contribution"].get<double>();
    CHECK(std::abs(found - expected) < 1e-3 * expected);
  }
  CHECK(walk({"trace", index, "-p", "the cat", "-k", "9", "--on-device"}).code == 2);
  CHECK(walk({"router", index, "run", "-p", "the cat"}).code == 1);  // there is none yet
  CHECK(call({"walk", "router", index, "build", "--experts", "8", "--method", "contiguous"}).code == 0);
  const auto routed = walk({"router", index, "run", "-p", "the cat", "-n", "1", "--top-k", "8", "--json"}).json();
  CHECK(routed["last_logits"]["relative_error"] == 0.0);
  CHECK(routed["features_walked"] == 1.0);
  const auto some = walk({"router", index, "run", "-p", "the cat", "-n", "1", "--top-k", "2", "--json"}).json();
  CHECK(some["features_walked"] == 0.25);
  CHECK(some["layers"][3]["chosen"].size() == 8);
  CHECK(call({"walk", "router", index, "build", "--experts", "2000"}).code == 2);
  const auto sweep =
      walk({"sweep", index, "-p", "the cat", "-n", "1", "--html", folder / "curve.html", "--json"}).json();
  CHECK(sweep["boundary"].size() == 9);
  for (const auto& each : sweep["boundary"]) CHECK(each["relative_error"] == 0.0);
  CHECK(sweep["count"][0]["kl_nats"].get<double>() > sweep["count"][6]["kl_nats"].get<double>());
  CHECK(sweep["count"].back()["relative_error"] == 0.0);
  CHECK(contains(content(folder / "curve.html"), "<svg"));
  const auto near = walk({"knn", index, "-p", "the cat", "--layer", "2", "--top", "3", "--json"}).json();
  CHECK(near.size() == 3);
  CHECK(std::abs(near[0]["score"].get<double>()) >= std::abs(near[2]["score"].get<double>()));
  // All tokens at once on the device: the same features, but for the rounding of their sums.
  const auto every = walk({"knn", index, "-p", "the cat", "--layer", "2", "--top", "3", "--each", "--json"}).json();
  const auto there =
      walk({"knn", index, "-p", "the cat", "--layer", "2", "--top", "3", "--each", "--on-device", "--json"}).json();
  REQUIRE((every.size() == 9 && there.size() == 9));
  for (std::size_t i = 0; i < 3; ++i) CHECK(every[6 + i]["feature"] == near[i]["feature"]);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(there[i]["position"] == i / 3);
    CHECK(std::abs(there[i]["score"].get<double>() - every[i]["score"].get<double>()) < 1e-4);
  }
  const outcome no_graph = walk({"knn", index, "--hnsw"});
  CHECK(no_graph.code == 1);
  CHECK(contains(no_graph.err, "`intaglio index MODEL -o INDEX --hnsw` makes them"));
  const outcome graph = call(
      {"index", fable(), "-o", index, "--hnsw", "--links", "6", "--construction", "20", "--search", "300", "--json"});
  if (graph.code != 0) {
    CHECK(contains(graph.err, "built without hnswlib"));
  } else {
    CHECK(graph.json()["graph"]["layers"] == 8);
    CHECK(contains(
        call({"index", fable(), "-o", index, "--hnsw", "--links", "6", "--construction", "20", "--search", "400"}).out,
        "8 of which were there"));
    CHECK(contains(call({"index", fable(), "-o", index, "--hnsw"}).err, "links: wanted 16, file 6"));
    const auto by_graph =
        walk({"knn", index, "-p", "the cat", "--layer", "2", "--top", "3", "--hnsw", "--json"}).json();
    CHECK(by_graph["features"] == near);
    CHECK(by_graph["hnsw"][0]["recall"] == 1.0);
    const auto timed = walk({"bench", index, "-p", "the cat", "-n", "1", "--hnsw", "--json"}).json()["hnsw"];
    REQUIRE(timed.size() == 9);
    CHECK(timed[8]["layer"] == "all");
    CHECK(timed[8]["recall"].get<double>() > 0.8);
    CHECK(timed[8]["graph_us"].get<double>() > 0);
  }
  CHECK(call({"index", fable(), "-o", index, "--links", "6"}).code == 2);
  const auto bench = walk({"bench", index, "-p", "the cat", "-n", "1", "--json"}).json();
  CHECK(bench["ways"].size() == 4);
  for (const auto& each : bench["ways"]) CHECK(each["layers"].size() == 8);
  CHECK(bench["ways"][1]["reads"][0]["bytes"] == 8 * 1024 * 256 * 4.0);
  CHECK(bench["ways"][1]["reads"][1]["bytes"] == bench["ways"][1]["reads"][0]["bytes"]);
  CHECK(bench["ways"][2]["reads"][1]["bytes"].get<double>() < bench["ways"][1]["reads"][1]["bytes"].get<double>());
  CHECK(bench["ways"][2]["reads"][2]["bytes"] == bench["ways"][1]["reads"][2]["bytes"]);  // what is off adds nothing
  for (const auto& each : bench["ways"][1]["reads"]) CHECK(each["percent_of_streaming_read"].get<double>() > 0);
  const auto memory = walk({"memory", index, "-p", "the cat", "--json"}).json();
  CHECK(memory["relative_error"] == 0.0);
  CHECK(memory["weights"]["walk_only"].get<double>() < memory["weights"]["dense"].get<double>() - 1.5e6);

  // What cannot be.
  CHECK(walk({"edit", index, "remove", "--layer", "8", "--feature", "0"}).code == 2);
  CHECK(
      contains(walk({"edit", index, "remove", "--layer", "2", "--feature", "1024"}).err, "expected a feature of 1024"));
  write(folder / "vectors.json", R"({"gate": [1, null], "up": [1], "down": [1]})");
  CHECK(contains(
      walk({"edit", index, "update", "--layer", "2", "--feature", "0", "--vectors", folder / "vectors.json"}).err,
      "no numbers under \"gate\""));
  const outcome other = call({"walk", "run", index, "-m", shared("models/stories260k/stories260K-f32.gguf").string()});
  CHECK(other.code == 1);
  CHECK(contains(other.err, "model_type: engraved"));
  CHECK(call({"walk"}).code == 2);
  REQUIRE(call({"pack", fable(), "-o", folder / "fable.packed"}).code == 0);
  const outcome packed = call({"index", folder / "fable.packed", "-o", folder / "none"});
  CHECK(packed.code == 1);
  CHECK(contains(packed.err, "the model that it was packed from"));
}
