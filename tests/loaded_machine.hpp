// SPDX-License-Identifier: MIT
// The reference's machine with the weights of a model file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/machine.hpp"
#include "intaglio/runtime/weight_image.hpp"

/// A file's weights in device layout, each made when it is first asked for. Table and file must outlive them.
class file_weights {
 public:
  file_weights(const intaglio::plan::table& table, const intaglio::io::checkpoint& file)
      : table_(&table), image_(file, table) {
    image_.measure(1, [](std::uint64_t) {});
  }
  const intaglio::plan::table& table() const { return *table_; }
  std::span<const std::byte> operator()(std::uint32_t slot, std::uint32_t layer) {
    auto& found = bytes_[{slot, layer}];
    if (found.empty()) {
      found.resize(table_->weights[slot].bytes);
      image_.fill(slot, layer, 0, found);
    }
    return found;
  }

 private:
  const intaglio::plan::table* table_;
  intaglio::runtime::weight_image image_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> bytes_;
};

/// Memory of its own over weights that outlive it; a drawn token is not penalised.
struct loaded_machine : intaglio::reference::machine {
  explicit loaded_machine(file_weights& weights)
      : machine(weights.table(), [&weights](std::uint32_t slot, std::uint32_t layer) { return weights(slot, layer); }) {
    state[intaglio::kernels::state::repeat_penalty] = std::bit_cast<std::uint32_t>(1.f);
  }
};
