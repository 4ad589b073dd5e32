// SPDX-License-Identifier: MIT
#include <intaglio/gpu/doctor.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

namespace {

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const device_error& problem) { return problem.what(); }
  return "nothing was thrown";
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL empty_entry(VkInstance, const char*) { return nullptr; }

/// Sets a variable while it lives.
struct environment {
  const char* name;
  std::string before;
  bool had;
  environment(const char* variable, const char* value) : name(variable), had(std::getenv(variable) != nullptr) {
    if (had) before = std::getenv(variable);
    ::setenv(name, value, 1);
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() {
    if (had) ::setenv(name, before.c_str(), 1);
    else ::unsetenv(name);
  }
};

}  // namespace

TEST_CASE("the system's loader is found and reports its version") {
  CHECK(gpu::loader().api_version() >= VK_API_VERSION_1_1);
}

TEST_CASE("no Vulkan loader is named as such") {
  CHECK(message_of([] { gpu::loader("libno-such-vulkan.so.1"); }).find("no Vulkan loader: libno-such-vulkan.so.1") !=
        std::string::npos);
  CHECK(message_of([] { gpu::loader("libm.so.6"); }).find("offers no vkCreateInstance") != std::string::npos);
  CHECK(message_of([] { (void)gpu::loader(PFN_vkGetInstanceProcAddr{nullptr}); }).find("no Vulkan loader") !=
        std::string::npos);
  CHECK(message_of([] { (void)gpu::loader(&empty_entry); }).find("no Vulkan loader") != std::string::npos);
}

TEST_CASE("no driver is named as such") {
  const environment old_name("VK_ICD_FILENAMES", "/no/such/driver.json");
  const environment new_name("VK_DRIVER_FILES", "/no/such/driver.json");
  const std::string message = message_of([] { (void)gpu::list_devices(); });
  CHECK(message.find("no driver") != std::string::npos);

  const std::string text = gpu::report_text(gpu::examine());
  CHECK(text.find("no driver") != std::string::npos);
  CHECK(text.find("VK_ICD_FILENAMES") != std::string::npos);
}

TEST_CASE("the doctor's report names loader, device, driver, limits and features") {
  const gpu::report report = gpu::examine();
  REQUIRE(report.size() >= 2);
  const std::string text = gpu::report_text(report);
  for (const char* expected : {"loader", "chosen", "uuid", "driver version", "largest allocation",
                               "subgroup operations", "bufferDeviceAddress", "without"})
    CHECK(text.find(expected) != std::string::npos);
}
