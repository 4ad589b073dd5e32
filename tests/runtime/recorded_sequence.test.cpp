// SPDX-License-Identifier: MIT
// Compares the calls of Vulkan with the plan that was proven: module, constants, push constants and workgroups of each
// dispatch, in the plan's order.
#include "intaglio/runtime/recorded_sequence.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "gpu/kept_device.hpp"
#include "intaglio/families/planned_family.hpp"
#include "intaglio/models/bert.hpp"
#include "intaglio/models/granitehybrid.hpp"
#include "intaglio/models/llama.hpp"
#include "intaglio/plan/cut.hpp"
#include "intaglio/plan/planned.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "tiny_configs.hpp"

using namespace intaglio;

namespace {

constexpr decoder_config two_layers{.model_type = architecture::llama,
                                    .hidden_size = 256,
                                    .intermediate_size = 768,
                                    .num_hidden_layers = 2,
                                    .num_attention_heads = 8,
                                    .num_key_value_heads = 2,
                                    .head_dim = 32,
                                    .vocab_size = 1024,
                                    .max_position_embeddings = 1024,
                                    .rope_theta = 500'000.f,
                                    .hidden_act = activation::silu,
                                    .tie_word_embeddings = false};

/// Stands between the library and the driver, and writes down what dispatches are recorded with. The driver makes one
/// pipeline of a module, by its first constants, which is bound for all others too: nothing here is submitted, and
/// making is nearly all that the test costs. Needs a kept_device, which destroys them.
struct witness {
  struct created {
    std::vector<std::uint32_t> module;
    std::map<std::uint32_t, std::uint32_t> constants;
  };
  struct dispatch {
    VkPipeline pipeline = nullptr;
    std::vector<std::byte> push;
    std::array<std::uint32_t, 3> groups{};
  };
  static inline std::mutex mutex;
  static inline std::map<VkShaderModule, std::vector<std::uint32_t>> modules;
  static inline std::map<VkPipeline, created> pipelines;
  static inline std::map<std::vector<std::uint32_t>, VkPipeline> made;  // by the driver, by module
  static inline std::map<VkPipeline, VkPipeline> stand_ins;             // of others, for one that was made
  static inline std::map<VkCommandBuffer, dispatch> next;
  static inline std::map<VkCommandBuffer, std::vector<dispatch>> recorded;

  static inline PFN_vkCreateShaderModule real_module = nullptr;
  static inline PFN_vkCreateComputePipelines real_pipelines = nullptr;
  static inline PFN_vkDestroyPipeline real_destroy = nullptr;
  static inline PFN_vkCmdBindPipeline real_bind = nullptr;
  static inline PFN_vkCmdPushConstants real_push = nullptr;
  static inline PFN_vkCmdDispatch real_dispatch = nullptr;

