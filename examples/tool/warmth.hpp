// SPDX-License-Identifier: MIT
// Measures on a warm device. A device that pauses for some ten milliseconds lowers its clock, an H100 to a sixth. So
// timed work runs after work that warms the device, in the same submission, and between two products whose times show
// the clock. Includes Vulkan.
#pragma once

#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>
#include <intaglio/kernels/catalogue.hpp>
#include <intaglio/kernels/module_text.hpp>
#include <intaglio/kernels/spirv/calibrate.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace intaglio::tool {

/// Times recordings on a warm device by its own timestamps. CPU drivers have no clock to warm: there the two products
/// are short and nothing is thrown away.
class warmth {
 public:
  /// Points that a recording has besides those of its own dispatches: warming, and a product after it and at the end.
  static constexpr std::uint32_t points = 3;

  /// @error device_error, out_of_memory
  explicit warmth(const gpu::device& on)
      : on_(on), queue_(on), cpu_(on.description().type == gpu::device_type::cpu),
        sink_(on, 4, gpu::placement::device_local, "calibrate"), kernel_(made(on)) {
    if (cpu_) return;
    const gpu::timestamps clock(on, 2);
    for (int turn = 0; turn < 8; ++turn) {  // as many rounds as take some milliseconds
      gpu::recorder to(on, "calibrate", &clock);
      multiply(to, 10 * product_rounds_);
      run(to.finish());
      const double nanoseconds = clock.read(2).back();
      if (nanoseconds > 1e6) break;
      product_rounds_ *= 2;
    }
  }

  /// Nanoseconds of each dispatch of `record`, including barriers in between, in the turn with the median sum. Turns
  /// whose products were slower than 1.05 times the fastest are measured again, up to three times the requested number
  /// of turns.
  /// @param record called once with a recorder; it records `dispatches` timed dispatches
  /// @throws std::runtime_error the device did not keep its clock for half of the turns
  template <class Record>
  std::vector<double> times(std::uint32_t dispatches, int turns, const Record& record) {
    const gpu::timestamps clock(on_, dispatches + points + 1);
    gpu::recorder to(on_, "a warm measurement", &clock);
    warm(to);
    multiply(to, product_rounds_);
    to.barrier();
    record(to);
    to.barrier();
    multiply(to, product_rounds_);
    const gpu::recording commands = to.finish();
    struct turn {
      double slower_product, sum;
      std::vector<double> each;
    };
    std::vector<turn> all, kept;
    for (int i = 0; i < 3 * turns && static_cast<int>(kept.size()) < turns; ++i) {
      run(commands);
      const auto at = clock.read(commands.points());
      turn one{};
      for (std::size_t d = 3; d + 1 < at.size(); ++d) one.each.push_back(at[d] - at[d - 1]);
      one.sum = at[at.size() - 2] - at[2];
      const double before = at[2] - at[1], after = at.back() - at[at.size() - 2];
      one.slower_product = (std::max)(before, after);
      fastest_ = (std::min)({fastest_, before, after});
      all.push_back(std::move(one));
      kept.clear();
      for (const turn& each : all)
        if (cpu_ || each.slower_product <= 1.05 * fastest_) kept.push_back(each);
    }
    discarded_ += all.size() - kept.size();
    if (2 * static_cast<int>(kept.size()) < turns)
      throw std::runtime_error("the device did not keep its clock: of " + std::to_string(all.size()) + " turns " +
                               std::to_string(kept.size()) + " ran at the speed of the fastest");
    std::ranges::sort(kept, {}, &turn::sum);
    return kept[kept.size() / 2].each;
  }
  /// Records what warms the device, for measurements that use the host's clock and subtract it again.
  void warm(gpu::recorder& to) const {
    multiply(to, cpu_ ? 1 : 150 * product_rounds_);  // 15 ms
    to.barrier();
  }
  /// Turns that were thrown away so far.
  std::size_t discarded() const { return discarded_; }

 private:
  static gpu::pipeline made(const gpu::device& on) {
    const std::array constants{gpu::specialization{0, 256}};
    return gpu::pipeline(on, {.name = "calibrate",
                              .spirv = kernels::whole(kernels::spirv::calibrate_parts),
                              .constants = constants,
                              .push_constant_bytes = kernels::calibrate_interface.push_bytes(),
                              .required_subgroup_size = 0,
                              .full_subgroups = false});
  }
  void multiply(gpu::recorder& to, std::uint32_t rounds) const {
    std::array<std::byte, kernels::calibrate_interface.push_bytes()> push{};
    const std::uint64_t address = sink_.address();
    std::memcpy(push.data(), &address, sizeof address);
    std::memcpy(push.data() + sizeof address, &rounds, sizeof rounds);
    to.dispatch(kernel_, push, {cpu_ ? 1u : 1056u, 1, 1});
  }
  void run(const gpu::recording& commands) {
    const VkCommandBuffer handle = commands.handle();
    queue_.wait(queue_.submit({&handle, 1}, commands.name()), std::chrono::seconds(60));
  }

  gpu::device on_;
  gpu::queue queue_;
  bool cpu_;
  gpu::buffer sink_;
  gpu::pipeline kernel_;
  std::uint32_t product_rounds_ = 1;  ///< about 0.1 ms of them
  double fastest_ = 1e30;
  std::size_t discarded_ = 0;
};

}  // namespace intaglio::tool
