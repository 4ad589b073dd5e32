// SPDX-License-Identifier: MIT
#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "gpu/lent_device.hpp"
#include "gpu/scale_add.hpp"

#include <intaglio/gpu/transfer.hpp>

#include <sys/wait.h>

using namespace intaglio;

namespace {

gpu::device_description made_up(std::uint32_t index, std::string name, gpu::device_type type,
                                std::vector<std::string> missing = {}) {
  gpu::device_description out;
  out.index = index;
  out.name = std::move(name);
  out.type = type;
  out.uuid.fill(static_cast<std::uint8_t>(index + 1));
  out.driver_version = 77;
  out.missing = std::move(missing);
  return out;
}

std::string refusal(auto&& body) {
  try {
    body();
  } catch (const device_error& problem) { return problem.what(); }
  return "nothing was thrown";
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the rule takes the best usable device, a CPU last") {
  using enum gpu::device_type;
  const std::vector devices{made_up(0, "llvmpipe", cpu), made_up(1, "Iris", integrated),
                            made_up(2, "Old card", discrete, {"feature bufferDeviceAddress"}),
                            made_up(3, "New card", discrete), made_up(4, "New card", discrete)};
  CHECK(gpu::choose_device(devices, "", true).index == 3);
  CHECK(gpu::choose_device({devices.begin(), devices.begin() + 3}, "", true).index == 1);
  CHECK(gpu::choose_device({devices.begin(), devices.begin() + 1}, "", true).index == 0);
  CHECK(says(refusal([&] {
               (void)gpu::choose_device({devices.begin(), devices.begin() + 1}, "", false);
             }),
             "only a CPU device"));
  const std::string none = refusal([&] {
    (void)gpu::choose_device({devices.begin() + 2, devices.begin() + 3}, "", true);
  });
  CHECK(says(none, "Old card"));
  CHECK(says(none, "driver version 77 lacks feature bufferDeviceAddress"));
}

TEST_CASE("a device is chosen by index, part of its name, or UUID") {
  using enum gpu::device_type;
  const std::vector devices{made_up(0, "llvmpipe", cpu), made_up(1, "Iris", integrated),
                            made_up(2, "Old card", discrete, {"feature bufferDeviceAddress"}),
                            made_up(3, "New card", discrete)};
  CHECK(gpu::choose_device(devices, "1", false).index == 1);
  CHECK(gpu::choose_device(devices, "LLVM", false).index == 0);  // asked for by name: a CPU is no surprise
  CHECK(gpu::choose_device(devices, "card", true).index == 3);   // the usable one of two
  CHECK(gpu::choose_device(devices, "04040404-0404-0404-0404-040404040404", true).index == 3);
  CHECK(says(refusal([&] { (void)gpu::choose_device(devices, "old", true); }),
             "Old card: choose a device: driver version 77 lacks feature bufferDeviceAddress"));
  for (const char* wrong : {"9", "radeon", "-1", "4294967296", "04040404"})
    CHECK(says(refusal([&] { (void)gpu::choose_device(devices, wrong, true); }), "0: llvmpipe"));
}

TEST_CASE("a device opens with all required features and says what it is") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  for (const auto& entry : gpu::feature_table)
    if (entry.required) CHECK(on.has(entry.id));
  CHECK_FALSE(on.has(gpu::feature::robust_buffer_access));
  CHECK(on.limits().max_push_constant_bytes >= 128);
  CHECK(on.limits().subgroup_size >= on.limits().min_subgroup_size);
  CHECK(on.limits().subgroup_size <= on.limits().max_subgroup_size);
  CHECK(on.limits().max_buffer_bytes > 0);
  CHECK((on.description().type == gpu::device_type::cpu) == !on.note().empty());
  CHECK(on.description().heaps.size() == gpu::memory_status(on).size());
}

