// SPDX-License-Identifier: MIT
// The plan as plain data: what the executor, the explainer and the reference read. A model's plan is a few constexpr
// arrays of these; nothing here is a template over the model. Offsets are bytes; each kind of layer is planned once and
// stamped for every layer that is one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/core/message.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/profile.hpp"
#include "intaglio/shader/activation.hpp"

namespace intaglio::plan {

/// The memory that an address points into.
enum class region : std::uint8_t {
  none,         ///< the push constant is 0: the kernel does not read it
  arena,        ///< activations; offset from the arena's start
  weight,       ///< weights[slot], of this layer where the weight is per layer
  keys,         ///< the key cache of this layer
  values,       ///< the value cache of this layer
  state,        ///< kernels/state.hpp
  ring,         ///< drawn tokens, read by the host
  pool_keys,    ///< the keys of this layer in the pool of pages (batch_shape)
  pool_values,  ///< its values there
  arguments,    ///< addresses that all layers in one dispatch take from memory (kernels::layers)
  trace,        ///< what features added, read by the host (kernels::walk_trace)
  kept,         ///< what this layer keeps beside these (layer_cache::kept_bytes)
};

std::string_view constexpr name(region where) {
  constexpr std::string_view names[] = {"none", "arena",     "weight",      "keys",      "values", "state",
                                        "ring", "pool keys", "pool values", "arguments", "trace",  "kept"};
  return names[static_cast<std::size_t>(where)];
}

/// Where one address push constant points.
struct operand {
  region where = region::none;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t layer_stride = 0;  ///< what a layer's place lies behind that of the layer before
  friend constexpr bool operator==(const operand&, const operand&) = default;
};

/// Bytes that a dispatch touches, for hazards and bounds; `bytes` covers every token of the widest pass.
struct access {
  region where = region::none;
  bool write = false;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t layer_stride = 0;  ///< as of operand
};

inline constexpr std::size_t max_accesses = 11;
inline constexpr std::size_t max_merged_ops = 12;

/// One kernel call of a sequence.
struct dispatch {
  kernels::kernel kernel = kernels::kernel::embed;
  bool barrier = false;    ///< wait for all earlier dispatches before this one
  std::uint8_t block = 0;  ///< in the period: the kind of layer that it is part of
  std::uint8_t rule = 0;   ///< last fusion rule that shaped it, index into plan::rules; 0 is none
  std::uint8_t access_count = 0;
  std::uint8_t op_count = 0;
  kernels::variant variant{};   ///< its module, once fitted to a device (plan/fit.hpp)
  bool unrolls = false;         ///< fitted: its module's marked loops are written out (kernels::hint_loops)
  std::uint32_t subgroups = 1;  ///< workgroup size in subgroups; fitted, specialization constant 0 is its invocations
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::uint32_t least_groups = 0;  ///< of workgroups that wait for each other: with fewer than these (x) there is no
                                   ///< room; 0: as many as groups says
  std::array<operand, kernels::max_push_constants> push{};
  std::array<std::uint32_t, kernels::max_specialization_constants> specialization{};  ///< by id; floats as their bits
  std::array<access, max_accesses> accesses{};
  std::array<std::uint16_t, max_merged_ops> ops{};  ///< the graph's ops that this call does
  const shader::expression* activation =
      nullptr;                     ///< where the epilogue gates: what is written into the kernel (kernels/splice.hpp)
  std::uint64_t weight_bytes = 0;  ///< weights read in one pass
  text<64> label{};                ///< "attn_q+attn_k+attn_v"

