// SPDX-License-Identifier: MIT
// Nearest gates by the device, for all tokens of a text at once. What includes Vulkan is in device_gates.cpp.
#pragma once

#include "commands.hpp"

#include <intaglio/core/dtype.hpp>
#include <intaglio/reference/walk.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace intaglio::tool {

class device_gates {
 public:
  /// @param top  features of a vector  @throws device_error where there is no device
  device_gates(const common_options& common, std::uint32_t top);
  ~device_gates();
  device_gates(const device_gates&) = delete;
  device_gates& operator=(const device_gates&) = delete;

  /// runtime::gate_search over a layer. @param rows  [features, width] of f32, f16 or bf16  @param x  [vectors, width]
  std::vector<std::vector<reference::scored_feature>> nearest(dtype type, std::span<const std::byte> rows,
                                                              std::uint32_t width, std::span<const float> x);
  /// Which device, and how long it took.
  std::string summary() const;

 private:
  struct body;
  std::unique_ptr<body> body_;
};

}  // namespace intaglio::tool
