// SPDX-License-Identifier: MIT
// What every consumer builds and runs: one header from each side of the library, Vulkan opened at run time.
#include <cstdio>
#include <exception>
#include <intaglio/core/version.hpp>
#include <intaglio/gpu/device.hpp>
#include <intaglio/io/gguf.hpp>
#include <intaglio/models/bitnet_b158.hpp>

int main() try {
  const intaglio::gpu::device device;
  std::printf("intaglio %d.%d.%d on %s\n", intaglio::version_major, intaglio::version_minor, intaglio::version_patch,
              device.description().name.c_str());
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
