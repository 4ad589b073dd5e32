// SPDX-License-Identifier: MIT
#include "../../examples/tool/thought_text.hpp"

#include <catch2/catch_test_macros.hpp>

using intaglio::tool::thought_text;

namespace {

std::string shown(std::string_view reply, std::size_t step) {
  thought_text text("(", ")");
  std::string out;
  for (std::size_t at = 0; at < reply.size(); at += step) out += text.show(reply.substr(at, step));
  return out + text.finish();
}

}  // namespace

TEST_CASE("thoughts are set apart, in pieces of any length", "[thought_text]") {
  for (const std::size_t step : {1u, 2u, 5u, 100u}) {
    INFO(step);
    CHECK(shown("<think>\nso it is\n</think>\n\nFour", step) == "(so it is)\n\nFour");
    CHECK(shown("\n[THINK]a < b[/THINK]c", step) == "(a < b)c");
    CHECK(shown("<think></think>x", step) == "()x");
    CHECK(shown("<think>cut </thi", step) == "(cut </thi)");
    CHECK(shown("No <think>thought</think>", step) == "No <think>thought</think>");
    CHECK(shown("<thin", step) == "<thin");
    CHECK(shown(" <b>", step) == " <b>");
    CHECK(shown("", step).empty());
  }
}
