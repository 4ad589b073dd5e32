// SPDX-License-Identifier: MIT
// Work handed to the device and waited for: one vkQueueSubmit a submission, a timeline semaphore counts those that are
// done. Not vkQueueSubmit2, which would do no more here: the GPU-assisted checks of validation layer 1.3.239 (Debian
// 12) never see the semaphores that it signals, and every wait takes ten seconds.
#pragma once

#include <intaglio/gpu/device.hpp>
#include <intaglio/gpu/progress_watch.hpp>
#include <intaglio/platform/clock.hpp>

#include <chrono>
#include <span>
#include <thread>

namespace intaglio::gpu {

/// The end of a submission, for which submissions of other queues wait.
struct queue_point {
  VkSemaphore semaphore = VK_NULL_HANDLE;  ///< null: nothing to wait for
  std::uint64_t value = 0;
};

/// A sequence of submissions on one of the device's queues, executed in order. Several `queue` objects may share the
/// device; each is used by one thread. Submitting and waiting allocate nothing. When a device_error leaves it, nothing
/// is in flight on the device, so the caller may destroy its objects. The one exception is work that does not end: then
/// nothing that was made on the device is destroyed while the process lives.
class queue {
 public:
  /// How long a wait goes on without progress.
  static constexpr std::chrono::nanoseconds hang_limit = std::chrono::seconds(10);
  /// How long a wait for a pipeline's first run goes on without progress: some drivers compile it then.
  static constexpr std::chrono::nanoseconds first_hang_limit = 12 * hang_limit;

  /// @param limit how long a wait without a limit of its own, and the wait in the destructor, go on without progress
  /// (gpu/progress_watch.hpp)
  /// @param where the lane whose queue runs the commands, which are recorded for that lane
  explicit queue(const device& on, std::chrono::nanoseconds limit = hang_limit, lane where = lane::work)
      : limit_(limit), lane_(where) {
    translated([&] { create(on.on()); });
  }
  queue(queue&& other) noexcept
      : semaphore_(std::move(other.semaphore_)), submitted_(std::exchange(other.submitted_, 0)),
        finished_(std::exchange(other.finished_, 0)), limit_(other.limit_), lane_(other.lane_), labels_(other.labels_) {
  }
  queue& operator=(queue&& other) noexcept {
    if (this == &other) return *this;
    drain();
    semaphore_ = std::move(other.semaphore_);
    submitted_ = std::exchange(other.submitted_, 0);
    finished_ = std::exchange(other.finished_, 0);
    limit_ = other.limit_;
    lane_ = other.lane_;
    labels_ = other.labels_;
    return *this;
  }
  /// Waits for everything in flight, so that its resources may be freed.
  ~queue() { drain(); }

  /// Hands over command buffers, to be executed in this order.
  /// @param label what the commands compute; errors name the submissions in flight by it. Cut after 47 characters.
  /// @param after what the device waits for before it begins: a submission that was made earlier on the same device
  /// @return the number of this submission, for wait() and finished()
  /// @error device_lost, out_of_memory; then none of these commands will be executed
  std::uint64_t submit(std::span<const VkCommandBuffer> commands, std::string_view label,
                       const queue_point& after = {}) {
    return translated([&] {
      const auto& on = semaphore_.on();
      on->require_alive("submit");
      const std::uint64_t value = submitted_ + 1;
      const VkSemaphore semaphore = semaphore_.get();
      typed<VkTimelineSemaphoreSubmitInfo> timeline;
      timeline.signalSemaphoreValueCount = 1;
      timeline.pSignalSemaphoreValues = &value;
      typed<VkSubmitInfo> info;
      info.pNext = &timeline;
      const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
      if (after.semaphore != VK_NULL_HANDLE) {
        timeline.waitSemaphoreValueCount = info.waitSemaphoreCount = 1;
        timeline.pWaitSemaphoreValues = &after.value;
        info.pWaitSemaphores = &after.semaphore;
        info.pWaitDstStageMask = &all;
      }
      info.commandBufferCount = static_cast<std::uint32_t>(commands.size());
      info.pCommandBuffers = commands.data();
      info.signalSemaphoreCount = 1;
      info.pSignalSemaphores = &semaphore;
      VkResult result = VK_SUCCESS;
      {
        const std::lock_guard own(on->queue_mutex);
        std::unique_lock<std::mutex> host;
        if (on->host_mutex != nullptr) host = std::unique_lock(*on->host_mutex);
        result = on->call.vkQueueSubmit(on->queue_of(lane_), 1, &info, VK_NULL_HANDLE);
      }
      auto& kept = labels_[value % labels_.size()];
      kept.fill('\0');
      std::copy_n(label.begin(), (std::min)(label.size(), kept.size() - 1), kept.begin());
      if (result != VK_SUCCESS) refuse(result, "submit", label, value);
      on->counters.submits += 1;
      return ++submitted_;
    });
  }

