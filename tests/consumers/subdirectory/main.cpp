// SPDX-License-Identifier: MIT
// A program of one file: a session with the model file that it is given, which goes on with a text.
// usage: main FABLE.gguf
#include <cstdio>
#include <exception>
#include <intaglio/core/version.hpp>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/vulkan.hpp>

int main(int count, char** arguments) try {
  if (count != 2) return 2;
  const intaglio::gpu::device device;
  intaglio::session<intaglio::models::fable> teller{device, arguments[1]};
  std::printf("intaglio %d.%d.%d on %s\nOnce upon a time", intaglio::version_major, intaglio::version_minor,
              intaglio::version_patch, device.description().name.c_str());
  for (const std::string_view piece : teller.complete("Once upon a time", {.max_tokens = 8}))
    std::printf("%.*s", static_cast<int>(piece.size()), piece.data());
  std::puts("");
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
