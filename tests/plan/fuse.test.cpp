// SPDX-License-Identifier: MIT
// One test a rule: what it merges, and what keeps it from merging.
#include "intaglio/plan/fuse.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <string_view>
#include <utility>

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
static_assert(count(float_ffn, false) == 2 && count(float_ffn, true) == 2,
              "norm_float takes the norms in, however many tokens a pass has");
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

  const auto two = fused(
      [](ir::trace& t, ir::value_id x) {
        const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
        const auto a = t.matmul(h, "a.weight", 256, 256, ternary);
        return t.add(a, t.matmul(h, "b.weight", 256, 256, ternary));
      },
      true, failure);
  REQUIRE(two.size() == 3);
  CHECK(two[1].norm == two[2].norm);
  CHECK(two[1].in == two[2].in);
  CHECK(two[1].op_count + two[2].op_count == 4);  // the norm counts once

  const auto bare = fused(
      [](ir::trace& t, ir::value_id x) { return t.add(x, t.matmul(x, "a.weight", 256, 256, ternary)); }, true, failure);
  REQUIRE(bare.size() == 2);
  CHECK(bare[1].prologue == kernels::prologue::plain);
  CHECK(plan::rules[bare[1].rule].name == "residual_add");
}

TEST_CASE("int8 inputs without a norm are one product's own, or a dispatch", "[plan][fuse]") {
  const auto alone = [](ir::trace& t, ir::value_id x) {
    return t.add(x, t.matmul(t.quantize(x, "a"), "a.weight", 256, 256, ternary));
  };
  text<256> failure;
  const auto decode = fused(alone, true, failure), prompt = fused(alone, false, failure);
  CHECK(std::string(failure.view()).empty());
  REQUIRE((decode.size() == 2 && prompt.size() == 3));
  CHECK(decode[1].prologue == kernels::prologue::quantize);
  CHECK((prompt[1].kernel == kernel::norm_quantize && prompt[1].prologue == kernels::prologue::quantize));
  CHECK((prompt[1].norm == ir::none && prompt[2].prologue == kernels::prologue::quantized));
}

TEST_CASE("the stream is not overwritten while a norm of it is still to be computed", "[plan][fuse]") {
  text<256> failure;
  (void)fused(
      [](ir::trace& t, ir::value_id x) {
        const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
        const auto a = t.add(x, t.matmul(h, "a.weight", 256, 256, ternary));
        return t.add(a, t.matmul(h, "b.weight", 256, 256, ternary));
      },
      true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("no kernel computes add"));
}

TEST_CASE("the stream is not overwritten between a product and its sum", "[plan][fuse]") {
  // Product a is in front of what reads the stream, its sum with the stream after it.
  const auto expect_refused = [](auto values) {
    text<256> failure;
    (void)fused(
        [&](ir::trace& t, ir::value_id x) {
          const auto [a, b] = values(t, x);
          return t.add(t.add(x, a), b);
        },
        true, failure);
    CHECK_THAT(std::string(failure.view()), ContainsSubstring("no kernel computes add"));
  };
  const auto product = [](ir::trace& t, ir::value_id in, std::string_view name) {
    return t.matmul(in, name, 256, 256, ternary);
  };
  // b's own norm reads the stream after a
  expect_refused([&](ir::trace& t, ir::value_id x) {
    const auto a = product(t, t.quantize(t.rms_norm(x, "n1.weight", 1e-5f), "n1"), "a.weight");
    return std::pair{a, product(t, t.quantize(t.rms_norm(x, "n2.weight", 1e-5f), "n2"), "b.weight")};
  });
  // the norm is in front of a, but b computes it itself
  expect_refused([&](ir::trace& t, ir::value_id x) {
    const auto early = t.quantize(t.rms_norm(x, "n2.weight", 1e-5f), "n2");
    const auto a = product(t, t.quantize(t.rms_norm(x, "n1.weight", 1e-5f), "n1"), "a.weight");
    return std::pair{a, product(t, early, "b.weight")};
  });
  // both products compute the norm
  expect_refused([&](ir::trace& t, ir::value_id x) {
    const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
    const auto a = product(t, h, "a.weight");
    return std::pair{a, product(t, h, "b.weight")};
  });
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

  const auto up_first = fused(
      [](ir::trace& t, ir::value_id x) {
        const auto h = t.quantize(t.rms_norm(x, "norm.weight", 1e-5f), "norm");
        const auto up = t.matmul(h, "up.weight", 512, 256, ternary);
        const auto gate = t.matmul(h, "gate.weight", 512, 256, ternary);
        const auto s = t.quantize(t.gated(gate, up, activation::silu), "sub");
        return t.add(x, t.matmul(s, "down.weight", 256, 512, ternary));
      },
      true, failure);
  REQUIRE(failure.empty());
  REQUIRE(up_first[1].weight_count == 2);
  CHECK(up_first[1].epilogue == kernels::epilogue::gated);
  CHECK(up_first[1].weights[0] == up_first[1].weights[1] + 1);  // the trace met up's matrix first
}

