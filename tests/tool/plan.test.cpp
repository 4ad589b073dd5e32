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

TEST_CASE("the page stands alone") {
  const temporary_folder folder;
  const outcome got = call({"plan", "bitnet_2b_4t", "--html", folder / "plan.html"});
  CHECK(got.code == 0);
  CHECK(got.out.empty());
  const std::string page = content(folder / "plan.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(contains(page, "prefers-color-scheme:dark"));
  CHECK(contains(page, "\u00d7 30 layers"));
  CHECK(contains(page, "norm_prologue"));
  CHECK_FALSE(contains(page, "http"));
  CHECK_FALSE(contains(page, "<script"));
  for (const std::string tag : {"svg", "section", "article", "table", "div", "p"}) {
    std::size_t opened = 0, closed = 0;
    for (std::size_t at = 0; (at = page.find("<" + tag, at)) != std::string::npos; ++at)
      opened += page[at + tag.size() + 1] == '>' || page[at + tag.size() + 1] == ' ';
    for (std::size_t at = 0; (at = page.find("</" + tag + ">", at)) != std::string::npos; ++at) ++closed;
    CAPTURE(tag);
    CHECK(opened == closed);
    CHECK(opened > 0);
  }
  const outcome nowhere = call({"plan", "fable", "--html", folder / "no/such/folder/plan.html"});
  CHECK(nowhere.code == 1);
  CHECK(contains(nowhere.first_error(), "plan.html"));
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
