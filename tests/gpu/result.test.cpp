// SPDX-License-Identifier: MIT
#include <intaglio/gpu/result.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace intaglio;

TEST_CASE("results are named as Vulkan spells them") {
  CHECK(gpu::result_name(VK_SUCCESS) == "VK_SUCCESS");
  CHECK(gpu::result_name(VK_ERROR_DEVICE_LOST) == "VK_ERROR_DEVICE_LOST");
  CHECK(gpu::result_name(static_cast<VkResult>(-123456)) == "VkResult -123456");
}

TEST_CASE("sizes read as people write them") {
  CHECK(gpu::bytes_text(0) == "0 bytes");
  CHECK(gpu::bytes_text(1023) == "1023 bytes");
  CHECK(gpu::bytes_text(1024) == "1.0 KiB");
  CHECK(gpu::bytes_text(656'722'432) == "626.3 MiB");
  CHECK(gpu::bytes_text(~std::uint64_t{0}) == "16777216.0 TiB");
}

TEST_CASE("each result becomes its own kind of exception, with what was being done") {
  CHECK_THROWS_AS(gpu::fail(VK_ERROR_DEVICE_LOST, "card", "submit"), device_lost);
  for (const VkResult each : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY})
    CHECK_THROWS_AS(gpu::fail(each, "card", "allocate"), out_of_memory);
  try {
    gpu::fail(VK_ERROR_INITIALIZATION_FAILED, "card", "make a queue", "family 3");
  } catch (const device_error& problem) {
    CHECK(problem.device() == "card");
    CHECK(problem.operation() == "make a queue");
    CHECK(problem.result() == static_cast<int>(VK_ERROR_INITIALIZATION_FAILED));
    CHECK(std::string(problem.what()).find("VK_ERROR_INITIALIZATION_FAILED (family 3)") != std::string::npos);
  }
}

TEST_CASE("want of host memory leaves as out_of_memory, all else as it is") {
  CHECK_THROWS_AS(gpu::translated([] { throw std::bad_alloc(); }), out_of_memory);
  CHECK_THROWS_AS(gpu::translated([] { throw argument_error("a", "b", "c"); }), argument_error);
  CHECK_THROWS_AS(gpu::translated([]() -> int { throw 7; }), int);
  CHECK(gpu::translated([] { return 3; }) == 3);
}