  /// Its activation; any where it has none.
  constexpr shader::activation_function act() const {
    return activation == nullptr ? shader::activation_function{} : shader::activation_function{*activation};
  }
};

/// Whether a dispatch has its module and all constants (plan/fit.hpp): an engraved one has no workgroup size yet.
constexpr bool is_fitted(const dispatch& d) { return d.specialization[0] != 0; }

/// Whether a dispatch is all layers of a batch's pass, by workgroups that wait for each other and multiply by
/// cooperative matrices. The memory of their exchange is apart from that of the steps.
constexpr bool has_exchange(const dispatch& d) {
  using enum kernels::kernel;
  return d.kernel == layers_few || d.kernel == layers_few_normed || d.kernel == layers_many ||
         d.kernel == layers_many_normed || d.kernel == layers_ternary_few;
}
/// Whether some workgroups of such a dispatch help the others.
constexpr bool has_helpers(const dispatch& d) {
  return d.kernel == kernels::kernel::layers_many || d.kernel == kernels::kernel::layers_many_normed;
}
/// All layers by workgroups that wait for each other and so must all run at once: recorded only where the device has
/// what that takes (plan::runs).
constexpr bool is_resident(const dispatch& d) {
  return has_exchange(d) || d.kernel == kernels::kernel::layers_coded ||
         (d.kernel == kernels::kernel::layers && d.subgroups > 1);
}

/// Whether it is turn of one stacked product, without norms of all heads at once.
constexpr bool turns_stacked(const dispatch& d) {
  if (d.kernel != kernels::kernel::turn) return false;
  const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization);
  return c.norms != kernels::turn_norms::all_heads && c.rope_factor == 1.f &&
         c.q_stride == (c.heads + 2 * c.kv_heads) * c.head_dim;
}
/// Whether it is turn that normalises each head of one stacked product, and does no more.
constexpr bool normalises_heads(const dispatch& d) {
  if (!turns_stacked(d)) return false;
  const auto c = kernels::constants_of<kernels::turn_kernel>(d.specialization);
  return c.norms == kernels::turn_norms::each_head && c.biased == 0;
}

/// Whether an attention of one or a few tokens has scores that resident layers compute: without bounds and sinks.
constexpr bool has_plain_scores(const dispatch& d) {
  if (d.kernel == kernels::kernel::attention) {
    const auto c = kernels::constants_of<kernels::attention_kernel>(d.specialization);
    return c.softcap == 0.f && c.has_sinks == 0;
  }
  const auto c = kernels::constants_of<kernels::attention_few_kernel>(d.specialization);
  return c.softcap == 0.f && c.has_sinks == 0;
}

/// Layers whose exchange holds the not-written pattern before the pass; where these are not all, workgroups
/// make the others so.
constexpr std::uint32_t blank_layers(const dispatch& all, std::uint32_t layers) {
  return has_helpers(all) && layers > kernels::layers_many::blank_layers ? kernels::layers_many::blank_layers : layers;
}
/// What an embedding makes blank for those who wait (kernels::embed_interface), beside what it computes.
constexpr bool makes_blank(const dispatch& d, const access& a) {
  if (d.kernel != kernels::kernel::embed || a.where != region::arena) return false;
  const auto is = [&](std::string_view name) {
    const operand& o = d.push[kernels::embed_interface.push_index(name)];
    return o.where == region::arena && o.offset == a.offset;
  };
  return is("blank") || is("blank_spans");
}

/// Offsets of values and weights are multiples of this: the widest load of a kernel, and a cache line.
inline constexpr std::uint64_t arena_alignment = 256;

constexpr std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment = arena_alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// How a checkpoint's tensors lie in device memory.
enum class weight_layout : std::uint8_t {
  vector_f32,       ///< f32 [columns]
  matrix,           ///< row-major [rows, columns] of a codec without blocks
  row_groups,       ///< kernels/matmul_layout.hpp, rows of all sources in `order`
  ternary_tiles,    ///< kernels/ternary_layout.hpp, rows of all sources in `order`
  ternary_scales,   ///< f32, one per source
  feature_rows,     ///< kernels/feature_layout.hpp, of a ternary matrix [rows, columns] whose rows are features
  feature_columns,  ///< kernels/feature_layout.hpp, of a ternary matrix whose columns are features
  turned,  ///< row-major [columns, rows] of a codec without blocks: the columns of a matrix [rows, columns], one behind
           ///< the other
  row_codes,     ///< int8 [rows, columns], made of a matrix of `codec` (kernels/row_codes.hpp)
  row_scales,    ///< f32 [rows], theirs
  rope_turns,    ///< u64 [head_dim / 2], made of `rope` alone (kernels/rope_turns.hpp); no tensor of the checkpoint
  column_norms,  ///< f32 [layers, columns], one weight for all layers: Euclidean norms of the columns of each layer's
                 ///< matrix
};

/// Row order of stacked matrices (kernels/row_order.hpp).
enum class row_order : std::uint8_t { plain, rope_pairs, gate_up, stacked };

