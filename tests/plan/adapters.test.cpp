// SPDX-License-Identifier: MIT
#include "intaglio/plan/adapters.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "intaglio/families/planned_family.hpp"
#include "intaglio/families/published_models.hpp"

using namespace intaglio;
using Catch::Matchers::ContainsSubstring;

namespace {

plan::adapter_room room_of(std::vector<std::string_view> matrices) {
  plan::adapter_room out{2, 16, dtype::f16, {}};
  for (const std::string_view each : matrices) out.matrices.emplace_back(each);
  return out;
}

std::size_t products_with_adapters(const plan::sequence& of) {
  return static_cast<std::size_t>(std::count_if(of.period.begin(), of.period.end(), [](const plan::dispatch& each) {
    return each.kernel == kernels::kernel::expert_sum;
  }));
}

}  // namespace

TEST_CASE("products of every kind of layer have room for adapters, in all passes and in batches", "[plan]") {
  struct model {
    std::string_view name;
    std::vector<std::string_view> matrices;
  };
  const std::vector<std::string_view> all{"attn_q.weight",   "attn_k.weight", "attn_v.weight",  "attn_output.weight",
                                          "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};
  for (const auto& [name, matrices] :
       {model{"llama_32_1b", all}, model{"qwen25_05b", all}, model{"qwen3_06b", all}, model{"gemma2_2b", all},
        model{"gemma3_1b", all}, model{"olmo2_1b", all}, model{"smollm3_3b", all},
        model{"llama_32_1b", {"attn_k.weight"}},
        model{"gemma4_e2b", {"attn_q.weight", "attn_v.weight", "attn_k.weight", "ffn_down.weight"}},
        model{"qwen35_08b", {"ffn_gate.weight", "ffn_down.weight"}},
        model{"mixtral_8x7b", {"attn_q.weight", "attn_output.weight"}},
        model{"lfm2_350m", {"shortconv.out_proj.weight", "attn_q.weight"}},
        model{"granite_4_h_350m", {"ssm_out.weight", "attn_q.weight"}}}) {
    const families::published_model* const found = families::find_published_model(name);
    INFO(name);
    CHECK(found != nullptr);
    if (found == nullptr) continue;
    for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable}) {
      const plan::planned made = families::planned_of(*found->config, found->types(dtype::f16), name, *target, 512,
                                                      {.slot_count = 8, .page_size = 16}, {}, room_of(matrices));
      const plan::table& table = made.table();
      CHECK(plan::adapters_of(table) == 2);
      CHECK(table.resident_decode.resident.empty());
      CHECK(products_with_adapters(table.decode) >= matrices.size());
      CHECK(products_with_adapters(table.batch) == products_with_adapters(table.decode));
      CHECK(products_with_adapters(table.prefill) == products_with_adapters(table.decode));
    }
  }
}

TEST_CASE("matrices that cannot have adapters are refused by name", "[plan]") {
  const families::published_model& llama = *families::find_published_model("llama_32_1b");
  const auto made = [&](std::string_view matrix, plan::ffn_form form = {}) {
    (void)families::planned_of(*llama.config, llama.types(dtype::f16), "llama", plan::profiles::cpu, 512, {}, form,
                               room_of({matrix}));
  };
  CHECK_THROWS_WITH(made("output.weight"), ContainsSubstring("adapters of output.weight: expected a matrix"));
  CHECK_THROWS_WITH(made("attn_norm.weight"), ContainsSubstring("adapters of attn_norm.weight"));
  CHECK_THROWS_WITH(made("attn_q.weight", {.walk = true}), ContainsSubstring("neither walked nor traced"));
}
