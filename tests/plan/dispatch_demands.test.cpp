// SPDX-License-Identifier: MIT
#include "intaglio/plan/dispatch_demands.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>

#include "intaglio/models/bitnet_b158.hpp"
#include "intaglio/models/gemma3.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/models/mixtral.hpp"
#include "intaglio/plan/planned.hpp"

using namespace intaglio;

namespace {

/// What `verify` says of a model's plans on devices with so much shared memory and workgroups so large.
struct verdicts {
  std::string of_16k, of_32k, of_48k, of_128_invocations;
};
template <class Model>
verdicts judged(const plan::profile& target) {
  const auto planned = plan::planned::of<Model>(target, 512);
  const auto verdict = [&](const plan::limits& limit) {
    const std::string said(plan::verify(planned.table(), limit).view());
    INFO(said);
    CHECK((said.empty() || said.find(": expected 1 to ") != std::string::npos));
    CHECK((said.empty() || said.find(", found ") != std::string::npos));
    CHECK(said.find('\n') == std::string::npos);
    return said;
  };
  return {verdict({.shared_memory_bytes = 16384}), verdict({.shared_memory_bytes = 32768}),
          verdict({.shared_memory_bytes = 49152}), verdict({.workgroup_invocations = 128})};
}

}  // namespace

TEST_CASE(
    "every shipped model has a plan for 32 and 48 KiB of shared memory; one for less exists or is refused by name",
    "[plan][verify]") {
  for (const plan::profile* target : {&plan::profiles::cpu, &plan::profiles::portable, &plan::profiles::exact}) {
    std::map<std::string, verdicts> all;
    all["bitnet_2b_4t"] = judged<models::bitnet_2b_4t>(*target);
    all["fable"] = judged<models::fable>(*target);
    all["gemma3_270m"] = judged<models::gemma3_270m<dtype::q8_0>>(*target);
    all["gemma3_4b"] = judged<models::gemma3_4b<>>(*target);
    all["mistral_7b"] = judged<models::mistral_7b<>>(*target);
    all["llama_32_1b"] = judged<models::llama_32_1b<dtype::q4_k>>(*target);
    all["stories260k"] = judged<models::stories260k<>>(*target);
    all["mixtral_8x7b"] = judged<models::mixtral_8x7b<>>(*target);
    for (const auto& [name, each] : all) {
      INFO(target->name << ' ' << name);
      CHECK(each.of_32k.empty());
      CHECK(each.of_48k.empty());
      CHECK(
          (each.of_16k.empty() || each.of_16k.find("expected 1 to 16384 bytes of shared memory") != std::string::npos));
      CHECK((each.of_128_invocations.empty() ||
             each.of_128_invocations.find("expected 1 to 128 invocations a workgroup") != std::string::npos));
    }
    CHECK(all["stories260k"].of_16k.empty() == (target->name != "portable"));
    CHECK_FALSE(all["mistral_7b"].of_16k.empty());
  }
}

TEST_CASE("a dispatch demands what its constants say", "[plan][verify]") {
  const auto planned = plan::planned::of<models::mistral_7b<>>(plan::profiles::portable, 512);
  const auto of = [&](kernels::kernel which) {
    for (const auto part : {planned.table().decode.prologue, planned.table().decode.period,
                            planned.table().decode.epilogue, planned.table().prefill.period})
      for (const plan::dispatch& d : part)
        if (d.kernel == which) return d;
    throw argument_error("kernel", "one of the plan", "none");
  };
  // 32 octets of 32 quads; their totals, 256 scores, maxima by subgroup of at least 4, a flag. Behind
  // these a quad, of which heads together have more.
  const plan::dispatch attention = of(kernels::kernel::attention);
  const auto narrow = plan::demands_of(attention, 8), wide = plan::demands_of(attention, 64);
  CHECK(narrow.invocations == 16 * 8);
  CHECK(wide.invocations == 16 * 64);
  CHECK(narrow.shared_memory_bytes ==
        (32 * 32 * 16 + 32 * 4 + 256 * 4 + narrow.invocations / 4 * 4 + 4 + 15) / 16 * 16 + 16);
  CHECK(wide.shared_memory_bytes ==
        (32 * 32 * 16 + 32 * 4 + 256 * 4 + wide.invocations / 4 * 4 + 4 + 15) / 16 * 16 + 16);
  CHECK(wide.undefined.empty());
  plan::dispatch none = attention;
  none.specialization.fill(0);
  none.subgroups = 0;
  CHECK(plan::demands_of(none, 32).invocations == 0);
}
