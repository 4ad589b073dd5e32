// SPDX-License-Identifier: MIT
#include "intaglio/runtime/first_not_finite.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "gpu/checked_device.hpp"
#include "intaglio/io/gguf.hpp"
#include "intaglio/runtime/basic_session.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN();

/// bitnet-tiny with a norm weight of layer 1 so large that its products leave the numbers. Finite, so that loading
/// takes it.
std::string spoiled() {
  std::ifstream in(shared("conformance/bitnet-tiny/gguf/bitnet-tiny-b158-i2_s.gguf"), std::ios::binary);
  std::string file((std::istreambuf_iterator<char>(in)), {});
  const io::gguf parsed = io::gguf::from_memory(std::as_bytes(std::span(file)), "tiny");
  const io::gguf_tensor* norm = parsed.find_tensor("blk.1.attn_norm.weight");
  REQUIRE(norm != nullptr);
  REQUIRE(norm->type == dtype::f32);
  const float huge = 3e38f;
  const std::uint64_t at = norm->offset;
  for (std::uint64_t i = 0; i < norm->columns(); ++i) std::memcpy(file.data() + at + 4 * i, &huge, sizeof huge);
  return file;
}

std::string failure(const std::filesystem::path& path, bool find) {
  checked_device on;
  const std::array<const plan::table*, 1> tables{&bitnet_tiny_table()};
  basic_session session(on.device, tables, io::checkpoint::open(path), {.cache_folder = "", .find_first_nan = find});
  try {
    session.generate(std::array<std::int32_t, 3>{1000, 246, 324}, {.max_tokens = 4, .stop_at_end = false});
  } catch (const device_error& problem) {
    CHECK(problem.operation() == "draw a token");
    return problem.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("the first value that is no number: states in order, then positions, then channels") {
  std::array<float, 2 * 3 * 4> states{};  // [2, 3, 4]
  CHECK_FALSE(runtime::first_not_finite(states, 2, 3, 4, 3));
  states[(1 * 3 + 0) * 4 + 2] = -infinite;
  states[(0 * 3 + 2) * 4 + 1] = not_a_number;
  auto found = runtime::first_not_finite(states, 2, 3, 4, 3);
  REQUIRE(found);
  CHECK(found->text() == "the embedding's output, position 2, channel 1: NaN");
  found = runtime::first_not_finite(states, 2, 3, 4, 2);  // rows past the tokens are not looked at
  REQUIRE(found);
  CHECK(found->text() == "the output of layer 0, position 0, channel 2: -infinity");
}

TEST_CASE("logits that are no numbers are an error, which names the layer where asked") {
  const temporary_folder folder;
  const std::filesystem::path path = folder / "spoiled.gguf";
  std::ofstream(path, std::ios::binary) << spoiled();
  const std::string plain = failure(path, false), searched = failure(path, true);
  CHECK_THAT(plain, Catch::Matchers::EndsWith("the logits at position 2 are no numbers"));
  CHECK_THAT(searched,
             Catch::Matchers::ContainsSubstring(
                 "the logits at position 2 are no numbers; first: the output of layer 1, position 0, channel "));
}
