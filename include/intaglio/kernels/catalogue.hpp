// SPDX-License-Identifier: MIT
// The catalogue of all kernels: each one's interface and, in its comment, its computation. Rows are tokens of the pass;
// a kernel does not write rows from state.count on. Floating-point orders are fixed (docs/kernels.md), so that decode
// and prefill give the same bits. subgroup_width is the subgroup size if the pipeline requires one or the device has
// only one (drivers then drop code for other sizes); 0: it is not known. Weight addresses, arena offsets and sizes come
// from the plan.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>
#include <cstddef>

#include "intaglio/kernels/accept.hpp"
#include "intaglio/kernels/attention.hpp"
#include "intaglio/kernels/attention_batch.hpp"
#include "intaglio/kernels/attention_chunk.hpp"
#include "intaglio/kernels/attention_f16.hpp"
#include "intaglio/kernels/calibrate.hpp"
#include "intaglio/kernels/delta_net.hpp"
#include "intaglio/kernels/dense_batch.hpp"
#include "intaglio/kernels/dense_matmul.hpp"
#include "intaglio/kernels/dense_rows.hpp"
#include "intaglio/kernels/embed.hpp"
#include "intaglio/kernels/expert_sum.hpp"
#include "intaglio/kernels/expert_tiles.hpp"
#include "intaglio/kernels/fixed.hpp"
#include "intaglio/kernels/gated.hpp"
#include "intaglio/kernels/head_gate.hpp"
#include "intaglio/kernels/head_rescore.hpp"
#include "intaglio/kernels/head_screen.hpp"
#include "intaglio/kernels/interface.hpp"
#include "intaglio/kernels/kinds.hpp"
#include "intaglio/kernels/layers.hpp"
#include "intaglio/kernels/layers_batch.hpp"
#include "intaglio/kernels/layers_batch_normed.hpp"
#include "intaglio/kernels/layers_coded.hpp"
#include "intaglio/kernels/layers_rows.hpp"
#include "intaglio/kernels/layers_rows_normed.hpp"
#include "intaglio/kernels/layers_ternary_rows.hpp"
#include "intaglio/kernels/matmul.hpp"
#include "intaglio/kernels/matmul_batch.hpp"
#include "intaglio/kernels/matmul_chunk.hpp"
#include "intaglio/kernels/norm_add.hpp"
#include "intaglio/kernels/norm_quantize.hpp"
#include "intaglio/kernels/pages.hpp"
#include "intaglio/kernels/quantize_f16.hpp"
#include "intaglio/kernels/residency.hpp"
#include "intaglio/kernels/rms_norm.hpp"
#include "intaglio/kernels/route.hpp"
#include "intaglio/kernels/sample.hpp"
#include "intaglio/kernels/short_conv.hpp"
#include "intaglio/kernels/stream_read.hpp"
#include "intaglio/kernels/streams.hpp"
#include "intaglio/kernels/ternary_batch.hpp"
#include "intaglio/kernels/ternary_chunk.hpp"
#include "intaglio/kernels/ternary_float.hpp"
#include "intaglio/kernels/ternary_matmul.hpp"
#include "intaglio/kernels/ternary_rows.hpp"
#include "intaglio/kernels/turn.hpp"
#include "intaglio/kernels/walk_down.hpp"
#include "intaglio/kernels/walk_gate_up.hpp"
#include "intaglio/kernels/walk_select.hpp"
#include "intaglio/kernels/walk_sum.hpp"
#include "intaglio/kernels/walk_trace.hpp"
#include "intaglio/kernels/walk_up.hpp"

