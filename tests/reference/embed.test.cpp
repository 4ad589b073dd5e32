// SPDX-License-Identifier: MIT
#include "intaglio/reference/embed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace {

using namespace intaglio;
namespace at = kernels::state;

TEST_CASE("embed widens rows, keeps history and leaves later tokens untouched") {
  constexpr std::uint32_t vocabulary = 3, width = 8, max_tokens = 4, context = 6;
  std::vector<std::byte> table(vocabulary * width * 2);
  reference::elements rows(table, kernels::element::bf16);
  for (std::uint32_t i = 0; i < vocabulary * width; ++i) rows.store(i, 0.5f * static_cast<float>(i));
  std::vector<std::uint32_t> state(at::words(max_tokens, context), 77);
  state[at::position] = 4;
  state[at::count] = 3;
  state[at::tokens] = 2;
  state[at::tokens + 1] = 9;  // past the vocabulary: row 0
  state[at::tokens + 2] = 1;  // position 6: past the context
  std::vector<float> output(max_tokens * width, -1.0f);
  reference::embed(table, kernels::codec::bf16, vocabulary, width, max_tokens, context, state, output);
  for (std::uint32_t c = 0; c < width; ++c) {
    CHECK(output[c] == 0.5f * static_cast<float>(2 * width + c));
    CHECK(output[width + c] == 0.5f * static_cast<float>(c));
    CHECK(output[2 * width + c] == 0.5f * static_cast<float>(width + c));
    CHECK(output[3 * width + c] == -1.0f);
  }
  CHECK(state[at::history(max_tokens) + 3] == 77);
  CHECK(state[at::history(max_tokens) + 4] == 2);
  CHECK(state[at::history(max_tokens) + 5] == 9);
}

TEST_CASE("embed never reads more tokens than the state has room for") {
  constexpr std::uint32_t max_tokens = 1, context = 2;
  const std::vector<std::byte> table(4);
  std::vector<std::uint32_t> state(at::words(max_tokens, context));
  state[at::count] = 1000;
  std::vector<float> output(1, 5.0f);
  reference::embed(table, kernels::codec::f32, 1, 1, max_tokens, context, state, output);
  CHECK(output[0] == 0.0f);
}

TEST_CASE("embed multiplies by its scale") {
  std::vector<std::byte> table(8 * 4);
  reference::elements(table, kernels::element::f32).store(0, 1.5f);
  std::vector<std::uint32_t> state(at::words(1, 2));
  state[at::count] = 1;
  std::vector<float> output(8);
  reference::embed(table, kernels::codec::f32, 1, 8, 1, 2, state, output, 50.5f);
  CHECK(output[0] == 75.75f);
}

}  // namespace
