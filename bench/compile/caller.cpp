// SPDX-License-Identifier: MIT
// A file with the caller's face that makes a session and reads its text.
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>

int main(int, char** arguments) {
  const intaglio::gpu::device device;
  intaglio::session<intaglio::models::fable> teller{device, arguments[1]};
  std::size_t bytes = 0;
  for (const std::string_view piece : teller.reply("Tell me a story about a brave mouse.")) bytes += piece.size();
  return static_cast<int>(bytes & 1);
}
