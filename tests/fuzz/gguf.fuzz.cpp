// SPDX-License-Identifier: MIT
// GGUF bytes of any kind either open or throw file_error; what opens is read to its last value.
// Seeds: python3 tests/fuzz/seeds.py FOLDER
#include <cstddef>
#include <cstdint>

#include "intaglio/io/checkpoint_gguf.hpp"
#include "intaglio/io/tokenizer.hpp"

namespace {

void read_everything(const intaglio::io::checkpoint& model) {
  std::vector<std::int8_t> codes;
  std::vector<float> values;
  for (const auto& tensor : model.tensors()) {
    const auto size = static_cast<std::size_t>(tensor.stored.rows * tensor.stored.columns);
    if (model.config().model_type == intaglio::architecture::bitnet &&
        tensor.role == intaglio::io::tensor_role::matrix) {
      codes.resize(size);
      model.ternary(tensor).rows(0, tensor.stored.rows, codes);
      for (const auto code : codes)
        if (code < -1 || code > 1) __builtin_trap();
    }
    values.resize(size);
    model.read_f32(tensor, 0, tensor.stored.rows, values);
  }
  if (model.vocabulary()) intaglio::io::tokenizer(*model.vocabulary(), model.config().vocab_size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto file = intaglio::io::gguf::from_memory(bytes, "fuzz");
    for (const auto& value : file.first().values()) {
      try {
        if (value.type == intaglio::io::gguf_type::array) file.array<std::string>(value.key);
        else file.value<std::string>(value.key);
      } catch (const intaglio::file_error&) {}
    }
    for (const auto layout :
         {intaglio::io::i2s_layout::block128, intaglio::io::i2s_layout::block64, intaglio::io::i2s_layout::rows4})
      read_everything(intaglio::io::checkpoint::open_gguf(bytes, "fuzz", {layout}));
  } catch (const intaglio::file_error&) {}
  return 0;
}