/// One weight of the plan: where it comes from, how it is laid out, where it goes.
struct weight {
  std::array<text<48>, 3> sources{};  ///< tensor names; with per_layer each is prefixed by "blk.N."
  std::uint8_t source_count = 0;
  bool per_layer = false;
  weight_layout layout = weight_layout::vector_f32;
  row_order order = row_order::plain;
  kernels::codec codec = kernels::codec::f32;
  std::uint32_t head_dim = 0;                  ///< for rope_pairs and rope_turns
  rope_parameters rope{};                      ///< for rope_turns
  float scale = 1.f;                           ///< vector_f32: the tensor's values are multiplied by it
  std::array<std::uint32_t, 3> source_rows{};  ///< of vectors behind each other (biases): elements
  std::uint32_t rows = 0, columns = 0;
  std::uint64_t offset = 0;  ///< inside the block of global weights, or of one layer's weights
  std::uint64_t bytes = 0;
  std::uint64_t kinds = ~std::uint64_t{0};  ///< with per_layer: a bit for each kind of layer that has it
};

/// A value of the arena and the dispatches between which it lives (indices into prologue, period, epilogue in this
/// order).
struct placed_value {
  text<32> name{};
  dtype type = dtype::f32;
  std::uint32_t width = 0;  ///< elements a token
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t first = 0, last = 0;
  std::uint64_t layer_stride =
      0;  ///< where every layer has its own: what one lies behind that of the layer before; 0: one for all
};

/// One recorded command sequence: prologue once, of the period each layer's kind of block, epilogue once.
struct sequence {
  std::string_view name;
  std::uint32_t max_tokens = 1;  ///< tokens of the widest pass
  std::uint32_t layers = 0;
  layer_pattern pattern;                                 ///< of which kind each layer is
  std::span<const dispatch> prologue, period, epilogue;  ///< the period holds each kind of block, one behind the other
  std::span<const dispatch>
      in_one;  ///< empty, or the one dispatch that does all layers; the period then says what its steps do
  std::span<const dispatch> in_one_long;  ///< empty, or the form of in_one for passes from position `long_from` on
  std::uint32_t long_from = 0;
  std::span<const operand>
      arguments;  ///< of a layer of each kind, one kind behind the other, for in_one (kernels::layers)
  std::uint64_t blank_offset = 0,
                blank_bytes =
                    0;  ///< of the arena, all ones before the pass: what is not written yet, for those who wait for it
  std::span<const placed_value> values;
  std::uint64_t arena_bytes = 0;
  std::uint64_t residual_offset = 0;  ///< f32 [max_tokens, hidden_size], the stream between layers
  std::uint64_t logits_offset = 0;    ///< f32 [max_tokens, vocab_size] where the sequence has a head
  bool has_head = false;
  bool has_sampler = false;
  bool batched = false;               ///< its state is that of a batch
  std::uint32_t rows = 0;             ///< fitted: the first rows of a wider sequence that its passes have; 0: all
  const sequence* narrows = nullptr;  ///< fitted: that sequence, or null
  std::span<const dispatch> greedy{},
      interim{};  ///< empty, or the last dispatch of the epilogue in that form of a sampler
  bool takes_stream = false, gives_stream = false;  ///< of a stage of a cut plan (plan/cut.hpp): rows of the stream
                                                    ///< are copied in before a pass, and out behind it
  std::uint64_t stream_in_offset = 0;  ///< f32 [max_tokens, hidden_size], where they are copied to; those that go out
                                       ///< are at residual_offset

  /// What is recorded: before the layers, of the layers, each dispatch `times()` times, behind them.
  constexpr std::array<std::span<const dispatch>, 3> recorded() const {
    return {prologue, in_one.empty() ? period : in_one, epilogue};
  }
  /// Stretches of the recorded part between prologue and epilogue: the layers, or the one dispatch that does them all.
  constexpr std::uint32_t repeats() const { return in_one.empty() ? layers : 1; }
  /// What is recorded for stretch `index` < repeats().
  constexpr std::span<const dispatch> stretch(std::uint32_t index) const {
    return in_one.empty() ? block(pattern(index)) : in_one;
  }
  /// The dispatches of a kind of block.
  constexpr std::span<const dispatch> block(std::uint8_t kind) const {
    std::size_t first = 0, end = 0;
    while (first < period.size() && period[first].block != kind) ++first;
    for (end = first; end < period.size() && period[end].block == kind;) ++end;
    return period.subspan(first, end - first);
  }
  /// How many arguments all layers in one dispatch have for each layer, and bytes of all of them in memory.
  constexpr std::size_t argument_count() const {
    return !in_one.empty() && in_one.front().kernel == kernels::kernel::layers_coded
               ? kernels::layers_coded::argument_count
               : kernels::layers::argument_count;
  }
  constexpr std::uint64_t argument_bytes() const { return std::uint64_t{8} * argument_count() * layers; }
  /// The arguments of a layer.
  constexpr std::span<const operand> arguments_of(std::uint32_t layer) const {
    const std::size_t count = argument_count();
    return arguments.size() <= count ? arguments : arguments.subspan(pattern(layer) * count, count);
  }
  /// Whether the embedding makes blank what has to be, so that nothing fills it before.
  constexpr bool blanks_itself() const {
    for (const dispatch& d : prologue)
      if (d.kernel == kernels::kernel::embed &&
          d.specialization[kernels::embed_interface.specialization_index("blank_quads")] != 0)
        return true;
    return false;
  }
  /// How often a dispatch of the period is recorded, or what it does done.
  constexpr std::uint32_t times(const dispatch& d) const { return pattern.count(d.block, layers); }