  static VKAPI_ATTR VkResult VKAPI_CALL module(VkDevice on, const VkShaderModuleCreateInfo* info,
                                               const VkAllocationCallbacks* by, VkShaderModule* out) {
    const VkResult result = real_module(on, info, by, out);
    const std::lock_guard own(mutex);
    modules[*out].assign(info->pCode, info->pCode + info->codeSize / 4);
    return result;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice on, VkPipelineCache cache, std::uint32_t count,
                                               const VkComputePipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* by, VkPipeline* out) {
    if (count != 1) return VK_ERROR_UNKNOWN;  // the library makes them one by one
    const std::lock_guard own(mutex);
    created is{modules[infos->stage.module], {}};
    const VkSpecializationInfo& with = *infos->stage.pSpecializationInfo;
    for (std::uint32_t k = 0; k < with.mapEntryCount; ++k)
      std::memcpy(&is.constants[with.pMapEntries[k].constantID],
                  static_cast<const char*>(with.pData) + with.pMapEntries[k].offset, 4);
    if (const auto known = made.find(is.module); known != made.end()) {
      *out = reinterpret_cast<VkPipeline>(~std::uintptr_t{stand_ins.size()});  // no driver's handle
      stand_ins[*out] = known->second;
    } else {
      if (const VkResult result = real_pipelines(on, cache, 1, infos, by, out); result != VK_SUCCESS) return result;
      made[is.module] = *out;
    }
    pipelines[*out] = std::move(is);
    return VK_SUCCESS;
  }
  static VKAPI_ATTR void VKAPI_CALL destroy(VkDevice on, VkPipeline which, const VkAllocationCallbacks* by) {
    if (!stand_ins.contains(which)) real_destroy(on, which, by);
  }
  static VKAPI_ATTR void VKAPI_CALL bind(VkCommandBuffer to, VkPipelineBindPoint at, VkPipeline which) {
    const std::lock_guard own(mutex);
    const auto instead = stand_ins.find(which);
    real_bind(to, at, instead != stand_ins.end() ? instead->second : which);
    next[to].pipeline = which;
  }
  static VKAPI_ATTR void VKAPI_CALL push(VkCommandBuffer to, VkPipelineLayout layout, VkShaderStageFlags stages,
                                         std::uint32_t offset, std::uint32_t size, const void* values) {
    real_push(to, layout, stages, offset, size, values);
    const std::lock_guard own(mutex);
    const auto* const bytes = static_cast<const std::byte*>(values);
    next[to].push.assign(bytes, bytes + size);
  }
  static VKAPI_ATTR void VKAPI_CALL run(VkCommandBuffer to, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    real_dispatch(to, x, y, z);
    const std::lock_guard own(mutex);
    next[to].groups = {x, y, z};
    recorded[to].push_back(next[to]);
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice, const char* name) {
    return entry(faults::last_instance.load(), name);
  }
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL entry(VkInstance instance, const char* name) {
    const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("vkGetInstanceProcAddr")) return reinterpret_cast<PFN_vkVoidFunction>(&entry);
    if (is("vkGetDeviceProcAddr")) return reinterpret_cast<PFN_vkVoidFunction>(&device_entry);
    const PFN_vkVoidFunction found = faults::entry(instance, name);
    const auto instead = [&](auto& real, auto mine) {
      real = reinterpret_cast<std::remove_reference_t<decltype(real)>>(found);
      return reinterpret_cast<PFN_vkVoidFunction>(mine);
    };
    if (is("vkCreateShaderModule")) return instead(real_module, &module);
    if (is("vkCreateComputePipelines")) return instead(real_pipelines, &create);
    if (is("vkDestroyPipeline")) return instead(real_destroy, &destroy);
    if (is("vkCmdBindPipeline")) return instead(real_bind, &bind);
    if (is("vkCmdPushConstants")) return instead(real_push, &push);
    if (is("vkCmdDispatch")) return instead(real_dispatch, &run);
    return found;
  }
  static void forget() {
    modules.clear(), pipelines.clear(), made.clear(), stand_ins.clear(), next.clear(), recorded.clear();
  }
};

/// Addresses that no device has: recording reads none of them.
runtime::address_table addresses_of(const plan::table& of) {
  const std::uint64_t far_apart = std::uint64_t{1} << 40;
  runtime::address_table out;
  out.arena = 1 * far_apart, out.state = 2 * far_apart, out.ring = 3 * far_apart, out.arguments = 4 * far_apart;
  out.trace = 5 * far_apart;
  for (std::uint32_t layer = 0; layer < of.config->num_hidden_layers; ++layer) {
    const std::uint64_t at = std::uint64_t{layer} << 32;
    out.keys.push_back(6 * far_apart + at), out.values.push_back(7 * far_apart + at);
    out.pool_keys.push_back(8 * far_apart + at), out.pool_values.push_back(9 * far_apart + at);
    out.kept.push_back(11 * far_apart + at);
  }
  for (const plan::weight& each : of.weights) {
    out.first_weight.push_back(static_cast<std::uint32_t>(out.weights.size()));
    for (std::uint32_t layer = 0; layer < (each.per_layer ? of.config->num_hidden_layers : 1); ++layer)
      out.weights.push_back(10 * far_apart + (std::uint64_t{out.weights.size()} << 32));
  }
  return out;
}
/// Where an operand points, said once more.
std::uint64_t address(const plan::operand& o, const plan::table& of, std::uint32_t layer) {
  const std::uint64_t far_apart = std::uint64_t{1} << 40, at = std::uint64_t{layer} << 32;
  switch (o.where) {
    case plan::region::arena:
      return far_apart + o.offset + layer * o.layer_stride;
    case plan::region::state:
      return 2 * far_apart + o.offset;
    case plan::region::ring:
      return 3 * far_apart + o.offset;
    case plan::region::arguments:
      return 4 * far_apart + o.offset;
    case plan::region::trace:
      return 5 * far_apart + o.offset;
    case plan::region::keys:
      return 6 * far_apart + at + o.offset;
    case plan::region::values:
      return 7 * far_apart + at + o.offset;
    case plan::region::pool_keys:
      return 8 * far_apart + at + o.offset;
    case plan::region::pool_values:
      return 9 * far_apart + at + o.offset;
    case plan::region::kept:
      return 11 * far_apart + at + o.offset;
    case plan::region::weight: {
      std::uint64_t index = 0;  // among those of the layers that have it
      if (const plan::weight& w = of.weights[o.slot]; w.per_layer)
        for (std::uint32_t before = 0; before < layer; ++before) index += (w.kinds >> of.pattern(before)) & 1;
      for (std::uint32_t slot = 0; slot < o.slot; ++slot)
        index += of.weights[slot].per_layer ? of.config->num_hidden_layers : 1;
      return 10 * far_apart + (index << 32) + o.offset;
    }
    case plan::region::none:
      break;
  }
  return 0;
}

