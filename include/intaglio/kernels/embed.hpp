// SPDX-License-Identifier: MIT
// The kernel embed: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The embedding: x[token, :] = table[state.tokens[token], :] * scale, converted to f32; scale 0: no factor. Token ids
/// from vocab_size on read row 0. table: a weight of matmul of the codec table_element. It also writes the token to
/// state.history[position + token]. One workgroup a token (y).
/// kinds not 0: adds a row of kind_table, f32 [kinds, width]: row 0, or row 1 from position state.second_text on if
/// that is not 0. positions not 0: adds row position + token of position_table, f32 [positions, width], or its last row
/// beyond the end.
/// blank_quads not 0: further workgroups (x) fill memory with the unwritten pattern (all ones), for workgroups that
/// wait in the pass. They fill `blank`, blank_quads quads of words. In blank_spans, `stretches` times [spans,
/// span_quads] quads that are stretch_quads apart, they fill the spans of attention that a pass at the state's position
/// has.
inline constexpr kernel_interface embed_interface{
    "embed",
    {{{"table"}, {"output"}, {"state"}, {"blank"}, {"blank_spans"}, {"position_table"}, {"kind_table"}}},
    {{{"workgroup_size"},
      {"width"},
      {"vocab_size"},
      {"table_element"},
      {"max_tokens"},
      {"context"},
      {"scale", field_type::f32},
      {"slot_words"},
      {"blank_quads"},
      {"stretches"},
      {"span_quads"},
      {"spans"},
      {"stretch_quads"},
      {"positions"},
      {"kinds"}}}};

/// Descriptor of the kernel embed, which reads the embeddings of tokens.
struct embed_kernel {
  static constexpr kernel id = kernel::embed;
  static constexpr const kernel_interface& face = embed_interface;
  static constexpr candidate candidates[] = {{variant::embed, {}}};
  template <class T>
  struct push {
    T table, output, state, blank, blank_spans, position_table, kind_table;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t width{};
    std::uint32_t vocab_size{};
    kernels::codec table_element{};
    std::uint32_t max_tokens{};
    std::uint32_t context{};
    float scale{};
    std::uint32_t slot_words{};
    std::uint32_t blank_quads{};
    std::uint32_t stretches{};
    std::uint32_t span_quads{};
    std::uint32_t spans{};
    std::uint32_t stretch_quads{};
    std::uint32_t positions{};
    std::uint32_t kinds{};
  };
};

}  // namespace intaglio::kernels
