// SPDX-License-Identifier: MIT
// Compute pipelines from SPIR-V. They have no descriptor sets: all data comes through push constants and device
// addresses. Threads make many at once, since the drivers' compilers are slow.
#pragma once

#include <intaglio/gpu/cache_file.hpp>
#include <intaglio/gpu/pipeline_cache.hpp>
#include <intaglio/gpu/pipeline_demands.hpp>

#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/joining_thread.hpp"

namespace intaglio::gpu {

/// The input of a pipeline. The spans and texts must live until build_pipelines returns.
struct pipeline_description {
  std::string_view name;             ///< name of the kernel, for errors and tools
  std::span<const std::byte> spirv;  ///< one module; its entry point is main
  array_view<const specialization> constants;
  std::uint32_t push_constant_bytes = 0;
  std::uint32_t required_subgroup_size = 0;  ///< 0: the driver's choice
  bool full_subgroups = true;                ///< no subgroup of a workgroup has idle lanes at the end
  bool keep_statistics = false;              ///< for pipeline::statistics
};

/// A hash that tells modules apart.
inline std::uint64_t hash_of_module(std::span<const std::byte> spirv) {
  return detail::checksum({reinterpret_cast<const char*>(spirv.data()), spirv.size()});
}

/// A compute pipeline and its layout.
class pipeline {
 public:
  pipeline() = default;
  VkPipeline handle() const noexcept { return pipeline_.get(); }
  VkPipelineLayout layout() const noexcept { return layout_.get(); }
  const std::string& name() const noexcept { return name_; }
  /// The specialization constants of the pipeline.
  array_view<const specialization> constants() const noexcept { return constants_; }
  /// hash_of_module of the module that the driver was given.
  std::uint64_t module_hash() const noexcept { return module_hash_; }
  std::uint32_t push_constant_bytes() const noexcept { return push_constant_bytes_; }
  /// True where the driver reported that the cache held the pipeline.
  bool cached() const noexcept { return cached_; }

  /// The driver's statistics of the compiled code (registers, spills), as lines "name: value". Empty unless
  /// keep_statistics was set and the device has VK_KHR_pipeline_executable_properties.
  std::vector<std::string> statistics() const {
    return translated([&] {
      std::vector<std::string> out;
      if (!pipeline_ || !keeps_statistics_) return out;
      const connection& on = *pipeline_.on();
      typed<VkPipelineExecutableInfoKHR> which;
      which.pipeline = pipeline_.get();
      std::uint32_t count = 0;
      if (on.call.vkGetPipelineExecutableStatisticsKHR(on.handle, &which, &count, nullptr) != VK_SUCCESS) return out;
      std::vector<VkPipelineExecutableStatisticKHR> all(count, typed<VkPipelineExecutableStatisticKHR>{});
      if (on.call.vkGetPipelineExecutableStatisticsKHR(on.handle, &which, &count, all.data()) < 0) return out;
      for (const auto& each : all)
        out.push_back(
            std::string(each.name) + ": " +
            (each.format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR ? std::to_string(each.value.f64)
             : each.format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR ? std::to_string(each.value.i64)
                                                                                : std::to_string(each.value.u64)));
      return out;
    });
  }

  /// Throws where the device cannot run the pipeline, without a call of its driver.
  /// @error device_error: the SPIR-V is malformed, a limit is exceeded or a feature is missing (named)
  static void check(const device& on, const pipeline_description& of) {
    translated([&] { check_limits(*on.on(), of); });
  }

  /// Makes one pipeline.
  /// @error as for `check`; out_of_memory
  pipeline(const device& on, const pipeline_description& of, VkPipelineCache cache = VK_NULL_HANDLE) {
    translated([&] { create(on.on(), of, cache); });
  }

