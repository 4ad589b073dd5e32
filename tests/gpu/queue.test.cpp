// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"

#include <intaglio/core/joining_thread.hpp>
#include <intaglio/gpu/queue.hpp>
#include <intaglio/gpu/recorder.hpp>

#include <catch2/generators/catch_generators.hpp>
#include <thread>

using namespace intaglio;

TEST_CASE("submissions are counted and waited for in order") {
  const own_device checked;
  const gpu::recording nothing = gpu::recorder(checked.device, "nothing").finish();
  gpu::queue line(checked.device);
  const VkCommandBuffer handle = nothing.handle();
  CHECK(line.submit({&handle, 1}, "one") == 1);
  CHECK(line.submit({&handle, 1}, "two") == 2);
  CHECK(line.submit({}, "none at all") == 3);
  line.wait(2);
  CHECK(line.finished(1));
  line.wait(3);
  CHECK(line.finished(3));
  CHECK_THROWS_AS(line.wait(4), argument_error);
  gpu::queue moved = std::move(line);
  CHECK(moved.submitted() == 3);
  CHECK(moved.submit({&handle, 1}, "four") == 4);
}

TEST_CASE("several threads wait for submissions of a line while another one submits") {
  const own_device checked;
  const gpu::recording nothing = gpu::recorder(checked.device, "nothing").finish();
  gpu::queue line(checked.device);
  const VkCommandBuffer handle = nothing.handle();
  std::atomic<std::uint64_t> handed{0};
  std::atomic<int> seen{0};
  std::vector<intaglio::joining_thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (std::uint64_t number = i + 1; number <= 40; number += 4) {
        while (handed < number) std::this_thread::yield();
        line.await(number);
        ++seen;
      }
    });
  for (int run = 0; run < 40; ++run) handed = line.submit({&handle, 1}, "turn");
  threads.clear();
  CHECK(seen == 40);
  CHECK(line.finished(40));
}

TEST_CASE("several lines share the device from several threads") {
  const own_device checked;
  const gpu::recording nothing = gpu::recorder(checked.device, "nothing").finish();
  std::vector<intaglio::joining_thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      gpu::queue line(checked.device);
      const VkCommandBuffer handle = nothing.handle();
      for (int run = 0; run < 50; ++run) line.wait(line.submit({&handle, 1}, "turn"));
      ++done;
    });
  threads.clear();
  CHECK(done == 4);
  CHECK(checked.device.counters().submits == 200);
}

TEST_CASE("a device takes a queue for copies only if it is asked for one") {
  faults::with_copy_family = true;
  for (const bool copies : {false, true}) {
    faults::the_shim().reset();
    gpu::device_options options;
    options.entry = &faults::entry;
    options.copies = copies;
    const gpu::device on(options);
    CHECK(on.description().copy_family == 1u);
    CHECK(faults::the_shim().calls(faults::id::vkGetDeviceQueue) == (copies ? 2 : 1));
    CHECK(on.on()->shares(gpu::lane::copies) == !copies);
  }
  faults::with_copy_family = false;
}

TEST_CASE("bytes go from the host by the lane for copies to a dispatch's memory and back, each behind a wait") {
  // The driver's own queues, or a second one that the shim makes up.
  faults::with_copy_family = GENERATE(false, true);
  gpu::device_options options;
  options.copies = true;
  if (faults::with_copy_family) options.entry = &faults::entry;
  const checked_device checked(options);
  const gpu::device& on = checked.device;
  constexpr std::uint64_t bytes = 1 << 16;
  const gpu::buffer from(on, bytes, gpu::placement::host, "from", gpu::lanes::both),
      here(on, bytes, gpu::placement::device_local, "here", gpu::lanes::both),
      there(on, bytes, gpu::placement::device_local, "there", gpu::lanes::both),
      back(on, bytes, gpu::placement::readback, "back", gpu::lanes::both);
  const auto copy = [&](const gpu::buffer& a, const gpu::buffer& b, gpu::lane where) {
    return gpu::recorder(on, "copy", nullptr, where).copy(a, 0, b, 0, bytes).finish();
  };
  const gpu::recording arrive = copy(from, here, gpu::lane::copies), work = copy(here, there, gpu::lane::work),
                       leave = copy(there, back, gpu::lane::copies);
  const auto submit = [](gpu::queue& to, const gpu::recording& what, const gpu::queue_point& after = {}) {
    const VkCommandBuffer commands = what.handle();
    return to.submit({&commands, 1}, what.name(), after);
  };
  gpu::queue line(on), copies(on, gpu::queue::hang_limit, gpu::lane::copies);
  for (std::uint8_t round = 1; round < 20; ++round) {
    std::fill(from.mapped().begin(), from.mapped().end(), std::byte{round});
    const std::uint64_t arrived = submit(copies, arrive), done = submit(line, work, copies.end_of(arrived));
    copies.wait(submit(copies, leave, line.end_of(done)));
    CHECK(line.finished(done));
    CHECK(std::count(back.mapped().begin(), back.mapped().end(), std::byte{round}) == bytes);
  }
  gpu::queue moved = std::move(copies);
  moved.wait(submit(moved, leave));
  CHECK(on.on()->family_of(gpu::lane::work) == on.on()->queue_family);
  CHECK(on.on()->shares(gpu::lane::copies) == !on.description().copy_family.has_value());
  CHECK(on.another().on()->shares(gpu::lane::copies));
  faults::with_copy_family = false;
}

