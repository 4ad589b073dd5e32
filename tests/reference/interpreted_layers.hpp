// SPDX-License-Identifier: MIT
// Runs a module of the resident dispatch on the CPU (spirv/machine.hpp): the plan's dispatch, fitted to a class of
// device, over memory of the reference's machine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "intaglio/kernels/module_text.hpp"
#include "intaglio/kernels/splice.hpp"
#include "intaglio/plan/fit.hpp"
#include "intaglio/reference/machine.hpp"
#include "intaglio/runtime/synthetic_weights.hpp"
#include "spirv/machine.hpp"

namespace interpreted {

using namespace intaglio;

/// Weights of a plan's shapes, another pattern in every layer; norms are around 1, biases around 0.
class random_weights {
 public:
  explicit random_weights(const plan::table& of) : table_(&of) {}
  std::span<std::byte> operator()(std::uint32_t slot, std::uint32_t layer) {
    std::vector<std::byte>& bytes = bytes_[{slot, layer}];
    if (bytes.empty()) bytes = made(table_->weights[slot], 2 * (1000 * slot + layer) + 1);
    return bytes;
  }
  /// Makes the values that are read, for all slots and layers.
  void make_all() {
    for (std::uint32_t slot = 0; slot < table_->weights.size(); ++slot)
      for (std::uint32_t layer = 0; layer < (table_->weights[slot].per_layer ? table_->config->num_hidden_layers : 1u);
           ++layer)
        (*this)(slot, layer);
  }
  template <class Visit>
  void each(Visit visit) {
    for (auto& [where, bytes] : bytes_) visit(std::span(bytes));
  }

 private:
  static std::vector<std::byte> made(const plan::weight& w, std::uint64_t random) {
    const bool vector = w.layout == plan::weight_layout::vector_f32, bias = w.sources[0].view().ends_with(".bias");
    std::vector<std::uint32_t> pattern;
    if (vector)
      for (std::uint64_t i = 0; i < w.bytes / 4; ++i) {
        const float value = static_cast<float>(runtime::next_random(random) >> 40) * 0x1p-24f;
        pattern.push_back(std::bit_cast<std::uint32_t>(bias ? value - 0.5f : value + 0.5f));
      }
    else pattern = runtime::synthetic_pattern(w, {}, random);
    std::vector<std::byte> out(w.bytes);
    for (std::size_t at = 0; at < out.size(); at += 4 * pattern.size())
      std::memcpy(out.data() + at, pattern.data(), std::min(out.size() - at, 4 * pattern.size()));
    return out;
  }

  const plan::table* table_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> bytes_;
};

/// A module's words with the activation of a dispatch.
inline std::vector<std::uint32_t> spliced(std::span<const std::byte> module, const plan::dispatch& call) {
  std::vector<std::uint32_t> words(module.size() / 4);
  std::memcpy(words.data(), module.data(), module.size());
  return kernels::splicer(words, *call.activation).spliced();
}

/// Passes of decode in two ways: by the reference of the chain, and by the module of the resident dispatch itself.
class both_ways {
 public:
  explicit both_ways(const plan::table& of, std::span<const std::byte> module, std::size_t which = 0)
      : table_(of), weights_(of),
        chain_(of, [this](std::uint32_t slot, std::uint32_t layer) { return weights_(slot, layer); }),
        one_(of, [this](std::uint32_t slot, std::uint32_t layer) { return weights_(slot, layer); }) {
    weights_.make_all();
    fill_caches();
    one_.arena.resize(std::max<std::size_t>(one_.arena.size(), of.resident_decode.arena_bytes));
    plan::device_class device = plan::classes::h100;
    const plan::sequence& s = of.resident_decode;
    const plan::dispatch& planned = which == 0 ? s.resident[0] : s.resident_long[0];
    device.resident_workgroups = planned.groups[0];
    call_ = plan::fitted(planned, device);
    code_.emplace_back(spliced(module, call_), call_.specialization);
  }
  const plan::dispatch& call() const { return call_; }

