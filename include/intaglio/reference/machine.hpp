// SPDX-License-Identifier: MIT
// Runs a plan's table on the CPU, dispatch by dispatch, with every buffer open to the caller: the oracle of kernels,
// fusions and plans. Nothing here is fast. Buffers are as on the device, byte for byte (plan/table.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <vector>

#include "intaglio/kernels/state.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/reference/attention.hpp"
#include "intaglio/reference/dense_matmul.hpp"
#include "intaglio/reference/embed.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/head_screen.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "intaglio/reference/recurrent.hpp"
#include "intaglio/reference/sample.hpp"
#include "intaglio/reference/ternary_float.hpp"
#include "intaglio/reference/ternary_matmul.hpp"
#include "intaglio/reference/ternary_walk.hpp"
#include "intaglio/reference/walk_kernels.hpp"

namespace intaglio::reference {

/// Bytes of weights[slot] of a layer in device layout; layer is 0 for global weights. They must outlive the machine.
using weight_bytes = std::function<std::span<const std::byte>(std::uint32_t slot, std::uint32_t layer)>;

class machine {
 public:
  /// Memory for any sequence of the table, filled with `poison`, so that a read of what nobody wrote shows.
  machine(const plan::table& table, weight_bytes weights, std::byte poison = std::byte{0xCD})
      : table_(&table), weights_(std::move(weights)) {
    const std::uint64_t arena_bytes = (std::max)(
        {table.decode.arena_bytes, table.prefill.arena_bytes, table.logits.arena_bytes, table.verify.arena_bytes});
    arena.assign(arena_bytes, poison);
    for (std::uint32_t layer = 0; layer < table.config->num_hidden_layers; ++layer) {
      keys.emplace_back(table.cache_of(layer).key_bytes, poison);
      values.emplace_back(table.cache_of(layer).value_bytes, poison);
      kept.emplace_back(table.cache_of(layer).kept_bytes, poison);
    }
    state.assign(table.state_bytes() / 4, 0);
    ring.assign(kernels::ring_bytes(table.ring_size) / 4, 0xFFFFFFFFu);
    trace.assign(table.trace.bytes() / 4, 0xFFFFFFFFu);
  }

  std::vector<std::byte> arena;
  std::vector<std::vector<std::byte>> keys, values, kept;  ///< by layer
  std::vector<std::uint32_t> state, ring, trace;           ///< words

