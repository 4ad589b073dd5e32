// SPDX-License-Identifier: MIT
// The commands of one kind of pass: dispatches before, of and after the layers, and the memory between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/dtype.hpp"
#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/plan/dispatch.hpp"

namespace intaglio::plan {

/// A value of the arena and the dispatches between which it lives (indices into prologue, period, epilogue in this
/// order).
struct placed_value {
  text<32> name{};                      ///< the name that `intaglio plan` prints
  dtype type = dtype::f32;              ///< element type
  std::uint32_t width = 0;              ///< elements of a token
  std::uint64_t offset = 0, bytes = 0;  ///< range of the arena
  std::uint32_t first = 0, last = 0;    ///< the dispatches that write the value first and read it last
  std::uint64_t layer_stride =
      0;  ///< distance between the offsets of two consecutive layers; 0: all layers share one offset
};

/// One recorded command sequence: the prologue once, each layer's kind of block from the period, the epilogue once.
struct sequence {
  std::string_view name;                     ///< the kind of pass, as `intaglio plan` prints it
  std::uint32_t max_tokens = 1;              ///< tokens of the widest pass
  std::uint32_t layers = 0;                  ///< layers of the model, or of its stage; 0: the plan has no such sequence
  layer_pattern pattern;                     ///< the kind of each layer
  array_view<const dispatch> prologue;       ///< dispatches before the layers
  array_view<const dispatch> period;         ///< dispatches of the layers: a block for each kind of layer, in order
  array_view<const dispatch> epilogue;       ///< dispatches after the layers
  array_view<const dispatch> resident;       ///< empty, or the resident dispatch; the period then describes its steps
  array_view<const dispatch> resident_long;  ///< empty, or the form of resident for passes from position `long_from` on
  std::uint32_t long_from = 0;               ///< position from which passes run resident_long
  array_view<const operand> arguments;  ///< of the resident dispatch: arguments of a layer of each kind, one kind after
                                        ///< the other (kernels::layers)
  std::uint64_t blank_offset = 0;       ///< offset of the bytes of the arena that hold the unwritten pattern (all ones)
                                        ///< before the pass, for workgroups that wait
  std::uint64_t blank_bytes = 0;        ///< number of these bytes
  array_view<const placed_value> values;  ///< what the arena holds
  std::uint64_t arena_bytes = 0;          ///< size of the arena
  std::uint64_t residual_offset = 0;      ///< f32 [max_tokens, hidden_size], the stream between layers
  std::uint64_t logits_offset = 0;        ///< f32 [max_tokens, vocab_size] where the sequence has a head
  bool has_head = false;                  ///< the epilogue computes logits
  bool has_sampler = false;               ///< the epilogue draws a token
  bool batched = false;                   ///< passes are over a batch, with its state
  std::uint32_t rows = 0;                 ///< fitted: first rows of a wider sequence that its passes compute; 0: all
  const sequence* narrows = nullptr;      ///< fitted: the wider sequence, or null
  array_view<const dispatch> greedy{};   ///< empty, or the epilogue's last dispatch with the greedy form of the sampler
  array_view<const dispatch> interim{};  ///< empty, or that dispatch with the interim form of the sampler
  bool takes_stream = false, gives_stream = false;  ///< of a stage of a cut plan (plan/cut.hpp): rows of the stream are
                                                    ///< copied in before a pass, and out after it
  std::uint64_t stream_in_offset = 0;  ///< f32 [max_tokens, hidden_size], where rows are copied in; rows are copied out
                                       ///< from residual_offset