/// The dispatches of a sequence, one after the other, and their layers.
struct step {
  const plan::dispatch* call;
  std::uint32_t layer;
};
std::vector<step> steps_of(const plan::sequence& of, bool greedy) {
  std::vector<step> out;
  for (const plan::dispatch& call : of.prologue) out.push_back({&call, 0});
  for (std::uint32_t i = 0; i < of.repeats(); ++i)
    for (const plan::dispatch& call : of.stretch(i)) out.push_back({&call, i});
  for (const plan::dispatch& call : of.epilogue) out.push_back({&call, 0});
  if (greedy) out.back().call = &of.greedy.front();
  return out;
}

void check(const plan::table& of, const plan::sequence& sequence, const runtime::recorded_sequence& made, bool greedy) {
  std::vector<witness::dispatch> found;
  for (std::uint32_t s = 0; s < made.size(); ++s) {
    if (const auto some = witness::recorded.find(made.handle(s, greedy)); some != witness::recorded.end())
      found.insert(found.end(), some->second.begin(), some->second.end());  // a segment may have none
  }
  const std::vector<step> expected = steps_of(sequence, greedy);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const plan::dispatch& call = *expected[i].call;
    const kernels::kernel_interface& face = kernels::interface_of(call.kernel);
    INFO(sequence.name << " " << i << ": " << call.label.view() << " (" << kernels::name(call.variant) << ")");
    const witness::created& pipeline = witness::pipelines.at(found[i].pipeline);
    const auto module = runtime::modules_of<>(call.variant).spirv;
    std::vector<std::uint32_t> words(module.size() / 4);
    std::memcpy(words.data(), module.data(), module.size());
    if (call.activation != nullptr)
      words = runtime::patched_module(module, *call.activation, call.variant, call.unrolls);
    CHECK((pipeline.module == words));
    CHECK(pipeline.constants.size() == face.specialization_count());
    for (const auto& [id, value] : pipeline.constants) CHECK(value == call.specialization[id]);
    CHECK(found[i].groups == call.groups);
    REQUIRE(found[i].push.size() == face.push_bytes());
    for (std::size_t k = 0; k < face.push_count(); ++k) {
      std::uint64_t value = 0;
      std::memcpy(&value, found[i].push.data() + face.push_offset(k), 8);
      CHECK(value == (call.push[k].where == plan::region::none ? kernels::unbound(face.push[k].type)
                                                               : address(call.push[k], of, expected[i].layer)));
    }
  }
}

}  // namespace

TEST_CASE("what is recorded is what was proven, dispatch for dispatch, on every class that the device may be used as",
          "[runtime][gpu]") {
  faults::the_shim().reset();
  witness::forget();
  gpu::device_options options;
  options.entry = &witness::entry;
  const faults::kept_device kept;
  const checked_device on(options);
  const plan::planned batch = plan::planned::of<models::llama<two_layers, dtype::q8_0, dtype::q8_0, dtype::f32>>(
      plan::profiles::portable, 128, {.slot_count = 16});
  // The stages of a cut batch, an encoder, and what recurrent layers and experts keep and choose, alone and together.
  const families::weight_types coded{dtype::q8_0, dtype::q8_0, dtype::q8_0};
  const plan::planned whole =
                          families::planned_of(llama_tiny, coded, "cut", plan::profiles::cpu, 128, {.slot_count = 4}),
                      encoder = families::planned_of(models::bge_small_config, {dtype::f16, dtype::f16, dtype::f16},
                                                     "encoder", plan::profiles::cpu, 64),
                      hybrid = families::planned_of(models::granite_4_h_tiny_config, coded, "hybrid",
                                                    plan::profiles::cpu, 128, {.slot_count = 2});
  const plan::stage first(whole.table(), {0, 1}, 2),
      second(whole.table(), {1, whole.table().config->num_hidden_layers}, 2);
  std::size_t sequences = 0;
  for (const plan::table* table : {&fable_table(), &bitnet_tiny_portable_table(), &batch.table(), &first.table(),
                                   &second.table(), &encoder.table(), &hybrid.table()})
    for (const plan::device_class& of : runtime::usable_classes(on.device)) {
      const plan::device_plan plan(*table, of);
      const runtime::address_table addresses = addresses_of(plan.table());
      runtime::kernel_set kernels(on.device);
      for (const auto which : plan::verified_sequences)
        for (const plan::sequence* each : plan.all_of(which)) {
          if (each->layers == 0) continue;
          INFO(table->model << ", " << each->name << ", " << table->profile << " as " << plan::uses(of));
          kernels.add(std::array{each}, nullptr);
          const bool greedy = !each->greedy.empty();
          witness::recorded.clear();  // of command buffers that are gone, whose handles come again
          const runtime::recorded_sequence made = runtime::record_sequence(
              on.device, plan.table(), *each, kernels, addresses, nullptr, false, 0, {true, greedy});
          check(plan.table(), *each, made, false);
          if (greedy) check(plan.table(), *each, made, true);
          ++sequences;
        }
    }
  CHECK(sequences > 40);
  witness::forget();
  faults::the_shim().reset();
}