TEST_CASE("robust accesses and extra features can be asked for") {
  const auto devices = gpu::list_devices();
  gpu::device_options options;
  options.robust = true;
  const checked_device robust(options);
  CHECK(robust.device.has(gpu::feature::robust_buffer_access));

  options.require = {gpu::feature::count};
  for (const auto& entry : gpu::feature_table)
    if (!entry.required && !gpu::contains(devices.front().features, entry.id)) options.require = {entry.id};
  const bool lacks_one = options.require.front() != gpu::feature::count;
  if (!lacks_one && devices.front().type != gpu::device_type::cpu)
    SKIP("NOT RUN: needs a device that lacks a feature, found " << devices.front().label());
  REQUIRE(lacks_one);
  CHECK(says(refusal([&] { gpu::device refused(options); }),
             "lacks feature " + std::string(gpu::name(options.require.front()))));
}

TEST_CASE("a host program lends its device and queue") {
  faults::the_shim().reset();
  {
    const gpu::instance host(gpu::loader(&faults::entry), gpu::validation_from_environment());
    const VkPhysicalDevice physical = host.physical_devices().front();
    const auto description = gpu::describe(host, physical, 0);
    gpu::feature_chain chain;
    gpu::enable(chain, gpu::required_features());
    std::mutex guard;
    lent_device of_host(host, physical, *description.queue_family, gpu::required_features());
    gpu::host_device& lent = of_host.lent;
    lent.queue_mutex = &guard;
    CHECK(says(refusal([&] { gpu::device refused(lent); }), "one of them is null"));
    of_host.make(chain);

    gpu::host_device poor = lent;
    poor.enabled.reset(static_cast<std::size_t>(gpu::feature::timeline_semaphore));
    const std::string one = refusal([&] { gpu::device refused(poor); });
    CHECK(says(one, "host_device::enabled does not list timelineSemaphore"));
    CHECK_FALSE(says(one, "driver version"));
    poor.enabled = {};
    CHECK(says(refusal([&] { gpu::device refused(poor); }), "does not list bufferDeviceAddress, synchronization2, "));
    {
      const gpu::device on(lent);
      CHECK_FALSE(on.has(gpu::feature::shader_float16));
      const gpu::buffer words(on, 256, gpu::placement::device_local, "words");
      gpu::transfer moves(on, 4096, false);
      std::vector<std::byte> in(256, std::byte{42}), out(256);
      moves.upload(words, 0, in);
      moves.download(words, 0, out);
      CHECK(in == out);
      CHECK(guard.try_lock());
      guard.unlock();
    }
    CHECK(host.messages().count() == 0);
    const auto live = faults::the_shim().live();  // the host's own device lives on
    CHECK(std::find(live.begin(), live.end(), "vkCreateDevice x 1") != live.end());
    CHECK(live.size() <= 3);
    host.call().vkDestroyDevice(lent.device, nullptr);
  }
  CHECK(faults::the_shim().live().empty());
}

TEST_CASE("a forked child is refused and harms nothing") {
  const checked_device checked;
  const gpu::device& on = checked.device;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int code = 1;
    try {
      gpu::buffer refused(on, 64, gpu::placement::shared, "words");
    } catch (const device_error& problem) { code = says(problem.what(), "forked") ? 0 : 2; }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  gpu::buffer works(on, 64, gpu::placement::shared, "words");
  CHECK(works.size_bytes() == 64);
}

TEST_CASE("two devices are independent") {
  const checked_device first;
  auto second = std::make_unique<checked_device>();
  const gpu::buffer kept(first.device, 64, gpu::placement::shared, "words");
  second.reset();
  CHECK(gpu::buffer(first.device, 64, gpu::placement::shared, "more").address() != kept.address());
}

TEST_CASE("a device is opened once more: the same features, a queue and memory of its own") {
  std::unique_ptr<checked_device> first = std::make_unique<checked_device>(gpu::device_options{.robust = true});
  const gpu::device second = first->device.another();
  CHECK(second.handle() != first->device.handle());
  CHECK(second.enabled() == first->device.enabled());
  CHECK(second.label() == first->device.label());
  first.reset();
  gpu::transfer moves(second);
  const gpu::buffer words(second, 64, gpu::placement::device_local, "words");
  const std::vector<std::byte> sent(64, std::byte{7});
  std::vector<std::byte> got(64);
  moves.upload(words, 0, sent);
  moves.download(words, 0, got);
  CHECK(got == sent);
}
