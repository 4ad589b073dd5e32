// SPDX-License-Identifier: MIT
#include "intaglio/reference/embed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace {

using namespace intaglio;
namespace at = kernels::state;

TEST_CASE("embed widens rows, keeps history and leaves later tokens untouched") {
  constexpr std::uint32_t vocabulary = 3, width = 2, max_tokens = 4, context = 6;
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
  reference::embed(table, kernels::element::bf16, vocabulary, width, max_tokens, context, state, output);
  CHECK(output == std::vector<float>{2.0f, 2.5f, 0.0f, 0.5f, 1.0f, 1.5f, -1.0f, -1.0f});
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
  reference::embed(table, kernels::element::f32, 1, 1, max_tokens, context, state, output);
  CHECK(output[0] == 0.0f);
}

}  // namespace
