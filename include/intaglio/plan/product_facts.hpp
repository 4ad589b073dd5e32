// SPDX-License-Identifier: MIT
// The constants and operands of a matrix product, by one name each, whichever kernel computes it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>

#include "intaglio/plan/dispatch.hpp"

namespace intaglio::plan {

/// The kernels of products with ternary weights, and with coded weights.
using ternary_products =
    kernels::kernel_list<kernels::ternary_matmul_kernel, kernels::ternary_batch_kernel, kernels::ternary_chunk_kernel,
                         kernels::ternary_float_kernel, kernels::ternary_rows_kernel>;
/// The kernels that multiply by coded weights.
using coded_products =
    kernels::kernel_list<kernels::matmul_kernel, kernels::matmul_batch_kernel, kernels::matmul_chunk_kernel>;

/// What a dispatch of such a kernel computes. Constants that its kernel does not have are 0.
struct product_facts {
  std::uint32_t columns = 0, rows = 0;
  kernels::codec codec{};
  kernels::prologue prologue = kernels::prologue::quantized;
  kernels::epilogue epilogue{};
  float eps = 0, rope_theta = 0;
  std::uint32_t head_dim = 0, q_size = 0, kv_size = 0, context = 0;
  kernels::element cache_element{};
  bool ring = false, own_input = false, keeps_firsts = false;
  std::uint32_t experts_used = 0, list_tokens = 0, tile_tokens = 0;

  /// Indices of push constants that all these kernels have.
  struct {
    kernels::push_id input, output, state, keys, values;
  } at{};
  /// Indices of push constants that only some have; of another kernel they are that of the input.
  struct {
    kernels::push_id factors, gates, firsts, choice;
  } some{};
  operand weight, norm_weight, scales, rope;

  template <class... Kernels>
  static constexpr product_facts of(const dispatch& d, kernels::kernel_list<Kernels...> among) {
    product_facts out;
    with_constants(d, among, [&](const auto& c, const auto& ids) { out.read(c), out.read_operands(d, ids); });
    return out;
  }

 private:
  template <class Constants>
  constexpr void read(const Constants& c) {
    columns = c.columns, rows = c.rows, epilogue = c.epilogue;
    head_dim = c.head_dim, q_size = c.q_size, kv_size = c.kv_size, context = c.context;
    cache_element = c.cache_element;
    if constexpr (requires { c.codec; }) codec = c.codec;
    if constexpr (requires { c.prologue; }) prologue = c.prologue, eps = c.eps;
    if constexpr (requires { c.rope_theta; }) rope_theta = c.rope_theta;
    if constexpr (requires { c.ring; }) ring = c.ring != 0;
    if constexpr (requires { c.own_input; }) own_input = c.own_input != 0;
    if constexpr (requires { c.keeps_firsts; }) keeps_firsts = c.keeps_firsts != 0;
    if constexpr (requires { c.experts_used; }) experts_used = c.experts_used;
    if constexpr (requires { c.list_tokens; }) list_tokens = c.list_tokens;
    if constexpr (requires { c.tile_tokens; }) tile_tokens = c.tile_tokens;
  }
  template <class Push>
  constexpr void read_operands(const dispatch& d, const Push& of) {
    at = {of.input, of.output, of.state, of.keys, of.values};
    some = {of.input, of.input, of.input, of.input};
    weight = d[of.weight];
    if constexpr (requires { of.factors; }) some.factors = of.factors;
    if constexpr (requires { of.gates; }) some.gates = of.gates;
    if constexpr (requires { of.firsts; }) some.firsts = of.firsts;
    if constexpr (requires { of.choice; }) some.choice = of.choice;
    if constexpr (requires { of.tiles; }) some.choice = of.tiles;
    if constexpr (requires { of.norm_weight; }) norm_weight = d[of.norm_weight];
    if constexpr (requires { of.scales; }) scales = d[of.scales];
    if constexpr (requires { of.rope; }) rope = d[of.rope];
  }
};

}  // namespace intaglio::plan
