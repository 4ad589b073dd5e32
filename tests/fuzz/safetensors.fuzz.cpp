// SPDX-License-Identifier: MIT
// safetensors bytes of any kind either open or throw file_error, and what opens covers its file exactly. An input that
// starts with '{' is read as an index and as a bare header too. Seeds: python3 tests/fuzz/seeds.py FOLDER
#include <cstddef>
#include <cstdint>

#include "intaglio/io/safetensors_model.hpp"

namespace {

template <class Read>
void accept_file_errors(Read&& read) {
  try {
    read();
  } catch (const intaglio::file_error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace intaglio::io;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  accept_file_errors([&] {
    const safetensors_file file(mapped_file::from_memory(std::as_bytes(std::span(text)), "fuzz"));
    std::uint64_t total = 0;
    std::vector<std::byte> bytes;
    for (const auto& tensor : file.tensors()) {
      bytes.resize(static_cast<std::size_t>(tensor.bytes));
      file.file().read(tensor.offset, bytes);
      total += tensor.bytes;
    }
    if (total > size) __builtin_trap();
  });
  if (!text.starts_with('{')) return 0;
  accept_file_errors([&] {
    weight_index_reader reader("fuzz", 0, ".safetensors");
    read_json(text, "fuzz", 0, reader);
    for (const auto& name : reader.files)
      if (name.find('/') != std::string::npos) __builtin_trap();
  });
  accept_file_errors([&] {
    safetensors_header_reader reader("fuzz", 0);
    read_json(text, "fuzz", 0, reader);
  });
  return 0;
}
