// SPDX-License-Identifier: MIT
// The device of most GPU tests, with validation as INTAGLIO_VALIDATE says; a message of the layer fails the test.
#pragma once

#include <intaglio/gpu/device.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>

#include "gpu/process_device.hpp"

/// Holds a device; while it lives, the layer must have nothing to say.
struct checked_device {
  intaglio::gpu::device device;
  /// @param connection which of the process's devices; two that are compared or joined have different ones
  explicit checked_device(std::size_t connection = 0)
      : device(intaglio::testing::process_device(connection)), messages_before_(device.validation_message_count()) {}
  /// A device of its own.
  explicit checked_device(const intaglio::gpu::device_options& options) : device(options) {}
  checked_device(const checked_device&) = delete;
  checked_device& operator=(const checked_device&) = delete;
  bool on_cpu() const { return device.description().type == intaglio::gpu::device_type::cpu; }
  void skip_unless_llvmpipe() const {
    if (device.description().driver_name != "llvmpipe") SKIP("NOT RUN: needs llvmpipe, found " << device.label());
  }
  ~checked_device() { CHECK(device.validation_message_count() == messages_before_); }

 private:
  std::size_t messages_before_ = 0;
};

/// A device that no other test has: for counters and for what making pipelines does.
struct own_device : checked_device {
  own_device() : checked_device(intaglio::gpu::device_options{}) {}
};
