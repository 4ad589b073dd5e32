// SPDX-License-Identifier: MIT
// The plans of fable and of BitNet 2B are approved text in tests/golden: a change of schedule is read in review.
// INTAGLIO_APPROVE=1 writes the texts anew.
#include "intaglio/plan/explain.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/plan/engrave.hpp"
#include "paths.hpp"

using namespace intaglio;

namespace {
void approve(const std::string& name, const std::string& text) {
  const std::filesystem::path path = in_source("tests/golden/" + name);
  if (std::getenv("INTAGLIO_APPROVE")) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string approved{std::istreambuf_iterator<char>(file), {}};
  INFO(path.string() << ": approved text; INTAGLIO_APPROVE=1 replaces it");
  CHECK(text == approved);
}
template <class Model, const plan::profile& Profile>
constexpr const plan::table& table_of = plan::engraved<Model, Profile>::table;
}  // namespace

TEST_CASE("the shipped plans are the approved ones", "[plan][explain]") {
  approve("bitnet_2b_4t.portable.txt",
          plan::explain(table_of<models::bitnet_2b_4t, plan::profiles::portable>, "bitnet_2b_4t"));
  approve("fable.cpu.txt", plan::explain(table_of<models::fable, plan::profiles::cpu>, "fable"));
}

TEST_CASE("JSON names every dispatch", "[plan][explain]") {
  const auto& t = table_of<models::fable, plan::profiles::cpu>;
  const std::string json = plan::explain_json(t, "fable \"quoted\"");
  CHECK_THAT(json, Catch::Matchers::StartsWith("{\"model\":\"fable \\\"quoted\\\"\""));
  std::size_t kernels = 0;
  for (std::size_t at = 0; (at = json.find("\"kernel\":", at)) != std::string::npos; ++at) ++kernels;
  std::size_t dispatches = 0;
  for (const auto* s : {&t.decode, &t.resident_decode, &t.prefill, &t.logits, &t.verify})
    dispatches +=
        s->resident.size() + s->resident_long.size() + s->prologue.size() + s->period.size() + s->epilogue.size();
  CHECK(kernels == dispatches);
}
