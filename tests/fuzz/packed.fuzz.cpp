// SPDX-License-Identifier: MIT
// Packed files of any bytes either open or throw file_error, with their checksums as they are and made right; what
// opens is read to the last byte of its weights. Seeds: python3 tests/fuzz/seeds.py FOLDER
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "intaglio/io/check.hpp"
#include "io/packed_bytes.hpp"

namespace {

void read_all(std::span<const std::byte> file) {
  using namespace intaglio;
  try {
    const io::checkpoint model = io::checkpoint::open_packed(file, "fuzz");
    io::check_packed(*model.packed(), [](const io::packed_weight&, std::uint32_t) {});
  } catch (const file_error& problem) {
    if (std::string_view(problem.what()).size() > 1000) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<std::byte> file(size);
  std::memcpy(file.data(), data, size);
  read_all(file);
  reseal(file);
  read_all(file);
  return 0;
}