 private:
  // Before its uses: clang 16 finds no definition else where these are constants.
  template <class Each>
  constexpr std::uint64_t sum(Each&& each) const {
    std::uint64_t out = 0;
    for (const auto& d : prologue) out += each(d);
    for (const auto& d : in_one) out += each(d);
    if (in_one.empty())
      for (const auto& d : period) out += times(d) * each(d);
    for (const auto& d : epilogue) out += each(d);
    return out;
  }

 public:
  constexpr std::uint64_t dispatch_count() const {
    return sum([](const dispatch&) { return std::uint64_t{1}; });
  }
  constexpr std::uint64_t barrier_count() const {
    return sum([](const dispatch& d) { return std::uint64_t{d.barrier}; });
  }
  constexpr std::uint64_t weight_bytes() const {
    return sum([](const dispatch& d) { return d.weight_bytes; });
  }
};

/// The KV cache of a layer (kernels/cache_layout.hpp). Where a window bounds what is read, it is a ring: position p
/// lies at p % positions.
struct layer_cache {
  std::uint32_t positions = 0;  ///< that it holds
  std::uint32_t window = 0;     ///< positions that a token sees, itself among them; 0: all
  std::uint64_t key_bytes = 0, value_bytes = 0;
  std::uint64_t kept_bytes = 0;  ///< of a recurrent layer: its state behind the last token, whatever the position
  bool shared = false;  ///< it is that of the last layer before with one of its own of this window and these sizes
  constexpr std::uint64_t bytes() const { return key_bytes + value_bytes; }
  /// Whether a layer with this cache may use another layer's.
  constexpr bool may_use(const layer_cache& other) const {
    return !other.shared && positions == other.positions && window == other.window && key_bytes == other.key_bytes &&
           value_bytes == other.value_bytes;
  }
  /// Whether a pass from `position` on finds what it needs after positions below `written` were written.
  constexpr bool holds(std::uint32_t position, std::uint32_t written) const {
    if (positions == 0) return true;  // it has no keys
    const std::uint32_t oldest = window != 0 && position + 1 > window ? position + 1 - window : 0;
    return written <= std::uint64_t{oldest} + positions;
  }
};

/// The layer whose cache a layer uses; the layer itself where it shares one and there is none before it.
/// @param caches by kind
constexpr std::uint32_t cache_owner(const layer_pattern& pattern, std::span<const layer_cache> caches,
                                    std::uint32_t layer) {
  const layer_cache& own = caches[pattern(layer)];
  for (std::uint32_t before = layer; own.shared && before-- > 0;)
    if (own.may_use(caches[pattern(before)])) return before;
  return layer;
}

/// Sessions that decode together, and the pool that their KV caches share.
struct batch_shape {
  std::uint32_t slot_count = 0;  ///< sessions at once; 0: no batch
  std::uint32_t page_size = 64;  ///< positions of a page: a multiple of 8 that divides 256, or a multiple of that
  std::uint32_t pages = 0;       ///< of the pool; 0: as many as all slots take when they are full
  chunk_arithmetic coded_products =
      chunk_arithmetic::exact;  ///< of passes, with coded weights. exact: the bits of a session alone. halves: as
                                ///< prompts have it, several times faster; what a session says still does not hang on
                                ///< who else is there
  friend constexpr bool operator==(const batch_shape&, const batch_shape&) = default;
};

/// What decode tells of the features of its FFNs (kernels::walk_trace): a ring of tokens.
struct trace_shape {
  std::uint32_t top = 0;                     ///< features of a layer; 0: no trace
  std::uint32_t slot_count = 0, layers = 0;  ///< tokens of the ring, layers of each
  constexpr std::uint32_t layer_words() const { return kernels::trace_words(top); }
  constexpr std::uint64_t bytes() const { return std::uint64_t{4} * slot_count * layers * layer_words(); }
};