  /// Waits until the submission and all before it are done.
  /// @param limit how long the wait goes on without progress, whatever it takes in all
  /// @error device_lost: the device was lost or hangs; the error names the submissions in flight. out_of_memory: the
  /// wait itself failed, the device goes on
  void wait(std::uint64_t submission) { wait(submission, limit_); }
  void wait(std::uint64_t submission, std::chrono::nanoseconds limit) {
    if (submission <= finished_) return;
    translated([&] {
      const auto& on = semaphore_.on();
      on->require_alive("wait for the device");
      if (submission > submitted_)
        throw argument_error("submission to wait for", "at most " + std::to_string(submitted_),
                             std::to_string(submission));
      on->counters.waits += 1;
      VkResult result = VK_SUCCESS;
      if (const std::chrono::nanoseconds quiet = wait_while_alive(submission, limit, result); quiet.count() != 0)
        time_out(quiet, in_flight(reached(), submitted_));
      if (result != VK_SUCCESS && result != VK_TIMEOUT) refuse(result, "wait for the device", {}, submitted_);
      finish(submission);
    });
  }

  /// True when the submission is done; asks the device without waiting.
  /// @error device_lost, out_of_memory
  bool finished(std::uint64_t submission) {
    if (submission <= finished_) return true;
    return translated([&] {
      const auto& on = semaphore_.on();
      on->require_alive("ask for progress");
      std::uint64_t value = 0;
      VkResult result = on->call.vkGetSemaphoreCounterValue(on->handle, semaphore_.get(), &value);
      if (result == VK_SUCCESS && value > submitted_) result = VK_ERROR_DEVICE_LOST;  // some drivers jump to the end
      if (result != VK_SUCCESS) refuse(result, "ask for progress", {}, submitted_);
      finish((std::max)(finished_, value));
      return submission <= finished_;
    });
  }

  /// Waits until a submission is done. Unlike the other functions it may be called from any thread, also while another
  /// thread submits or waits. It polls, since some drivers let nobody submit while several threads wait. If it fails,
  /// the work is still in flight.
  /// @param submission that was made before, or 0
  /// @error device_lost: the device was lost, or did not finish in time; out_of_memory
  void await(std::uint64_t submission) const {
    translated([&] {
      const auto& on = semaphore_.on();
      on->require_alive("wait for the device");
      on->counters.waits += 1;
      const auto value = [&] {
        std::uint64_t out = 0;
        const VkResult result = on->call.vkGetSemaphoreCounterValue(on->handle, semaphore_.get(), &out);
        on->check(result == VK_SUCCESS && out == ~std::uint64_t{0} ? VK_ERROR_DEVICE_LOST : result,
                  "wait for the device");  // some drivers jump to the end
        return out;
      };
      std::uint64_t now_at = value();
      if (now_at >= submission) return;
      progress_watch watch(on->description.type == device_type::cpu, limit_, now_at + on->ended,
                           platform::processor_time());
      const auto start = std::chrono::steady_clock::now();
      for (auto turn = start; now_at < submission; now_at = value()) {
        const auto now = std::chrono::steady_clock::now();
        if (now - turn > limit_) {
          if (watch.hangs(now_at + on->ended, platform::processor_time())) time_out(watch.quiet(), {});
          turn = now;
        }
        // The interval grows so far that the polling costs next to no processor time.
        std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(
            (now - start) / 8, std::chrono::microseconds(50), std::chrono::milliseconds(20)));
      }
    });
  }

  std::uint64_t submitted() const noexcept { return submitted_; }
  /// The end of a submission, for other queues of the device to wait for. @param submission that was made before
  queue_point end_of(std::uint64_t submission) const noexcept { return {semaphore_.get(), submission}; }

