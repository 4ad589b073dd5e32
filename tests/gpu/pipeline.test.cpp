// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "gpu/scale_add.hpp"

#include <intaglio/gpu/pipeline.hpp>

#include <cstring>

using namespace intaglio;

namespace {

const gpu::specialization constants[] = {{0, 64}, {1, 3}};

gpu::pipeline_description sound() {
  return {.name = "scale_add", .spirv = scale_add_spirv(), .constants = constants, .push_constant_bytes = 24};
}

std::string refusal(const gpu::device& on, const gpu::pipeline_description& of) {
  try {
    gpu::pipeline made(on, of);
  } catch (const device_error& problem) { return problem.what(); }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("pipelines are made in parallel, in order") {
  const own_device checked;
  std::vector<std::string> names;
  for (int i = 0; i < 24; ++i) names.push_back("scale_add " + std::to_string(i));
  std::vector<gpu::pipeline_description> descriptions;
  for (const auto& name : names) {
    descriptions.push_back(sound());
    descriptions.back().name = name;
  }
  for (const unsigned threads : {0U, 1U, 4U}) {
    const auto made = gpu::build_pipelines(checked.device, descriptions, nullptr, threads);
    REQUIRE(made.size() == names.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      CHECK(made[i].name() == names[i]);
      CHECK(made[i].handle() != VK_NULL_HANDLE);
      CHECK(made[i].push_constant_bytes() == 24);
    }
  }
  CHECK(checked.device.counters().pipelines == 72);
  CHECK(gpu::build_pipelines(checked.device, {}).empty());
}

TEST_CASE("SPIR-V may lie at any address") {
  const own_device checked;
  std::vector<std::byte> shifted(scale_add_spirv().size() + 1);
  std::memcpy(shifted.data() + 1, scale_add_spirv().data(), scale_add_spirv().size());
  auto description = sound();
  description.spirv = std::span(shifted).subspan(1);
  CHECK(gpu::pipeline(checked.device, description).handle() != VK_NULL_HANDLE);
}

TEST_CASE("a required subgroup size is taken where the device has it") {
  const own_device checked;
  auto description = sound();
  description.required_subgroup_size = checked.device.limits().min_subgroup_size;
  if (checked.device.limits().subgroup_size_selectable)
    CHECK(gpu::pipeline(checked.device, description).handle() != VK_NULL_HANDLE);
  else CHECK(refusal(checked.device, description).find("does not let a shader choose") != std::string::npos);
  for (const std::uint32_t wrong :
       {checked.device.limits().max_subgroup_size * 2, checked.device.limits().min_subgroup_size + 1, 1U << 31U}) {
    description.required_subgroup_size = wrong;
    CHECK(refusal(checked.device, description).find("scale_add: subgroup size: expected a power of two") !=
          std::string::npos);
  }
}

TEST_CASE("what is no SPIR-V or too much is refused by name") {
  const own_device checked;
  auto description = sound();
  description.push_constant_bytes = checked.device.limits().max_push_constant_bytes + 4;
  CHECK(refusal(checked.device, description).find("scale_add: push constants: expected") != std::string::npos);
  description.push_constant_bytes = 23;
  CHECK(refusal(checked.device, description).find("found 23") != std::string::npos);
  const auto spirv = scale_add_spirv();
  for (const auto wrong :
       {spirv.first(0), spirv.first(3), spirv.first(16), spirv.first(spirv.size() - 1), spirv.subspan(4)}) {
    description = sound();
    description.spirv = wrong;
    CHECK(refusal(checked.device, description).find("not SPIR-V") != std::string::npos);
    const gpu::pipeline_description mixed[] = {sound(), description, sound()};
    CHECK_THROWS_AS(gpu::build_pipelines(checked.device, mixed), device_error);
  }
}

TEST_CASE("the driver's statistics of a pipeline are kept where it was asked for") {
  const own_device checked;
  auto description = sound();
  CHECK(gpu::pipeline(checked.device, description).statistics().empty());
  CHECK(gpu::pipeline().statistics().empty());
  description.keep_statistics = true;
  const auto lines = gpu::pipeline(checked.device, description).statistics();
  CHECK(lines.empty() != contains(checked.device.on()->enabled, gpu::feature::pipeline_executable_info));
  for (const auto& line : lines) CHECK(line.find(": ") != std::string::npos);
}

TEST_CASE("a workgroup beyond the device's limits is refused by name, and no pipeline is made") {
  const own_device checked;
  const gpu::specialization wide[] = {{0, checked.device.limits().max_workgroup_invocations * 2}, {1, 3}};
  auto description = sound();
  description.constants = wide;
  const std::string most = std::to_string(checked.device.limits().max_workgroup_invocations);
  CHECK(refusal(checked.device, description)
            .ends_with("scale_add: workgroup size: expected 1 to " + most + " invocations, found " +
                       std::to_string(wide[0].value)));
  const gpu::specialization none[] = {{0, 0}};
  description.constants = none;
  CHECK(refusal(checked.device, description).ends_with("invocations, found 0"));
  const gpu::specialization odd[] = {{0, checked.device.limits().subgroup_size + 1}};
  description.constants = odd;
  CHECK(refusal(checked.device, description).find("expected a multiple of the subgroup size") != std::string::npos);
  // The sound ones of a list are not made either.
  const gpu::pipeline_description mixed[] = {sound(), sound(), description};
  CHECK_THROWS_AS(gpu::build_pipelines(checked.device, mixed), device_error);
  CHECK(checked.device.counters().pipelines == 0);
}

TEST_CASE("each demand that a device does not meet is a sentence of its own") {
  gpu::device_limits limits;
  limits.max_shared_memory_bytes = 16384;
  limits.max_workgroup_invocations = 128;
  limits.max_workgroup_size = {128, 128, 64};
  limits.subgroup_size = 32;
  limits.max_subgroups_per_workgroup = 2;
  limits.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT;
  gpu::feature_set enabled;
  kernels::module_demands of;
  of.workgroup = {64, 1, 1};
  of.shared_memory_bytes = 16384;
  const auto said = [&](std::uint32_t required = 0) { return gpu::unmet_demand(limits, enabled, of, required, true); };
  CHECK(said().empty());
  CHECK(said(32).empty());
  CHECK(said(16) == "subgroups of a workgroup: expected 1 to 2, found 4");
  of.shared_memory_bytes += 4;
  CHECK(said() == "shared memory: expected at most 16384 bytes, found 16388");
  of.shared_memory_bytes = 0;
  of.workgroup = {1, 1, 65};
  CHECK(said() == "workgroup size in z: expected 1 to 64 invocations, found 65");
  of.workgroup = {32, 3, 2};
  CHECK(said() == "workgroup size: expected 1 to 128 invocations, found 192");
  of.workgroup = {32, 1, 1};
  of.capabilities = {1, 61, 11};
  of.capability_count = 3;
  CHECK(said() == "shaderInt64: expected a device with this feature enabled, found one without");
  enabled.set(static_cast<std::size_t>(gpu::feature::shader_int64));
  CHECK(said().empty());
  of.capabilities[1] = 65;
  CHECK(said() == "subgroup operations: expected shuffle operations in compute shaders, found a device without");
  of.problem = "an instruction lacks an operand";
  of.problem_word = 7;
  CHECK(said() ==
        "SPIR-V: expected declarations that can be read, found at word 7 that an instruction lacks an operand");
}

TEST_CASE("what a device says of its limits decides") {
  std::uint32_t shared_bytes = 0;
  {
    const own_device checked;
    shared_bytes = checked.device.limits().max_shared_memory_bytes;
  }
  const faults::lowered_limits lowered(16384, 64);
  gpu::device_options options;
  options.entry = &faults::entry;
  const checked_device checked(options);
  CHECK(checked.device.limits().max_shared_memory_bytes == (std::min)(shared_bytes, 16384u));
  CHECK(checked.device.limits().max_workgroup_invocations == 64);
  CHECK(gpu::pipeline(checked.device, sound()).handle() != VK_NULL_HANDLE);
  const gpu::specialization wide[] = {{0, 128}};
  auto description = sound();
  description.constants = wide;
  CHECK(refusal(checked.device, description)
            .ends_with("scale_add: workgroup size: expected 1 to 64 invocations, found 128"));
}
