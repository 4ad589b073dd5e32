// SPDX-License-Identifier: MIT
// Models whose FFNs are walked against the same models without: the same plan but for two kernels, the same bits.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "conformance.hpp"
#include "gpu/checked_device.hpp"
#include "intaglio/io/checkpoint.hpp"
#include "intaglio/runtime/executor.hpp"
#include "intaglio/runtime/weights.hpp"
#include "loaded_machine.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "shared.hpp"

using namespace intaglio;

namespace {

struct pair {
  const plan::table *dense, *walked;
  std::filesystem::path file;
};
pair tiny() {
  return {&bitnet_tiny_table(), &bitnet_tiny_walk_table(),
          conformance("bitnet-tiny") / "gguf/bitnet-tiny-b158-i2_s.gguf"};
}
pair fable() { return {&fable_table(), &fable_walk_table(), shared("models/fable-bitnet-i2_s.gguf")}; }

/// Drawn at a high temperature, where nearly every bit of the logits counts.
std::vector<std::uint32_t> drawn(const gpu::device& on, const plan::table& table, const io::checkpoint& file,
                                 const plan::device_class& modules, std::uint32_t count) {
  runtime::executor run(on, table, runtime::load_weights(on, table, file), modules, nullptr);
  CHECK(run.prove().kernel.empty());
  return drawn_tokens(run, 0, 17, {.temperature = 3.f, .seed = 5}, count);
}

struct decoded {
  std::vector<float> logits;  ///< of every position
  std::size_t features = 0, ups = 0,
              downs = 0;  ///< values after the gate; those that are not 0; those that are not 0 as int8
};
/// Token by token on the CPU, all by the decode sequence.
decoded decode(const plan::table& table, const io::checkpoint& file, std::span<const std::uint32_t> ids) {
  file_weights weights(table, file);
  loaded_machine machine(weights);
  decoded out;
  for (std::uint32_t at = 0; at < ids.size(); ++at) {
    machine.feed(at, ids.subspan(at, 1));
    machine.run(table.decode, [&](const plan::dispatch& d, std::uint32_t) {
      if (d.kernel != kernels::kernel::walk_gate_up) return;
      const auto h = machine.floats(d.push[kernels::walk_gate_up_interface.push_index("output")].offset,
                                    table.config->intermediate_size);
      out.features += h.size();
      for (const float value : h) out.ups += value != 0;
    });
    const auto logits = machine.floats(table.decode.logits_offset, table.config->vocab_size);
    out.logits.insert(out.logits.end(), logits.begin(), logits.end());
  }
  return out;
}

std::size_t count(const plan::sequence& of, kernels::kernel which) {
  std::size_t out = 0;
  for (const auto& d : of.block(0)) out += d.kernel == which;
  return out;
}

}  // namespace

TEST_CASE("walk: decode has the walk's kernels, passes of several tokens the dense ones", "[runtime][walk]") {
  for (const plan::table* table : {&fable_walk_table(), &bitnet_tiny_walk_table(), &fable_walk_portable_table()}) {
    CHECK(count(table->decode, kernels::kernel::walk_gate_up) == 1);
    CHECK(count(table->decode, kernels::kernel::walk_down) == 1);
    CHECK(count(table->prefill, kernels::kernel::walk_gate_up) == 0);
    CHECK(count(table->verify, kernels::kernel::walk_down) == 0);
    CHECK(table->resident_decode.resident.empty());
  }
  CHECK(count(fable_table().decode, kernels::kernel::walk_gate_up) == 0);
}

TEST_CASE("walk: the reference decodes the same logits, bit for bit", "[runtime][walk]") {
  const pair each = GENERATE(0, 1) == 0 ? tiny() : fable();
  INFO(each.file);
  const io::checkpoint file = io::checkpoint::open(each.file);
  const std::vector<std::uint32_t> ids{1, 300, 17, 42};
  const decoded dense = decode(*each.dense, file, ids), walked = decode(*each.walked, file, ids);
  CHECK((walked.logits == dense.logits));
  CHECK(walked.ups * 2 < walked.features + walked.features / 5);  // half of them are off, or more
}

TEST_CASE("walk: a device draws the same tokens", "[runtime][walk][gpu]") {
  const checked_device on;
  const pair each = GENERATE(0, 1) == 0 ? tiny() : fable();
  INFO(each.file);
  const io::checkpoint file = io::checkpoint::open(each.file);
  const plan::device_class modules = chain_class(on.device);
  const auto expected = drawn(on.device, *each.dense, file, modules, 60);
  CHECK(drawn(on.device, *each.walked, file, modules, 60) == expected);
  if (each.walked == &fable_walk_table())
    CHECK(drawn(on.device, fable_walk_portable_table(), file, modules, 60) == expected);
}