namespace {

gpu::device shimmed_device() {
  gpu::device_options options;
  options.entry = &faults::entry;
  options.validate = gpu::validation::off;
  return gpu::device(options);
}

/// Commands that take some tenths of a second on a CPU device and write `mark` at their end.
class long_work {
 public:
  static constexpr std::uint32_t mark = 0x0BADCAFE;

  explicit long_work(const gpu::device& on)
      : room_(on, std::uint64_t{64} << 20U, gpu::placement::device_local, "long work"),
        end_(on, 4, gpu::placement::readback, "its end") {
    std::memset(end_.mapped().data(), 0, 4);
  }
  gpu::recording record(const gpu::device& on) const {
    gpu::recorder to(on, "long work");
    const std::uint32_t rounds =
        on.description().type == gpu::device_type::cpu ? 16 : 1600;  // a GPU writes 64 MiB in some 30 us
    for (std::uint32_t i = 0; i < rounds; ++i) to.fill(room_, 0, room_.size_bytes(), i).full_barrier();
    to.fill(end_, 0, 4, mark);
    return to.finish();
  }
  bool done() const {
    std::uint32_t word = 0;
    std::memcpy(&word, end_.mapped().data(), sizeof word);
    return word == mark;
  }

 private:
  gpu::buffer room_, end_;
};

std::uint64_t submit(gpu::queue& line, const gpu::recording& what) {
  const VkCommandBuffer handle = what.handle();
  return line.submit({&handle, 1}, what.name());
}

}  // namespace

TEST_CASE("an error leaves nothing in flight, so that the caller may destroy what was") {
  struct failure {
    const char* what;
    faults::id call;
    std::size_t nth;
    void (*provoke)(gpu::queue&, const gpu::recording&);
  };
  const failure failures[] = {
      {"wait", faults::id::vkWaitSemaphores, 0, [](gpu::queue& line, const gpu::recording&) { line.wait(1); }},
      {"progress", faults::id::vkGetSemaphoreCounterValue, 0,
       [](gpu::queue& line, const gpu::recording&) { line.finished(1); }},
      {"a second submission", faults::id::vkQueueSubmit, 0,
       [](gpu::queue& line, const gpu::recording& what) { submit(line, what); }},
  };
  for (const auto& each : failures)
    for (const VkResult code :
         {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST, VK_ERROR_UNKNOWN}) {
      INFO(each.what << " fails with " << gpu::result_name(code));
      faults::the_shim().reset();
      {
        const gpu::device on = shimmed_device(), beside = shimmed_device();  // a loss is the loss of both
        const long_work work(on);
        gpu::queue line(on),
            other(on);  // outlive the commands, as they do where a member submits what a function has recorded
        {
          const gpu::recording commands = work.record(on);
          submit(line, commands);
          REQUIRE_FALSE(work.done());
          faults::the_shim().arm(each.call, each.nth, code);
          CHECK_THROWS_AS(each.provoke(line, commands), device_error);
          CHECK(faults::the_shim().injected());
          CHECK(work.done());
        }
        CHECK(on.lost() == (code == VK_ERROR_DEVICE_LOST));
        if (on.lost()) CHECK_THROWS_AS(other.submit({}, "after the loss"), device_lost);
        else CHECK(other.submit({}, "after the error") == 1);
      }
      CHECK(faults::the_shim().live().empty());
    }
}

TEST_CASE("a queue waits for its work when it goes, also where the wait fails") {
  for (const VkResult code : {VK_SUCCESS, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST}) {
    INFO(gpu::result_name(code));
    faults::the_shim().reset();
    {
      const gpu::device on = shimmed_device(), beside = shimmed_device();
      const long_work work(on);
      const gpu::recording commands = work.record(on);
      {
        gpu::queue line(on);
        submit(line, commands);
        if (code != VK_SUCCESS) faults::the_shim().arm(faults::id::vkWaitSemaphores, 0, code);
      }
      CHECK(work.done());
      CHECK(on.lost() == (code == VK_ERROR_DEVICE_LOST));
    }
    CHECK(faults::the_shim().live().empty());
  }
}

