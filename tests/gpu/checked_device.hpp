// SPDX-License-Identifier: MIT
// The device of most GPU tests: opened by rule, with validation as INTAGLIO_VALIDATE says; a message of the layer fails
// the test.
#pragma once

#include <intaglio/gpu/device.hpp>

#include <catch2/catch_test_macros.hpp>

/// Holds a device; when it goes, the layer must have had nothing to say.
struct checked_device {
  intaglio::gpu::device device;
  explicit checked_device(const intaglio::gpu::device_options& options = {}) : device(options) {}
  checked_device(const checked_device&) = delete;
  checked_device& operator=(const checked_device&) = delete;
  bool on_cpu() const { return device.description().type == intaglio::gpu::device_type::cpu; }
  void skip_unless_llvmpipe() const {
    if (device.description().driver_name != "llvmpipe") SKIP("NOT RUN: needs llvmpipe, found " << device.label());
  }
  ~checked_device() { CHECK(device.validation_messages().empty()); }
};