  /// The dispatches that are recorded: before the layers, of the layers (each recorded `times()` times), after them.
  constexpr std::array<array_view<const dispatch>, 3> recorded() const {
    return {prologue, resident.empty() ? period : resident, epilogue};
  }
  /// Number of stretches between prologue and epilogue: one for each layer, or one for the resident dispatch.
  constexpr std::uint32_t repeats() const { return resident.empty() ? layers : 1; }
  /// The dispatches of stretch `index` < repeats().
  constexpr array_view<const dispatch> stretch(std::uint32_t index) const {
    return resident.empty() ? block(pattern(index)) : resident;
  }
  /// The dispatches of a kind of block.
  constexpr array_view<const dispatch> block(std::uint8_t kind) const {
    std::size_t first = 0, end = 0;
    while (first < period.size() && period[first].block != kind) ++first;
    for (end = first; end < period.size() && period[end].block == kind;) ++end;
    return period.subspan(first, end - first);
  }
  /// Number of arguments that the resident dispatch has for each layer.
  constexpr std::size_t argument_count() const {
    std::size_t out = kernels::layers::argument_count;
    if (!resident.empty())
      kernels::visit(resident.front().kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
        if constexpr (requires(const typename Kernel::constants& c) { Kernel::argument_count(c); })
          out = Kernel::argument_count(kernels::constants_of<Kernel>(resident.front().specialization));
      });
    return out;
  }
  /// Bytes of the arguments of all layers, as addresses.
  constexpr std::uint64_t argument_bytes() const { return std::uint64_t{8} * argument_count() * layers; }
  /// The arguments of a layer.
  constexpr array_view<const operand> arguments_of(std::uint32_t layer) const {
    const std::size_t count = argument_count();
    return arguments.size() <= count ? arguments : arguments.subspan(pattern(layer) * count, count);
  }
  /// Whether the embedding writes the unwritten pattern, so that no fill is needed before the pass.
  constexpr bool blanks_itself() const {
    for (const dispatch& d : prologue)
      if (d.kernel == kernels::kernel::embed && constants_of<kernels::embed_kernel>(d).blank_quads != 0) return true;
    return false;
  }
  /// How often a dispatch of the period is recorded, or how often the resident dispatch does its work.
  constexpr std::uint32_t times(const dispatch& d) const { return pattern.count(d.block, layers); }

 private:
  // Defined before its uses: clang 16 finds no definition otherwise in constant expressions.
  template <class Each>
  constexpr std::uint64_t sum(Each&& each) const {
    std::uint64_t out = 0;
    for (const auto& d : prologue) out += each(d);
    for (const auto& d : resident) out += each(d);
    if (resident.empty())
      for (const auto& d : period) out += times(d) * each(d);
    for (const auto& d : epilogue) out += each(d);
    return out;
  }

 public:
  /// Number of dispatches that are recorded.
  constexpr std::uint64_t dispatch_count() const {
    return sum([](const dispatch&) { return std::uint64_t{1}; });
  }
  /// Number of barriers that are recorded.
  constexpr std::uint64_t barrier_count() const {
    return sum([](const dispatch& d) { return std::uint64_t{d.barrier}; });
  }
  /// Bytes of weights that one pass reads.
  constexpr std::uint64_t weight_bytes() const {
    return sum([](const dispatch& d) { return d.weight_bytes; });
  }
};

/// The shape of the ring in which decode reports contributions of FFN features (kernels::walk_trace).
struct trace_shape {
  std::uint32_t top = 0;                     ///< features that are reported of a layer; 0: no trace
  std::uint32_t slot_count = 0, layers = 0;  ///< tokens of the ring; layers of each token
  /// Words that one layer of one token takes in the ring.
  constexpr std::uint32_t layer_words() const { return kernels::trace_words(top); }
  /// Bytes of the ring.
  constexpr std::uint64_t bytes() const { return std::uint64_t{4} * slot_count * layers * layer_words(); }
};

/// The shape of the trace that a decode sequence writes.
constexpr trace_shape trace_of(const sequence& decode) {
  for (const dispatch& d : decode.epilogue)
    if (d.kernel == kernels::kernel::walk_trace) {
      const auto c = constants_of<kernels::walk_trace_kernel>(d);
      return {c.count, c.slot_count, c.layers};
    }
  return {};
}

}  // namespace intaglio::plan
