// SPDX-License-Identifier: MIT
// Decode on the CPU reference with the FFNs of some layers walked (reference/walk.hpp) over vectors from elsewhere, such as a feature index: everything
// else is the plan's own. The oracle of full and sparse walks of Llama and Gemma, and what measures their error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/reference/machine.hpp"
#include "intaglio/reference/walk.hpp"

namespace intaglio::reference {

/// The vectors of a layer; they must stay until the next call.
using layer_vectors = std::function<walked_layer(std::uint32_t layer)>;

struct walk_choice {
  std::uint32_t first_layer = 0;  ///< layers below are dense
  std::size_t count = std::numeric_limits<std::size_t>::max();  ///< features of a layer, those with the largest |score|; all of them: the full walk
};

/// The decode sequence for the token that the machine was fed with.
/// @error argument_error: an FFN that is not a gated matmul and a product behind it, vectors of another shape
class walked_decode {
 public:
  walked_decode(machine& on, const plan::table& table, layer_vectors vectors, walk_choice choice)
      : machine_(on), table_(table), vectors_(std::move(vectors)), choice_(choice) {}

  void run() {
    const plan::sequence& s = table_.decode;
    for (const auto& d : s.prologue) machine_.step(d, 0);
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
      std::size_t walked = 0;
      const auto block = s.block(s.pattern(layer));
      for (std::size_t i = 0; i < block.size(); ++i) {
        if (layer < choice_.first_layer || !is_gate_up(block[i])) {
          machine_.step(block[i], layer);
          continue;
        }
        if (i + 1 == block.size() || block[i + 1].kernel != kernels::kernel::matmul || operand(block[i + 1], "input").offset != operand(block[i], "output").offset)
          throw argument_error("walk", "a product behind the gated one of layer " + std::to_string(layer), "another FFN");
        walk(block[i], block[i + 1], layer);
        ++i, ++walked;
      }
      if (layer >= choice_.first_layer && walked != 1) throw argument_error("walk", "one gated FFN in layer " + std::to_string(layer), std::to_string(walked));
    }
    for (const auto& d : s.epilogue) machine_.step(d, 0);
  }

 private:
  static const plan::operand& operand(const plan::dispatch& d, std::string_view name) { return d.push[kernels::interface_of(d.kernel).push_index(name)]; }
  static std::uint32_t constant(const plan::dispatch& d, std::string_view name) { return d.specialization[kernels::interface_of(d.kernel).specialization_index(name)]; }
  static bool is_gate_up(const plan::dispatch& d) {
    return d.kernel == kernels::kernel::matmul && constant(d, "epilogue") == static_cast<std::uint32_t>(kernels::epilogue::gated) &&
           constant(d, "prologue") == static_cast<std::uint32_t>(kernels::prologue::norm);
  }

  void walk(const plan::dispatch& gate_up, const plan::dispatch& down, std::uint32_t layer) {
    const walked_layer of = vectors_(layer);
    const std::size_t width = constant(gate_up, "columns"), features = constant(gate_up, "rows") / 2;
    if (of.hidden_size != width || of.features() != features || of.up.size() != of.gate.size() || of.down.size() != of.gate.size())
      throw argument_error("walk: vectors of layer " + std::to_string(layer), std::to_string(features) + " of " + std::to_string(width), std::to_string(of.features()) + " of " + std::to_string(of.hidden_size));
    std::vector<float> x(width);
    const auto norm = machine_.weight(operand(gate_up, "norm_weight"), layer);
    rms_norm(machine_.floats(operand(gate_up, "input").offset, width), {reinterpret_cast<const float*>(norm.data()), width}, std::bit_cast<float>(constant(gate_up, "eps")), x);
    const std::vector<float> y = choice_.count >= features ? full_walk(of, gate_up.act(), x) : sparse_walk(of, gate_up.act(), x, choice_.count);
    const bool adds = constant(down, "epilogue") == static_cast<std::uint32_t>(kernels::epilogue::add);
    const auto out = reinterpret_cast<float*>(machine_.arena.data() + operand(down, "output").offset);
    for (std::size_t i = 0; i < width; ++i) out[i] = adds ? out[i] + y[i] : y[i];
  }

  machine& machine_;
  const plan::table& table_;
  layer_vectors vectors_;
  walk_choice choice_;
};

}  // namespace intaglio::reference