TEST_CASE("gate and up of two codecs are two products, of which gated makes one", "[plan][fuse]") {
  const auto two = [](std::uint32_t traced) {
    return [traced](ir::trace& t, ir::value_id x) {
      const auto h = t.rms_norm(x, "norm.weight", 1e-5f);
      const auto gate = t.matmul(h, "gate.weight", 512, 256, dtype::q4_k),
                 up = t.matmul(h, "up.weight", 512, 256, dtype::q6_k), y = t.gated(gate, up, activation::silu);
      if (traced != 0) t.keep_trace(y, traced);
      return t.add(x, t.matmul(y, "down.weight", 256, 512, dtype::q4_k));
    };
  };
  text<256> failure;
  const auto nodes = fused(two(0), true, failure);
  REQUIRE(failure.empty());
  REQUIRE(nodes.size() == 5);
  for (const std::size_t i : {1u, 2u}) {
    CHECK(nodes[i].kernel == kernel::matmul);
    CHECK(nodes[i].prologue == kernels::prologue::norm);
    CHECK(nodes[i].epilogue == kernels::epilogue::store);
    CHECK(nodes[i].weight_count == 1);
  }
  CHECK(nodes[3].kernel == kernel::gated);
  CHECK((nodes[3].in == nodes[1].out && nodes[3].up_in == nodes[2].out));
  CHECK(nodes[3].act == activation::silu);
  CHECK(nodes[4].in == nodes[3].out);
  (void)fused(two(4), true, failure);
  CHECK_THAT(std::string(failure.view()),
             ContainsSubstring("expected gate and up products of one input and one codec"));
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

TEST_CASE("the stream is not overwritten while an op still reads it", "[plan][fuse]") {
  const auto parallel = [](ir::trace& t, ir::value_id x) {
    const auto h = t.quantize(t.rms_norm(x, "norm.weight", 1e-5f), "norm");
    const auto a = t.add(x, t.matmul(h, "a.weight", 256, 256, ternary));
    return t.add(x, t.matmul(t.quantize(t.rms_norm(a, "n2.weight", 1e-5f), "n2"), "b.weight", 256, 256, ternary));
  };
  text<256> failure;
  (void)fused(parallel, true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("no kernel computes add"));
}

TEST_CASE("a norm that nothing reads is the output of an encoder", "[plan][fuse]") {
  text<256> failure;
  const auto nodes =
      fused([](ir::trace& t, ir::value_id x) { return t.rms_norm(x, "last.weight", 1e-5f); }, true, failure);
  CHECK(failure.empty());
  REQUIRE(!nodes.empty());
  CHECK((nodes.back().kernel == kernel::rms_norm && nodes.back().head_dim == 0 && !nodes.back().centered));
}

TEST_CASE("an op without a kernel is named", "[plan][fuse]") {
  text<256> failure;
  const auto gated = [](ir::trace& t, ir::value_id x) {
    return t.gated(t.rms_norm(x, "lonely.weight", 1e-5f), x, shader::activation_function(activation::silu));
  };
  (void)fused(gated, true, failure);
  CHECK_THAT(std::string(failure.view()),
             ContainsSubstring("lonely.weight") && ContainsSubstring("no kernel computes rms_norm"));
  failure = {};
  (void)fused(
      [](ir::trace& t, ir::value_id x) { return t.add(x, t.matmul(x, "coded.weight", 256, 256, dtype::tq1_0)); }, true,
      failure);
  CHECK_THAT(std::string(failure.view()),
             ContainsSubstring("coded.weight") && ContainsSubstring("found tq1_0 weights of f32"));
}

namespace {
/// q, k and v by weights of these types on their way through the cache, with or without norms of the heads.
constexpr auto attention(dtype type, dtype of_k, dtype of_v, bool norms, std::uint32_t window = 0,
                         rope_parameters rope = {}) {
  return [=](ir::trace& t, ir::value_id x) {
    const auto h = t.rms_norm(x, "attn_norm.weight", 1e-5f);
    auto q = t.matmul(h, "attn_q.weight", 256, 256, type), k = t.matmul(h, "attn_k.weight", 128, 256, of_k);
    const auto v = t.matmul(h, "attn_v.weight", 128, 256, of_v);
    if (norms) q = t.head_norm(q, "attn_q_norm.weight", 1e-6f, 64), k = t.head_norm(k, "attn_k_norm.weight", 1e-6f, 64);
    q = t.rope(q, "attn_q", 64, rope), k = t.rope(k, "attn_k", 64, rope);
    t.cache_write(k, v, 2, 64, window);
    const auto a = t.attention(q, 4, 2, 64, 0.1f, window);
    const auto z = t.matmul(a, "attn_output.weight", 256, 256, type);
    return t.add(x, norms ? t.rms_norm(z, "post.weight", 1e-6f) : z);
  };
}
constexpr auto attention(dtype type, dtype of_v, bool norms, std::uint32_t window = 0, rope_parameters rope = {}) {
  return attention(type, type, of_v, norms, window, rope);
}
static_assert(count(attention(dtype::q8_0, dtype::q8_0, false), true) == 3 &&
              count(attention(dtype::f16, dtype::f16, true), true) == 5);
}  // namespace

TEST_CASE("q, k and v of one codec are one product, with window and rotation", "[plan][fuse]") {
  text<256> failure;
  const rope_parameters rope{5e5f, {rope_type::linear, 8.f}};
  const auto nodes = fused(attention(dtype::q4_k, dtype::q4_k, false, 48, rope), true, failure);
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[1].kernel == kernel::matmul);
  CHECK(nodes[1].prologue == kernels::prologue::norm);
  CHECK(nodes[1].epilogue == kernels::epilogue::rope_cache);
  CHECK(nodes[1].rope == rope);
  CHECK(nodes[1].window == 48);
  CHECK(nodes[1].op_count == 7);  // rms_norm, q, k, v, rope, rope, cache_write
  CHECK(nodes[2].window == 48);
  CHECK(nodes[2].scale == 0.1f);
  CHECK(nodes[3].epilogue == kernels::epilogue::add);
  CHECK(nodes[3].prologue == kernels::prologue::plain);
}

