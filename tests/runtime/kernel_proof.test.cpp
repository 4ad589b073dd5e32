// SPDX-License-Identifier: MIT
#include "intaglio/runtime/kernel_proof.hpp"

#include <catch2/catch_test_macros.hpp>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/weights.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"

using namespace intaglio;

TEST_CASE("every kernel of every sequence proves itself; one that does half its work does not", "[wide]") {
  checked_device on;
  const auto story = io::checkpoint::open(shared("models/fable-bitnet-i2_s.gguf")),
             older = io::checkpoint::open(conformance("bitnet-tiny") / "gguf/bitnet-tiny-f16.gguf");
  for (const plan::table* table : {&fable_table(), &bitnet_tiny_silu_portable_table()}) {
    const auto& from = table->config->activation_type == dtype::f32 ? older : story;
    const auto weights = runtime::load_weights(on.device, *table, from);
    for (const auto& each_class : runtime::usable_classes(on.device)) {
      const plan::device_plan plan(*table, each_class);
      runtime::kernel_set kernels(on.device);
      const plan::sequence* const list[] = {&plan.table().decode, &plan.table().prefill, &plan.table().logits};
      kernels.add(list, nullptr);
      runtime::kernel_proof proof(on.device, plan.table(), kernels, weights);
      for (const plan::sequence* each : list) {
        const auto fault = proof.check(*each);
        INFO(each->name << ": " << fault.kernel << " " << fault.label << " " << fault.apart);
        CHECK(fault.kernel.empty());
      }
    }
    // A kernel that leaves most of its work undone fails its proof.
    const plan::device_plan plan(*table, gpu_class(on.device));
    const plan::sequence& decode = plan.table().decode;
    std::vector<plan::dispatch> period(decode.period.begin(), decode.period.end());
    for (auto& call : period)
      if (call.kernel == kernels::kernel::attention) call.groups = {1, 1, 1};
    plan::sequence broken = decode;
    broken.period = period;
    runtime::kernel_set kernels(on.device);
    const plan::sequence* const one[] = {&broken};
    kernels.add(one, nullptr);
    const auto fault = runtime::kernel_proof(on.device, plan.table(), kernels, weights).check(broken);
    CHECK(fault.kernel == "attention");
    CHECK(fault.apart > 0.1);
  }
}
