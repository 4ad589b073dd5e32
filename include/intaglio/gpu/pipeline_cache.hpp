// SPDX-License-Identifier: MIT
// Compiled pipelines kept on disk between runs. A file is used only if its header names this driver, device and plan
// and its checksum holds. Any other file is ignored with one warning and replaced as a whole. Losing the file costs
// only start-up time.
#pragma once

#include <intaglio/gpu/cache_file.hpp>
#include <intaglio/gpu/device.hpp>

namespace intaglio::gpu {

/// A VkPipelineCache filled from a file, with space for a note of the caller (the outcome of the kernels' self-tests).
class pipeline_cache {
 public:
  /// @param folder of the file, usually default_cache_folder(); empty: the cache is only in memory
  /// @param plan_hash distinguishes the caches of different plans
  /// @error device_error, out_of_memory: from the driver; a bad file is no error
  pipeline_cache(const device& on, std::string folder, std::uint64_t plan_hash) {
    translated([&] { open(on.on(), std::move(folder), plan_hash); });
  }

  VkPipelineCache handle() const noexcept { return cache_.get(); }
  /// True where a file was found and used.
  bool loaded() const noexcept { return loaded_; }
  /// Why an existing file could not be used or written, for the program to print; or empty.
  const std::string& warning() const noexcept { return warning_; }
  const std::string& path() const noexcept { return path_; }
  /// What the cache file is bound to; other files of the same plan and device use the same key.
  const detail::cache_key& key() const noexcept { return key_; }

  /// The caller's note, kept in the file beside the pipelines and bound to the same driver, device and plan.
  const std::string& note() const noexcept { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }

  /// Number of pipelines that the cache held.
  std::size_t hits() const noexcept { return hits_; }
  std::size_t misses() const noexcept { return misses_; }
  void count(bool hit) noexcept { ++(hit ? hits_ : misses_); }

  /// Writes the file; readers see the old one or the new one. A failure becomes a warning. Does nothing without a
  /// folder, or when the file on disk already has this content.
  /// @error out_of_memory, device_error: from the driver
  void store() {
    translated([&] {
      if (path_.empty()) return;
      const auto& on = cache_.on();
      std::string data;
      std::size_t size = 0;
      VkResult result = VK_INCOMPLETE;
      for (int attempt = 0; result == VK_INCOMPLETE && attempt < 8; ++attempt) {
        result = on->call.vkGetPipelineCacheData(on->handle, handle(), &size, nullptr);
        if (result != VK_SUCCESS) break;
        data.resize(size);
        result = on->call.vkGetPipelineCacheData(on->handle, handle(), &size, data.data());
      }
      on->check(result, "read the pipeline cache");
      data.resize(size);
      if (loaded_ && data == stored_data_ && note_ == stored_note_) return;
      const std::string problem = detail::write_whole_file(folder_, path_, detail::frame_cache(key_, note_, data));
      if (!problem.empty()) {
        warn(problem);
        return;
      }
      loaded_ = true;
      stored_data_ = std::move(data);
      stored_note_ = note_;
    });
  }

 private:
  void open(const std::shared_ptr<connection>& on, std::string folder, std::uint64_t plan_hash) {
    on->require_alive("make a pipeline cache");
    const device_description& is = on->description;
    key_.device = is.uuid;
    key_.driver = is.driver_uuid;
    key_.vendor_id = is.vendor_id;
    key_.device_id = is.device_id;
    key_.driver_version = is.driver_version;
    key_.api_version = is.api_version;
    key_.plan = plan_hash;
    if (!folder.empty()) {
      folder_ = std::move(folder);
      path_ = folder_ + "/" + uuid_text(key_.device) + "-" + hexadecimal(plan_hash).substr(2) + ".pipelines";
      std::string content;
      std::string problem = detail::read_whole_file(path_, content);
      if (problem.empty() && !content.empty()) {
        problem = detail::unframe_cache(key_, content, note_, stored_data_);
        loaded_ = problem.empty();
      }
      if (!problem.empty()) warn(problem);
    }
    VkPipelineCache made = VK_NULL_HANDLE;
    typed<VkPipelineCacheCreateInfo> info;
    info.initialDataSize = stored_data_.size();
    info.pInitialData = stored_data_.data();
    VkResult result = on->call.vkCreatePipelineCache(on->handle, &info, nullptr, &made);
    if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST && loaded_) {  // the driver rejects its own data
      warn("the driver refused the data");
      loaded_ = false;
      stored_data_.clear();
      note_.clear();
      info.initialDataSize = 0;
      info.pInitialData = nullptr;
      result = on->call.vkCreatePipelineCache(on->handle, &info, nullptr, &made);
    }
    on->check(result, "make a pipeline cache");
    cache_ = {on, made};
    stored_note_ = note_;
  }

  void warn(const std::string& problem) {
    if (warning_.empty())
      warning_ = "pipeline cache " + printable(path_, 240) + ": " + problem +
                 "; it is ignored, and only start-up takes longer";
  }

  owned_handle<VkPipelineCache, &dispatch_table::vkDestroyPipelineCache> cache_;
  detail::cache_key key_;
  std::string folder_, path_, note_, warning_;
  std::string stored_data_, stored_note_;  ///< content of the file on disk
  bool loaded_ = false;
  std::size_t hits_ = 0, misses_ = 0;
};

}  // namespace intaglio::gpu