TEST_CASE("q, k and v that no one product computes meet in turn", "[plan][fuse]") {
  text<256> failure;
  const rope_parameters rope{5e5f, {rope_type::linear, 8.f}};
  // Products in front of turn: of q and k together and of v, of q and of k and v together, or of each. widths: of the
  // results of stacked products
  const auto check = [&](const std::vector<plan::node>& nodes, std::uint32_t window, kernels::turn_norms norms,
                         const std::vector<std::uint32_t>& widths) {
    INFO(failure.view());
    const std::size_t products = widths.size();
    REQUIRE(nodes.size() >= products + 4);
    for (std::size_t i = 1; i <= products; ++i) {
      CHECK(nodes[i].epilogue == kernels::epilogue::store);
      CHECK(nodes[i].prologue == kernels::prologue::norm);
      CHECK(nodes[i].weight_count == (widths[i - 1] != 0 ? 2 : 1));
      CHECK(nodes[i].out_width == widths[i - 1]);
    }
    const plan::node& turn = nodes[products + 1];
    CHECK(turn.kernel == kernel::turn);
    CHECK(turn.in == nodes[1].out);
    CHECK(turn.k_in == (widths[0] != 0 ? ir::none : nodes[2].out));
    CHECK(turn.v_in == (widths[1] != 0 ? ir::none : nodes[products].out));
    CHECK(turn.window == window);
    CHECK(turn.norms == norms);
    CHECK(nodes[products + 2].kernel == kernel::attention);
    CHECK(nodes[products + 2].in == turn.out);
  };
  using enum kernels::turn_norms;
  check(fused(attention(dtype::q4_k, dtype::q6_k, false, 48), true, failure), 48, none, {384, 0});
  check(fused(attention(dtype::q4_k, dtype::q6_k, true), true, failure), 0, each_head, {384, 0});
  check(fused(attention(dtype::q4_k, dtype::q8_0, dtype::q8_0, true, 48), true, failure), 48, each_head, {0, 256});
  check(fused(attention(dtype::q4_k, dtype::q8_0, dtype::q6_k, false), true, failure), 0, none, {0, 0, 0});
  check(fused(attention(dtype::q4_k, dtype::q8_0, dtype::q4_k, false), true, failure), 0, none, {0, 0, 0});
  // The epilogue of ternary products has neither windows nor scaled rotation.
  check(fused(attention(dtype::i2_s, dtype::i2_s, false, 48), true, failure), 48, none, {0, 0, 0});
  check(fused(attention(dtype::i2_s, dtype::i2_s, false, 0, rope), true, failure), 0, none, {0, 0, 0});
}

