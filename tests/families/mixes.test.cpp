// SPDX-License-Identifier: MIT
#include "intaglio/families/mixes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "intaglio/plan/verify.hpp"

using namespace intaglio;
using families::mix_of;

namespace {
dtype type_of(const families::weight_types& of, std::uint32_t layer, std::string_view matrix) {
  const std::uint8_t set = of.sets.empty() ? std::uint8_t{0} : of.sets[layer];
  for (const families::matrix_type& each : of.matrices)
    if (each.set == set && each.name == matrix) return each.type;
  return of.layers;
}
plan::planned made(const decoder_config& c, std::string_view mix, std::uint32_t context = 4096) {
  return families::planned_of(c, mix_of(c, mix).value(), "it", plan::profiles::portable, context);
}
}  // namespace

TEST_CASE("a mix has the codecs of llama-quantize", "[families]") {
  const auto mistral = mix_of(models::mistral_7b_v02_config, "q4_k_m").value();
  CHECK(mistral.embedding == dtype::q4_k);
  CHECK(mistral.head == dtype::q6_k);
  CHECK(type_of(mistral, 0, "attn_v.weight") == dtype::q6_k);
  CHECK(type_of(mistral, 4, "attn_v.weight") == dtype::q4_k);
  CHECK(type_of(mistral, 6, "ffn_down.weight") == dtype::q6_k);
  CHECK(type_of(mistral, 31, "ffn_down.weight") == dtype::q6_k);
  CHECK(type_of(mistral, 6, "ffn_up.weight") == dtype::q4_k);
  // Rows of 1,152 columns are no whole blocks of 256, those of 1,024 and 6,912 are.
  const auto gemma = mix_of(models::gemma3_1b<dtype::f16>::config, "q4_k_m").value();
  CHECK(gemma.embedding == dtype::q8_0);
  CHECK(type_of(gemma, 0, "attn_v.weight") == dtype::q8_0);
  CHECK(type_of(gemma, 0, "attn_q.weight") == dtype::q5_0);
  CHECK(type_of(gemma, 0, "attn_output.weight") == dtype::q4_k);
  CHECK(type_of(gemma, 0, "ffn_down.weight") == dtype::q6_k);
  const auto small = mix_of(models::llama_31_8b<dtype::f16>::config, "q4_k_s").value();
  CHECK(type_of(small, 3, "attn_v.weight") == dtype::q5_k);
  CHECK(type_of(small, 4, "attn_v.weight") == dtype::q4_k);
  CHECK(type_of(small, 4, "ffn_down.weight") == dtype::q4_k);
  const auto three = mix_of(models::llama_31_8b<dtype::f16>::config, "q3_k_m").value();
  CHECK(type_of(three, 1, "ffn_down.weight") == dtype::q5_k);
  CHECK(type_of(three, 2, "ffn_down.weight") == dtype::q4_k);
  CHECK(type_of(three, 2, "attn_output.weight") == dtype::q4_k);
  CHECK_FALSE(mix_of(models::mistral_7b_v02_config, "q4_k").has_value());
  CHECK_FALSE(mix_of(models::mistral_7b_v02_config, "iq4_xs").has_value());
}

TEST_CASE("matrices of a mix may have other codecs", "[families]") {
  const decoder_config& c = models::llama_31_8b<dtype::f16>::config;
  const auto changed = mix_of(c, "q4_k_m,ffn_gate.0-7=q5_k,ffn_gate.3=iq4_xs,attn_output=q6_k").value();
  CHECK(type_of(changed, 2, "ffn_gate.weight") == dtype::q5_k);
  CHECK(type_of(changed, 3, "ffn_gate.weight") == dtype::iq4_xs);
  CHECK(type_of(changed, 7, "ffn_gate.weight") == dtype::q5_k);
  CHECK(type_of(changed, 8, "ffn_gate.weight") == dtype::q4_k);
  CHECK(type_of(changed, 31, "attn_output.weight") == dtype::q6_k);
  CHECK(type_of(changed, 0, "ffn_up.weight") == dtype::q4_k);
  CHECK(mix_of(c, "q4_k_m,ffn_up=q4_k") == mix_of(c, "q4_k_m"));
  for (const std::string_view wrong :
       {"q4_k_m,", "q4_k_m,ffn_gate", "q4_k_m,ffn_gate=", "q4_k_m,=q5_k", "q4_k_m,ffn_gate=q9_k", "q4_k_m,gate=q5_k",
        "q4_k_m,ffn_gate.=q5_k", "q4_k_m,ffn_gate.7-0=q5_k", "q4_k_m,ffn_gate.0-=q5_k", "q4_k_m,ffn_gate.x=q5_k",
        "q4_k_m,ffn_gate_exps=q5_k", "q4_k,ffn_gate=q5_k"}) {
    CAPTURE(wrong);
    CHECK_FALSE(mix_of(c, wrong).has_value());
  }
}

