// SPDX-License-Identifier: MIT
// Commands that are recorded once and submitted any number of times.
#pragma once

#include <intaglio/gpu/memory.hpp>
#include <intaglio/gpu/pipeline.hpp>

#include "intaglio/core/array_view.hpp"

namespace intaglio::gpu {

/// Points in time measured on the device while a recording runs.
class timestamps {
 public:
  timestamps() = default;

  /// @param capacity number of points
  /// @error device_error: the device's queue has no timestamps; out_of_memory
  timestamps(const device& on, std::uint32_t capacity) : capacity_(capacity) {
    translated([&] {
      on.on()->require_alive("measure time");
      if (on.limits().timestamp_bits == 0)
        throw device_error(on.label(), "measure time", "its compute queue has no timestamps");
      typed<VkQueryPoolCreateInfo> info;
      info.queryType = VK_QUERY_TYPE_TIMESTAMP;
      info.queryCount = capacity;
      VkQueryPool made = VK_NULL_HANDLE;
      on.on()->check(on.on()->call.vkCreateQueryPool(on.handle(), &info, nullptr, &made), "make a pool of timestamps");
      pool_ = {on.on(), made};
    });
  }

  VkQueryPool handle() const noexcept { return pool_.get(); }
  std::uint32_t capacity() const noexcept { return capacity_; }

  /// The first `count` points of the last run, in nanoseconds since the first of them. The run must be done.
  /// @error device_error: VK_NOT_READY when it was never run
  std::vector<double> read(std::uint32_t count) const {
    std::vector<std::uint64_t> ticks(count);
    read_ticks(ticks);
    std::vector<double> out(count);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = nanoseconds(ticks[0], ticks[i]);
    return out;
  }
  /// Reads the first out.size() time stamps, in the device's ticks; allocates nothing. @error as of read()
  void read_ticks(std::span<std::uint64_t> out) const {
    translated([&] {
      if (out.empty()) return;
      const auto& on = pool_.on();
      on->check(
          on->call.vkGetQueryPoolResults(on->handle, pool_.get(), 0, static_cast<std::uint32_t>(out.size()),
                                         out.size_bytes(), out.data(), sizeof(std::uint64_t), VK_QUERY_RESULT_64_BIT),
          "read the timestamps");
    });
  }
  /// The time from one tick to another; the counter may have wrapped around once in between.
  double nanoseconds(std::uint64_t from, std::uint64_t to) const {
    const auto& limits = pool_.on()->description.limits;
    const std::uint64_t mask =
        limits.timestamp_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << limits.timestamp_bits) - 1;
    return static_cast<double>((to - from) & mask) * static_cast<double>(limits.timestamp_period_ns);
  }

 private:
  owned_handle<VkQueryPool, &dispatch_table::vkDestroyQueryPool> pool_;
  std::uint32_t capacity_ = 0;
};

/// A hash of what a dispatch runs and on what. @param module hash_of_module  @param push the push constants
inline std::uint64_t hash_of_dispatch(std::uint64_t module, array_view<const specialization> constants,
                                      const std::array<std::uint32_t, 3>& groups, std::span<const std::byte> push) {
  const auto mixed = [](std::uint64_t hash, std::span<const std::byte> bytes) {
    return detail::checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, hash);
  };
  const std::span values(reinterpret_cast<const std::byte*>(constants.data()),
                         constants.size() * sizeof(specialization));
  return mixed(mixed(mixed(module, values), std::as_bytes(std::span(groups))), push);
}

/// A finished command buffer. It may be in flight several times at once; everything that it refers to must outlive its
/// last run.
class recording {
 public:
  recording() = default;
  recording(recording&& other) noexcept
      : pool_(std::move(other.pool_)), commands_(std::exchange(other.commands_, nullptr)),
        name_(std::move(other.name_)), dispatches_(std::move(other.dispatches_)), points_(other.points_) {}
  recording& operator=(recording&&) noexcept = default;

  VkCommandBuffer handle() const noexcept { return commands_; }
  const std::string& name() const noexcept { return name_; }
  std::uint32_t dispatches() const noexcept { return static_cast<std::uint32_t>(dispatches_.size()); }
  /// hash_of_dispatch of each dispatch, in their order.
  std::span<const std::uint64_t> dispatch_hashes() const noexcept { return dispatches_; }
  /// Number of timestamps that a run writes: one before the first dispatch, one after each, and those of
  /// recorder::stamp(); 0 without `timestamps`.
  std::uint32_t points() const noexcept { return points_; }