 private:
  [[gnu::cold]] static void check_limits(const connection& on, const pipeline_description& of) {
    const device_limits& limits = on.description.limits;
    const auto refuse = [&](const std::string& what) {
      throw device_error(on.label, "make the pipeline " + std::string(of.name), what);
    };
    constexpr std::uint32_t magic = 0x07230203;
    std::uint32_t first = 0;
    if (of.spirv.size() >= sizeof first) std::memcpy(&first, of.spirv.data(), sizeof first);
    if (of.spirv.size() < 20 || of.spirv.size() % 4 != 0 || first != magic)
      refuse("not SPIR-V: expected whole words that begin with 0x7230203, found " + std::to_string(of.spirv.size()) +
             " bytes that begin with " + hexadecimal(first));
    if (of.push_constant_bytes > limits.max_push_constant_bytes || of.push_constant_bytes % 4 != 0)
      refuse("push constants: expected a multiple of 4 up to " + std::to_string(limits.max_push_constant_bytes) +
             " bytes, found " + std::to_string(of.push_constant_bytes));
    const std::uint32_t size = of.required_subgroup_size;
    if (size != 0 && (!limits.subgroup_size_selectable || size < limits.min_subgroup_size ||
                      size > limits.max_subgroup_size || (size & (size - 1)) != 0))
      refuse("subgroup size: expected a power of two from " + std::to_string(limits.min_subgroup_size) + " to " +
             std::to_string(limits.max_subgroup_size) +
             (limits.subgroup_size_selectable ? "" : " that this device does not let a shader choose") + ", found " +
             std::to_string(size));
    if (const std::string unmet =
            unmet_demand(limits, on.enabled, demands_of(of.spirv, of.constants), size, of.full_subgroups);
        !unmet.empty())
      refuse(unmet);
  }

  using shader_handle = owned_handle<VkShaderModule, &dispatch_table::vkDestroyShaderModule>;

  /// The specialization constants of a pipeline as Vulkan takes them. It has pointers to itself.
  struct specialization_map {
    explicit specialization_map(array_view<const specialization> constants) : entries(constants.size()) {
      for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i].constantID = constants[i].id;
        entries[i].offset = static_cast<std::uint32_t>(i * sizeof(specialization) + offsetof(specialization, value));
        entries[i].size = sizeof(std::uint32_t);
      }
      info.mapEntryCount = static_cast<std::uint32_t>(entries.size());
      info.pMapEntries = entries.data();
      info.dataSize = constants.size() * sizeof(specialization);
      info.pData = constants.data();
    }
    specialization_map(const specialization_map&) = delete;
    specialization_map& operator=(const specialization_map&) = delete;

    std::vector<VkSpecializationMapEntry> entries;
    VkSpecializationInfo info{};
  };

  [[gnu::cold]] static shader_handle shader_of(const std::shared_ptr<connection>& on, const pipeline_description& of) {
    // An aligned copy: the module may come from a string literal.
    std::vector<std::uint32_t> words(of.spirv.size() / 4);
    std::memcpy(words.data(), of.spirv.data(), of.spirv.size());
    typed<VkShaderModuleCreateInfo> code;
    code.codeSize = of.spirv.size();
    code.pCode = words.data();
    VkShaderModule made = VK_NULL_HANDLE;
    on->check(on->call.vkCreateShaderModule(on->handle, &code, nullptr, &made), "make the shader module", of.name);
    return {on, made};
  }

  [[gnu::cold]] void create_layout(const std::shared_ptr<connection>& on, const pipeline_description& of) {
    VkPushConstantRange range{};
    range.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    range.size = of.push_constant_bytes;
    typed<VkPipelineLayoutCreateInfo> layout;
    layout.pushConstantRangeCount = of.push_constant_bytes != 0 ? 1 : 0;
    layout.pPushConstantRanges = &range;
    VkPipelineLayout made = VK_NULL_HANDLE;
    on->check(on->call.vkCreatePipelineLayout(on->handle, &layout, nullptr, &made), "make the pipeline layout",
              of.name);
    layout_ = {on, made};
  }

  [[gnu::cold]] void create(const std::shared_ptr<connection>& on, const pipeline_description& of,
                            VkPipelineCache cache) {
    on->require_alive("make a pipeline");
    check_limits(*on, of);
    name_ = of.name, module_hash_ = hash_of_module(of.spirv);
    push_constant_bytes_ = of.push_constant_bytes;
    constants_.assign(of.constants.begin(), of.constants.end());

    const shader_handle shader = shader_of(on, of);
    create_layout(on, of);
    const specialization_map constants(of.constants);

    typed<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo> subgroup;
    subgroup.requiredSubgroupSize = of.required_subgroup_size;
    VkPipelineCreationFeedback whole{}, stage{};
    typed<VkPipelineCreationFeedbackCreateInfo> feedback;
    feedback.pPipelineCreationFeedback = &whole;
    feedback.pipelineStageCreationFeedbackCount = 1;
    feedback.pPipelineStageCreationFeedbacks = &stage;
    typed<VkComputePipelineCreateInfo> info;
    info.pNext = &feedback;
    info.stage = typed<VkPipelineShaderStageCreateInfo>{};
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = shader.get();
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &constants.info;
    if (of.required_subgroup_size != 0) info.stage.pNext = &subgroup;
    if (of.full_subgroups) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    info.layout = layout_.get();
    keeps_statistics_ = of.keep_statistics && contains(on->enabled, feature::pipeline_executable_info);
    if (keeps_statistics_) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    VkPipeline made = VK_NULL_HANDLE;
    on->check(on->call.vkCreateComputePipelines(on->handle, cache, 1, &info, nullptr, &made), "make the pipeline",
              of.name);
    pipeline_ = {on, made};
    on->counters.pipelines += 1;
    constexpr VkPipelineCreationFeedbackFlags hit =
        VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT | VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
    cached_ = (whole.flags & hit) == hit;
  }

  owned_handle<VkPipelineLayout, &dispatch_table::vkDestroyPipelineLayout> layout_;
  owned_handle<VkPipeline, &dispatch_table::vkDestroyPipeline> pipeline_;
  std::string name_;
  std::vector<specialization> constants_;
  std::uint64_t module_hash_ = 0;
  std::uint32_t push_constant_bytes_ = 0;
  bool cached_ = false;
  bool keeps_statistics_ = false;
};

