// SPDX-License-Identifier: MIT
// One test a rule: what it merges, and what keeps it from merging.
#include "intaglio/plan/fuse.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "intaglio/ir/trace.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;
using kernels::kernel;

namespace {
constexpr dtype ternary = dtype::i2_s;

/// Traces `body` over a 256-wide embedding inside a period and fuses it; the period's result is its input.
template <class Body>
constexpr std::vector<plan::node> fused(Body body, bool norm_prologue, text<256>& failure) {
  ir::trace t;
  const auto x = t.embedding("token_embd.weight", 1024, 256);
  t.repeat(x, 2, [&](ir::value_id in) { return body(t, in); });
  failure = t.graph().failure;
  return plan::fuser{t.graph(), {norm_prologue}}.run(failure);
}
template <class Body>
constexpr std::size_t count(Body body, bool norm_prologue) {
  text<256> failure;
  const auto nodes = fused(body, norm_prologue, failure);
  return failure.empty() ? nodes.size() - 1 : 0;
}

constexpr auto projection = [](ir::trace& t, ir::value_id x) {
  const auto h = t.quantize(t.rms_norm(x, "norm.weight", 1e-5f), "norm");
  return t.add(x, t.matmul(h, "out.weight", 256, 256, ternary));
};
static_assert(count(projection, false) == 2, "norm_quantize; matmul with residual_add");
static_assert(count(projection, true) == 1, "norm_prologue takes the norm in");

constexpr auto ffn = [](ir::trace& t, ir::value_id x) {
  const auto h = t.quantize(t.rms_norm(x, "norm.weight", 1e-5f), "norm");
  const auto gate = t.matmul(h, "gate.weight", 512, 256, ternary);
  const auto up = t.matmul(h, "up.weight", 512, 256, ternary);
  const auto g = t.gated(gate, up, activation::silu);
  const auto s = t.quantize(t.rms_norm(g, "sub.weight", 1e-5f), "sub");
  return t.add(x, t.matmul(s, "down.weight", 256, 512, ternary));
};
static_assert(count(ffn, false) == 4 && count(ffn, true) == 2);

constexpr auto float_ffn = [](ir::trace& t, ir::value_id x) {
  const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
  const auto gate = t.matmul(h, "gate.weight", 512, 256, ternary);
  const auto up = t.matmul(h, "up.weight", 512, 256, ternary);
  const auto g = t.gated(gate, up, activation::silu);
  return t.add(x, t.matmul(t.rms_norm(g, "sub.weight", 1e-5f), "down.weight", 256, 512, ternary));
};
static_assert(count(float_ffn, false) == 2 && count(float_ffn, true) == 2, "norm_float takes the norms in, however many tokens a pass has");
}  // namespace

TEST_CASE("norm_float puts the norm in front of each product that reads it", "[plan][fuse]") {
  text<256> failure;
  const auto nodes = fused(float_ffn, true, failure);
  REQUIRE(failure.empty());
  for (const std::size_t i : {1u, 2u}) {
    CHECK(nodes[i].kernel == kernel::ternary_float);
    CHECK(nodes[i].prologue == kernels::prologue::norm);
    CHECK(nodes[i].norm != ir::none);
    CHECK(plan::rules[nodes[i].rule].name == "norm_float");
  }
  CHECK(nodes[1].epilogue == kernels::epilogue::gated);
  CHECK(nodes[1].op_count == 4);  // rms_norm, gate, up, gated
  CHECK(nodes[2].epilogue == kernels::epilogue::add);

  const auto two = fused([](ir::trace& t, ir::value_id x) {
    const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
    const auto a = t.matmul(h, "a.weight", 256, 256, ternary);
    return t.add(a, t.matmul(h, "b.weight", 256, 256, ternary));
  }, true, failure);
  REQUIRE(two.size() == 3);
  CHECK(two[1].norm == two[2].norm);
  CHECK(two[1].in == two[2].in);
  CHECK(two[1].op_count + two[2].op_count == 4);  // the norm counts once

  const auto bare = fused([](ir::trace& t, ir::value_id x) { return t.add(x, t.matmul(x, "a.weight", 256, 256, ternary)); }, true, failure);
  REQUIRE(bare.size() == 2);
  CHECK(bare[1].prologue == kernels::prologue::plain);
  CHECK(plan::rules[bare[1].rule].name == "residual_add");
}

TEST_CASE("the stream is not overwritten while a norm of it is still to be computed", "[plan][fuse]") {
  text<256> failure;
  (void)fused([](ir::trace& t, ir::value_id x) {
    const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
    const auto a = t.add(x, t.matmul(h, "a.weight", 256, 256, ternary));
    return t.add(a, t.matmul(h, "b.weight", 256, 256, ternary));
  }, true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("no kernel computes add"));
}

TEST_CASE("gate_up keeps the order gate, up and the activation", "[plan][fuse]") {
  text<256> failure;
  const auto nodes = fused(ffn, true, failure);
  REQUIRE(failure.empty());
  CHECK(nodes[1].kernel == kernel::ternary_matmul);
  CHECK(nodes[1].epilogue == kernels::epilogue::gated);
  CHECK(nodes[1].act == activation::silu);
  CHECK(nodes[1].weight_count == 2);
  CHECK(plan::rules[nodes[1].rule].name == "norm_prologue");
  CHECK(nodes[1].op_count == 5);  // rms_norm, quantize, gate, up, gated
  CHECK(nodes[2].epilogue == kernels::epilogue::add);
}

TEST_CASE("a norm with two readers stays a dispatch of its own", "[plan][fuse]") {
  const auto two = [](ir::trace& t, ir::value_id x) {
    const auto h = t.quantize(t.rms_norm(x, "norm.weight", 1e-5f), "norm");
    const auto a = t.add(x, t.matmul(h, "a.weight", 256, 256, ternary));
    return t.add(a, t.matmul(h, "b.weight", 256, 256, ternary));
  };
  text<256> failure;
  const auto nodes = fused(two, true, failure);
  CHECK(std::string(failure.view()).empty());
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[1].kernel == kernel::norm_quantize);
}

TEST_CASE("the stream is not overwritten while somebody still reads it", "[plan][fuse]") {
  const auto parallel = [](ir::trace& t, ir::value_id x) {
    const auto h = t.quantize(t.rms_norm(x, "norm.weight", 1e-5f), "norm");
    const auto a = t.add(x, t.matmul(h, "a.weight", 256, 256, ternary));
    return t.add(x, t.matmul(t.quantize(t.rms_norm(a, "n2.weight", 1e-5f), "n2"), "b.weight", 256, 256, ternary));
  };
  text<256> failure;
  (void)fused(parallel, true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("no kernel computes add"));
}

TEST_CASE("an op without a kernel is named", "[plan][fuse]") {
  text<256> failure;
  (void)fused([](ir::trace& t, ir::value_id x) { return t.rms_norm(x, "lonely.weight", 1e-5f); }, true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("lonely.weight") && ContainsSubstring("no kernel computes rms_norm"));
  failure = {};
  (void)fused([](ir::trace& t, ir::value_id x) { return t.add(x, t.matmul(x, "dense.weight", 256, 256, dtype::f16)); }, true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("dense.weight") && ContainsSubstring("found f16 weights of f32"));
}

TEST_CASE("every rule says what it merges and why", "[plan][fuse]") {
  for (std::size_t i = 1; i < plan::rules.size(); ++i) {
    CHECK_FALSE(plan::rules[i].merges.empty());
    CHECK_FALSE(plan::rules[i].reason.empty());
    CHECK(plan::rule_index(plan::rules[i].name) == i);
  }
}
