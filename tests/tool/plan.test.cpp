// SPDX-License-Identifier: MIT
#include "tool/program.hpp"

using namespace tool_test;

TEST_CASE("plan prints the sequence as text and as JSON") {
  for (const std::string name : {"fable", "bitnet_2b_4t"})
    for (const std::string profile : {"cpu", "portable"}) {
      CAPTURE(name, profile);
      const outcome text = call({"plan", name, "--profile", profile});
      CHECK(text.code == 0);
      CHECK(contains(text.out, "attn_q+attn_k+attn_v"));
      const auto json = call({"plan", name, "--profile", profile, "--json"}).json();
      CHECK(json["model"] == name);
      const auto& decode = json["sequences"][0];
      CHECK(decode["name"] == "decode");
      const bool unrolled = profile == "cpu";  // norms are dispatches of their own
      CHECK(decode["period"].size() <= (unrolled ? 9 : 5));
      CHECK(decode["prologue"].size() + decode["epilogue"].size() <= (unrolled ? 4 : 3));
      CHECK(decode["dispatches"] == decode["prologue"].size() + decode["epilogue"].size() +
                                        decode["layers"].get<std::size_t>() * decode["period"].size());
    }
}

TEST_CASE("plan makes those of the other profiles when asked") {
  const auto kernels = [](const std::string& name, const std::string& profile) {
    return name == "fable" ? call({"plan", name, "--profile", profile}).out
                           : call({"plan", name, "--codec", "f16", "--profile", profile}).out;
  };
  CHECK(contains(kernels("fable", "screened"), "head_screen"));
  CHECK(contains(kernels("fable", "attends_in_f16"), "attention_f16"));
  CHECK_FALSE(contains(kernels("fable", "portable"), "head_screen"));
  CHECK(contains(kernels("stories260k", "portable"), "matmul_chunk"));
  CHECK_FALSE(contains(kernels("stories260k", "exact"), "matmul_chunk"));
  CHECK(contains(kernels("stories260k", "screened"), "matmul_chunk"));
  CHECK(call({"plan", "fable", "--profile", "other"}).code == 2);
}

namespace {

/// A page without scripts and links, whose tags are closed.
void expect_alone(const std::string& page, const std::vector<std::string>& tags) {
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(contains(page, "prefers-color-scheme:dark"));
  CHECK_FALSE(contains(page, "http"));
  CHECK_FALSE(contains(page, "<script"));
  for (const std::string& tag : tags) {
    std::size_t opened = 0, closed = 0;
    for (std::size_t at = 0; (at = page.find("<" + tag, at)) != std::string::npos; ++at)
      opened += page[at + tag.size() + 1] == '>' || page[at + tag.size() + 1] == ' ';
    for (std::size_t at = 0; (at = page.find("</" + tag + ">", at)) != std::string::npos; ++at) ++closed;
    CAPTURE(tag);
    CHECK(opened == closed);
    CHECK(opened > 0);
  }
}

}  // namespace

TEST_CASE("the page stands alone") {
  const temporary_folder folder;
  const outcome got = call({"plan", "bitnet_2b_4t", "--html", folder / "plan.html"});
  CHECK(got.code == 0);
  CHECK(got.out.empty());
  const std::string page = content(folder / "plan.html");
  expect_alone(page, {"svg", "section", "article", "table", "div", "p"});
  CHECK(contains(page, "\u00d7 30 layers"));
  CHECK(contains(page, "norm_prologue"));
  const outcome nowhere = call({"plan", "fable", "--html", folder / "no/such/folder/plan.html"});
  CHECK(nowhere.code == 1);
  CHECK(contains(nowhere.first_error(), "plan.html"));
}

TEST_CASE("a cut has a page, where the stages are side by side in time, and JSON with an array of stages") {
  const temporary_folder folder;
  const outcome got = call({"plan", "fable", "--cut", "3,6", "--html", folder / "cut.html"});
  CHECK(got.code == 0);
  const std::string page = content(folder / "cut.html");
  expect_alone(page, {"svg", "g", "section", "table", "div", "p"});
  for (const std::string words :
       {"stage 0, profile cpu: embedding, layers 0 to 2", "stage 2, profile cpu: layers 6 to 7, head, sampler",
        "token 2, stage 1</title>", "chunk 4, stage 2</title>",
        "the host waits for the pass of stage 1, then submits that of stage 2"})
    CHECK(contains(page, words));
  const auto json = call({"plan", "fable", "--cut", "3,6", "--json"}).json();
  REQUIRE(json["stages"].size() == 3);
  std::size_t dispatches = 0;
  for (const auto& stage : json["stages"]) {
    CHECK(stage["plan"]["sequences"][0]["name"] == "decode");
    CHECK(stage["plan"]["sequences"][0]["layers"] ==
          stage["end_layer"].get<std::size_t>() - stage["first_layer"].get<std::size_t>());
    dispatches += stage["plan"]["sequences"][0]["dispatches"].get<std::size_t>();
  }
  CHECK(dispatches == call({"plan", "fable", "--json"}).json()["sequences"][0]["dispatches"]);
  CHECK(json["stages"][1]["gives"]["token_bytes"] == 4 * json["stages"][1]["gives"]["width"].get<std::size_t>());
  CHECK(json["stages"][2]["gives"].is_null());
  const outcome timed = call({"plan", "fable", "--cut", "3", "--html", folder / "x.html", "--bench", "bench.json"});
  CHECK(timed.code == 2);
  CHECK(contains(timed.first_error(), "--bench: expected a plan on one device"));
}

TEST_CASE("times of another plan are refused") {
  const temporary_folder folder;
  write(folder / "bench.json",
        R"({"plan":{"model":"fable","profile":"cpu","hash":"1"},"sequences":[],"stream_bytes_per_second":1,)"
        R"("device":"x"})");
  const outcome other = call({"plan", "fable", "--html", folder / "plan.html", "--bench", folder / "bench.json"});
  CHECK(other.code == 1);
  CHECK(contains(other.first_error(), "bench.json: plan that was measured: expected fable for profile cpu"));
  write(folder / "bench.json", "[1, 2");
  CHECK(call({"plan", "fable", "--html", folder / "plan.html", "--bench", folder / "bench.json"}).code == 1);
  CHECK_FALSE(fs::exists(folder / "plan.html"));
}
