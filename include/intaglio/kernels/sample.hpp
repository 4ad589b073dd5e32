// SPDX-License-Identifier: MIT
// The kernel sample: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Picks the next token from logits [vocab_size] by state's sampling parameters (kernels/state.hpp), in this order:
/// repetition penalty over the last repeat_last_n of state.history, top-k, top-p, min-p, temperature, draw; temperature
/// 0 is greedy, ties go to the lowest id. The draw is a function of seed and position alone. With next = position +
/// count, writes the token to state.tokens[0], state.history[next] (inside the context) and ring[generated %
/// ring_size], then sets position to next and count to 1, and adds 1 to generated. Workgroups (x) sort every `slice`
/// (sample_slice) of the vocabulary into scratch; the last to come, found by counters u32[draws], which are 0 before
/// and after, picks; one workgroup alone needs none. firsts: [first_count] of the head's workgroups, where first_count
/// is not 0: a greedy choice without a penalty is made of them alone. form: sample_form; the others than `any` are
/// compiled in a fraction of the time. With draws above 1, workgroups y pick what follows token y of the pass, from
/// logits row y, as if the tokens behind it were not there, and only write it to drawn u32[draws]; rows of scratch are
/// as far apart as sample_scratch_bytes says. In a batch workgroups y draw for slot y, whose ring is the y-th of
/// ring_size words; where the next position reaches the slot's limit count becomes 0. Of a row that draws nothing
/// sample_greedy_workers workgroups do all, the others leave. narrow 1: the same tokens in half of the shared memory.
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
/// The token is the same by each that may pick it.
enum class sample_form : std::uint32_t {
  any,      ///< whatever state asks for
  greedy,   ///< where no temperature asks for a draw
  interim,  ///< whatever state asks for by one workgroup, several times slower
};

/// Logits that sample goes through at most: the sum of this number of weights of 44 bits has 63 bits.
inline constexpr std::uint32_t largest_vocabulary = 1u << 19;

/// Tokens that a workgroup of sample sorts: a power of two up to 4,096, from 256 on until there are at most most_lists
/// lists.
/// @param most_lists at most 136: what is known of each list has room in shared memory
constexpr std::uint32_t sample_slice(std::uint32_t vocab_size, std::uint32_t most_lists = 136) {
  std::uint32_t out = 256;
  while ((vocab_size + out - 1) / out > most_lists && out < 4096) out *= 2;
  return out;
}
/// In batches of at least this number of slots there are rows enough to keep a device busy, and fewer, longer lists are
/// less work in all (docs/performance.md).
inline constexpr std::uint32_t sample_greedy_workers = 16, sample_batch = 8, sample_lists_of_batch = 40;
constexpr std::uint32_t sample_lists(std::uint32_t vocab_size, std::uint32_t slice) {
  return (vocab_size + slice - 1) / slice;
}
constexpr std::uint32_t sample_lists(std::uint32_t vocab_size) {
  return sample_lists(vocab_size, sample_slice(vocab_size));
}
/// Bytes that `scratch` of sample takes for a draw: sorted keys, two sums of 64 bits for each eight of them, and 52
/// words for each list.
constexpr std::uint64_t sample_scratch_bytes(std::uint32_t vocab_size, std::uint32_t slice) {
  return std::uint64_t{sample_lists(vocab_size, slice)} * (6 * slice + 208);
}
constexpr std::uint64_t sample_scratch_bytes(std::uint32_t vocab_size) {
  return sample_scratch_bytes(vocab_size, sample_slice(vocab_size));
}
constexpr std::uint64_t sample_counter_bytes(std::uint32_t draws) { return std::uint64_t{4} * draws; }

/// Subgroups that sample needs at least for a vocabulary: in llvmpipe up to Mesa 24 all loops of an invocation end
/// after 65,535 turns (docs/modules.md). No more than 16, which fit into a workgroup at any width and do for the
/// largest vocabularies there are.
constexpr std::uint32_t least_sample_subgroups(std::uint32_t vocab_size) {
  const std::uint32_t wanted = (vocab_size + 8191) / 8192;
  return wanted > 16 ? 16 : wanted;
}

struct sample_kernel {
  static constexpr kernel id = kernel::sample;
  static constexpr const kernel_interface& face = sample_interface;
  static constexpr bool any_subgroups = true;  ///< can do its work
  static constexpr candidate candidates[] = {{variant::sample_cpu, demand::wide_loads}, {variant::sample, {}}};
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

  /// Another form of one that draws, with as many workgroups as that needs.
  static constexpr void take_form(constants& c, launch& of, sample_form form) {
    c.form = form;
    if (form == sample_form::greedy && c.slot_words != 0 && of.groups[0] > sample_greedy_workers)
      of.groups[0] = sample_greedy_workers;
  }
};

}  // namespace intaglio::kernels
