// SPDX-License-Identifier: MIT
// What the README shows is what is there: the first program, a model's definition, a plan.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace {

std::string content(const std::string& path) {
  std::ifstream file(std::string(INTAGLIO_SOURCE "/") + path);
  std::string out{std::istreambuf_iterator<char>(file), {}};
  INFO(path);
  REQUIRE_FALSE(out.empty());
  return out;
}

/// From the first line that begins with `first` to the first one behind it that begins with `last`, both among them.
/// Lines that speak to clang-format are left out.
std::string lines_between(const std::string& text, const std::string& first, const std::string& last,
                          const std::string& indent = "") {
  std::istringstream in(text);
  std::string out;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    inside = inside || line.starts_with(first);
    if (inside && !line.ends_with("// clang-format off") && !line.ends_with("// clang-format on"))
      out += (line.empty() ? "" : indent) + line + '\n';
    if (inside && line.starts_with(last)) return out;
  }
  FAIL("expected lines from '" << first << "' to '" << last << "', found none");
  return {};
}

}  // namespace

TEST_CASE("the README shows the hello program, a model and a plan as they are") {
  const std::string readme = content("README.md");
  const auto shows = [&](const std::string& part) {
    INFO("expected in README.md:\n" << part);
    CHECK(readme.find(part) != std::string::npos);
  };
  shows(lines_between(content("examples/hello/main.cpp"), "#include", "}"));
  const std::string model = content("include/intaglio/models/bitnet_b158.hpp");
  shows(lines_between(model, "template <dtype W, dtype A", "}"));
  shows(lines_between(model, "template <const decoder_config& c", "};"));
  shows(lines_between(content("tests/golden/fable.cpu.txt"), "decode: up to", "  once     | sample", "    "));
}
