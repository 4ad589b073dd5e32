// SPDX-License-Identifier: MIT
#include <cstdio>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/vulkan.hpp>

int main(int count, char** arguments) {
  intaglio::gpu::device device;  // the best one that has what the plan needs
  intaglio::session<intaglio::models::fable> teller{device, count > 1 ? arguments[1] : "fable.gguf"};
  for (std::string_view piece :
       teller.reply("Tell me a story about a brave mouse.", {.temperature = 0.5f, .top_k = 40})) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }
  std::puts("");
}