namespace {
/// Biases of all or of some of q, k and v, and a norm of all heads at once.
constexpr auto biased(bool of_v, bool norms) {
  return [=](ir::trace& t, ir::value_id x) {
    auto q = t.bias(t.matmul(x, "attn_q.weight", 256, 256, dtype::f16), "attn_q.bias"),
         k = t.bias(t.matmul(x, "attn_k.weight", 128, 256, dtype::f16), "attn_k.bias"),
         v = t.matmul(x, "attn_v.weight", 128, 256, dtype::f16);
    if (of_v) v = t.bias(v, "attn_v.bias");
    if (norms) q = t.rms_norm(q, "attn_q_norm.weight", 1e-6f), k = t.rms_norm(k, "attn_k_norm.weight", 1e-6f);
    q = t.rope(q, "attn_q", 64, {}), k = t.rope(k, "attn_k", 64, {});
    t.cache_write(k, v, 2, 64);
    return t.add(x, t.matmul(t.attention(q, 4, 2, 64), "attn_output.weight", 256, 256, dtype::f16));
  };
}
}  // namespace

TEST_CASE("biases of q, k and v and norms of all heads are turn's", "[plan][fuse]") {
  text<256> failure;
  for (const bool norms : {false, true}) {
    const auto nodes = fused(biased(true, norms), true, failure);
    INFO(failure.view());
    REQUIRE(nodes.size() == 5);
    CHECK(nodes[1].weight_count == 3);
    CHECK(nodes[1].out_width == 512);
    CHECK(nodes[2].kernel == kernel::turn);
    CHECK(nodes[2].k_in == ir::none);
    CHECK(nodes[2].biases[0] != ir::none);
    CHECK(nodes[2].biases[2] != ir::none);
    CHECK(nodes[2].norms == (norms ? kernels::turn_norms::all_heads : kernels::turn_norms::none));
    CHECK(nodes[2].op_count == (norms ? 8 : 6));
  }
  (void)fused(biased(false, false), true, failure);
  CHECK_THAT(std::string(failure.view()),
             ContainsSubstring("no kernel computes bias") && ContainsSubstring("and of two others"));
}

