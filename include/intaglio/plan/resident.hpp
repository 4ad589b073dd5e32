// SPDX-License-Identifier: MIT
// Shapes for which all layers run as one resident dispatch, whose workgroups all run at once (shaders/layers.comp; the
// numbers are that shader's). Every subgroup has one task in each product and holds its weights in registers while it
// waits for the input.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "intaglio/core/decoder_config.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/kernels/declared_modules.hpp"
#include "intaglio/kernels/matmul_layout.hpp"

namespace intaglio::plan {

/// Query heads that share keys and values in the form for long contexts.
inline constexpr std::uint32_t resident_sharing = 4;

/// Spin limit: reads of one element that is not written yet before a workgroup times out; 0.08 s on an H200.
inline constexpr std::uint32_t resident_spin_limit = 1u << 19;

/// The part of a product that one of `workgroups` computes: at most `groups` groups of four rows, and in each group
/// `part` tiles of 16 columns for a subgroup.
struct resident_share {
  std::uint32_t groups = 0, slices = 0, part = 0;
};
/// Shares a product among workgroups. @return 0 groups or slices where a workgroup would get too many
constexpr resident_share resident_share_of(std::uint32_t columns, std::uint32_t rows, std::uint32_t workgroups) {
  resident_share out;
  const std::uint32_t tiles = columns / 16;
  out.groups = (rows / 4 + workgroups - 1) / workgroups;
  if (out.groups == 0 || out.groups > kernels::layers::resident_subgroups) return out;
  out.slices = (std::min)(kernels::layers::resident_subgroups / out.groups, (tiles + 31) / 32);
  out.part = (tiles + out.slices - 1) / out.slices;
  return out;
}

/// Whether the module of a resident kernel fits in the shared memory that such modules demand of a device.
/// @param constants all constants that its shared memory depends on
constexpr bool memory_fits(std::string_view module, std::initializer_list<kernels::given_constant> constants) {
  return kernels::shared_memory_bytes(module, constants) <= kernels::layers::resident_shared_memory_bytes;
}
/// Whether the kernel `layers` fits in shared memory. @param module one of its modules
constexpr bool resident_memory_fits(const decoder_config& c, std::string_view module, kernels::layers::ffns ffns) {
  using of = kernels::layers_kernel::constants;
  constexpr std::uint32_t threads = kernels::layers::resident_subgroups * kernels::layers::resident_subgroup_width;
  return memory_fits(
      module,
      {kernels::given<&of::workgroup_size>(threads), kernels::given<&of::hidden_size>(c.hidden_size),
       kernels::given<&of::intermediate_size>(c.intermediate_size), kernels::given<&of::layers>(c.num_hidden_layers),
       kernels::given<&of::head_dim>(c.head_dim), kernels::given<&of::heads>(c.num_attention_heads),
       kernels::given<&of::ffns_before>(ffns.before), kernels::given<&of::ffns_after>(ffns.after)});
}

/// Whether a model's shape fits the kernel `layers`.
/// @param workgroups that all run at once
constexpr bool resident_fits(const decoder_config& c, kernels::element cache_element, std::uint32_t workgroups,
                             std::uint32_t context, kernels::layers::ffns ffns = {}) {
  constexpr std::uint32_t threads = kernels::layers::resident_subgroups * kernels::layers::resident_subgroup_width;
  if (cache_element != kernels::element::f16 || context == 0) return false;
  if (c.head_dim == 0 || c.head_dim % 32 != 0 || c.head_dim > 128 || c.num_key_value_heads == 0 ||
      c.num_attention_heads % c.num_key_value_heads != 0)
    return false;
  // At any context the first workgroups compute attention, and the others compute the projection after it.
  if (c.num_attention_heads >= workgroups) return false;
  // An invocation takes four elements of a norm's input, and eight of the last product's.
  if (c.hidden_size > 4 * threads || c.q_size() > 4 * threads || c.intermediate_size > 8 * threads) return false;
  const auto holds = [](resident_share of, std::uint32_t loads) { return of.slices != 0 && of.part <= 32 * loads; };
  if (!holds(resident_share_of(c.hidden_size, c.q_size() + 2 * c.kv_size(), workgroups), 5) ||
      !holds(resident_share_of(c.q_size(), c.hidden_size, workgroups - c.num_attention_heads), 1) ||
      !holds(resident_share_of(c.hidden_size, 2 * c.intermediate_size, workgroups), 5) ||
      !holds(resident_share_of(c.intermediate_size, c.hidden_size, workgroups), 5))
    return false;
  return resident_memory_fits(c, "layers", ffns);
}

/// First position from which the form for long contexts is faster (BitNet 2B on an H200, docs/performance.md). There
/// each workgroup of the other form has begun a second span of a head, and a quarter of that span is filled.
constexpr std::uint32_t resident_long_from(const decoder_config& c, std::uint32_t workgroups) {
  return workgroups / c.num_attention_heads * kernels::attention_span + kernels::attention_span / 4;
}
/// Whether the form for long contexts fits a shape that fits the kernel. Heads come in fours that share keys and
/// values. A workgroup computes one span of three of the heads, or two spans of the fourth head. All run at once at any
/// position. The workgroups of fourth heads merge the spans.
constexpr bool resident_long_fits(const decoder_config& c, std::uint32_t workgroups, std::uint32_t context,
                                  kernels::layers::ffns ffns = {}) {
  if (c.num_attention_heads != resident_sharing * c.num_key_value_heads || context <= resident_long_from(c, workgroups))
    return false;
  const std::uint32_t spans = kernels::attention_spans(context), pairs = c.num_key_value_heads * ((spans + 1) / 2);
  if (c.num_attention_heads > pairs || pairs + c.num_key_value_heads * spans > workgroups) return false;
  return resident_memory_fits(c, "layers_long", ffns);
}

/// Whether each lane of a subgroup has the biases of one turn, at most: of a pair of rows of gate and up, or of down.
constexpr bool biased_rows_fit(const decoder_config& c, const kernels::layers_coded::mixture& experts,
                               std::uint32_t workgroups) {
  constexpr std::uint64_t turns =
      std::uint64_t{kernels::layers_coded::resident_subgroups} * kernels::layers::resident_subgroup_width;
  const auto fits = [&](std::uint64_t pairs) { return pairs >= workgroups && pairs / workgroups + 1 <= turns; };
  return c.intermediate_size % 4 == 0 && fits(std::uint64_t{c.intermediate_size} / 2 * experts.used) &&
         (std::uint64_t{c.hidden_size} / 2 / workgroups + 1) * experts.used <= turns;
}
/// Whether the module of layers with experts fits a mixture of experts. An expert's input of the down projection must
/// be read at once, and the codecs must be ones that the module multiplies with.
constexpr bool mixture_fits(const decoder_config& c, const kernels::layers_coded::codecs& types,
                            const kernels::layers_coded::mixture& experts, std::uint32_t workgroups) {
  using namespace kernels::layers_coded;
  return !kernels::is_dense(types.items[0]) && experts.experts <= most_experts && experts.used <= most_experts_used &&
         experts.used <= experts.experts && c.intermediate_size <= most_expert_columns &&
         (!experts.biased || biased_rows_fit(c, experts, workgroups));
}
/// Whether a model's shape fits the kernel `layers_coded`.
/// @param context positions of the cache of layers without a window
/// @param ring positions of the cache of layers with a window; `context` if it has room for all; 0: no layer has a
/// window
/// @param biased values of kernels::layers_coded::addition, or-ed
constexpr bool resident_coded_fits(const decoder_config& c, const kernels::layers_coded::codecs& types,
                                   kernels::turn_norms head_norms, std::uint32_t workgroups, std::uint32_t context,
                                   std::uint32_t ring, kernels::layers::ffns ffns = {},
                                   const kernels::layers_coded::mixture& experts = {}, std::uint32_t biased = 0) {
  constexpr std::uint32_t threads =
      kernels::layers_coded::resident_subgroups * kernels::layers::resident_subgroup_width;
  const std::array<std::uint32_t, kernels::layers_coded::matrices> columns{c.hidden_size, c.hidden_size, c.hidden_size,
                                                                           c.q_size(), c.intermediate_size};
  for (std::uint32_t at = 0; at < types.count; ++at) {
    const kernels::codec type = types.items[at];
    if (types.mixed() && kernels::is_dense(type)) return false;  // layers_mixed multiplies codes only
    for (std::uint32_t i = 0; i < columns.size(); ++i)
      if (types.has(static_cast<kernels::layers_coded::matrix>(i), at) &&
          columns[i] % (std::max)(32u, kernels::column_step(type)) != 0)
        return false;
  }
  if (experts.is_there() && !mixture_fits(c, types, experts, workgroups)) return false;
  if (context == 0 || (ring != context && ring % 256 != 0)) return false;
  if (c.head_dim == 0 || c.head_dim % (head_norms == kernels::turn_norms::each_head ? 128 : 32) != 0 ||
      c.head_dim > 256 || c.num_key_value_heads == 0 || c.num_attention_heads % c.num_key_value_heads != 0)
    return false;
  if (c.num_attention_heads > workgroups) return false;
  // An invocation takes four quads of the stream, and of the values that norms over all heads read; ten of other
  // inputs.
  if (head_norms == kernels::turn_norms::all_heads && c.q_size() > c.hidden_size) return false;
  if (c.hidden_size > 16 * threads || c.q_size() > 40 * threads || c.intermediate_size > 40 * threads) return false;
  if (c.hidden_size / 2 < workgroups || c.intermediate_size * (experts.is_there() ? experts.used : 1) < workgroups)
    return false;
  using of = kernels::layers_coded_kernel::constants;
  using kernels::given;
  return memory_fits(
      kernels::name(kernels::layers_coded::module_of(types, experts.is_there())),
      {given<&of::workgroup_size>(threads), given<&of::codec>(static_cast<std::uint64_t>(types.items[0])),
       given<&of::hidden_size>(c.hidden_size), given<&of::intermediate_size>(c.intermediate_size),
       given<&of::head_dim>(c.head_dim), given<&of::heads>(c.num_attention_heads),
       given<&of::full_every>(ring != 0 ? 2u : 1u), given<&of::ffns>(kernels::layers_coded::ffns_word(ffns, experts)),
       given<&of::biased>(biased), given<&of::parts>(workgroups)});
}

/// Whether heads have `narrow` or `wide` channels, and every key head is shared by the same number of query heads.
constexpr bool heads_fit(const decoder_config& c, std::uint32_t narrow, std::uint32_t wide) {
  return (c.head_dim == narrow || c.head_dim == wide) && c.num_key_value_heads != 0 &&
         c.num_attention_heads % c.num_key_value_heads == 0;
}

/// Number of workgroups, at most `most`, of a resident batch pass (shaders/layers_rows.comp) that divides the stream's
/// tiles of 16 rows evenly; 0: there is none.
constexpr std::uint32_t rows_parts(std::uint32_t hidden, std::uint32_t most) {
  constexpr std::uint32_t shares = kernels::layers_rows::shares;
  for (std::uint32_t parts = most / shares * shares; parts != 0; parts -= shares)
    if (hidden / 16 % parts == 0) return hidden / 16 / parts <= shares ? parts : 0;
  return 0;
}
/// Whether a resident batch kernel, which has one module, fits in shared memory.
/// @param subgroups of 32
template <class Kernel>
constexpr bool batch_memory_fits(const decoder_config& c, std::uint32_t subgroups,
                                 [[maybe_unused]] std::uint32_t slot_count, std::uint32_t parts) {
  using of = typename Kernel::constants;
  using kernels::given;
  const auto slots_given = [&] {
    if constexpr (requires { &of::slot_count; }) return given<&of::slot_count>(slot_count);
    else return given<&of::parts>(parts);
  };
  return memory_fits(Kernel::face.name,
                     {given<&of::workgroup_size>(std::uint64_t{subgroups} * kernels::layers::resident_subgroup_width),
                      given<&of::head_dim>(c.head_dim), given<&of::heads>(c.num_attention_heads),
                      given<&of::kv_heads>(c.num_key_value_heads), slots_given(), given<&of::parts>(parts)});
}
/// Whether the columns of inputs are whole steps, no more than subgroups can hold, and every workgroup has a tile of
/// each product.
constexpr bool rows_products_fit(const decoder_config& c, kernels::codec type, std::uint32_t parts) {
  using namespace kernels::layers_rows;
  const std::uint32_t step = type == kernels::codec::q4_k || type == kernels::codec::q6_k ? 256 : step_columns;
  for (const std::uint32_t columns : {c.hidden_size, c.q_size(), c.intermediate_size / shares})
    if (columns == 0 || columns % step != 0 || columns > step_columns * most_steps) return false;
  return c.intermediate_size % (shares * step) == 0 && parts != 0 && (c.q_size() + 2 * c.kv_size()) / 16 >= parts &&
         2 * c.intermediate_size / 16 >= parts;
}
/// Whether a model's shape fits the kernel `layers_rows`. @param most workgroups that all run at once
constexpr bool rows_fit(const decoder_config& c, kernels::codec type, std::uint32_t most) {
  using namespace kernels::layers_rows;
  if (kernels::is_dense(type) || !kernels::has_own_forms(type)) return false;
  if (!heads_fit(c, 64, 128)) return false;
  const std::uint32_t parts = rows_parts(c.hidden_size, most);
  return rows_products_fit(c, type, parts) &&
         batch_memory_fits<kernels::layers_rows_kernel>(c, resident_subgroups, most_tokens, parts);
}

/// Number of workgroups, at most `most`, of the kernel layers_rows_normed; 0: there is none. All sets of four
/// workgroups that share columns have the same number of the stream's tiles, and each workgroup has at least one tile.
constexpr std::uint32_t rows_normed_parts(std::uint32_t hidden, std::uint32_t most) {
  constexpr std::uint32_t shares = kernels::layers_rows::shares;
  const std::uint32_t tiles = hidden / 16;
  for (std::uint32_t parts = most / shares * shares; parts != 0; parts -= shares)
    if (tiles >= parts && tiles % (parts / shares) == 0)
      return (tiles + parts - 1) / parts <= kernels::layers_rows_normed::most_own ? parts : 0;
  return 0;
}
/// Subgroups of a workgroup of layers_rows_normed. Each subgroup has one step of 128 columns of the widest input, or
/// two; 0: there are too many columns.
constexpr std::uint32_t rows_normed_subgroups(const decoder_config& c) {
  using namespace kernels::layers_rows_normed;
  const std::uint32_t steps =
      (std::max)({c.hidden_size, c.q_size(), c.intermediate_size / kernels::layers_rows::shares}) /
      kernels::layers_rows::step_columns;
  return steps <= most_subgroups        ? (std::max)(steps, least_subgroups)
         : steps <= 2 * least_subgroups ? least_subgroups
                                        : 0;
}
/// Whether a model's shape fits the kernel `layers_rows_normed`. @param most workgroups that all run at once
constexpr bool rows_normed_fit(const decoder_config& c, kernels::codec type, std::uint32_t most) {
  if (type == kernels::codec::f32 || !kernels::has_own_forms(type)) return false;
  if (!heads_fit(c, 128, 256)) return false;
  const std::uint32_t parts = rows_normed_parts(c.hidden_size, most), subgroups = rows_normed_subgroups(c);
  return subgroups != 0 && rows_products_fit(c, type, parts) &&
         batch_memory_fits<kernels::layers_rows_normed_kernel>(c, subgroups, kernels::layers_rows::most_tokens, parts);
}

/// Workgroups that share the rows of a large batch; one more is left over as a helper.
constexpr std::uint32_t batch_parts(std::uint32_t hidden, std::uint32_t most) {
  return most == 0 ? 0 : rows_parts(hidden, most - 1);
}
/// Whether every workgroup has the same number of rows of q, k and v, some rows of gate and up, and a subgroup for each
/// of its tiles.
/// @param tiles of the stream, of the workgroups that share columns
/// @param columns_fit whether a product's columns fit, by columns, tiles and shares
template <class ColumnsFit>
constexpr bool batch_products_fit(const decoder_config& c, std::uint32_t slot_count, std::uint32_t parts,
                                  std::uint32_t tiles, const ColumnsFit& columns_fit) {
  using namespace kernels::layers_batch;
  const std::uint32_t qkv = c.q_size() + 2 * c.kv_size(), own_qkv = qkv / 16 / parts,
                      gate_up = (c.intermediate_size / 8 + parts - 1) / parts;
  if (parts > most_parts || qkv % (16 * parts) != 0 || c.intermediate_size / 8 < parts ||
      own_qkv * slot_count * 4 > resident_subgroups * 32)
    return false;
  const auto fits = [&](std::uint32_t columns, std::uint32_t its_tiles, std::uint32_t its_shares) {
    return its_tiles <= most_tiles && columns <= most_columns && columns_fit(columns, its_tiles, its_shares);
  };
  return fits(c.hidden_size, shares * own_qkv, shares) && fits(c.q_size(), tiles, shares) &&
         fits(c.hidden_size, gate_up, 1) && fits(c.intermediate_size, tiles, shares);
}
/// Whether a model's shape fits the kernel `layers_batch`. @param most workgroups that all run at once
constexpr bool batch_fits(const decoder_config& c, kernels::codec type, std::uint32_t slot_count, std::uint32_t most) {
  using namespace kernels::layers_batch;
  if (kernels::is_dense(type) || !kernels::has_own_forms(type) || (slot_count != 16 && slot_count != most_tokens))
    return false;
  if (!heads_fit(c, 64, 128)) return false;
  if (c.num_attention_heads / heads_each(c.num_attention_heads, c.num_key_value_heads) % 4 != 0)
    return false;  // a token's scales are read four at a time
  const std::uint32_t parts = batch_parts(c.hidden_size, most);
  if (parts == 0) return false;
  const std::uint32_t tiles = shares * (c.hidden_size / 16 / parts),
                      block = type == kernels::codec::q4_k || type == kernels::codec::q6_k ? 256 : 32;
  // Steps are taken in pairs, by one or two subgroups for each tile.
  const auto columns_fit = [&](std::uint32_t columns, std::uint32_t its_tiles, std::uint32_t its_shares) {
    return columns % block == 0 &&
           columns % (its_shares * 2 * (2 * its_tiles <= most_tiles ? 2 : 1) * step_columns) == 0;
  };
  return 4 * (tiles / shares) <= most_row_quads && batch_products_fit(c, slot_count, parts, tiles, columns_fit) &&
         batch_memory_fits<kernels::layers_batch_kernel>(c, resident_subgroups, slot_count, parts);
}

/// Number of workgroups of the kernel layers_batch_normed, with one of `most` left over as a helper; 0: there is none.
/// All sets of four workgroups that share columns have the same number of the stream's tiles.
constexpr std::uint32_t batch_normed_parts(std::uint32_t hidden, std::uint32_t most) {
  const std::uint32_t parts = most == 0 ? 0 : rows_normed_parts(hidden, most - 1);
  return parts != 0 && 2 * ((hidden / 8 + parts - 1) / parts) <= kernels::layers_batch::most_row_quads ? parts : 0;
}
/// Whether a model's shape fits the kernel `layers_batch_normed`. @param most workgroups that all run at once
constexpr bool batch_normed_fits(const decoder_config& c, kernels::codec type, std::uint32_t slot_count,
                                 std::uint32_t most) {
  using namespace kernels::layers_batch;
  if (type == kernels::codec::f32 || !kernels::has_own_forms(type) || (slot_count != 16 && slot_count != most_tokens))
    return false;
  if (!heads_fit(c, 128, 256)) return false;
  const std::uint32_t parts = batch_normed_parts(c.hidden_size, most);
  const std::uint64_t slices =
      kernels::layers_batch_normed::slices_of_row(c.head_dim, c.num_attention_heads, c.num_key_value_heads);
  if (parts == 0 || slices % 4 != 0 || slices > parts) return false;  // a token's scales are read four at a time
  // Two steps form a stage. Every workgroup needs one stage, or two where two subgroups for each tile of codes take
  // stages in turn.
  const auto columns_fit = [&](std::uint32_t columns, std::uint32_t tiles, std::uint32_t its_shares) {
    return columns % (2 * step_columns) == 0 &&
           columns / (2 * step_columns) / its_shares >= (2 * tiles <= most_tiles && !kernels::is_dense(type) ? 2u : 1u);
  };
  return batch_products_fit(c, slot_count, parts, c.hidden_size / 16 / (parts / shares), columns_fit) &&
         batch_memory_fits<kernels::layers_batch_normed_kernel>(c, resident_subgroups, slot_count, parts);
}

/// Whether a batch is one for the large-batch kernels. Up to layers_rows::most_tokens slots use layers_rows, for a
/// Llama, or layers_rows_normed, for a Gemma-3; more slots use layers_batch or layers_batch_normed.
constexpr bool takes_large_batch(std::uint32_t slot_count) { return slot_count > kernels::layers_rows::most_tokens; }
/// Whether the resident dispatch of a batch can compute a Llama of this size.
constexpr bool slots_fit(const decoder_config& c, kernels::codec type, std::uint32_t slot_count, std::uint32_t most) {
  return takes_large_batch(slot_count) ? batch_fits(c, type, slot_count, most) : rows_fit(c, type, most);
}
/// Whether the resident dispatch of a batch can compute a Gemma-3 of this size.
constexpr bool normed_slots_fit(const decoder_config& c, kernels::codec type, std::uint32_t slot_count,
                                std::uint32_t most) {
  return takes_large_batch(slot_count) ? batch_normed_fits(c, type, slot_count, most) : rows_normed_fit(c, type, most);
}

/// The most tiles of 16 rows that a workgroup has.
constexpr std::uint32_t ternary_batch_tiles(std::uint32_t rows, std::uint32_t parts) {
  return (rows / 16 + parts - 1) / parts;
}
/// Whether the resident dispatch of a batch can compute a BitNet of this size with `parts` workgroups.
constexpr bool ternary_rows_fit(const decoder_config& c, std::uint32_t slot_count, std::uint32_t parts) {
  using namespace kernels::layers_ternary_rows;
  if (!heads_fit(c, 64, 128)) return false;
  const std::uint32_t rows = (slot_count + 7) / 8 * 8;
  if (slot_count == 0 || slot_count > most_tokens || parts < rows) return false;
  const auto product_fits = [&](std::uint64_t columns, std::uint64_t outputs, std::uint32_t tiles) {
    if (columns == 0 || columns % 64 != 0 || columns > most_columns || outputs % 16 != 0 || outputs / 16 < parts)
      return false;
    const std::uint32_t own = ternary_batch_tiles(static_cast<std::uint32_t>(outputs), parts),
                        ways = own > most_tiles ? resident_subgroups / 2 : resident_subgroups;
    return own <= tiles && (columns / 64 + ways - 1) / ways <= most_pairs;
  };
  return product_fits(c.hidden_size, std::uint64_t{c.q_size()} + 2 * c.kv_size(), most_tiles) &&
         product_fits(c.q_size(), c.hidden_size, most_tiles) &&
         product_fits(c.hidden_size, 2 * std::uint64_t{c.intermediate_size}, 2 * most_tiles) &&
         product_fits(c.intermediate_size, c.hidden_size, most_tiles) &&
         batch_memory_fits<kernels::layers_ternary_rows_kernel>(c, resident_subgroups, slot_count, parts);
}

/// The smallest number of workgroups with which a shape fits, where it also fits with all numbers up to `workgroups`.
template <class Fits>
constexpr std::uint32_t least_resident(std::uint32_t workgroups, const Fits& fits) {
  while (workgroups > 1 && fits(workgroups - 1)) --workgroups;
  return workgroups;
}

}  // namespace intaglio::plan