  /// The stream behind the last layer, of a token at a position. @return {the chain's, the module's}, as bits
  std::array<std::vector<std::uint32_t>, 2> pass(std::uint32_t position, std::uint32_t token) {
    chain_.feed(position, {&token, 1});
    one_.feed(position, {&token, 1});
    const plan::sequence &chain = table_.decode, &s = table_.resident_decode;
    for (const plan::dispatch& d : chain.prologue) chain_.step(d, 0);
    for (std::uint32_t layer = 0; layer < chain.layers; ++layer)
      for (const plan::dispatch& d : chain.block(chain.pattern(layer))) chain_.step(d, layer);
    std::fill_n(one_.arena.begin() + static_cast<std::ptrdiff_t>(s.blank_offset), s.blank_bytes, std::byte{0xff});
    for (const plan::dispatch& d : s.prologue) one_.step(d, 0);
    run();
    return {stream(chain_, chain), stream(one_, s)};
  }
  /// Whether caches of both are the same.
  bool caches_agree() const { return chain_.keys == one_.keys && chain_.values == one_.values; }
  std::uint64_t instructions = 0;

 private:
  std::vector<std::uint32_t> stream(const reference::machine& of, const plan::sequence& s) const {
    std::vector<std::uint32_t> out;
    for (const float each : of.floats(s.residual_offset, table_.config->hidden_size))
      out.push_back(std::bit_cast<std::uint32_t>(each));
    return out;
  }
  /// Halves from -2 to 2, so that a pass may be at any position.
  void fill_caches() {
    std::uint64_t random = 5;
    for (const auto each : {&reference::machine::keys, &reference::machine::values}) {
      for (auto& bytes : chain_.*each)
        for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
          const std::uint64_t drawn = runtime::next_random(random) >> 40;
          bytes[i] = static_cast<std::byte>(drawn), bytes[i + 1] = static_cast<std::byte>(drawn >> 8 & 0xbf);
        }
      one_.*each = chain_.*each;
    }
  }
  std::uint64_t address(const plan::operand& of, std::uint32_t layer) {
    const auto at = [&](auto& bytes) { return std::bit_cast<std::uintptr_t>(bytes.data()) + of.offset; };
    switch (of.where) {
      case plan::region::arena:
        return at(one_.arena) + layer * of.layer_stride;
      case plan::region::keys:
        return at(one_.keys[table_.cache_owner(layer)]);
      case plan::region::values:
        return at(one_.values[table_.cache_owner(layer)]);
      case plan::region::state:
        return at(one_.state);
      case plan::region::arguments:
        return at(arguments_);
      case plan::region::weight: {
        const auto bytes = weights_(of.slot, table_.weights[of.slot].per_layer ? layer : 0);
        return at(bytes);
      }
      default:
        return 0;
    }
  }
  void run() {
    const plan::sequence& s = table_.resident_decode;
    arguments_.clear();
    for (std::uint32_t layer = 0; layer < s.layers; ++layer)
      for (const plan::operand& each : s.arguments_of(layer)) arguments_.push_back(address(each, layer));
    std::vector<std::uint64_t> push;
    for (std::size_t i = 0; i < kernels::interface_of(call_.kernel).push_count(); ++i)
      push.push_back(address(call_.push[i], 0));
    std::vector<std::span<std::byte>> memory{std::span(one_.arena), std::as_writable_bytes(std::span(one_.state)),
                                             std::as_writable_bytes(std::span(arguments_))};
    for (auto* each : {&one_.keys, &one_.values})
      for (auto& bytes : *each) memory.push_back(bytes);
    weights_.each([&](std::span<std::byte> bytes) { memory.push_back(bytes); });
    spirv::machine its(code_[0], {call_.groups[0], 32 * call_.subgroups, 32}, std::move(memory));
    its.run(std::as_bytes(std::span(push)));
    instructions += its.instructions();
  }

  const plan::table& table_;
  random_weights weights_;
  reference::machine chain_, one_;
  plan::dispatch call_;
  std::vector<spirv::program> code_;
  std::vector<std::uint64_t> arguments_;
};

}  // namespace interpreted
