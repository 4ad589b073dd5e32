// SPDX-License-Identifier: MIT
// What scripts with numpy write of tiny models (tests/runtime/*.py): logits and prompts.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace intaglio::testing {

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  REQUIRE(in);
  std::vector<float> out(static_cast<std::size_t>(in.tellg()) / sizeof(float));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  return out;
}

/// Token ids of a prompt of the model in a folder.
inline std::vector<std::int32_t> prompt_of(const std::filesystem::path& model, const std::string& name) {
  std::ifstream in(model / "prompts.json");
  return nlohmann::json::parse(in)[name].get<std::vector<std::int32_t>>();
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    out = (std::max)(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

}  // namespace intaglio::testing
