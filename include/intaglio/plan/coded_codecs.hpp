// SPDX-License-Identifier: MIT
// The codecs of the matrices of coded blocks, and the kinds of layers by their codecs (kernels/layers_coded.hpp).
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cstdint>
#include <vector>

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/coded_chain.hpp"

namespace intaglio::plan {

/// The codecs of the matrices of coded blocks, as the constants of layers_coded state them.
struct coded_codecs {
  kernels::layers_coded::codecs all;
  decltype(kernels::layers_coded_kernel::constants::kind_codecs) kind_codecs{};
  decltype(kernels::layers_coded_kernel::constants::kinds) kinds{};

  /// Notes the codecs of a kind of block. @return whether there is room for them
  constexpr bool take(const coded_chain& chain, const block_steps& of) {
    if (chain.keys_apart(of)) all.note_keys();
    return of.each_matrix([&](auto its, std::size_t step) { return all.add(its, chain.codec_at(step)); });
  }
  /// Finds the kinds of layers by their codecs. @return whether the kernel has room for them
  constexpr bool finds_kinds(const coded_chain& chain, const layer_pattern& pattern) {
    using namespace kernels::layers_coded;
    const std::uint32_t layers = chain.config.num_hidden_layers;
    if (!all.mixed()) return true;
    if (layers > most_mixed_layers) return false;
    std::vector<std::uint32_t> words;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const std::uint32_t word = word_of(chain, chain.blocks[pattern(layer)]);
      std::uint32_t kind = 0;
      while (kind < words.size() && words[kind] != word) ++kind;
      if (kind == most_kinds) return false;
      if (kind == words.size()) {
        words.push_back(word);
        kind_codecs[kind / 2] |= word << 16 * (kind % 2);
      }
      for (std::uint32_t bit = 0; bit < 4; ++bit)
        kinds[most_mixed_layers / 32 * bit + layer / 32] |= (kind >> bit & 1) << layer % 32;
    }
    return true;
  }
  constexpr void store(kernels::layers_coded_kernel::constants& out) const {
    const auto word = [&](std::uint32_t at) {
      return at < all.count ? kernels::layers_coded::codec_word(all.items[at]) : 0;
    };
    out.codec = all.items[0], out.codecs_used = all.used;
    out.kind_codecs = kind_codecs, out.kinds = kinds;
    out.codec_second = word(1), out.codec_third = word(2), out.codec_fourth = word(3);
  }

 private:
  /// The codecs of a kind of block, as a word.
  constexpr std::uint32_t word_of(const coded_chain& chain, const block_steps& of) const {
    kernels::layers_coded::layer_codecs out;
    if (chain.keys_apart(of)) out.note_keys();
    of.each_matrix([&](auto its, std::size_t step) { return out.set(its, all.index_of(chain.codec_at(step))), true; });
    return out.word;
  }
};

}  // namespace intaglio::plan