 private:
  friend class recorder;
  owned_handle<VkCommandPool, &dispatch_table::vkDestroyCommandPool> pool_;
  VkCommandBuffer commands_ = nullptr;
  std::string name_;
  std::vector<std::uint64_t> dispatches_;  ///< their hashes
  std::uint32_t points_ = 0;
};

/// Records one command buffer. It begins with a barrier after all earlier dispatches and copies on the queue, and ends
/// with one that makes its results visible to the host, so recordings can be submitted in any sequence. Between its
/// dispatches there are only the requested barriers.
class recorder {
 public:
  /// @param name for errors and for the submission's label
  /// @param measure null, or with space for all points of the recording
  /// @param where the lane whose queue will run the commands; only copies for lane::copies
  /// @error out_of_memory, device_lost
  recorder(const device& on, std::string name, const timestamps* measure = nullptr, lane where = lane::work)
      : on_(on.on()), measure_(measure), lane_(where) {
    translated([&] { begin(std::move(name)); });
  }

  /// Records anew into a recording that is not in flight any more, in the same memory.
  /// @param used a recording made on this device, or an empty one  @error out_of_memory, device_lost
  recorder(const device& on, std::string name, recording&& used) : on_(on.on()), out_(std::move(used)) {
    translated([&] { begin(std::move(name)); });
  }