TEST_CASE("the bias of a projection comes with its sum with the stream", "[plan][fuse]") {
  text<256> failure;
  const auto nodes = fused(
      [](ir::trace& t, ir::value_id x) {
        return t.add(x, t.bias(t.matmul(x, "ffn_down.weight", 256, 256, dtype::f16), "ffn_down.bias"));
      },
      true, failure);
  INFO(failure.view());
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[1].epilogue == kernels::epilogue::store);
  CHECK(nodes[2].kernel == kernel::norm_add);
  CHECK(nodes[2].norm == ir::none);
  CHECK(nodes[2].biases[0] != ir::none);
  CHECK(nodes[2].stream == nodes[0].out);
  CHECK(plan::rules[nodes[2].rule].name == "bias_add");
}

TEST_CASE("normalised heads go through turn, post norms through norm_add", "[plan][fuse]") {
  text<256> failure;
  const auto nodes = fused(attention(dtype::q8_0, dtype::q8_0, true, 32), true, failure);
  REQUIRE(nodes.size() == 6);
  CHECK(nodes[1].epilogue == kernels::epilogue::store);
  CHECK(nodes[1].weight_count == 3);
  CHECK(nodes[1].out_width == 512);
  CHECK(plan::rules[nodes[1].rule].name == "norm_float");
  CHECK(nodes[2].kernel == kernel::turn);
  CHECK(nodes[2].norms == kernels::turn_norms::each_head);
  CHECK(nodes[2].in == nodes[1].out);
  CHECK(nodes[2].heads == 4);
  CHECK(nodes[2].kv_heads == 2);
  CHECK(nodes[2].window == 32);
  CHECK(nodes[2].op_count == 5);  // rms_norm, rms_norm, rope, rope, cache_write
  CHECK(nodes[3].in == nodes[2].out);
  CHECK(nodes[4].epilogue == kernels::epilogue::store);
  CHECK(nodes[5].kernel == kernel::norm_add);
  CHECK(nodes[5].stream == nodes[0].out);
  CHECK(nodes[5].in == nodes[4].out);
  // A norm of q alone is not what turn does.
  const auto q_alone = [](ir::trace& t, ir::value_id x) {
    auto q = t.matmul(x, "attn_q.weight", 256, 256, dtype::f16), k = t.matmul(x, "attn_k.weight", 128, 256, dtype::f16);
    const auto v = t.matmul(x, "attn_v.weight", 128, 256, dtype::f16);
    q = t.rope(t.head_norm(q, "attn_q_norm.weight", 1e-6f, 64), "attn_q", 64, {}), k = t.rope(k, "attn_k", 64, {});
    t.cache_write(k, v, 2, 64);
    return t.add(x, t.matmul(t.attention(q, 4, 2, 64), "attn_output.weight", 256, 256, dtype::f16));
  };
  (void)fused(q_alone, true, failure);
  CHECK_THAT(std::string(failure.view()), ContainsSubstring("no kernel computes rms_norm"));
}

TEST_CASE("a head of blocks is a product, one of floats the head's kernel", "[plan][fuse]") {
  for (const dtype type : {dtype::f16, dtype::q6_k}) {
    ir::trace t;
    auto x = t.embedding("token_embd.weight", 1024, 256);
    x = t.repeat(x, 2, [&](ir::value_id in) { return t.add(in, t.matmul(in, "w.weight", 256, 256, dtype::f16)); });
    t.output(t.matmul(t.rms_norm(x, "output_norm.weight", 1e-5f), "output.weight", 1024, 256, type));
    text<256> failure;
    const auto nodes = plan::fuser{t.graph(), {true}}.run(failure);
    REQUIRE(nodes.size() == 3);
    CHECK(nodes[2].kernel == (type == dtype::f16 ? kernel::dense_matmul : kernel::matmul));
    CHECK(nodes[2].norm != ir::none);
    CHECK(nodes[2].out == t.graph().output);
  }
}