  /// What the host's feed does: position, the tokens of a pass, and the parameters of sampling as they are.
  void feed(std::uint32_t position, std::span<const std::uint32_t> tokens) {
    state[kernels::state::position] = position;
    state[kernels::state::count] = static_cast<std::uint32_t>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), state.begin() + kernels::state::tokens);
  }

  /// All dispatches of a sequence in their order; `after(dispatch, layer)` sees the buffers behind each.
  void run(const plan::sequence& s, const std::function<void(const plan::dispatch&, std::uint32_t)>& after = {}) {
    auto part = [&](std::span<const plan::dispatch> dispatches, std::uint32_t layer) {
      for (const auto& d : dispatches) {
        step(d, layer);
        if (after) after(d, layer);
      }
    };
    part(s.prologue, 0);
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) part(s.block(s.pattern(layer)), layer);
    part(s.epilogue, 0);
  }

  void step(const plan::dispatch& d, std::uint32_t layer) {
    call c{*this, d, layer};
    switch (d.kernel) {
      case kernels::kernel::embed:
        c.embed();
        break;
      case kernels::kernel::norm_quantize:
        c.norm_quantize();
        break;
      case kernels::kernel::ternary_matmul:
      case kernels::kernel::ternary_few:
      case kernels::kernel::ternary_chunk:
      case kernels::kernel::ternary_rows:
        c.ternary_matmul();
        break;
      case kernels::kernel::ternary_float:
        c.ternary_float();
        break;
      case kernels::kernel::attention:
      case kernels::kernel::attention_few:
      case kernels::kernel::attention_chunk:
      case kernels::kernel::attention_halves:
        c.attention();
        break;
      case kernels::kernel::dense_matmul:
        c.dense_matmul();
        break;
      case kernels::kernel::dense_few:
      case kernels::kernel::dense_rows:
        c.dense_few();
        break;
      case kernels::kernel::head_screen:
        c.head_screen();
        break;
      case kernels::kernel::head_rescore:
        c.head_rescore();
        break;
      case kernels::kernel::sample:
        c.sample();
        break;
      case kernels::kernel::accept:
        c.accept();
        break;
      case kernels::kernel::matmul:
      case kernels::kernel::matmul_chunk:
      case kernels::kernel::matmul_few:
        c.matmul();
        break;
      case kernels::kernel::fixed:
        c.fixed();
        break;
      case kernels::kernel::expert_tiles:
        c.expert_tiles();
        break;
      case kernels::kernel::halves:
        c.halves();
        break;
      case kernels::kernel::turn:
        c.turn();
        break;
      case kernels::kernel::norm_add:
        c.norm_add();
        break;
      case kernels::kernel::rms_norm:
        c.rms_norm();
        break;
      case kernels::kernel::walk_gate_up:
        c.walk_gate_up();
        break;
      case kernels::kernel::walk_down:
        c.walk_down();
        break;
      case kernels::kernel::walk_select:
        c.walk_select();
        break;
      case kernels::kernel::walk_up:
        c.walk_up();
        break;
      case kernels::kernel::walk_sum:
        c.walk_sum();
        break;
      case kernels::kernel::walk_trace:
        c.walk_trace();
        break;
      case kernels::kernel::route:
        c.route();
        break;
      case kernels::kernel::gated:
        c.gated();
        break;
      case kernels::kernel::short_conv:
        c.short_conv();
        break;
      case kernels::kernel::delta_net:
        c.delta_net();
        break;
      case kernels::kernel::head_gate:
        c.head_gate();
        break;
      case kernels::kernel::expert_sum:
        c.expert_sum();
        break;
      case kernels::kernel::pages:
        break;  // of a batch, whose reference is each session alone
      case kernels::kernel::layers:
      case kernels::kernel::layers_coded:
      case kernels::kernel::layers_few:
      case kernels::kernel::layers_ternary_few:
      case kernels::kernel::layers_many:
      case kernels::kernel::layers_few_normed:
      case kernels::kernel::layers_many_normed:
        break;  // the steps of the chain are its reference
    }
  }

  /// Bytes of a weight that a dispatch of a layer reads.
  std::span<const std::byte> weight(const plan::operand& of, std::uint32_t layer) const {
    return weights_(of.slot, table_->weights[of.slot].per_layer ? layer : 0);
  }

  /// f32 values of the arena.
  std::span<const float> floats(std::uint64_t offset, std::size_t count) const {
    return {reinterpret_cast<const float*>(arena.data() + offset), count};
  }

 private:
  /// One dispatch with its operands looked up by name.
  struct call {
    machine& m;
    const plan::dispatch& d;
    std::uint32_t layer;

    const kernels::kernel_interface& face() const { return kernels::interface_of(d.kernel); }
    std::uint32_t constant(std::string_view name) const { return d.specialization[face().specialization_index(name)]; }
    float real(std::string_view name) const { return std::bit_cast<float>(constant(name)); }
    kernels::element element(std::string_view name) const { return static_cast<kernels::element>(constant(name)); }

    /// The memory behind an address, typed, from the address to the end of its allocation.
    template <class T>
    std::span<T> memory(std::string_view name) const {
      const plan::operand& o = d.push[face().push_index(name)];
      switch (o.where) {
        case plan::region::arena:
          return typed<T>(m.arena, o.offset + layer * o.layer_stride);
        case plan::region::keys:
          return typed<T>(m.keys[m.table_->cache_owner(layer)], o.offset);
        case plan::region::values:
          return typed<T>(m.values[m.table_->cache_owner(layer)], o.offset);
        case plan::region::kept:
          return typed<T>(m.kept[layer], o.offset);
        default:
          return {};
      }
    }
    template <class T>
    std::span<const T> weight(std::string_view name) const {
      const plan::operand& o = d.push[face().push_index(name)];
      if (o.where != plan::region::weight) return {};
      const auto bytes = m.weights_(o.slot, m.table_->weights[o.slot].per_layer ? layer : 0);
      return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }
    template <class T>
    static std::span<T> typed(std::vector<std::byte>& bytes, std::uint64_t offset) {
      return {reinterpret_cast<T*>(bytes.data() + offset), (bytes.size() - offset) / sizeof(T)};
    }

    std::uint32_t position() const { return m.state[kernels::state::position]; }
    std::uint32_t tokens() const {
      return (std::min)(m.state[kernels::state::count], d.groups[1] * (std::max)(1u, tile()));
    }
    std::uint32_t tile() const {
      if (d.kernel == kernels::kernel::attention_chunk) return kernels::attention_tile;
      if (d.kernel == kernels::kernel::matmul_chunk) return constant("max_tokens");  // groups[1] has rows
      if (d.kernel == kernels::kernel::attention_halves) return kernels::attention_halves_tile(constant("head_dim"));
      return face().specialization_index("tile_tokens") < face().specialization_count() ? constant("tile_tokens") : 1;
    }

    void embed() {
      const std::uint32_t width = constant("width");
      reference::embed(
          weight<std::byte>("table"), static_cast<kernels::codec>(constant("table_element")), constant("vocab_size"),
          width, constant("max_tokens"), constant("context"), m.state,
          memory<float>("output").first(
              std::size_t{constant("max_tokens") < d.groups[1] ? constant("max_tokens") : d.groups[1]} * width),
          real("scale"));
    }

    void norm_quantize() {
      const std::size_t width = constant("width"), n = tokens();
      reference::norm_quantize(memory<float>("input").first(n * width), weight<float>("norm_weight"), width,
                               real("eps"), memory<std::int8_t>("output").first(n * width),
                               memory<factors>("factors").first(n));
    }

    ternary_matmul_shape product_shape() const {
      return {.columns = constant("columns"),
              .rows = constant("rows"),
              .epilogue = static_cast<kernels::epilogue>(constant("epilogue")),
              .head_dim = constant("head_dim"),
              .q_size = constant("q_size"),
              .kv_size = constant("kv_size"),
              .context = constant("context"),
              .rope_theta = real("rope_theta"),
              .cache_element = element("cache_element"),
              .gate = d.act()};
    }
    /// The output of a product, for all tokens.
    std::span<float> product_output(const ternary_matmul_shape& shape) const {
      const std::size_t width = shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
                                : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                                                : shape.rows;
      return memory<float>("output").first(tokens() * width);
    }

    void ternary_matmul() {
      const ternary_matmul_shape shape = product_shape();
      const std::size_t n = tokens(), columns = shape.columns;
      std::vector<std::int8_t> quantized(n * columns);
      std::vector<factors> token_factors(n);
      if (d.kernel == kernels::kernel::ternary_matmul &&
          static_cast<kernels::prologue>(constant("prologue")) == kernels::prologue::norm_quantize) {
        reference::norm_quantize(memory<float>("input").first(n * columns), weight<float>("norm_weight"), columns,
                                 real("eps"), quantized, token_factors);
      } else {
        std::ranges::copy(memory<std::int8_t>("input").first(n * columns), quantized.begin());
        std::ranges::copy(memory<factors>("factors").first(n), token_factors.begin());
      }
      reference::ternary_matmul(shape, quantized, token_factors, weight<std::uint32_t>("weight"),
                                weight<float>("scales"), product_output(shape), position(), memory<std::byte>("keys"),
                                memory<std::byte>("values"));
    }

    void ternary_float() {
      const ternary_matmul_shape shape = product_shape();
      const auto input = memory<float>("input").first(tokens() * shape.columns);
      std::vector<float> y(input.begin(), input.end());
      if (static_cast<kernels::prologue>(constant("prologue")) == kernels::prologue::norm)
        for (std::size_t t = 0; t < tokens(); ++t) {
          const std::size_t at = t * shape.columns;
          reference::rms_norm(input.subspan(at, shape.columns), weight<float>("norm_weight"), real("eps"),
                              std::span(y).subspan(at, shape.columns));
        }
      reference::ternary_float(shape, y, weight<std::uint32_t>("weight"), weight<float>("scales"),
                               product_output(shape), position(), memory<std::byte>("keys"),
                               memory<std::byte>("values"));
    }

    void matmul() {
      const matmul_shape shape{.columns = constant("columns"),
                               .rows = constant("rows"),
                               .codec = static_cast<kernels::codec>(constant("codec")),
                               .epilogue = static_cast<kernels::epilogue>(constant("epilogue")),
                               .head_dim = constant("head_dim"),
                               .q_size = constant("q_size"),
                               .kv_size = constant("kv_size"),
                               .context = constant("context"),
                               .ring = constant("ring") != 0,
                               .cache_element = element("cache_element"),
                               .gate = d.act()};
      const std::size_t n = tokens(), columns = shape.columns;
      const bool few = d.kernel == kernels::kernel::matmul_few;
      if (d.kernel != kernels::kernel::matmul && constant("slot_words") != 0)
        return;  // of a batch, whose reference is each session alone
      const bool chunk = d.kernel == kernels::kernel::matmul_chunk;
      if (chunk && constant("experts_used") != 0) return chunk_by_lists(shape);
      if (constant("experts_used") != 0)
        return expert_matmul(shape, few                           ? constant("list_tokens")
                                    : constant("tile_tokens") > 1 ? constant("tile_tokens")
                                                                  : 0);
      const std::size_t width = shape.epilogue == kernels::epilogue::rope_cache ? shape.q_size
                                : shape.epilogue == kernels::epilogue::gated    ? shape.rows / 2
                                                                                : shape.rows;
      const auto output = memory<float>("output").first(n * width);
      if (chunk) {
        std::vector<halves_of_token> x(n);
        for (std::size_t t = 0; t < n; ++t) x[t] = halved_input(t, columns);
        return reference::matmul_chunk(shape, x, weight<std::byte>("weight"), output, position(),
                                       memory<std::byte>("keys"), memory<std::byte>("values"),
                                       weight<std::uint64_t>("rope"));
      }
      auto gates = d.kernel == kernels::kernel::matmul ? memory<float>("gates") : std::span<float>{};
      if (!gates.empty()) gates = gates.first(output.size());
      reference::matmul(shape, few ? fixed_input(n, columns) : input_behind_norm(n, columns),
                        weight<std::byte>("weight"), output, position(), memory<std::byte>("keys"),
                        memory<std::byte>("values"), weight<std::uint64_t>("rope"), gates);
    }

    halves_of_token halved_input(std::size_t row, std::size_t columns) const {
      const auto bits = memory<std::uint16_t>("input").subspan(row * columns, columns);
      return {{bits.begin(), bits.end()}, memory<float>("factors")[row]};
    }

    /// Products of rows in the order of lists of experts.
    void chunk_by_lists(const matmul_shape& shape) {
      const std::uint32_t list_tokens = constant("list_tokens"),
                          width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
      const std::size_t lists = constant("max_tokens") / list_tokens,
                        matrix = shape.rows / 4 * kernels::matmul_group_bytes(shape.codec, shape.columns);
      const auto tiles = memory<std::uint32_t>("tiles").first(lists * (list_tokens + 2));
      for (std::size_t list = 0; list < lists; ++list) {
        const auto of = tiles.subspan(list * (list_tokens + 2), list_tokens + 2);
        for (std::size_t i = 0; i < of[1]; ++i) {
          const halves_of_token x = halved_input(list * list_tokens + i, shape.columns);
          reference::matmul_chunk(shape, std::span(&x, 1), weight<std::byte>("weight").subspan(of[0] * matrix, matrix),
                                  memory<float>("output").subspan(std::size_t{of[2 + i]} * width, width));
        }
      }
    }

    /// @param list_tokens of the lists that say who has which expert; 0: route's choice does
    void expert_matmul(const matmul_shape& shape, std::uint32_t list_tokens) {
      const bool few = d.kernel == kernels::kernel::matmul_few;
      const std::size_t used = constant("experts_used"),
                        width = shape.epilogue == kernels::epilogue::gated ? shape.rows / 2 : shape.rows;
      std::size_t n = tokens();
      std::vector<std::uint32_t> choice;
      if (list_tokens == 0) {
        const auto from = memory<std::uint32_t>("choice").first(n * 2 * used);
        choice.assign(from.begin(), from.end());
      } else {
        const std::size_t lists = d.groups[1] / (few ? list_tokens / constant("tile_tokens") : 1);
        const auto tiles = memory<std::uint32_t>(few ? "tiles" : "choice").first(lists * (list_tokens + 2));
        n = m.state[kernels::state::count];
        choice.resize(n * 2 * used);
        reference::choice_of_tiles(tiles, list_tokens, used, choice);
      }
      const bool own_input = constant("own_input") != 0;
      const std::size_t rows = own_input ? n * used : n;
      reference::expert_matmul(shape, used, own_input,
                               few ? fixed_input(rows, shape.columns) : input_behind_norm(rows, shape.columns), choice,
                               weight<std::byte>("weight"), memory<float>("output").first(n * used * width));
    }
    void expert_tiles() {
      const std::uint32_t used = constant("experts_used"), list_tokens = constant("list_tokens"),
                          n = (std::min)(m.state[kernels::state::count], constant("max_tokens"));
      reference::expert_tiles(
          memory<std::uint32_t>("choice").first(std::size_t{2} * used * n), used, constant("experts"), list_tokens,
          memory<std::uint32_t>("output").first(std::size_t{constant("tiles")} * (list_tokens + 2)));
    }
    /// What `fixed` left, as numbers.
    std::vector<float> fixed_input(std::size_t rows, std::size_t columns) const {
      std::vector<float> out;
      const std::size_t words = kernels::fixed_words(static_cast<std::uint32_t>(columns));
      for (std::size_t row = 0; row < rows; ++row) {
        const auto numbers = fixed_values(memory<std::uint32_t>("input").subspan(row * words, words));
        out.insert(out.end(), numbers.begin(), numbers.end());
      }
      return out;
    }
    void fixed() {
      const std::uint32_t width = constant("width"), words = kernels::fixed_words(width);
      const std::size_t rows =
          std::size_t{(std::min)(m.state[kernels::state::count], d.groups[1] / constant("rows_per_token"))} *
          constant("rows_per_token");
      const auto y = input_behind_norm(rows, width);
      for (std::size_t row = 0; row < rows; ++row)
        std::ranges::copy(fixed_words(std::span(y).subspan(row * width, width)),
                          memory<std::uint32_t>("output").subspan(row * words).begin());
    }
    /// Rows of the input as they are or normalised, as the prologue says.
    std::vector<float> input_behind_norm(std::size_t rows, std::size_t columns) const {
      const auto input = memory<float>("input").first(rows * columns);
      std::vector<float> y(input.begin(), input.end());
      if (static_cast<kernels::prologue>(constant("prologue")) == kernels::prologue::norm)
        for (std::size_t at = 0; at < y.size(); at += columns)
          reference::rms_norm(input.subspan(at, columns), weight<float>("norm_weight"), real("eps"),
                              std::span(y).subspan(at, columns));
      return y;
    }

    void halves() {
      const std::size_t width = constant("width"), used = constant("experts_used");
      const std::uint32_t list_tokens = constant("list_tokens");
      const std::size_t n = m.state[kernels::state::count];
      const auto put = [&](std::size_t row, std::span<const float> x) {
        const halves_of_token made = reference::halves(x);
        std::ranges::copy(made.bits, memory<std::uint16_t>("output").subspan(row * width).begin());
        memory<float>("factors")[row] = made.factor;
      };
      if (used == 0) {
        const auto y = input_behind_norm(tokens(), width);
        for (std::size_t t = 0; t < tokens(); ++t) put(t, std::span(y).subspan(t * width, width));
        return;
      }
      const bool own_input = constant("own_input") != 0;
      const auto y = input_behind_norm(own_input ? n * used : n, width);
      const std::size_t lists = d.groups[1] / list_tokens;
      const auto tiles = memory<std::uint32_t>("tiles").first(lists * (list_tokens + 2));
      for (std::size_t list = 0; list < lists; ++list)
        for (std::size_t i = 0; i < tiles[list * (list_tokens + 2) + 1]; ++i) {
          const std::size_t pair = tiles[list * (list_tokens + 2) + 2 + i];
          put(list * list_tokens + i, std::span(y).subspan((own_input ? pair : pair / used) * width, width));
        }
    }

    void turn() {
      const turn_shape shape{constant("heads"),
                             constant("kv_heads"),
                             constant("head_dim"),
                             constant("context"),
                             real("eps"),
                             constant("ring") != 0,
                             element("cache_element"),
                             {constant("q_stride"), constant("k_stride"), constant("v_stride")},
                             static_cast<kernels::turn_norms>(constant("norms")),
                             real("rope_factor"),
                             constant("v_norm") != 0};
      turn_inputs in{{memory<float>("q")}};
      if (shape.kv_heads != 0) in.qkv = {memory<float>("q"), memory<float>("k"), memory<float>("v")};
      if (shape.norms != kernels::turn_norms::none) {
        in.norms[0] = weight<float>("q_norm");
        if (shape.kv_heads != 0) in.norms[1] = weight<float>("k_norm");
      }
      if (constant("biased") != 0) in.bias = weight<float>("bias");
      reference::turn(shape, in, memory<float>("output").first(std::size_t{tokens()} * shape.heads * shape.head_dim),
                      position(), memory<std::byte>("keys"), memory<std::byte>("values"),
                      weight<std::uint64_t>("rope"));
    }

    void route() {
      const std::size_t experts = constant("experts"), used = constant("experts_used");
      std::span<const float> logits = memory<float>("logits").first(tokens() * experts);
      std::vector<float> sums;
      if (constant("biased") != 0)
        logits = sums = reference::biased_logits(logits, weight<float>("bias").first(experts));
      for (std::size_t t = 0; t < tokens(); ++t)
        reference::route(logits.subspan(t * experts, experts),
                         memory<std::uint32_t>("choice").subspan(t * 2 * used, 2 * used), constant("over_all") != 0);
    }
    void gated() {
      const std::size_t width = constant("width"), count = tokens() * width, used = constant("experts_used");
      std::span<const float> gate = memory<float>("gate").first(count), up = memory<float>("up");
      std::vector<float> biased_gate, biased_up;
      if (constant("biased") != 0) {
        const auto choice = memory<std::uint32_t>("choice").first(tokens() * 2 * used);
        gate = biased_gate = reference::biased_experts(gate, choice, used, weight<float>("gate_bias"));
        up = biased_up = reference::biased_experts(up.first(count), choice, used, weight<float>("up_bias"));
      }
      for (std::size_t t = 0; t < tokens(); ++t)
        reference::gated(*d.act(), gate.subspan(t * width, width), up.subspan(t * constant("up_stride"), width),
                         memory<float>("output").subspan(t * width, width), real("scale"));
    }
    void short_conv() {
      const short_conv_shape shape{constant("width"), constant("taps"), constant("multiplied") != 0};
      const std::size_t n = m.state[kernels::state::count], wide = shape.multiplied ? 3 * shape.width : shape.width;
      reference::short_conv(shape, memory<float>("input").first(n * wide), weight<float>("weight"), position(),
                            memory<float>("recurrent").first((shape.taps - 1) * shape.width),
                            memory<float>("output").first(n * shape.width));
    }
    void delta_net() {
      const auto k = kernels::constants_of<kernels::delta_net_kernel>(d.specialization);
      const delta_net_config sizes{k.key_heads, k.value_heads, k.key_dim, k.value_dim, k.in_turn != 0};
      const std::size_t n = m.state[kernels::state::count];
      reference::delta_net(sizes, {k.gate_stride, k.gate_group}, memory<float>("qkv").first(n * sizes.qkv_size()),
                           memory<float>("beta"), memory<float>("alpha"), weight<float>("decay"),
                           weight<float>("shift"), position(), memory<float>("recurrent"),
                           memory<float>("output").first(n * sizes.value_size()));
    }
    void head_gate() {
      const auto k = kernels::constants_of<kernels::head_gate_kernel>(d.specialization);
      const std::size_t count = tokens() * std::size_t{k.heads} * k.head_dim;
      reference::head_gate({k.head_dim, k.eps, k.logistic != 0, k.per_head != 0, k.adds != 0},
                           memory<float>("input").first(count), memory<float>("gate"),
                           k.normed != 0 ? weight<float>("norm_weight").first(k.head_dim) : std::span<const float>{},
                           memory<float>("output").first(count));
    }

    void expert_sum() {
      const std::size_t width = constant("width"), used = constant("experts_used"), n = tokens();
      const auto choice = memory<std::uint32_t>("choice").first(n * 2 * used);
      std::span<const float> input = memory<float>("input").first(n * used * width);
      std::vector<float> biased;
      if (constant("biased") != 0)
        input = biased = reference::biased_experts(input, choice, used, weight<float>("bias"));
      reference::expert_sum(input, choice, used, width, memory<float>("output").first(n * width));
    }

    void rms_norm() {
      const std::size_t width = constant("width");
      for (std::size_t t = 0; t < tokens(); ++t)
        reference::rms_norm(memory<float>("input").subspan(t * width, width), weight<float>("norm_weight").first(width),
                            real("eps"), memory<float>("output").subspan(t * width, width));
    }

    void norm_add() {
      const std::size_t n = std::size_t{tokens()} * d.groups[0] * constant("width");
      std::vector<float> input(memory<float>("input").begin(),
                               memory<float>("input").begin() + static_cast<std::ptrdiff_t>(constant("parts") * n));
      for (std::size_t step = constant("parts") / 2; step != 0; step /= 2)
        for (std::size_t i = 0; i < step * n; ++i) input[i] += input[i + step * n];
      const auto weights = weight<float>("norm_weight").first(constant("width"));
      const auto output = memory<float>("output").first(n);
      if (constant("biased") != 0) reference::bias_add(std::span<const float>(input).first(n), weights, output);
      else
        reference::norm_add(std::span<const float>(input).first(n), weights, real("eps"), output,
                            constant("scaled") != 0 ? weight<float>("norm_weight")[constant("width")] : 1.f);
    }

    /// The token of a walk as int8.
    factors quantised(std::vector<std::int8_t>& q) const {
      std::vector<factors> factor(1);
      reference::norm_quantize(memory<float>("input").first(q.size()), weight<float>("norm_weight"), q.size(),
                               real("eps"), q, factor);
      return factor[0];
    }
    void walk_select() {
      if (tokens() == 0) return;
      reference::walk_select(memory<float>("input").first(constant("columns")),
                             memory<std::uint32_t>("choice").first(std::size_t{2} * constant("count")));
    }
    void walk_up() {
      if (tokens() == 0) return;
      const std::size_t columns = constant("columns"), count = constant("count");
      std::vector<float> x(columns);
      reference::rms_norm(memory<float>("input").first(columns), weight<float>("norm_weight"), real("eps"), x);
      reference::walk_up(x, weight<std::byte>("weight"), element("weight_element"), d.act(),
                         memory<std::uint32_t>("choice").first(2 * count), memory<float>("output").first(count));
    }
    void walk_sum() {
      if (tokens() == 0) return;
      const std::size_t count = constant("count"), rows = constant("rows");
      const auto choice =
          constant("listed") != 0 ? memory<std::uint32_t>("choice").first(2 * count) : std::span<std::uint32_t>{};
      reference::walk_sum(memory<float>("input").first(count), choice, weight<std::byte>("weight"),
                          element("weight_element"),
                          constant("epilogue") == static_cast<std::uint32_t>(kernels::epilogue::add),
                          memory<float>("output").first(constant("splits") * rows), constant("splits"));
    }
    void walk_trace() {
      if (tokens() == 0) return;
      const std::size_t columns = constant("columns"), features = constant("features"), layers = constant("layers"),
                        words = kernels::trace_words(constant("count"));
      const bool listed = constant("listed") != 0;
      for (std::size_t i = 0; i < layers; ++i) {
        const std::size_t first = i * constant("value_stride");
        const auto part = std::span(m.trace).subspan((position() % constant("slots") * layers + i) * words, words);
        part[0] = position(), part[1] = m.state[kernels::state::tokens];
        reference::walk_trace(memory<float>("values").subspan(first, columns),
                              listed ? std::span<float>{} : memory<float>("gates").subspan(first, columns),
                              listed
                                  ? memory<std::uint32_t>("choice").subspan(i * constant("choice_stride"), 2 * columns)
                                  : std::span<std::uint32_t>{},
                              weight<float>("norms").subspan(i * features, features), constant("count"), part);
      }
    }
    void walk_gate_up() {
      if (tokens() == 0) return;
      std::vector<std::int8_t> q(constant("columns"));
      const factors factor = quantised(q);
      const auto gates = memory<float>("gates");
      reference::walk_gate_up(q, factor, weight<std::uint32_t>("weight"), weight<std::uint32_t>("up"),
                              weight<float>("scales"), memory<float>("output").first(constant("rows")),
                              gates.empty() ? gates : gates.first(constant("rows")));
      const auto totals = reference::walk_totals(memory<float>("output").first(constant("rows")),
                                                 weight<float>("value_norm"), d.groups[0]);
      std::ranges::copy(totals, memory<float>("totals").begin());
    }
    void walk_down() {
      if (tokens() == 0) return;
      std::vector<std::int8_t> q(constant("columns"));
      const factors factor = quantised(q);
      reference::walk_down(q, factor, weight<std::uint32_t>("weight"), weight<float>("scales"),
                           memory<float>("output").first(constant("rows")));
      const auto written = memory<float>("values");
      for (std::size_t i = 0; !written.empty() && i < q.size(); ++i)
        written[i] = product(static_cast<float>(q[i]), factor.inverse_scale);
    }

    void attention() {
      const attention_shape shape{
          constant("heads"),
          constant("kv_heads"),
          constant("head_dim"),
          constant("context"),
          element("cache_element"),
          real("scale"),
          constant("window"),
          constant("ring") != 0,
          real("softcap"),
          constant("has_sinks") != 0 ? weight<float>("sinks").first(constant("heads")) : std::span<const float>{}};
      const std::size_t width = std::size_t{tokens()} * shape.heads * shape.head_dim;
      reference::attention(shape, memory<float>("query").first(width), memory<std::byte>("keys"),
                           memory<std::byte>("values"), position(), tokens(), memory<float>("output").first(width));
    }

    void dense_matmul() {
      const std::size_t columns = constant("columns"), rows = constant("rows"), n = tokens();
      reference::dense_matmul(memory<float>("input").first(n * columns), weight<float>("norm_weight"),
                              weight<std::byte>("weight"), element("weight_element"), columns, rows, real("eps"),
                              memory<float>("output").first(n * rows));
    }

    void dense_few() {
      const std::size_t columns = constant("columns"), rows = constant("rows"), n = tokens();
      reference::dense_few(memory<float>("input").first(n * columns), weight<std::byte>("weight"),
                           element("weight_element"), columns, rows, memory<float>("output").first(n * rows));
    }

    screening wanted() const {
      return screening_of(sampling_of(m.state), m.state[kernels::state::position] + m.state[kernels::state::count],
                          constant("rows"), d.groups[0]);
    }
    void head_screen() {
      if (tokens() == 0) return;
      const std::size_t columns = constant("columns"), rows = constant("rows");
      const logit_bounds found =
          reference::head_screen(memory<float>("input").first(columns), weight<float>("norm_weight"),
                                 weight<std::int8_t>("codes"), weight<float>("scales"), real("eps"));
      std::ranges::copy(found.y, memory<float>("y").begin());
      if (wanted().rank == 0) return;
      std::ranges::copy(found.upper, memory<float>("bounds").begin());
      const auto lowest = memory<float>("lowest").first(d.groups[0]);
      std::ranges::fill(lowest, -std::numeric_limits<float>::infinity());
      for (std::size_t row = 0; row < rows; ++row)
        lowest[row % lowest.size()] = (std::max)(lowest[row % lowest.size()], found.lower[row]);
    }
    void head_rescore() {
      if (tokens() == 0) return;
      const std::size_t columns = constant("columns"), rows = constant("rows");
      const auto bounds = memory<float>("bounds").first(rows);
      const auto lowest = memory<float>("lowest").first(constant("lowest_count"));
      const screening s = wanted();
      if (s.rank == 0) std::ranges::fill(bounds, std::numeric_limits<float>::infinity());
      const float least = s.rank == 0 ? 0 : least_of_shares(lowest, s.rank) - s.reach;
      reference::head_rescore(memory<float>("y").first(columns), weight<std::byte>("weight"), element("weight_element"),
                              least - std::abs(least) * 1e-6f, bounds);
    }

    void sample() {
      const std::size_t vocabulary = constant("vocab_size");
      const std::uint32_t max_tokens = constant("max_tokens"), context = constant("context");
      const auto logits = memory<float>("logits");
      if (constant("draws") == 1)
        return reference::sample(logits.first(vocabulary), max_tokens, context, m.state, tokens_of_ring());
      const auto drawn = memory<std::uint32_t>("drawn");
      for (std::uint32_t i = 0; i < (std::min)(constant("draws"), m.state[kernels::state::count]); ++i)
        drawn[i] = reference::successor(logits.subspan(i * vocabulary, vocabulary), max_tokens, context, m.state, i);
    }
    void accept() {
      m.ring.back() = reference::accept(memory<std::uint32_t>("drawn").first(constant("draws")), constant("max_tokens"),
                                        constant("context"), m.state, tokens_of_ring());
    }
    std::span<std::uint32_t> tokens_of_ring() const { return std::span(m.ring).first(constant("ring_size")); }
  };

  const plan::table* table_;
  weight_bytes weights_;
};

}  // namespace intaglio::reference
