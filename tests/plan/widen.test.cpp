// SPDX-License-Identifier: MIT
// Chunks of long prompts: the same dispatches as a plan of such chunks has, in an arena that verifies.
#include "intaglio/plan/widen.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/cut.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {

/// Long chunks of a model are what a plan whose chunks are as long has for the class.
template <class Model>
void check(const plan::profile& from, const plan::device_class& device, std::uint32_t context = 8192) {
  plan::profile wide = from;
  wide.prefill_tokens = from.long_prefill_tokens;
  const plan::planned made = plan::planned::of<Model>(from, context), other = plan::planned::of<Model>(wide, context);
  const plan::device_plan fitted(made.table(), device), expected(other.table(), device);
  REQUIRE(fitted.long_prefill() != nullptr);
  CHECK(expected.long_prefill() == nullptr);
  const plan::sequence &long_ = *fitted.long_prefill(), &same = expected.table().prefill;
  CHECK(long_.max_tokens == 2048);
  CHECK(made.table().max_tokens == 2048);
  CHECK(long_.arena_bytes == 4 * made.table().prefill.arena_bytes);
  CHECK(long_.arena_bytes <= same.arena_bytes + same.arena_bytes / 8);
  for (const auto part : {&plan::sequence::prologue, &plan::sequence::period, &plan::sequence::epilogue}) {
    REQUIRE((long_.*part).size() == (same.*part).size());
    for (std::size_t i = 0; i < (long_.*part).size(); ++i) {
      const plan::dispatch &call = (long_.*part)[i], &its = (same.*part)[i];
      INFO(kernels::interface_of(call.kernel).name << " " << call.label.view());
      CHECK(call.variant == its.variant);
      CHECK(call.groups == its.groups);
      CHECK(call.subgroups == its.subgroups);
      CHECK(call.barrier == its.barrier);
      CHECK(call.specialization == its.specialization);
      for (std::size_t k = 0; k < call.access_count; ++k) CHECK(call.accesses[k].bytes == its.accesses[k].bytes);
    }
  }
}

}  // namespace

TEST_CASE("chunks of long prompts are those of a plan whose chunks are as long", "[plan]") {
  check<models::llama_32_1b<dtype::bf16>>(plan::profiles::portable, plan::classes::h100);
  check<models::mistral_7b<dtype::q4_0>>(plan::profiles::portable, plan::classes::nvidia);
  check<models::bitnet_2b_4t>(plan::profiles::portable, plan::classes::nvidia, 4096);
  check<models::bitnet_2b_4t>(plan::profiles::attends_in_f16, plan::classes::h100, 4096);
}

TEST_CASE("a plan has as many chunks at once as the context holds whole ones, rings reach and kernels can", "[plan]") {
  const auto times = []<class Model>(std::type_identity<Model>, const plan::profile& target, std::uint32_t context) {
    return plan::chunks_at_once(plan::planned::of<Model>(target, context).table());
  };
  using llama = models::llama_32_1b<dtype::q8_0>;
  plan::profile none = plan::profiles::portable;
  none.long_prefill_tokens = 0;
  CHECK(times(std::type_identity<llama>{}, plan::profiles::portable, 8192) == 4);
  CHECK(times(std::type_identity<llama>{}, plan::profiles::portable, 1600) == 3);
  CHECK(times(std::type_identity<llama>{}, plan::profiles::portable, 1000) == 1);
  CHECK(times(std::type_identity<llama>{}, plan::profiles::portable, 300) == 1);
  CHECK(times(std::type_identity<llama>{}, plan::profiles::cpu, 8192) == 1);
  CHECK(times(std::type_identity<llama>{}, none, 8192) == 1);
  CHECK(times(std::type_identity<models::gemma3_4b<dtype::q8_0>>{}, plan::profiles::portable, 8192) == 1);  // rings
  CHECK(times(std::type_identity<models::mixtral_8x7b<dtype::q4_0>>{}, plan::profiles::portable, 8192) == 1);
}

TEST_CASE("long chunks are for devices with matrices", "[plan]") {
  const plan::planned made = plan::planned::of<models::llama_32_1b<dtype::q8_0>>(plan::profiles::portable, 4096);
  for (const plan::device_class* of : plan::classes::gpus) {
    INFO(of->name);
    const bool matrices =
        of == &plan::classes::h100 || of == &plan::classes::nvidia || of == &plan::classes::amd_wave32;
    CHECK((plan::device_plan(made.table(), *of).long_prefill() != nullptr) == matrices);
    CHECK(plan::device_plan(made.table(), *of, {.always_long = true}).long_prefill() != nullptr);
  }
}

TEST_CASE("stages of a cut have chunks alone, and are proven for every class of GPUs", "[plan]") {
  const auto check = []<class Model>(std::type_identity<Model>, std::uint32_t context) {
    const plan::planned made = plan::planned::of<Model>(plan::profiles::portable, context);
    for (const plan::layer_range range :
         {plan::layer_range{0, 10}, {10, 20}, {20, made.table().config->num_hidden_layers}})
      for (const plan::device_class* of : plan::classes::gpus) {
        INFO(of->name << ", layers " << range.first << " to " << range.end - 1);
        const plan::stage its(made.table(), range);
        CHECK(plan::device_plan(its.table(), *of).long_prefill() == nullptr);
        CHECK(plan::device_plan(its.table(), *of, {.always_long = true}).long_prefill() == nullptr);
      }
  };
  check(std::type_identity<models::mistral_7b<dtype::q4_0>>{}, 4224);
  check(std::type_identity<models::bitnet_2b_4t>{}, 4096);
}
