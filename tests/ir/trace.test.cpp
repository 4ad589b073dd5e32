// SPDX-License-Identifier: MIT
#include "intaglio/ir/trace.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace intaglio;

namespace {
template <class Body>
constexpr text<256> failure_of(Body body) {
  ir::trace t;
  const auto x = t.embedding("token_embd.weight", 1024, 256);
  body(t, x);
  return t.graph().failure;
}
static_assert(failure_of([](auto&, auto) {}).empty());
static_assert(failure_of([](auto& t, auto x) { t.matmul(x, "w.weight", 8, 250, dtype::f16); }) ==
              "w.weight: expected linear input width 250, found 256");
static_assert(failure_of([](auto& t, auto x) { t.matmul(x, "w.weight", 8, 256, dtype::i2_s); }).empty());
static_assert(failure_of([](auto& t, auto x) {
                t.repeat(x, 2,
                         [&](auto in) { return t.add(in, t.matmul(in, "ffn_down.weight", 255, 256, dtype::f16)); });
              }) == "blk.*.residual: expected a branch as wide as its input, 256, found 255");
static_assert(failure_of([](auto& t, auto x) { t.attention(x, 6, 4, 64); }) ==
              "self_attention: expected num_attention_heads in multiples of num_key_value_heads 4, found 6");
static_assert(failure_of([](auto& t, auto x) { t.head_norm(x, "attn_q_norm.weight", 1e-6f, 96); }) ==
              "attn_q_norm.weight: expected an input in multiples of head_dim 96, found 256");
static_assert(failure_of([](auto& t, auto x) {
                t.rope(x, "attn_q", 64, {10000.f, {rope_type::linear, 0.5f}});
              }) == "attn_q: rope scaling expects a factor of at least 1, found less");
static_assert(failure_of([](auto& t, auto x) {
                t.rope(x, "attn_q", 64, {10000.f, {rope_type::llama3, 8.f, 4.f, 4.f, 8192}});
              })
                  .view()
                  .starts_with("attn_q: rope scaling llama3 or yarn expects high_freq_factor above"));
static_assert(failure_of([](auto& t, auto x) {
                t.repeat(x, 7, {6, {0, 0, 0, 0, 0, 1}}, [](auto in) { return in; });
              }) == "repeat: expected a block for each kind of the pattern, 2, found 1");
static_assert(failure_of([](auto& t, auto x) { t.repeat(x, 7, {257}, [](auto in) { return in; }); }) ==
              "repeat: expected a pattern of at least 1 layer and at most 256, found 257");
// The first failure is reported.
static_assert(failure_of([](auto& t, auto x) {
                t.rope(x, "first", 6, {10000.f});
                t.rope(x, "second", 7, {10000.f});
              })
                  .view()
                  .starts_with("first"));
}  // namespace

TEST_CASE("a tensor named twice is one weight, another shape is refused", "[ir][trace]") {
  ir::trace t;
  const auto x = t.embedding("token_embd.weight", 1024, 256);
  t.matmul(x, "token_embd.weight", 1024, 256, dtype::f16);
  CHECK(t.graph().weights.size() == 1);
  CHECK_FALSE(t.failed());
  t.matmul(x, "token_embd.weight", 512, 256, dtype::f16);
  CHECK(t.failed());
}

TEST_CASE("a tensor that is tied has one type", "[ir][trace]") {
  ir::trace t;
  const auto x = t.embedding("token_embd.weight", 1024, 256, dtype::f32);
  t.matmul(x, "token_embd.weight", 1024, 256, dtype::f32);
  CHECK_FALSE(t.failed());
  t.matmul(x, "token_embd.weight", 1024, 256, dtype::f16);
  CHECK(t.graph().failure.view() == "token_embd.weight: expected the type of its first use, f32, found f16");
}

TEST_CASE("sections follow repeat", "[ir][trace]") {
  ir::trace t;
  auto x = t.embedding("token_embd.weight", 1024, 256);
  x = t.repeat(x, 3, [&](ir::value_id in) { return t.add(in, t.matmul(in, "w.weight", 256, 256, dtype::f16)); });
  t.output(t.matmul(x, "token_embd.weight", 1024, 256, dtype::f16));
  CHECK(t.graph().layers == 3);
  CHECK(t.graph().ops.front().where == ir::section::prologue);
  CHECK(t.graph().ops[1].where == ir::section::period);
  CHECK(t.graph().ops.back().where == ir::section::epilogue);
  CHECK(t.graph().weights.size() == 2);
  CHECK(std::string(t.graph().ops[1].layer.view()) == "matmul w.weight");
}

TEST_CASE("kinds of block share the names of their tensors", "[ir][trace]") {
  ir::trace t;
  auto x = t.embedding("token_embd.weight", 1024, 256, dtype::f16, 16.f);
  const auto block = [&](float theta) {
    return [&t, theta](ir::value_id in) {
      return t.add(in, t.rope(t.matmul(in, "w.weight", 256, 256, dtype::f16), "w", 64, {theta}));
    };
  };
  x = t.repeat(x, 7, {6, {0, 0, 0, 0, 0, 1}}, block(1e4f), block(1e6f));
  CHECK_FALSE(t.failed());
  const ir::graph& g = t.graph();
  CHECK(g.weights.size() == 2);
  CHECK(g.ops[1].block == 0);
  CHECK(g.ops[4].block == 1);
  CHECK(g.ops[1].in[0] == g.stream_in);
  CHECK(g.ops[4].in[0] == g.block_ends[0]);
  CHECK(g.stream_out == g.block_ends[1]);
  CHECK(g.ops[0].scale == 16.f);
}