TEST_CASE("what belongs to another kind of block is not merged", "[plan][fuse]") {
  ir::trace t;
  auto x = t.embedding("token_embd.weight", 1024, 256);
  const auto block = [&](ir::value_id in) {
    return t.add(in, t.matmul(t.rms_norm(in, "norm.weight", 1e-5f), "w.weight", 256, 256, dtype::f16));
  };
  x = t.repeat(x, 4, {2, {0, 1}}, block, block);
  text<256> failure;
  const auto nodes = plan::fuser{t.graph(), {true}}.run(failure);
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[1].block == 0);
  CHECK(nodes[2].block == 1);
  CHECK(nodes[2].stream == nodes[1].out);
}

TEST_CASE("every rule says what it merges and why", "[plan][fuse]") {
  for (std::size_t i = 1; i < plan::rules.size(); ++i) {
    CHECK_FALSE(plan::rules[i].merges.empty());
    CHECK_FALSE(plan::rules[i].reason.empty());
    CHECK(plan::rule_index(plan::rules[i].name) == i);
  }
}

TEST_CASE("the bias of a router is the choice's", "[plan][fuse]") {
  text<256> failure;
  const auto nodes = fused(
      [](ir::trace& t, ir::value_id x) {
        const auto logits = t.bias(t.matmul(x, "ffn_gate_inp.weight", 4, 256, dtype::f32), "ffn_gate_inp.bias");
        const auto choice = t.route(logits, "ffn_gate_inp.weight", 2);
        const auto y = t.expert_matmul(x, choice, "ffn_down_exps.weight", 4, 256, 256, dtype::f16);
        return t.add(x, t.weigh(y, choice, "experts"));
      },
      true, failure);
  INFO(failure.view());
  REQUIRE(nodes.size() == 5);
  CHECK(nodes[2].kernel == kernel::route);
  CHECK(nodes[2].in == nodes[1].out);
  CHECK(nodes[2].biases[0] != ir::none);
  CHECK(nodes[2].experts == 4);
}

// Gemma 4 26B-A4B: what an FFN and what experts give is normalised each, and their sum once more.
TEST_CASE("experts beside an FFN are added to its normalised output, and both to the stream", "[plan][fuse]") {
  text<256> failure;
  const auto nodes = fused(
      [](ir::trace& t, ir::value_id x) {
        const auto own = t.rms_norm(t.matmul(x, "ffn_down.weight", 256, 256, dtype::f16), "n1.weight", 1e-6f);
        const auto logits =
            t.matmul(t.rms_norm(x, "r.scale", 1e-6f, 0.0625f), "ffn_gate_inp.weight", 4, 256, dtype::f32);
        const auto choice = t.route(logits, "ffn_gate_inp.weight", 2, false, "ffn_down_exps.scale");
        const auto y = t.expert_matmul(x, choice, "ffn_down_exps.weight", 4, 256, 256, dtype::f16);
        const auto both = t.add(own, t.rms_norm(t.weigh(y, choice, "experts"), "n2.weight", 1e-6f));
        return t.add(x, t.rms_norm(both, "n.weight", 1e-6f));
      },
      true, failure);
  INFO(failure.view());
  REQUIRE(nodes.size() == 9);
  CHECK(nodes[2].kernel == kernel::rms_norm);
  CHECK((nodes[4].kernel == kernel::route && nodes[4].factor != ir::none));
  CHECK((nodes[6].kernel == kernel::expert_sum && nodes[6].stream == ir::none));
  CHECK((nodes[7].kernel == kernel::norm_add && nodes[7].stream == nodes[2].out));
  CHECK((nodes[8].kernel == kernel::norm_add && nodes[8].in == nodes[7].out));
}
