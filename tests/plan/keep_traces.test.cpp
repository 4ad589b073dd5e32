// SPDX-License-Identifier: MIT
#include "intaglio/plan/keep_traces.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

#include "intaglio/core/error.hpp"
#include "intaglio/graph/layers/walk_ffn.hpp"
#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {

template <template <dtype, dtype> class FFN>
using stories = models::llama<models::stories260k_config, dtype::f32, dtype::f32, dtype::f32, FFN>;
template <template <dtype, dtype> class FFN>
using gemma = models::gemma3<models::gemma3_1b_config, dtype::q4_0, dtype::q4_0, FFN>;
template <template <dtype, dtype> class FFN>
using fable = models::bitnet_b158<models::fable_config, dtype::i2_s, dtype::i8, dtype::f16, FFN>;

std::uint32_t constant(const plan::dispatch& d, std::string_view name) {
  return d.specialization[kernels::interface_of(d.kernel).specialization_index(name)];
}
const plan::operand& operand(const plan::dispatch& d, std::string_view name) {
  return d.push[kernels::interface_of(d.kernel).push_index(name)];
}

const plan::dispatch& tracing(const plan::sequence& decode) {
  REQUIRE(decode.epilogue.front().kernel == kernels::kernel::walk_trace);
  return decode.epilogue.front();
}
/// All but the trace and what is kept for it.
void expect_same_but_for_it(const plan::table& traced, const plan::table& plain, std::uint64_t barriers = 0) {
  CHECK(traced.decode.dispatch_count() == plain.decode.dispatch_count() + 1);
  CHECK(traced.decode.barrier_count() == plain.decode.barrier_count() + barriers);
  CHECK(traced.prefill.dispatch_count() == plain.prefill.dispatch_count());
  CHECK(traced.resident_decode.resident.empty());
  CHECK(traced.weights.size() == plain.weights.size() + 1);
  REQUIRE(traced.decode.period.size() == plain.decode.period.size());
  for (std::size_t i = 0; i < plain.decode.period.size(); ++i) {
    CHECK(traced.decode.period[i].kernel == plain.decode.period[i].kernel);
    CHECK(traced.decode.period[i].specialization == plain.decode.period[i].specialization);
    CHECK(traced.decode.period[i].groups == plain.decode.period[i].groups);
  }
}

}  // namespace

TEST_CASE("keep_traces: one dispatch more after the layers, and what it reads of each layer kept apart") {
  const plan::profile& gpu = plan::profiles::portable;
  const auto dense = plan::planned::of<stories<graph::gated_ffn>>(gpu, 64),
             traced = plan::planned::of<stories<graph::traced<32>::ffn>>(gpu, 64);
  expect_same_but_for_it(traced.table(), dense.table());
  const plan::dispatch& trace = tracing(traced.table().decode);
  const std::uint32_t features = models::stories260k_config.intermediate_size;
  CHECK(trace.groups == std::array<std::uint32_t, 3>{models::stories260k_config.num_hidden_layers, 1, 1});
  CHECK(constant(trace, "columns") == features);
  CHECK(constant(trace, "value_stride") * 4 == (features * 4 + 255) / 256 * 256);
  CHECK(constant(trace, "listed") == 0);
  CHECK(operand(trace, "choice").where == plan::region::none);
  for (const auto& d : traced.table().decode.period)
    if (d.label.view().starts_with("ffn_gate")) {
      CHECK(operand(d, "gates").layer_stride == constant(trace, "value_stride") * 4);
      CHECK(operand(d, "gates").offset == operand(trace, "gates").offset);
      CHECK(operand(d, "output").offset == operand(trace, "values").offset);
    }
  CHECK(traced.table().trace.top == 32);
  CHECK(traced.table().trace.slot_count == gpu.ring_size);
  CHECK(traced.table().trace.bytes() ==
        std::uint64_t{gpu.ring_size} * models::stories260k_config.num_hidden_layers * (3 + 3 * 32) * 4);
  CHECK(dense.table().trace.top == 0);
  CHECK(dense.table().trace.bytes() == 0);
}

TEST_CASE(
    "keep_traces: of a sparse walk the choice; of both kinds of Gemma 3's layers in one range; of BitNet the values "
    "after its norm") {
  const plan::profile& cpu = plan::profiles::cpu;
  const auto sparse = plan::planned::of<stories<graph::traced_walk<20, 16>::ffn>>(cpu, 64);
  expect_same_but_for_it(sparse.table(), plan::planned::of<stories<graph::sparse_walk<16>::ffn>>(cpu, 64).table());
  CHECK(sparse.table().trace.top == 16);  // there are no more
  CHECK(constant(tracing(sparse.table().decode), "listed") == 1);
  CHECK(operand(tracing(sparse.table().decode), "gates").where == plan::region::none);

  const auto two_kinds = plan::planned::of<gemma<graph::traced<8>::ffn>>(cpu, 64);
  expect_same_but_for_it(two_kinds.table(), plan::planned::of<gemma<graph::gated_ffn>>(cpu, 64).table());
  const plan::dispatch& trace = tracing(two_kinds.table().decode);
  std::size_t kinds = 0;
  for (const auto& d : two_kinds.table().decode.period)
    if (d.label.view().starts_with("ffn_gate"))
      kinds += operand(d, "output").offset == operand(trace, "values").offset &&
               operand(d, "gates").offset == operand(trace, "gates").offset;
  CHECK(kinds == 2);

  const auto ternary = plan::planned::of<fable<graph::traced<32>::ffn>>(cpu, 64);
  expect_same_but_for_it(ternary.table(), plan::planned::of<fable<graph::walk_ffn>>(cpu, 64).table(),
                         1);  // the last layer's values
  for (const auto& d : ternary.table().decode.period)
    if (d.kernel == kernels::kernel::walk_down)
      CHECK(operand(d, "values").offset == operand(tracing(ternary.table().decode), "values").offset);
}

TEST_CASE("keep_traces: what cannot be traced is refused in a sentence") {
  const auto refused = [](auto&& make) {
    try {
      make();
    } catch (const argument_error& problem) { return std::string(problem.what()); }
    return std::string();
  };
  CHECK(refused([] {
          plan::planned::of<stories<graph::traced<65>::ffn>>(plan::profiles::cpu, 64);
        }).find("a trace of at least 1 and at most 64 features, found 65") != std::string::npos);
  CHECK(refused([] {
          plan::planned::of<stories<graph::traced<4>::ffn>>(plan::profiles::cpu, 64, {.slot_count = 2});
        }).find("batch: expected a model without a trace") != std::string::npos);
  static constexpr plan::profile apart = [] {
    plan::profile out = plan::profiles::cpu;
    out.work.norm_prologue = false;
    return out;
  }();
  CHECK(refused([] {
          plan::planned::of<fable<graph::traced<4>::ffn>>(apart, 64);
        }).find("trace: expected a gated FFN and the product of its down vectors") != std::string::npos);
}
