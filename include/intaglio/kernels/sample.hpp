// SPDX-License-Identifier: MIT
// The kernel sample: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Draws the next token from logits [vocab_size] by the state's sampling parameters (kernels/state.hpp), in this order:
/// repetition penalty over the last repeat_last_n of state.history, top-k, top-p, min-p, temperature, draw. Temperature
/// 0 is greedy; of equal logits the lowest id wins. The draw depends only on seed and position. With next = position +
/// count, it writes the token to state.tokens[0], state.history[next] (inside the context) and ring[generated %
/// ring_size], then sets position to next and count to 1, and adds 1 to generated.
/// Workgroups (x) each sort a `slice` (sample_slice) of the vocabulary into scratch. The last to finish, found by
/// counters u32 [draws], which are 0 before and after, picks the token; a single workgroup needs no counters. firsts:
/// [first_count] from the head's workgroups, if first_count is not 0; a greedy choice without a penalty uses only them.
/// form: a sample_form; every form but `any` compiles in a fraction of its time. narrow 1: the same tokens with half of
/// the shared memory.
/// draws above 1: workgroups y pick the token after token y of the pass, from logits row y, as if later tokens did not
/// exist, and only write it to drawn u32 [draws]. Rows of scratch are sample_scratch_bytes apart.
/// In a batch, workgroups y draw for slot y, whose ring is the y-th of ring_size words. If the next position reaches
/// the slot's limit, count becomes 0. For a greedy row sample_greedy_workers workgroups do all the work; the others
/// exit.
inline constexpr kernel_interface sample_interface{
    "sample",
    {{{"logits"}, {"state"}, {"ring"}, {"scratch"}, {"drawn"}, {"firsts"}, {"counters"}}},
    {{{"workgroup_size"},
      {"vocab_size"},
      {"ring_size"},
      {"context"},
      {"max_tokens"},
      {"subgroup_width"},
      {"draws"},
      {"first_count"},
      {"slot_words"},
      {"slice"},
      {"form"},
      {"narrow"}}}};
/// Forms of the sampler. Every form that can pick a token picks the same one.
enum class sample_form : std::uint32_t {
  any,      ///< for all sampling parameters
  greedy,   ///< for greedy rows, without a draw
  interim,  ///< for all sampling parameters, with one workgroup, several times slower
};

/// The largest vocabulary: the sum of this number of weights of 44 bits has 63 bits.
inline constexpr std::uint32_t largest_vocabulary = 1u << 19;

/// Tokens that a workgroup of sample sorts: a power of two of 256 up to 4,096, the smallest that gives at most
/// most_lists lists.
/// @param most_lists at most 136: shared memory has room for the data of that number of lists
constexpr std::uint32_t sample_slice(std::uint32_t vocab_size, std::uint32_t most_lists = 136) {
  std::uint32_t out = 256;
  while ((vocab_size + out - 1) / out > most_lists && out < 4096) out *= 2;
  return out;
}
/// A batch of at least sample_batch slots has enough rows to keep a device busy; fewer, longer lists are then less work
/// in total (docs/performance.md).
inline constexpr std::uint32_t sample_greedy_workers = 16, sample_batch = 8, sample_lists_of_batch = 40;
/// Number of lists into which slices of `slice` tokens divide a vocabulary.
constexpr std::uint32_t sample_lists(std::uint32_t vocab_size, std::uint32_t slice) {
  return (vocab_size + slice - 1) / slice;
}
/// Number of lists of a vocabulary in slices of sample_slice.
constexpr std::uint32_t sample_lists(std::uint32_t vocab_size) {
  return sample_lists(vocab_size, sample_slice(vocab_size));
}
/// Bytes of `scratch` for one draw: sorted keys, two sums of 64 bits for each eight keys, and 52 words for each list.
constexpr std::uint64_t sample_scratch_bytes(std::uint32_t vocab_size, std::uint32_t slice) {
  return std::uint64_t{sample_lists(vocab_size, slice)} * (6 * slice + 208);
}
/// Bytes of `scratch` for one draw, in slices of sample_slice.
constexpr std::uint64_t sample_scratch_bytes(std::uint32_t vocab_size) {
  return sample_scratch_bytes(vocab_size, sample_slice(vocab_size));
}
/// Bytes of the counters: one word a draw.
constexpr std::uint64_t sample_counter_bytes(std::uint32_t draws) { return std::uint64_t{4} * draws; }

/// The fewest subgroups that sample needs for a vocabulary: llvmpipe up to Mesa 24 ends all loops of an invocation
/// after 65,535 iterations (docs/modules.md). At most 16, which fit in a workgroup at any width and are enough for the
/// largest existing vocabularies.
constexpr std::uint32_t least_sample_subgroups(std::uint32_t vocab_size) {
  const std::uint32_t wanted = (vocab_size + 8191) / 8192;
  return wanted > 16 ? 16 : wanted;
}

/// Descriptor of the kernel sample, which draws the next token from logits.
struct sample_kernel {
  static constexpr kernel id = kernel::sample;
  static constexpr const kernel_interface& face = sample_interface;
  static constexpr bool any_subgroups = true;  ///< any number of subgroups can do its work
  static constexpr candidate candidates[] = {{variant::sample_cpu, demand::wide_loads}, {variant::sample, {}}};
  template <class T>
  struct push {
    T logits, state, ring, scratch, drawn, firsts, counters;
  };
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t vocab_size{};
    std::uint32_t ring_size{};
    std::uint32_t context{};
    std::uint32_t max_tokens{};
    std::uint32_t subgroup_width{};
    std::uint32_t draws{};
    std::uint32_t first_count{};
    std::uint32_t slot_words{};
    std::uint32_t slice{};
    sample_form form{};
    std::uint32_t narrow{};
  };

  /// Changes a sampler to another form, with the number of workgroups that the form needs.
  static constexpr void take_form(constants& c, launch& of, sample_form form) {
    c.form = form;
    if (form == sample_form::greedy && c.slot_words != 0 && of.groups[0] > sample_greedy_workers)
      of.groups[0] = sample_greedy_workers;
  }
};

}  // namespace intaglio::kernels
