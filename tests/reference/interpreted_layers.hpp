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
#include <string_view>
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

/// Memory that a module runs in; keys and values are by layer, of a session or of a pool.
struct module_memory {
  const plan::table& table;
  random_weights& weights;
  std::vector<std::byte>& arena;
  std::vector<std::uint32_t>& state;
  std::vector<std::vector<std::byte>>&keys, &values;
};

/// A dispatch of all layers, fitted to a device that runs its workgroups at once, and its module.
class module_run {
 public:
  module_run(const plan::dispatch& planned, std::span<const std::byte> module)
      : call_(plan::fitted(planned, class_for(planned))), code_(spliced(module, call_), call_.specialization) {}
  const plan::operand& operand_of(std::string_view name) const {
    return call_.push[kernels::interface_of(call_.kernel).push_index(name)];
  }
  /// @param of the sequence that has the dispatch
  void operator()(const plan::sequence& of, const module_memory& in) {
    arguments_.clear();
    for (std::uint32_t layer = 0; layer < of.layers; ++layer)
      for (const plan::operand& each : of.arguments_of(layer)) arguments_.push_back(address(each, layer, in));
    std::vector<std::uint64_t> push;
    for (std::size_t i = 0; i < kernels::interface_of(call_.kernel).push_count(); ++i)
      push.push_back(address(call_.push[i], 0, in));
    std::vector<std::span<std::byte>> memory{std::span(in.arena), std::as_writable_bytes(std::span(in.state)),
                                             std::as_writable_bytes(std::span(arguments_))};
    for (auto* each : {&in.keys, &in.values})
      for (auto& bytes : *each) memory.push_back(bytes);
    in.weights.each([&](std::span<std::byte> bytes) { memory.push_back(bytes); });
    spirv::machine its(code_, {call_.groups[0], 32 * call_.subgroups, 32}, std::move(memory));
    its.run(std::as_bytes(std::span(push)));
  }

 private:
  std::uint64_t address(const plan::operand& of, std::uint32_t layer, const module_memory& in) {
    const auto at = [&](auto& bytes) { return std::bit_cast<std::uintptr_t>(bytes.data()) + of.offset; };
    switch (of.where) {
      case plan::region::arena:
        return at(in.arena) + layer * of.layer_stride;
      case plan::region::keys:
      case plan::region::pool_keys:
        return at(in.keys[in.table.cache_owner(layer)]);
      case plan::region::values:
      case plan::region::pool_values:
        return at(in.values[in.table.cache_owner(layer)]);
      case plan::region::state:
        return at(in.state);
      case plan::region::arguments:
        return at(arguments_);
      case plan::region::weight: {
        const auto bytes = in.weights(of.slot, in.table.weights[of.slot].per_layer ? layer : 0);
        return at(bytes);
      }
      default:
        return 0;
    }
  }
  static plan::device_class class_for(const plan::dispatch& planned) {
    plan::device_class out = plan::classes::h100;
    out.resident_workgroups = planned.groups[0];
    return out;
  }
  /// The module's words with the activation of a dispatch.
  static std::vector<std::uint32_t> spliced(std::span<const std::byte> module, const plan::dispatch& call) {
    std::vector<std::uint32_t> words(module.size() / 4);
    std::memcpy(words.data(), module.data(), module.size());
    return kernels::splicer(words, *call.activation).spliced();
  }

  plan::dispatch call_;
  spirv::program code_;
  std::vector<std::uint64_t> arguments_;
};

/// Passes of decode in two ways: by the reference of the chain, and by the module of the resident dispatch itself.
class both_ways {
 public:
  explicit both_ways(const plan::table& of, std::span<const std::byte> module, std::size_t which = 0)
      : table_(of), weights_(of),
        chain_(of, [this](std::uint32_t slot, std::uint32_t layer) { return weights_(slot, layer); }),
        one_(of, [this](std::uint32_t slot, std::uint32_t layer) { return weights_(slot, layer); }),
        run_(which == 0 ? of.resident_decode.resident[0] : of.resident_decode.resident_long[0], module) {
    weights_.make_all();
    fill_caches();
    one_.arena.resize(std::max<std::size_t>(one_.arena.size(), of.resident_decode.arena_bytes));
  }

  /// The stream after the last layer, of a token at a position. @return {the chain's, the module's}, as bits
  std::array<std::vector<std::uint32_t>, 2> pass(std::uint32_t position, std::uint32_t token) {
    chain_.feed(position, {&token, 1});
    one_.feed(position, {&token, 1});
    const plan::sequence &chain = table_.decode, &s = table_.resident_decode;
    for (const plan::dispatch& d : chain.prologue) chain_.step(d, 0);
    for (std::uint32_t layer = 0; layer < chain.layers; ++layer)
      for (const plan::dispatch& d : chain.block(chain.pattern(layer))) chain_.step(d, layer);
    std::fill_n(one_.arena.begin() + static_cast<std::ptrdiff_t>(s.blank_offset), s.blank_bytes, std::byte{0xff});
    for (const plan::dispatch& d : s.prologue) one_.step(d, 0);
    run_(s, {table_, weights_, one_.arena, one_.state, one_.keys, one_.values});
    return {stream(chain_, chain), stream(one_, s)};
  }
  /// Whether caches of both are the same.
  bool caches_agree() const { return chain_.keys == one_.keys && chain_.values == one_.values; }

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
  const plan::table& table_;
  random_weights weights_;
  reference::machine chain_, one_;
  module_run run_;
};

}  // namespace interpreted