/// Of a decode sequence.
constexpr trace_shape trace_of(const sequence& decode) {
  const auto& face = kernels::walk_trace_interface;
  for (const dispatch& d : decode.epilogue)
    if (d.kernel == kernels::kernel::walk_trace)
      return {d.specialization[face.specialization_index("count")],
              d.specialization[face.specialization_index("slots")],
              d.specialization[face.specialization_index("layers")]};
  return {};
}

/// Everything that one engraved model needs at run time.
struct table {
  std::string_view model;  ///< "bitnet_2b_4t"; empty where the model's type has no name
  std::string_view profile;
  std::span<const kernels::device_class* const> classes;  ///< that the profile is made for, the strongest first
  const decoder_config* config = nullptr;
  std::uint32_t first_layer = 0;   ///< of a stage of a cut plan (plan/cut.hpp): the model's layer that is its layer 0
  std::uint32_t model_layers = 0;  ///< of a stage: layers of the whole model; 0: config has them all
  std::span<const weight> weights;
  std::uint64_t global_weight_bytes = 0;  ///< weights outside the layers
  std::uint64_t layer_weight_bytes = 0;   ///< of one layer that has the weights of every kind
  std::uint32_t context = 0;              ///< positions that a sequence may have
  std::uint32_t max_tokens = 1;           ///< of the widest sequence; state.tokens has that many words
  std::uint32_t ring_size = 0;            ///< drawn tokens that the ring holds
  kernels::element cache_element = kernels::element::f16;
  layer_pattern pattern;                                       ///< of which kind each layer is
  std::array<layer_cache, layer_pattern::max_kinds> caches{};  ///< of a layer, by its kind
  sequence decode, prefill, logits;
  sequence verify;  ///< a token and drafts of those behind it: draws what follows each and takes what was drafted right
  sequence
      decode_in_one;  ///< decode with all layers in one dispatch; without layers where there is none (plan/in_one.hpp)
  trace_shape trace;  ///< of decode
  batch_shape shape;  ///< of batch
  sequence batch;     ///< a token of each slot; without layers where the plan has no batch (plan/engrave_batch.hpp)
  sequence batch_in_one;   ///< batch with all layers in one dispatch; without layers where there is none
                           ///< (plan/few_in_one.hpp)
  sequence moves;          ///< a slot's positions between caches and pool (kernel pages)
  std::uint64_t hash = 0;  ///< hash_of (plan/engrave.hpp); keys the pipeline cache

