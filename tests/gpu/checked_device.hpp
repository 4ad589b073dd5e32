// SPDX-License-Identifier: MIT
// The device of most GPU tests: opened by rule, with validation as INTAGLIO_VALIDATE says; a message of the layer fails the test.
#pragma once

#include <intaglio/gpu/device.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>

/// Holds a device; when it goes, the layer must have had nothing to say.
struct checked_device {
  intaglio::gpu::device device;
  explicit checked_device(const intaglio::gpu::device_options& options = {}) : device(options) {}
  checked_device(const checked_device&) = delete;
  checked_device& operator=(const checked_device&) = delete;
  ~checked_device() { CHECK(device.validation_messages().empty()); }
};

/// A folder of its own that goes with the test.
struct temporary_folder {
  std::string path = (std::filesystem::temp_directory_path() / "intaglio-test-XXXXXX").string();
  temporary_folder() {
    const char* const made = ::mkdtemp(path.data());
    REQUIRE(made != nullptr);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};
