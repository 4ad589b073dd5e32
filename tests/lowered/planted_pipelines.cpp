// SPDX-License-Identifier: MIT
// Makes a pipeline of 512 invocations, one with 17 KiB of shared memory and one within the limits. The layer of this
// folder is below the validation layer, so the first two are mistakes where limits are lowered. CI runs this first, to
// know that the absence of messages later means something.
#include <vulkan/vulkan.h>

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "../validation/bare_device.hpp"

namespace {

/// A module that reads an array of shared memory, written out: version 1.0 of SPIR-V.
std::vector<std::uint32_t> module_of(std::uint32_t invocations, std::uint32_t shared_words) {
  const auto head = [](std::uint32_t words, std::uint32_t opcode) { return words << 16 | opcode; };
  return {0x07230203,
          0x00010000,
          0,
          11,
          0,
          head(2, 17),
          1,  // OpCapability Shader
          head(3, 14),
          0,
          1,  // OpMemoryModel Logical GLSL450
          head(5, 15),
          5,
          1,
          0x6E69616D,
          0,  // OpEntryPoint GLCompute %1 "main"
          head(6, 16),
          1,
          17,
          invocations,
          1,
          1,  // OpExecutionMode %1 LocalSize
          head(2, 19),
          2,  // %2 void
          head(3, 33),
          3,
          2,  // %3 void()
          head(4, 21),
          4,
          32,
          0,  // %4 uint
          head(4, 43),
          4,
          5,
          shared_words,  // %5 count
          head(4, 28),
          6,
          4,
          5,  // %6 array
          head(4, 32),
          7,
          4,
          6,  // %7 pointer to it, Workgroup
          head(4, 59),
          7,
          8,
          4,  // %8 variable
          head(5, 54),
          2,
          1,
          0,
          3,
          head(2, 248),
          9,  // %1 function
          head(4, 61),
          6,
          10,
          8,  // %10 load of %8
          head(1, 253),
          head(1, 56)};
}

void make_pipeline(VkDevice device, const std::vector<std::uint32_t>& words) {
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = words.size() * 4;
  module_info.pCode = words.data();
  VkShaderModule module{};
  demand(vkCreateShaderModule(device, &module_info, nullptr, &module), "vkCreateShaderModule");
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  VkPipelineLayout layout{};
  demand(vkCreatePipelineLayout(device, &layout_info, nullptr, &layout), "vkCreatePipelineLayout");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = layout;
  VkPipeline pipeline{};
  demand(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline), "vkCreateComputePipelines");
  vkDestroyPipeline(device, pipeline, nullptr);
  vkDestroyPipelineLayout(device, layout, nullptr);
  vkDestroyShaderModule(device, module, nullptr);
}

}  // namespace

int main() {
  const bare_device device;
  for (const auto& [invocations, shared_words] : {std::pair{512u, 64u}, {64u, 17u * 256u}, {64u, 64u}}) {
    std::printf("%u invocations, %u bytes\n", invocations, 4 * shared_words);
    std::fflush(stdout);
    make_pipeline(device, module_of(invocations, shared_words));
  }
}