/// Makes all pipelines on up to `threads` threads (0: one for each processor, at most 16), in the order of the
/// descriptions. It begins after pipeline::check has accepted all of them. `cache` may be null; it counts the pipelines
/// that it held and those that were compiled.
/// @param take gets each pipeline with its description's index as soon as it is made, on any of the threads, one call
/// at a time
/// @error as for `pipeline`: the first failure in the order of the descriptions, after all threads have ended; `take`
/// may have got some pipelines by then
inline void build_pipelines(const device& on, array_view<const pipeline_description> descriptions,
                            pipeline_cache* cache, unsigned threads,
                            const std::function<void(std::size_t, pipeline&&)>& take) {
  translated([&] {
    for (const pipeline_description& each : descriptions) pipeline::check(on, each);
    std::vector<std::exception_ptr> failures(descriptions.size());
    const VkPipelineCache handle = cache != nullptr ? cache->handle() : VK_NULL_HANDLE;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex taking;
    const auto work = [&]() noexcept {
      for (std::size_t i = next++; i < descriptions.size() && !failed; i = next++) {
        try {
          pipeline made(on, descriptions[i], handle);
          const std::lock_guard own(taking);
          if (cache != nullptr) cache->count(made.cached());
          take(i, std::move(made));
        } catch (...) {
          failures[i] = std::current_exception();
          failed = true;
        }
      }
    };
    if (threads == 0) threads = (std::min)(16U, (std::max)(1U, std::thread::hardware_concurrency()));
    {
      std::vector<joining_thread> workers;
      try {
        for (std::size_t i = 1; i < (std::min<std::size_t>)(threads, descriptions.size()); ++i)
          workers.emplace_back(work);
      } catch (...) {  // the system gives no more threads: those that run and this one do all the work
      }
      work();
    }
    for (const auto& failure : failures)
      if (failure) std::rethrow_exception(failure);
  });
}
/// Makes pipelines on several threads. @return them in the order of their descriptions
inline std::vector<pipeline> build_pipelines(const device& on, array_view<const pipeline_description> descriptions,
                                             pipeline_cache* cache = nullptr, unsigned threads = 0) {
  return translated([&] {
    std::vector<pipeline> out(descriptions.size());
    build_pipelines(on, descriptions, cache, threads,
                    [&](std::size_t i, pipeline&& made) { out[i] = std::move(made); });
    return out;
  });
}

}  // namespace intaglio::gpu
