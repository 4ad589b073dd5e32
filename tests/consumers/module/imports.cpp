// SPDX-License-Identifier: MIT
// Makes a session and a batch of sessions by way of the module, and hands the session to another file.
// usage: consumer FABLE.gguf
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

import intaglio;

#if defined(INTAGLIO_VERSION_MAJOR) || defined(VULKAN_CORE_H_)
#error "expected the module to bring no macros"
#endif

using tellers = intaglio::batch_session<intaglio::models::fable, intaglio::plan::batch_shape{.slot_count = 2}>;
std::string goes_on(intaglio::basic_session& with, std::string_view text);

int main(int count, char** arguments) try {
  if (count != 2) return 2;
  const intaglio::gpu::device device;
  intaglio::session<intaglio::models::fable> teller{device, arguments[1]};
  const std::string begun = "Once upon a time" + goes_on(teller, "Once upon a time");
  std::printf("intaglio %d.%d.%d on %s\n%s\n", intaglio::version_major, intaglio::version_minor,
              intaglio::version_patch, device.description().name.c_str(), begun.c_str());

  tellers batch{device, arguments[1]};
  const auto prompt = batch.encode("Once upon a time");
  const intaglio::batch_handle first = batch.join(prompt, {.max_tokens = 4}),
                               second = batch.join(prompt, {.max_tokens = 4});
  while (batch.active() != 0)
    for (const intaglio::batch_token& each : batch.step())
      if (each.of != first && each.of != second) return 4;
} catch (const intaglio::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 3;
}