TEST_CASE("a dispatch that no plan was proven with is not recorded", "[runtime][gpu]") {
  const checked_device on;
  const plan::device_plan plan(bitnet_tiny_portable_table(), gpu_class(on.device));
  const plan::sequence& decode = plan.table().decode;
  runtime::kernel_set kernels(on.device);
  kernels.add(std::array{&decode}, nullptr);
  const gpu::pipeline& kernel = kernels.of(decode.prologue.front());
  runtime::expect_as_proven(decode.prologue.front(), kernel);
  plan::dispatch other = decode.prologue.front();
  other.specialization[1] += 1;
  CHECK_THROWS_MATCHES(
      runtime::expect_as_proven(other, kernel), argument_error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("expected constant 1 to be")));
  CHECK_THROWS_AS(runtime::expect_as_proven(decode.epilogue.front(), kernel), argument_error);
  CHECK_THROWS_AS(runtime::expect_as_proven(bitnet_tiny_portable_table().decode.prologue.front(), kernel),
                  argument_error);
  CHECK_THROWS_AS(kernels.of(other), argument_error);
  CHECK(kernels.module_hash(decode.prologue.front()) == kernel.module_hash());
  CHECK(kernels.of(decode.epilogue.front()).module_hash() != kernel.module_hash());
}

TEST_CASE("what is recorded is compared with the plan in every session: module, constants, grid and addresses",
          "[runtime][gpu]") {
  const checked_device on;
  const plan::device_plan plan(bitnet_tiny_portable_table(), gpu_class(on.device));
  const plan::sequence& decode = plan.table().decode;
  const runtime::address_table addresses = addresses_of(plan.table());
  runtime::kernel_set kernels(on.device);
  kernels.add(std::array{&decode}, nullptr);
  const runtime::recorded_sequence made =
      runtime::record_sequence(on.device, plan.table(), decode, kernels, addresses, nullptr, false, decode.repeats());
  REQUIRE(made.size() == 1);
  std::vector<runtime::planned_step> steps =
      runtime::planned_steps(decode, 0, decode.repeats(), kernels::sample_form::any);
  const auto expect = [&](const runtime::address_table& from) {
    runtime::expect_recorded(plan.table(), kernels, from, steps, made.segments.front());
  };
  expect(addresses);
  const std::size_t product = decode.prologue.size();  // the first dispatch of a layer
  const auto others = Catch::Matchers::MessageMatches(
      Catch::Matchers::ContainsSubstring("dispatch " + std::to_string(product) + ": expected module, constants"));
  plan::dispatch changed = *steps[product].call;
  changed.groups[0] += 1;
  const auto refused = [&] { CHECK_THROWS_MATCHES(expect(addresses), argument_error, others); };
  steps[product].call = &changed;
  refused();
  changed = decode.period.front();
  changed.push[0].offset += 4;
  refused();
  steps[product] = {&decode.period.front(), 1};  // another layer's addresses
  refused();
  steps[product] = {&decode.period[1], 0};  // another kernel's module
  refused();
  steps[product] = {&decode.period.front(), 0};
  expect(addresses);
  runtime::address_table moved = addresses;
  moved.arena += 256;
  CHECK_THROWS_AS(expect(moved), argument_error);
  steps.pop_back();
  CHECK_THROWS_AS(expect(addresses), argument_error);
}