TEST_CASE("k and v in another codec than q are one product, whose rows follow each other", "[families]") {
  const plan::planned made_of = made(models::mixtral_8x7b_config, "q4_k_m");
  const plan::table& t = made_of.table();
  CHECK(plan::verify(t).view() == "");
  std::size_t turns = 0, products = 0;
  for (const plan::dispatch& d : t.decode.period) {
    if (d.kernel == kernels::kernel::matmul) {
      const auto c = kernels::constants_of<kernels::matmul_kernel>(d.specialization);
      if (c.codec != kernels::codec::q8_0) continue;
      CHECK(c.rows == 2048);
      ++products;
    }
    if (d.kernel != kernels::kernel::turn) continue;
    const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization);
    const auto offset = [&](std::string_view name) { return d.push[kernels::turn_interface.push_index(name)].offset; };
    CHECK(c.q_stride == 4096);
    CHECK((c.k_stride == 2048 && c.v_stride == 2048));
    CHECK(offset("v") == offset("k") + 4 * 1024);
    ++turns;
  }
  CHECK((turns == 2 && products == 2));  // of layers whose down projection is in Q4_K, or in Q6_K
}

TEST_CASE("the resident dispatch decodes the codecs of most files", "[families][resident]") {
  const auto resident = [](const plan::planned& of) {
    CHECK(plan::verify(of.table()).view() == "");
    return !of.table().resident_decode.resident.empty() &&
           of.table().resident_decode.weight_bytes() == of.table().decode.weight_bytes();
  };
  for (const std::string_view mix : {"q4_k_m", "q4_k_s", "q5_k_m", "q5_k_s", "q3_k_l", "q3_k_m", "q3_k_s"}) {
    CAPTURE(mix);
    CHECK(resident(made(models::mistral_7b_v02_config, mix)));
    CHECK(resident(made(models::llama_31_8b<dtype::f16>::config, mix)));
    CHECK(resident(made(models::llama_32_1b<dtype::f16>::config, mix)));
    CHECK(resident(made(models::qwen3_4b<dtype::f16>::config, mix)));
    CHECK(resident(made(models::qwen25_3b<dtype::f16>::config, mix)));
    CHECK(resident(made(models::gemma3_4b<dtype::f16>::config, mix)));
  }
  for (const std::string_view mix : {"q4_k_m", "q3_k_m"}) {
    CHECK(resident(made(models::gemma2_2b_config, mix)));
    CHECK(resident(made(models::olmo2_7b_config, mix)));
  }
  // Codecs by layer, as in files that are quantised by measured importance, and more than 64 layers.
  for (const std::string_view mix :
       {"q4_k_m,ffn_gate.0-7=q5_k,ffn_up.0-7=q5_k,attn_output.4-9=q6_k,attn_q.3=q6_k,attn_k.3=q6_k,attn_v=q5_k",
        "q4_k_m,ffn_gate.0-3=iq4_xs,ffn_up.0-3=iq4_xs,ffn_gate.4-9=q6_k,ffn_up.4-9=q6_k,ffn_down.0-9=q5_k"}) {
    CAPTURE(mix);
    CHECK(resident(made(models::llama_31_8b<dtype::f16>::config, mix)));
    CHECK(resident(made(models::qwen3_4b<dtype::f16>::config, mix)));
  }
  decoder_config deep = models::llama_31_8b<dtype::f16>::config;
  deep.num_hidden_layers = 80;
  CHECK(resident(made(deep, "q4_k_m")));
  // A fifth codec.
  const std::string five = "q4_k_m,attn_output=q5_k,ffn_down=iq4_xs,attn_v=q3_k";
  CHECK(resident(made(models::llama_31_8b<dtype::f16>::config, five)));
  CHECK_FALSE(resident(made(models::llama_31_8b<dtype::f16>::config, five + ",ffn_gate=q6_k,ffn_up=q6_k")));
  // k and v in another codec than q; q, k and v in three codecs, or k alone in another one.
  for (const std::string_view mix : {"q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m"}) {
    CAPTURE(mix);
    CHECK(resident(made(models::mixtral_8x7b_config, mix)));
  }
  CHECK(resident(made(models::llama_31_8b<dtype::f16>::config, "q4_k_m,attn_q.0-9=q5_k,attn_v.0-9=q4_k")));
  CHECK_FALSE(resident(made(models::llama_31_8b<dtype::f16>::config, "q4_k_m,attn_q=q5_k")));
  CHECK_FALSE(resident(made(models::llama_31_8b<dtype::f16>::config, "q4_k_s,attn_k=q5_k")));
  CHECK(resident(made(models::gemma3_1b<dtype::f16>::config, "q4_k_m")));
  CHECK(resident(made(models::qwen25_05b<dtype::f16>::config, "q4_k_m")));
  CHECK(resident(made(models::qwen3_8b<dtype::f16>::config, "q4_k_m")));
  CHECK(resident(made(models::smollm3_3b<dtype::f16>::config, "q4_k_m")));
  CHECK(resident(made(models::phi_4_mini<dtype::f16>::config, "q4_k_m")));
}