  /// Of the arena that decode, prefill and verify share.
  constexpr std::uint64_t arena_bytes() const {
    return (std::max)({decode.arena_bytes, decode_in_one.arena_bytes, prefill.arena_bytes, verify.arena_bytes});
  }
  constexpr std::uint64_t weight_bytes() const {
    const std::uint32_t layers = config->num_hidden_layers;
    std::uint64_t out = global_weight_bytes + layers * layer_weight_bytes;
    for (const weight& each : weights)
      if (each.per_layer) out -= (layers - copies(each)) * aligned(each.bytes);
    return out;
  }
  /// Whether a layer has a weight; all have those that are not per layer.
  constexpr bool has(const weight& w, std::uint32_t layer) const {
    return !w.per_layer || (w.kinds >> pattern(layer) & 1) != 0;
  }
  /// Tensors, or stacks of them, that a weight stands for: one for each layer that has it.
  constexpr std::uint32_t copies(const weight& w) const {
    return w.per_layer ? pattern.count_any(w.kinds, config->num_hidden_layers) : 1;
  }
  /// Which of them a layer's is.
  constexpr std::uint32_t copy_of(const weight& w, std::uint32_t layer) const {
    return w.per_layer ? pattern.count_any(w.kinds, layer) : 0;
  }
  /// Words of kernels/state.hpp, then attention's counters and the sampler's, then the progress of all layers in one.
  constexpr std::uint64_t state_bytes() const {
    return progress_offset() +
           (decode_in_one.in_one.empty() ? 0 : kernels::layers::progress_bytes(decode_in_one.layers));
  }
  constexpr std::uint64_t progress_offset() const {
    return 4ull * kernels::state::words(max_tokens, context) +
           kernels::attention_counter_bytes(1, config->num_attention_heads) + kernels::sample_counter_bytes(max_tokens);
  }
  /// The pool's part for a layer of a kind.
  constexpr layer_cache pool(std::uint8_t kind) const {
    const layer_cache& own = caches[kind];
    const std::uint64_t positions = std::uint64_t{shape.pages} * shape.page_size;
    return {static_cast<std::uint32_t>(positions),
            own.window,
            own.key_bytes / ((own.positions + 7) / 8) * (positions / 8),
            own.value_bytes / own.positions * positions,
            own.kept_bytes,
            own.shared};
  }
  constexpr std::uint64_t pool_bytes() const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      if (!caches[kind].shared) out += pattern.count(kind, config->num_hidden_layers) * pool(kind).bytes();
    return out;
  }
  constexpr std::uint32_t slot_pages() const { return kernels::state::slot_pages(context, shape.page_size); }
  /// Words of kernels/state.hpp, then the sampler's counters, then the progress of all layers in one.
  constexpr std::uint64_t batch_state_bytes() const {
    return batch_progress_offset() +
           (batch_in_one.in_one.empty() ? 0 : kernels::layers::progress_bytes(batch_in_one.layers));
  }
  constexpr std::uint64_t batch_progress_offset() const {
    return 4 * kernels::state::batch_words(shape.slot_count, context, shape.page_size) +
           kernels::sample_counter_bytes(shape.slot_count);
  }
  constexpr bool is_for_cpus() const { return !classes.empty() && classes.front()->is_cpu; }
  constexpr const layer_cache& cache_of(std::uint32_t layer) const { return caches[pattern(layer)]; }
  /// The layer whose cache a layer uses: itself, but where it has none of its own.
  constexpr std::uint32_t cache_owner(std::uint32_t layer) const { return plan::cache_owner(pattern, caches, layer); }
  constexpr std::uint64_t cache_bytes() const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      if (!caches[kind].shared) out += pattern.count(kind, config->num_hidden_layers) * caches[kind].bytes();
    return out;
  }
  /// What all recurrent layers keep, one behind the other: their state at one position.
  constexpr std::uint64_t kept_bytes() const { return kept_offset(config->num_hidden_layers); }
  constexpr std::uint64_t kept_offset(std::uint32_t layer) const {
    std::uint64_t out = 0;
    for (std::uint8_t kind = 0; kind < pattern.kinds(); ++kind)
      out += pattern.count(kind, layer) * caches[kind].kept_bytes;
    return out;
  }
  /// Copies of it at earlier positions that a session has room for, from which it goes on after a step back.
  constexpr std::uint32_t snapshots() const {
    constexpr std::uint64_t room = std::uint64_t{256} << 20;
    constexpr std::uint32_t least = 4, most = 64;
    if (kept_bytes() == 0) return 0;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room / kept_bytes(), least, most));
  }
  /// Of the state and its copies.
  constexpr std::uint64_t recurrent_bytes() const { return (1 + snapshots()) * kept_bytes(); }
};

/// The modules of the kernels that plans use, of any device. Of kernels that are compiled from one source for several
/// shapes, those of the plans' shapes.
constexpr kernels::variant_set variants_used(std::span<const table* const> tables) {
  using kernels::variant;
  kernels::variant_set out;
  const auto add = [&](const dispatch& d) {
    for (std::size_t i = 0; i < kernels::variant_count; ++i) {
      const auto which = static_cast<variant>(i);
      if (kernels::kernel_of(which) != d.kernel) continue;
      bool used = true;
      if (which == variant::layers_cpu) used = d.subgroups == 1;
      if (which == variant::layers_long || which == variant::layers)
        used = d.subgroups > 1 && (kernels::constants_of<kernels::layers_kernel>(d.specialization).heads_together !=
                                   1) == (which == variant::layers_long);
      if (d.kernel == kernels::kernel::layers_coded)
        used = which == kernels::layers_coded_kernel::module_of(
                            kernels::constants_of<kernels::layers_coded_kernel>(d.specialization));
      if (which == variant::matmul_chunk_few)
        used = kernels::constants_of<kernels::matmul_chunk_kernel>(d.specialization).tile_tokens <=
               kernels::most_few_tokens;
      if (used) out.add(which);
    }
  };
  for (const table* each : tables)
    for (const sequence* list : {&each->decode, &each->prefill, &each->logits, &each->verify, &each->decode_in_one,
                                 &each->batch, &each->batch_in_one, &each->moves})
      for (const auto part : {list->prologue, list->period, list->epilogue, list->in_one, list->in_one_long})
        for (const dispatch& d : part) add(d);
  return out;
}

}  // namespace intaglio::plan