 private:
  /// Waits as long as the device makes progress. Short waits do not check for it.
  /// @param result of the last wait; VK_TIMEOUT also where the submission is done
  /// @return how long there was no progress where the device hangs, else 0
  std::chrono::nanoseconds wait_while_alive(std::uint64_t submission, std::chrono::nanoseconds limit,
                                            VkResult& result) const noexcept {
    const auto ends = [&](std::chrono::nanoseconds turn) {
      result = ask(submission, turn);
      return result != VK_TIMEOUT || reached() >= submission;
    };
    if (ends(limit / 8)) return {};
    const auto& on = semaphore_.on();
    const auto ended = [&] { return reached() + on->ended; };
    progress_watch watch(on->description.type == device_type::cpu, limit, ended(), platform::processor_time());
    while (!ends(limit))
      if (watch.hangs(ended(), platform::processor_time()))
        return (std::max)(watch.quiet(), std::chrono::nanoseconds(1));
    return {};
  }
  void finish(std::uint64_t submission) {
    if (submission > finished_) semaphore_.on()->ended += 1;
    finished_ = submission;
  }
  /// Abandons a device that hangs. @param what was in flight, or nothing
  [[noreturn]] void time_out(std::chrono::nanoseconds quiet, const std::string& what) const {
    const auto& on = semaphore_.on();
    on->abandon();
    throw device_lost(on->label, "wait for the device",
                      "no progress for " +
                          std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count()) + " ms" +
                          (what.empty() ? what : ", " + what),
                      static_cast<int>(VK_TIMEOUT));
  }
  void create(const std::shared_ptr<connection>& on) {
    on->require_alive("make a queue");
    typed<VkSemaphoreTypeCreateInfo> type;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    typed<VkSemaphoreCreateInfo> info;
    info.pNext = &type;
    VkSemaphore made = VK_NULL_HANDLE;
    on->check(on->call.vkCreateSemaphore(on->handle, &info, nullptr, &made), "make a timeline semaphore");
    semaphore_ = {on, made};
  }

  VkResult ask(std::uint64_t submission, std::chrono::nanoseconds limit) const noexcept {
    const auto& on = semaphore_.on();
    const VkSemaphore semaphore = semaphore_.get();
    typed<VkSemaphoreWaitInfo> info;
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore;
    info.pValues = &submission;
    return on->call.vkWaitSemaphores(on->handle, &info,
                                     limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count()));
  }

  /// The newest submission that is known to be done.
  std::uint64_t reached() const noexcept {
    std::uint64_t value = 0;
    const auto& on = semaphore_.on();
    const VkResult result = on->call.vkGetSemaphoreCounterValue(on->handle, semaphore_.get(), &value);
    return result == VK_SUCCESS && value <= submitted_ ? (std::max)(value, finished_) : finished_;
  }

  /// Throws for a call that failed, after everything in flight has ended.
  [[noreturn]] void refuse(VkResult result, const char* operation, std::string_view label, std::uint64_t newest) {
    const auto& on = semaphore_.on();
    const std::uint64_t done = reached();
    if (result == VK_ERROR_DEVICE_LOST) on->lose();
    else on->settle();
    if (!on->lost) finished_ = submitted_;
    on->refuse(result, operation, label, result == VK_ERROR_DEVICE_LOST ? in_flight(done, newest) : std::string{});
  }

  std::string in_flight(std::uint64_t done, std::uint64_t newest) const {
    std::string out = "in flight:";
    for (std::uint64_t each = done + 1; each <= newest; ++each) {
      if (newest - each >= labels_.size()) continue;
      out.append(each == done + 1 ? " " : ", ").append(labels_[each % labels_.size()].data());
    }
    const std::string fault = semaphore_.on()->fault_text();
    return out + (fault.empty() ? "" : "; driver: " + fault);
  }

  void drain() noexcept {
    if (!semaphore_ || finished_ >= submitted_) return;
    const auto& on = semaphore_.on();
    if (on->usable() && !on->lost) {
      VkResult result = VK_SUCCESS;
      if (wait_while_alive(submitted_, limit_, result).count() != 0) on->abandon();
      else if (result == VK_ERROR_DEVICE_LOST) on->lose();
      else if (result < VK_SUCCESS) on->settle();
    }
    finished_ = submitted_;
  }

  owned_handle<VkSemaphore, &dispatch_table::vkDestroySemaphore> semaphore_;
  std::uint64_t submitted_ = 0;
  std::uint64_t finished_ = 0;
  std::chrono::nanoseconds limit_;
  lane lane_ = lane::work;
  std::array<std::array<char, 48>, 32> labels_{};
};

}  // namespace intaglio::gpu
