// SPDX-License-Identifier: MIT
// The walk commands on a mixture of experts that the tool itself engraved: what they show of it against its forward
// pass in double precision, and what they refuse, by the word that says why.
#include <map>
#include <set>

#include "io/vocabularies.hpp"
#include "mixtral_model.hpp"
#include "tool/program.hpp"

using namespace tool_test;
using intaglio::testing::mixtral_tiny;

TEST_CASE("walk: every command on a mixture of experts, or why not") {
  const temporary_folder folder;
  const intaglio::testing::mixtral_model exact(mixtral_tiny, 11);
  auto words = small_sentencepiece();
  for (std::size_t i = words.tokens.size(); i < mixtral_tiny.vocab_size; ++i)
    words.tokens.push_back("piece" + std::to_string(i)), words.token_types.push_back(1), words.scores.push_back(-100);
  const std::string model = folder / "tiny.gguf", index = folder / "index";
  exact.write_gguf(model, words);
  const std::vector<std::int32_t> prompt{1, 53, 106};
  const auto walk = [&](std::vector<std::string> arguments, bool ids = true) {
    arguments.insert(arguments.begin(), "walk");
    arguments.insert(arguments.end(), {"-m", model});
    if (ids) arguments.insert(arguments.end(), {"--ids", "1,53,106"});
    return call(arguments);
  };
  const auto refused = [](const outcome& of, const std::string& why) {
    INFO(of.err);
    CHECK(of.code != 0);
    CHECK(contains(of.first_error(), why));
    CHECK(of.out.empty());
  };
  constexpr std::uint32_t layers = 2, experts = 6, features = 96, of_token = 2 * features;

  CHECK(contains(call({"index", model, "-o", index}).out, "2 layers of 576 features of 6 experts, gate f32"));
  const auto again = call({"index", model, "-o", index, "--json"}).json();
  CHECK(again["features"] == experts * features);
  CHECK(again["experts"] == experts);
  refused(call({"index", model, "-o", folder / "graph", "--hnsw"}), "--hnsw: expected a model with one FFN a layer");
  CHECK_FALSE(fs::exists(folder / "graph"));
  refused(call({"index", index, "-o", folder / "larql", "--larql"}), "one FFN each");

  // The walk is the model, and K features of those of the token's experts are not.
  const auto greedy = exact.greedy(prompt, 5);
  CHECK(walk({"run", index, "-n", "5", "--json"}).json()["ids"] == greedy);
  CHECK(walk({"run", index, "-n", "5", "-k", std::to_string(of_token), "--json"}).json()["ids"] == greedy);
  CHECK(walk({"run", index, "-n", "5", "-k", "16", "--json"}).json()["ids"] != greedy);

  const auto bench = walk({"bench", index, "-n", "2", "--json"}).json();
  REQUIRE(bench["ways"].size() == 4);
  for (const auto& each : bench["ways"]) {
    CHECK(each["layers"].size() == layers);
    CHECK(each["ffn"].get<double>() > 0);
  }
  for (const std::size_t full : {1u, 2u}) {  // of SiLU's features none is off
    CHECK(bench["ways"][full]["features"] == of_token);
    for (const auto& read : bench["ways"][full]["reads"])
      CHECK(read["bytes"] == 4.0 * mixtral_tiny.hidden_size * of_token * layers);
  }
  CHECK(bench["ways"][3]["features"] == of_token / 4);

  const auto sweep = walk({"sweep", index, "-n", "1", "--html", folder / "curve.html", "--json"}).json();
  CHECK(sweep["features"] == of_token);
  REQUIRE(sweep["boundary"].size() == layers + 1);
  for (const auto& each : sweep["boundary"]) CHECK(each["relative_error"].get<double>() < 1e-5);
  CHECK(sweep["count"].front()["kl_nats"].get<double>() > 100 * sweep["count"].back()["kl_nats"].get<double>());
  CHECK(sweep["count"].back()["features"] == of_token);
  CHECK(sweep["count"].back()["relative_error"].get<double>() < 1e-5);
  CHECK(contains(content(folder / "curve.html"), "<svg"));

  // Without the dense experts; routers, attention, norms, embedding and head stay.
  const auto memory = walk({"memory", index, "--json"}).json();
  CHECK(memory["weights"]["dense"].get<double>() - memory["weights"]["walk_only"].get<double>() ==
        3.0 * 4 * mixtral_tiny.hidden_size * experts * features * layers);
  CHECK(memory["same_top1"] == true);
  CHECK(memory["relative_error"].get<double>() < 1e-5);

  // What fired and what is nearest belongs to two experts a token.
  const auto belong = [&](const nlohmann::json& found, const char* token, std::size_t tokens) {
    std::map<std::pair<int, int>, std::set<int>> experts_of;
    for (const auto& each : found)
      experts_of[{each[token], each["layer"]}].insert(each["feature"].get<int>() / static_cast<int>(features));
    CHECK(experts_of.size() == tokens * layers);
    for (const auto& [at, some] : experts_of) CHECK(some.size() <= 2);
  };
  const auto trace = walk({"trace", index, "-n", "1", "--top", "9", "--html", folder / "trace.html", "--json"}).json();
  CHECK(trace["model"] == "tiny");
  CHECK(trace["tokens"].size() == prompt.size() + 1);
  CHECK(trace["fired"].size() == 9 * layers * (prompt.size() + 1));
  belong(trace["fired"], "token", prompt.size() + 1);
  CHECK(contains(content(folder / "trace.html"), "grid-template-columns"));
  refused(walk({"trace", index, "--on-device"}), "--on-device: expected a model with one FFN a layer");
  const auto near = walk({"knn", index, "--each", "--top", "9", "--json"}).json();
  CHECK(near.size() == 9 * layers * prompt.size());
  belong(near, "position", prompt.size());
  for (const auto& each : near) CHECK(each["score"] != 0.0);
  refused(walk({"knn", index, "--on-device"}), "--on-device: expected a model with one FFN a layer");
  refused(walk({"knn", index, "--hnsw"}), "--hnsw: expected a model with one FFN a layer");
  refused(walk({"bench", index, "--hnsw"}), "--hnsw: expected a model with one FFN a layer");

  refused(walk({"router", index, "run"}), "router.bin");  // there is none yet
  refused(call({"walk", "router", index, "build"}), "expected the mixture of experts that the index was made of");
  CHECK(contains(walk({"router", index, "build"}, false).out, "2 layers of 6 experts with 96 to 96 features"));
  const auto routed = walk({"router", index, "run", "-n", "2", "--top-k", "2", "--json"}).json();
  CHECK(routed["ids"] == std::vector<std::int32_t>(greedy.begin(), greedy.begin() + 2));
  CHECK(std::abs(routed["features_walked"].get<double>() - 1. / 3) < 1e-9);
  CHECK(routed["last_logits"]["relative_error"].get<double>() < 1e-5);
  REQUIRE(routed["layers"].size() == layers);
  for (const auto& layer : routed["layers"]) {
    std::uint64_t chosen = 0;
    double shares = 0;
    for (std::size_t e = 0; e < experts; ++e)
      chosen += layer["chosen"][e].get<std::uint64_t>(), shares += layer["shares"][e].get<double>();
    CHECK(chosen == 2 * routed["tokens"].get<std::uint64_t>());
    CHECK(std::abs(shares - routed["tokens"].get<double>()) < 1e-4);
    CHECK(layer["features"] == of_token * routed["tokens"].get<std::uint64_t>());
    CHECK(layer["all_features"] == experts * features * routed["tokens"].get<std::uint64_t>());
  }
  CHECK(walk({"router", index, "run", "--top-k", "1", "--json"}).json()["last_logits"]["relative_error"].get<double>() >
        1e-3);

  // Experts stay as they are.
  CHECK(walk({"edit", index, "list", "--json"}, false).json()["changes"] == 0);
  const std::string mixture = "a mixture's experts stay as they are";
  for (const std::string action : {"remove", "restore"})
    refused(walk({"edit", index, action, "--layer", "0", "--feature", "3"}, false), mixture);
  refused(walk({"edit", index, "insert", "--layer", "0", "--prompt", "a", "--says", "b"}, false), mixture);
  refused(call({"fold", model, index, "-o", folder / "folded.gguf"}), mixture);
  CHECK_FALSE(fs::exists(folder / "folded.gguf"));
}