namespace intaglio::kernels {

// Passes over a batch (slot_words above 0, in kernels that have this constant). Row t is the next token of the session
// in slot t. The slot's state begins at word first_slot + t * slot_words (kernels/state.hpp); the row's position is
// that state's. The cache is a pool of `context` positions in pages of page_size (a multiple of 8 that divides
// attention_span, or a multiple of attention_span): position p is in page page_table[p / page_size]. Kernels that read
// or write caches, history or ring skip rows whose slot has count 0. max_tokens is then the number of words from a
// slot's token, included, to its history.

/// A list of kernels' descriptors.
template <class... Kernels>
struct kernel_list {};
/// Every kernel, in the order of `kernel`.
using all_kernels =
    kernel_list<embed_kernel, norm_quantize_kernel, ternary_matmul_kernel, ternary_batch_kernel, ternary_chunk_kernel,
                ternary_float_kernel, attention_kernel, attention_chunk_kernel, dense_matmul_kernel, dense_batch_kernel,
                head_screen_kernel, head_rescore_kernel, sample_kernel, accept_kernel, layers_kernel, matmul_kernel,
                turn_kernel, norm_add_kernel, route_kernel, expert_sum_kernel, quantize_f16_kernel, matmul_chunk_kernel,
                attention_f16_kernel, walk_gate_up_kernel, walk_down_kernel, pages_kernel, walk_select_kernel,
                walk_up_kernel, walk_sum_kernel, fixed_kernel, matmul_batch_kernel, layers_coded_kernel,
                walk_trace_kernel, rms_norm_kernel, attention_batch_kernel, expert_tiles_kernel, dense_rows_kernel,
                ternary_rows_kernel, layers_rows_kernel, layers_ternary_rows_kernel, layers_batch_kernel,
                layers_rows_normed_kernel, layers_batch_normed_kernel, gated_kernel, short_conv_kernel,
                delta_net_kernel, head_gate_kernel, streams_kernel>;

/// The kernels that compute all layers in one dispatch.
using resident_kernels = kernel_list<layers_kernel, layers_coded_kernel, layers_rows_kernel, layers_ternary_rows_kernel,
                                     layers_batch_kernel, layers_rows_normed_kernel, layers_batch_normed_kernel>;
/// The kernels whose workgroups may find first tokens.
using first_token_kernels = kernel_list<dense_matmul_kernel, matmul_kernel, head_rescore_kernel>;

/// Calls `f` with a kernel's descriptor as a std::type_identity.
template <class F, class... Kernels>
constexpr void visit(kernel which, F&& f, kernel_list<Kernels...>) {
  (void)((Kernels::id == which && (f(std::type_identity<Kernels>{}), true)) || ...);
}
/// Calls `f` with a kernel's descriptor, out of all kernels, as a std::type_identity.
template <class F>
constexpr void visit(kernel which, F&& f) {
  visit(which, f, all_kernels{});
}

/// The interfaces of kernels, in the order of the list.
template <class... Kernels>
constexpr std::array<const kernel_interface*, sizeof...(Kernels)> faces_of(kernel_list<Kernels...>) {
  return {&Kernels::face...};
}
/// Whether a list has every kernel that computes all layers, and no other kernel.
template <class... Resident, class... Kernels>
constexpr bool are_resident(kernel_list<Resident...>, kernel_list<Kernels...>) {
  return (all_layers<Resident> && ...) && (std::size_t{all_layers<Kernels>} + ...) == sizeof...(Resident);
}
/// Whether the kernels of a list are in the order of their numbers, from 0 on.
template <class... Kernels>
constexpr bool are_in_order(kernel_list<Kernels...>) {
  std::size_t at = 0;
  return ((static_cast<std::size_t>(Kernels::id) == at++) && ...);
}
/// Whether descriptors have as many constants as the interfaces that their modules are checked against.
template <class... Kernels>
constexpr bool have_all_constants(kernel_list<Kernels...>) {
  return ((sizeof(typename Kernels::constants) == 4 * Kernels::face.specialization_count() &&
           sizeof(typename Kernels::template push<push_id>) == Kernels::face.push_count()) &&
          ...);
}
/// Whether dispatches have room for the constants of all interfaces.
template <class... Kernels>
constexpr bool have_room(kernel_list<Kernels...>) {
  return ((Kernels::face.push.size() <= max_push_constants &&
           Kernels::face.specialization.size() <= max_specialization_constants) &&
          ...);
}
/// The results of `f` for all kernels, by kernel number.
template <class F, class... Kernels>
constexpr std::array<bool, sizeof...(Kernels)> flags_of(F f, kernel_list<Kernels...>) {
  return {f(std::type_identity<Kernels>{})...};
}
/// Whether each kernel computes all layers in one dispatch, by kernel number.
inline constexpr auto do_all_layers =
    flags_of([]<class Kernel>(std::type_identity<Kernel>) { return all_layers<Kernel>; }, all_kernels{});
/// Whether each kernel exchanges values at offsets that its constants define.
inline constexpr auto exchange_offsets_of_their_own =
    flags_of([]<class Kernel>(std::type_identity<Kernel>) { return exchanging<Kernel>; }, all_kernels{});
/// Whether each kernel has workgroups that help the others.
inline constexpr auto have_helpers =
    flags_of([]<class Kernel>(std::type_identity<Kernel>) { return helped<Kernel>; }, all_kernels{});
/// Whether each kernel is compared with its chain of dispatches when a model is loaded.
inline constexpr auto are_held_against_chain =
    flags_of([]<class Kernel>(std::type_identity<Kernel>) { return requires { Kernel::is_held_against_chain; }; },
             all_kernels{});
/// Whether each kernel has the bits of its chain of dispatches in batches. Other resident kernels multiply in f16
/// there.
inline constexpr auto leave_chain_bits = flags_of(
    []<class Kernel>(std::type_identity<Kernel>) { return requires { Kernel::leaves_chain_bits; }; }, all_kernels{});
/// Whether each kernel computes rows that follow rows of the same session in one pass, as drafts do.
inline constexpr auto take_drafts = flags_of(
    []<class Kernel>(std::type_identity<Kernel>) { return requires { Kernel::takes_drafts; }; }, all_kernels{});
/// The interfaces of all kernels, by kernel number.
inline constexpr auto catalogue = faces_of(all_kernels{});
static_assert(catalogue.size() == kernel_count && are_in_order(all_kernels{}) && have_all_constants(all_kernels{}) &&
              have_room(all_kernels{}) && are_resident(resident_kernels{}, all_kernels{}));

/// The interface of a kernel.
constexpr const kernel_interface& interface_of(kernel which) { return *catalogue[static_cast<std::size_t>(which)]; }

}  // namespace intaglio::kernels