  /// Runs a kernel.
  /// @param push the push constants, exactly as many bytes as the pipeline declares
  /// @param groups workgroups in x, y, z
  /// @error argument_error: size of `push`, or groups zero or beyond the device's limit
  recorder& dispatch(const pipeline& kernel, std::span<const std::byte> push, std::array<std::uint32_t, 3> groups) {
    if (push.size() != kernel.push_constant_bytes())
      throw argument_error("push constants of " + kernel.name(),
                           std::to_string(kernel.push_constant_bytes()) + " bytes", std::to_string(push.size()));
    const auto& limit = on_->description.limits.max_workgroup_count;
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (groups[axis] == 0 || groups[axis] > limit[axis])
        throw argument_error("workgroups of " + kernel.name() + " in " + "xyz"[axis],
                             "1 to " + std::to_string(limit[axis]), std::to_string(groups[axis]));
    const VkCommandBuffer to = out_.commands_;
    if (bound_ != kernel.handle()) {
      on_->call.vkCmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.handle());
      bound_ = kernel.handle();
      on_->counters.recorded_commands += 1;
    }
    if (!push.empty())
      on_->call.vkCmdPushConstants(to, kernel.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                   static_cast<std::uint32_t>(push.size()), push.data());
    if (out_.dispatches_.empty()) point();
    on_->call.vkCmdDispatch(to, groups[0], groups[1], groups[2]);
    on_->counters.recorded_commands += 2;
    out_.dispatches_.push_back(hash_of_dispatch(kernel.module_hash(), kernel.constants(), groups, push));
    point();
    return *this;
  }

  /// Runs no workgroup of a kernel. A driver that compiles a kernel at its first run compiles it here.
  recorder& touch(const pipeline& kernel) {
    on_->call.vkCmdBindPipeline(out_.commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.handle());
    bound_ = kernel.handle();
    on_->call.vkCmdDispatch(out_.commands_, 0, 0, 0);
    on_->counters.recorded_commands += 2;
    return *this;
  }

  /// Writes a timestamp when all earlier dispatches are done; nothing without `timestamps`.
  /// @error argument_error: no space for one more point
  recorder& stamp() {
    point();
    return *this;
  }

  /// A barrier between dispatches: later dispatches may read and overwrite what earlier ones wrote.
  recorder& barrier() {
    return barrier(VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                   VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                   VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT);
  }

  /// A memory barrier between any stages: for transfers before or after dispatches.
  recorder& barrier(VkPipelineStageFlags2 from, VkAccessFlags2 written, VkPipelineStageFlags2 to, VkAccessFlags2 used) {
    typed<VkMemoryBarrier2> memory;
    memory.srcStageMask = from;
    memory.srcAccessMask = written;
    memory.dstStageMask = to;
    memory.dstAccessMask = used;
    typed<VkDependencyInfo> info;
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &memory;
    on_->call.vkCmdPipelineBarrier2(out_.commands_, &info);
    on_->counters.recorded_commands += 1;
    return *this;
  }

  /// A barrier after which all earlier dispatches and copies are done and visible to all later ones.
  recorder& full_barrier() {
    return barrier(stages(), writes(), stages(), writes() | (computes() ? all_read : copies_read));
  }

  /// Copies bytes between buffers.
  /// @error argument_error: a range ends outside its buffer
  recorder& copy(const buffer& from, std::uint64_t from_offset, const buffer& to, std::uint64_t to_offset,
                 std::uint64_t size_bytes) {
    check_range("source of the copy", from, from_offset, size_bytes);
    check_range("target of the copy", to, to_offset, size_bytes);
    VkBufferCopy region{};
    region.srcOffset = from_offset;
    region.dstOffset = to_offset;
    region.size = size_bytes;
    on_->call.vkCmdCopyBuffer(out_.commands_, from.handle(), to.handle(), 1, &region);
    on_->counters.recorded_commands += 1;
    return *this;
  }

  /// Fills bytes with a repeated word; offset and size are multiples of 4.
  /// @error argument_error: offset or size is no multiple of 4, or the range ends outside the buffer
  recorder& fill(const buffer& to, std::uint64_t offset, std::uint64_t size_bytes, std::uint32_t word) {
    check_range("range to fill", to, offset, size_bytes);
    if (offset % 4 != 0 || size_bytes % 4 != 0)
      throw argument_error("range to fill", "multiples of 4",
                           std::to_string(offset) + " and " + std::to_string(size_bytes));
    on_->call.vkCmdFillBuffer(out_.commands_, to.handle(), offset, size_bytes, word);
    on_->counters.recorded_commands += 1;
    return *this;
  }

  /// Ends the recording; afterwards the recorder is empty.
  /// @error out_of_memory
  recording finish() {
    return translated([&] {
      barrier(stages(), writes(), VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
      on_->check(on_->call.vkEndCommandBuffer(out_.commands_), "record", out_.name_);
      return std::move(out_);
    });
  }

 private:
  static constexpr VkAccessFlags2 copies_write = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                  copies_read = VK_ACCESS_2_TRANSFER_READ_BIT,
                                  all_write = copies_write | VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT,
                                  all_read = copies_read | VK_ACCESS_2_SHADER_STORAGE_READ_BIT;
  /// Whether the recording's queue runs dispatches: barriers of other queues may not name the compute stage.
  bool computes() const noexcept { return on_->shares(lane_); }
  VkPipelineStageFlags2 stages() const noexcept {
    return VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT | (computes() ? VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT : 0);
  }
  VkAccessFlags2 writes() const noexcept { return computes() ? all_write : copies_write; }

  void begin(std::string name) {
    on_->require_alive("record commands");
    out_.name_ = std::move(name);
    out_.dispatches_.clear();
    out_.points_ = 0;
    if (out_.pool_)
      on_->check(on_->call.vkResetCommandPool(on_->handle, out_.pool_.get(), 0), "record anew", out_.name_);
    else make_pool();
    typed<VkCommandBufferBeginInfo> info;
    info.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    on_->check(on_->call.vkBeginCommandBuffer(out_.commands_, &info), "record", out_.name_);
    if (measure_ != nullptr) {
      on_->call.vkCmdResetQueryPool(out_.commands_, measure_->handle(), 0, measure_->capacity());
      on_->counters.recorded_commands += 1;
    }
    full_barrier();
  }

  void make_pool() {
    typed<VkCommandPoolCreateInfo> pool;
    pool.queueFamilyIndex = on_->family_of(lane_);
    VkCommandPool made = VK_NULL_HANDLE;
    on_->check(on_->call.vkCreateCommandPool(on_->handle, &pool, nullptr, &made), "make a command pool for",
               out_.name_);
    out_.pool_ = {on_, made};
    typed<VkCommandBufferAllocateInfo> allocate;
    allocate.commandPool = made;
    allocate.commandBufferCount = 1;
    on_->check(on_->call.vkAllocateCommandBuffers(on_->handle, &allocate, &out_.commands_),
               "allocate a command buffer for", out_.name_);
  }

  void point() {
    if (measure_ == nullptr) return;
    if (out_.points_ >= measure_->capacity())
      throw argument_error("timestamps of " + out_.name_, "room for more than " + std::to_string(out_.points_),
                           std::to_string(measure_->capacity()));
    on_->call.vkCmdWriteTimestamp2(out_.commands_, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, measure_->handle(),
                                   out_.points_);
    on_->counters.recorded_commands += 1;
    out_.points_ += 1;
  }

  static void check_range(const char* what, const buffer& of, std::uint64_t offset, std::uint64_t size) {
    if (size == 0 || offset > of.size_bytes() || size > of.size_bytes() - offset)
      throw argument_error(what, "a range inside " + std::to_string(of.size_bytes()) + " bytes",
                           std::to_string(size) + " bytes at " + std::to_string(offset));
  }

  std::shared_ptr<connection> on_;
  const timestamps* measure_ = nullptr;
  lane lane_ = lane::work;
  recording out_;
  VkPipeline bound_ = VK_NULL_HANDLE;
};

}  // namespace intaglio::gpu
