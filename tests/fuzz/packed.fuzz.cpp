// SPDX-License-Identifier: MIT
// Packed files of any bytes either open or throw file_error, with their checksums as they are and made right; what
// opens is read to the last byte of its weights. An input is read as a file, and as changes of the index of a sound
// file, which the library writes: so no seed has to know the index's fields.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "intaglio/io/check.hpp"
#include "io/packed_files.hpp"

namespace {

using namespace intaglio;

/// Whether the file opens and its weights have their checksums.
bool reads(std::span<const std::byte> file) {
  try {
    const io::checkpoint model = io::checkpoint::open_packed(file, "fuzz");
    io::check_packed(*model.packed(), [](const io::packed_weight&, std::uint32_t) {});
    return true;
  } catch (const file_error& problem) {
    if (std::string_view(problem.what()).size() > 1000) std::abort();
    return false;
  }
}
/// A sound file with a small weight, and one for each layer.
bytes sound_file() {
  io::packed_index index = packed_files::small_index();
  index.weights = {{.layout = "one", .copies = 1, .bytes = 3}, {.layout = "each", .copies = 3, .bytes = 257}};
  return packed_files::file_of(index);
}
/// Changes the index's bytes where the input's are not 0.
void change_index(std::span<std::byte> file, std::span<const std::byte> by) {
  const auto at = static_cast<std::size_t>(packed_field<std::uint64_t>(file, 24)),
             size = static_cast<std::size_t>(packed_field<std::uint64_t>(file, 32));
  for (std::size_t i = 0; i < size && i < by.size(); ++i) file[at + i] ^= by[i];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  bytes file(input.begin(), input.end());
  reads(file);
  reseal(file);
  reads(file);
  static const bytes sound = sound_file();
  file = sound;
  change_index(file, input);
  const bool same = file == sound;
  reseal(file);
  if (const bool opens = reads(file); same && !opens) std::abort();
  return 0;
}
