// SPDX-License-Identifier: MIT
// The chain of dispatches of decode with coded weights, as resident_coded.hpp recognises it: the steps of each kind of
// block, and what all blocks have alike.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/decoder_config.hpp"
#include "intaglio/plan/block_steps.hpp"

namespace intaglio::plan {

/// The chain of dispatches of a layer with coded weights: the steps of each kind of block and what all blocks share.
struct coded_chain {
  const decoder_config& config;
  array_view<const dispatch> period{};
  std::vector<block_steps> blocks{};  ///< by kind of block
  /// Whether blocks have norms before additions to the stream, and norms before their sublayers.
  bool inner_norms = false, outer_norms = true;

  /// Finds the steps of each kind of block. @return false if some block has other steps
  constexpr bool finds_blocks(array_view<const dispatch> of, std::uint32_t kinds) {
    period = of;
    blocks.resize(kinds);
    for (std::uint32_t kind = 0; kind < kinds; ++kind)
      if (!find_steps(period, static_cast<std::uint8_t>(kind), blocks[kind])) return false;
    inner_norms = blocks[0].after_down != no_step;
    outer_norms = !inner_norms || product_at(blocks[0].qkv).prologue != kernels::prologue::plain;
    return true;
  }

  constexpr kernels::matmul_kernel::constants product_at(std::size_t step) const {
    return constants_of<kernels::matmul_kernel>(period[step]);
  }
  constexpr kernels::norm_add_kernel::constants addition_at(std::size_t step) const {
    return constants_of<kernels::norm_add_kernel>(period[step]);
  }
  constexpr kernels::turn_kernel::constants turn_at(std::size_t step) const {
    return constants_of<kernels::turn_kernel>(period[step]);
  }
  constexpr kernels::gated_kernel::constants activation_at(std::size_t step) const {
    return constants_of<kernels::gated_kernel>(period[step]);
  }
  constexpr kernels::attention_kernel::constants attention_at(std::size_t step) const {
    return constants_of<kernels::attention_kernel>(period[step]);
  }
  constexpr kernels::codec codec_at(std::size_t step) const { return product_at(step).codec; }

  /// Whether k and v of a kind of block have a matrix apart from q.
  constexpr bool keys_apart(const block_steps& of) const { return of.apart_rows(period) == 2 * config.kv_size(); }
  /// Rows of the product of q, and of what of k and v has no matrix of its own.
  constexpr std::uint32_t stacked_rows(const block_steps& of) const {
    return config.q_size() + 2 * config.kv_size() - of.apart_rows(period);
  }
  /// The epsilon of all norms.
  constexpr float eps() const {
    return outer_norms ? product_at(blocks[0].qkv).eps : addition_at(blocks[0].after_down).eps;
  }
  /// Whether a step is a product of one token. @param normalises whether a norm is in front of it
  constexpr bool multiplies(std::size_t step, bool normalises, kernels::epilogue how, std::uint32_t columns,
                            std::uint32_t rows, std::uint32_t experts_used = 0) const {
    if (period[step].kernel != kernels::kernel::matmul) return false;
    const auto c = product_at(step);
    return c.prologue == (normalises ? kernels::prologue::norm : kernels::prologue::plain) && c.epilogue == how &&
           c.columns == columns && c.rows == rows && c.experts_used == experts_used && (!normalises || c.eps == eps());
  }
  /// Whether a step normalises its input and adds it to the stream.
  constexpr bool adds_normalised(std::size_t step) const {
    if (period[step].kernel != kernels::kernel::norm_add) return false;
    const auto c = addition_at(step);
    return c.biased == 0 && c.width == config.hidden_size && c.eps == eps();
  }
  /// Whether a step adds its input with a bias to the stream.
  constexpr bool adds_biased(std::size_t step) const {
    if (step == no_step || period[step].kernel != kernels::kernel::norm_add) return false;
    const auto c = addition_at(step);
    return c.biased == 1 && c.parts == 1 && c.scaled == 0 && c.width == config.hidden_size;
  }
};

}  // namespace intaglio::plan
