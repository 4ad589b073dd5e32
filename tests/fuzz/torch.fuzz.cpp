// SPDX-License-Identifier: MIT
// PyTorch's files of any kind either open or throw file_error; what opens is read to its last element through its
// strides. An input that is no ZIP is read as a bare pickle too, which checksums would hide from the fuzzer. Seeds:
// python3 tests/fuzz/seeds.py FOLDER
#include <cstddef>
#include <cstdint>

#include "intaglio/io/checkpoint_hf.hpp"

namespace {

void read_everything(const intaglio::io::torch_file& file) {
  using namespace intaglio::io;
  std::vector<std::byte> bytes;
  for (const auto& tensor : file.tensors()) {
    if (tensor.bytes > (1 << 20) || tensor.bytes == 0) continue;
    bytes.resize(static_cast<std::size_t>(tensor.bytes));
    const auto pieces = pieces_of(tensor, &file.file());
    const bool matrix = tensor.shape.size() == 2;
    if (pieces.empty() && tensor.contiguous()) file.file().read(tensor.offset, bytes);
    else if (!pieces.empty())
      read_pieces(pieces, tensor.element_bytes, tensor.shape.back(), 0, matrix ? tensor.shape[0] : 1, bytes);
  }
  for (const auto& member : file.members()) check_member(file.file(), member);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace intaglio::io;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  if (size == 0) return 0;
  try {
    if (data[0] == 'P') read_everything(torch_file(mapped_file::from_memory(bytes, "fuzz")));
    else {
      const torch_pickle pickle(bytes, "fuzz", 0);
      for (const auto& view : pickle.tensors()) {
        std::uint64_t last = view.offset;
        for (std::size_t i = 0; i < view.shape.size(); ++i) {
          if (view.shape[i] == 0) last = 0;
          else last += (view.shape[i] - 1) * view.strides[i];
          if (view.shape[i] == 0) break;
        }
        if (last > pickle.storages()[view.storage].elements) __builtin_trap();
      }
    }
  } catch (const intaglio::file_error& problem) {
    if (std::string_view(problem.what()).size() > 600) __builtin_trap();
  }
  return 0;
}
