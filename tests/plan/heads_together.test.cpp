// SPDX-License-Identifier: MIT
// Which plans decode after long contexts with heads together, from where on, and by which workgroups.
#include "intaglio/plan/heads_together.hpp"

#include <catch2/catch_test_macros.hpp>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/deepseek2.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/device_plan.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

TEST_CASE("decode after long contexts: the chain but for attention, whose heads share workgroups", "[plan]") {
  const plan::planned made = plan::planned::of<models::mistral_7b<dtype::q8_0>>(plan::profiles::portable, 16384);
  for (const plan::device_class* of : plan::classes::gpus) {
    INFO(of->name);
    const plan::device_plan fitted(made.table(), *of);
    REQUIRE((fitted.long_decode() != nullptr) == (of->selects_subgroup_size && of->subgroup_size == 32));
    if (fitted.long_decode() == nullptr) continue;
    CHECK(fitted.long_from(false) == 2560);
    CHECK(fitted.long_from(true) == 9216);
    const plan::sequence &long_ = *fitted.long_decode(), &chain = fitted.table().decode;
    CHECK(long_.arena_bytes == chain.arena_bytes);
    for (const auto part : {&plan::sequence::prologue, &plan::sequence::period, &plan::sequence::epilogue})
      for (std::size_t i = 0; i < (chain.*part).size(); ++i) {
        const plan::dispatch &call = (long_.*part)[i], &its = (chain.*part)[i];
        if (call.kernel != kernels::kernel::attention) {
          CHECK(call.specialization == its.specialization);
          CHECK(call.groups == its.groups);
          continue;
        }
        CHECK(call.groups == std::array{8u, 1u, 64u});
        CHECK(its.groups == std::array{32u, 1u, 64u});
        CHECK(call.specialization[0] == 128);
      }
  }
}

TEST_CASE("heads that share keys come in even groups of up to four", "[plan]") {
  struct sizes {
    std::uint32_t heads, kv_heads, together, groups;
  };
  for (const auto& [heads, kv_heads, together, groups] :
       {sizes{32, 8, 4, 8}, sizes{28, 4, 4, 8}, sizes{40, 8, 3, 16}, sizes{64, 8, 4, 16}, sizes{8, 4, 2, 4},
        sizes{12, 2, 3, 4}, sizes{9, 3, 3, 3}}) {
    plan::dispatch d{.kernel = kernels::kernel::attention};
    kernels::attention_kernel::constants c{};
    c.heads = heads, c.kv_heads = kv_heads, c.head_dim = 128, c.splits = 9, c.heads_together = 1;
    kernels::store(c, d.specialization);
    REQUIRE(plan::attends_together(d, plan::classes::nvidia));
    const plan::dispatch out = plan::with_heads_together(d);
    CHECK(kernels::constants_of<kernels::attention_kernel>(out.specialization).heads_together == together);
    CHECK(out.groups[0] == groups);
  }
}

TEST_CASE("no form for long contexts where there is none to gain, or another one", "[plan]") {
  const auto has = []<class Model>(std::type_identity<Model>, std::uint32_t context) {
    return plan::device_plan(plan::planned::of<Model>(plan::profiles::portable, context).table(), plan::classes::h100)
               .long_decode() != nullptr;
  };
  using llama = models::llama_32_1b<dtype::bf16>;
  CHECK(has(std::type_identity<llama>{}, 8192));
  CHECK_FALSE(has(std::type_identity<llama>{}, 4096));  // too short: 10 MiB of a layer are 5,120 positions
  CHECK_FALSE(has(std::type_identity<models::bitnet_2b_4t>{}, 4096));  // layers_long
  CHECK(has(std::type_identity<models::gemma3_4b<dtype::q8_0>>{}, 16384));
  plan::dispatch windowed{.kernel = kernels::kernel::attention};
  kernels::attention_kernel::constants c{};
  c.heads = 8, c.kv_heads = 2, c.head_dim = 128, c.splits = 9, c.heads_together = 1, c.window = 1024;
  kernels::store(c, windowed.specialization);
  CHECK_FALSE(plan::attends_together(windowed, plan::classes::nvidia));
}

TEST_CASE("heads of a latent vector share its reads where their queries and sums fit into shared memory", "[plan]") {
  const plan::planned made = plan::planned::of<models::deepseek2<models::deepseek_v2_lite_config, dtype::q8_0>>(
      plan::profiles::portable, 16384);
  const plan::device_plan fitted(made.table(), plan::classes::h100);
  REQUIRE(fitted.long_decode() != nullptr);
  std::size_t found = 0;
  for (const plan::dispatch& call : fitted.long_decode()->period) {
    if (call.kernel != kernels::kernel::attention) continue;
    const auto c = kernels::constants_of<kernels::attention_kernel>(call.specialization);
    CHECK((c.head_dim == 576 && c.value_dim == 512 && c.heads_together == 4));
    CHECK(call.groups == std::array{4u, 1u, 64u});
    ++found;
  }
  CHECK(found == 2);  // of the dense layer, and of the others
  for (const plan::dispatch& call : made.table().decode.period) {
    plan::device_class small = plan::classes::nvidia;
    small.shared_memory_bytes = 16384;
    CHECK_FALSE(plan::attends_together(call, small));
  }
}