TEST_CASE("a wait that times out on work that is done is no error") {
  faults::the_shim().reset();
  const gpu::device on = shimmed_device();
  const gpu::recording nothing = gpu::recorder(on, "nothing").finish();
  gpu::queue line(on);
  submit(line, nothing);
  faults::the_shim().arm(faults::id::vkWaitSemaphores, 0, VK_TIMEOUT);
  line.wait(1);
  CHECK(faults::the_shim().injected());
  CHECK_FALSE(on.lost());
  faults::the_shim().reset();
}

namespace {

/// Runs `abandon` on a queue with long work in flight, lets all go, and demands that nothing was destroyed before the
/// work's end.
/// @param hangs the work never begins
template <class Abandon>
void check_that_all_stays(bool hangs, Abandon abandon) {
  faults::the_shim().reset();
  std::vector<std::string> alive;
  const VkDevice before = faults::last_device;
  {
    const gpu::device on = shimmed_device();
    const long_work work(on);
    gpu::queue line(on, std::chrono::milliseconds(20));
    const gpu::recording commands = work.record(on);
    alive = faults::the_shim().live();
    if (hangs) faults::the_shim().hang();
    submit(line, commands);
    abandon(on, line);
    CHECK(on.lost());
    CHECK_FALSE(work.done());
    CHECK_THROWS_AS(line.submit({}, "after the end"), device_lost);
    CHECK_THROWS_AS(line.wait(1), device_lost);
    CHECK_THROWS_AS(gpu::recorder(on, "after the end"), device_lost);
    CHECK_THROWS_AS(gpu::buffer(on, 64, gpu::placement::shared, "after the end"), device_lost);
    static std::vector<std::shared_ptr<gpu::connection>> kept;  // reachable, as leak checkers like it
    kept.push_back(on.on());
  }
  CHECK(faults::last_device != before);
  CHECK(faults::the_shim().live() == alive);
  CHECK(faults::the_shim().calls(faults::id::vkDestroyCommandPool) == 0);
  faults::the_shim().reset();
  faults::drain(faults::last_device);
  faults::the_shim().forget_handles();
  const own_device anew;
  gpu::queue line(anew.device);
  line.wait(line.submit({}, "on a new device"));
}

}  // namespace

TEST_CASE("a device that hangs is lost, by name of what ran, and nothing it may use is destroyed") {
  check_that_all_stays(true, [](const gpu::device& on, gpu::queue& line) {
    const bool is_cpu = on.description().type == gpu::device_type::cpu;
    try {
      line.wait(1, std::chrono::milliseconds(20));
      FAIL("nothing was thrown");
    } catch (const device_lost& lost) {
      const std::string quiet = is_cpu ? "120" : "20";
      CHECK(std::string(lost.what()).find("no progress for " + quiet + " ms, in flight: long work") !=
            std::string::npos);
      CHECK(std::string(lost.what()).find("driver:") ==
            std::string::npos);  // which may only be asked about a loss that it reported
      CHECK(lost.device() == on.label());
    }
  });
}

TEST_CASE("a line that hangs is left by those who look for its end too") {
  check_that_all_stays(true, [](const gpu::device&, gpu::queue& line) { CHECK_THROWS_AS(line.await(1), device_lost); });
}

TEST_CASE("a line that hangs does not keep who lets it go") {
  faults::the_shim().reset();
  const gpu::device on = shimmed_device();
  const gpu::recording nothing = gpu::recorder(on, "nothing").finish();
  {
    gpu::queue line(on, std::chrono::milliseconds(20));
    faults::the_shim().hang();
    submit(line, nothing);
  }
  CHECK(on.lost());
  CHECK_THROWS_AS(gpu::queue(on), device_lost);
  static std::vector<std::shared_ptr<gpu::connection>> kept;  // reachable, as leak checkers like it
  kept.push_back(on.on());
  faults::the_shim().reset();
  faults::the_shim().forget_handles();
}

TEST_CASE("a CPU driver that computes is waited for, whatever the clock says") {
  faults::the_shim().reset();
  const gpu::device on = shimmed_device();
  if (on.description().type != gpu::device_type::cpu) SKIP("NOT RUN: needs a CPU driver");
  const long_work work(on);
  const gpu::recording commands = work.record(on);
  gpu::queue line(on);
  submit(line, commands);
  line.wait(1, std::chrono::milliseconds(4));  // of some hundred
  CHECK(work.done());
  CHECK(faults::the_shim().calls(faults::id::vkWaitSemaphores) > gpu::progress_watch::quiet_turns_of_cpu);
  CHECK_FALSE(on.lost());
}

TEST_CASE("where no wait succeeds, nothing that may be in use is destroyed") {
  check_that_all_stays(false, [](const gpu::device&, gpu::queue& line) {
    faults::the_shim().arm(faults::id::vkWaitSemaphores, 0, VK_ERROR_OUT_OF_HOST_MEMORY);
    faults::the_shim().arm_all(faults::id::vkQueueWaitIdle, VK_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_THROWS_AS(line.wait(1), out_of_memory);
  });
}
