// SPDX-License-Identifier: MIT
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "gpu/checked_device.hpp"
#include "gpu/fault_shim.hpp"
#include "intaglio/runtime/compile_ahead.hpp"
#include "intaglio/runtime/kernel_proof.hpp"
#include "runtime/drawn_tokens.hpp"
#include "runtime/tables.hpp"
#include "temporary_folder.hpp"

using namespace intaglio;

namespace {

/// Sets a variable of the environment for a while.
class environment {
 public:
  environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::uint64_t bytes_in(const std::filesystem::path& folder) {
  std::uint64_t out = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder))
    if (each.is_regular_file()) out += each.file_size();
  return out;
}

/// Runs no workgroup of some dispatches, as the first thing on a device of its own; Mesa's cache is on disk when the
/// device is gone.
void touch(std::span<const plan::dispatch> calls) {
  const own_device on;
  runtime::kernel_set kernels(on.device);
  kernels.add(calls, nullptr);
  gpu::recorder to(on.device, "touch");
  for (const plan::dispatch& call : calls) to.touch(kernels.of(call));
  const gpu::recording commands = to.finish();
  const VkCommandBuffer handle = commands.handle();
  gpu::queue queue(on.device);
  queue.wait(queue.submit({&handle, 1}, commands.name()));
}

}  // namespace

TEST_CASE("what is compiled ahead is found in the driver's cache when it is first dispatched",
          "[runtime][compile_ahead]") {
  const temporary_folder folder;
  const environment cache("MESA_SHADER_CACHE_DIR", folder.path()), on_disk("MESA_SHADER_CACHE_DISABLE", "false");
  const auto plan = runtime::executor::plan_for(bitnet_tiny_table(), first_class(gpu::device()));
  const plan::table& table = plan->table();
  const auto calls = table.prefill.prologue, others = table.decode.epilogue;
  std::uint64_t before = 0;
  {
    const own_device on;
    on.skip_unless_llvmpipe();  // which compiles at the first dispatch
    before = bytes_in(folder.path());
    runtime::compile_ahead ahead(on.device, &runtime::modules_of<>, calls);
    ahead.wait();
  }
  const std::uint64_t ahead = bytes_in(folder.path());
  CHECK(ahead > before);
  touch(calls);
  CHECK(bytes_in(folder.path()) == ahead);
  touch(others);
  CHECK(bytes_in(folder.path()) > ahead);
}

TEST_CASE("a device that does not open once more is no error: nothing is compiled ahead", "[runtime][compile_ahead]") {
  faults::the_shim().reset();
  {
    gpu::device_options options;
    options.entry = &faults::entry;
    const gpu::device on(options);
    faults::the_shim().arm(faults::id::vkCreateDevice, 0, VK_ERROR_TOO_MANY_OBJECTS);
    const auto plan = runtime::executor::plan_for(bitnet_tiny_table(), first_class(on));
    runtime::compile_ahead ahead(on, &runtime::modules_of<>, plan->table().prefill.prologue);
    ahead.wait();
    CHECK(faults::the_shim().injected());
  }
  CHECK(faults::the_shim().live().empty());
  faults::the_shim().reset();
}
