// SPDX-License-Identifier: MIT
// A profile: what a plan chooses. It sets the arithmetic of chunks, the form of the head, the element of the cache, and
// the numbers of tokens of passes. The width and number of workgroups follow from the classes of devices that it names
// (plan/work_division.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "intaglio/core/array_view.hpp"
#include "intaglio/kernels/cache_layout.hpp"
#include "intaglio/kernels/catalogue.hpp"
#include "intaglio/plan/device_classes.hpp"
#include "intaglio/plan/work_division.hpp"

namespace intaglio::plan {

/// Arithmetic of products with coded weights, in chunks of more than work_division::tile_tokens tokens and in passes
/// over a batch (batch_shape). A pass over drafts always has decode's bits.
enum class chunk_arithmetic : std::uint8_t {
  exact,  ///< the kernels of decode, with the same bits
  f16,    ///< weights and activations rounded to f16, sums in f32 (docs/kernels.md), several times faster with
          ///< cooperative matrices
};

/// The choices of a plan: arithmetic, caches and numbers of tokens. A program carries several profiles and picks one by
/// device. The division of work is not one: it is that of the most capable class.
struct profile {
  std::string_view name;                            ///< name in options and in `intaglio plan`
  array_view<const device_class* const> classes{};  ///< classes for which it is made, the most capable first
  chunk_arithmetic coded_chunks =
      chunk_arithmetic::exact;  ///< chunks of models with coded weights (f32, f16, bf16, q8_0, ...)
  chunk_arithmetic chunk_attention =
      chunk_arithmetic::exact;  ///< attention of the other models' chunks, whose products are exact
  bool head_screen =
      false;  ///< decode: int8 rows first show which logits are needed; takes half of the head's memory in addition
  std::uint32_t prefill_tokens = 32;      ///< tokens of a prefill chunk; fewer if the context is shorter
  std::uint32_t long_prefill_tokens = 0;  ///< most tokens that long prompts take at once in whole chunks, on devices
                                          ///< with cooperative matrices (device_plan::long_prefill); 0: one chunk
  std::uint32_t logits_tokens = 32;       ///< tokens of a chunk whose logits are returned, which take much memory
  std::uint32_t verify_tokens = 8;        ///< tokens of the widest pass over drafts; fewer if the context is shorter
  kernels::element cache_element = kernels::element::f16;  ///< element of the KV cache: f32, f16, q8_0 or q4_0
  std::uint32_t ring_size = 256;                           ///< drawn tokens that the ring to the host holds
  /// How dispatches divide their work: by the first of the classes.
  work_division work = classes.empty() ? work_division{} : work_of(*classes.front());
};

namespace profiles {
/// CPU drivers. The cache is f32: a conversion costs more than the bytes on a CPU, and results then agree with float32
/// implementations to the last rounding of an activation.
inline constexpr profile cpu{.name = "cpu", .classes = classes::cpus, .cache_element = kernels::element::f32};
/// GPUs of any vendor.
inline constexpr profile portable{.name = "portable",
                                  .classes = classes::gpus,
                                  .coded_chunks = chunk_arithmetic::f16,
                                  .prefill_tokens = 512,
                                  .long_prefill_tokens = 2048,
                                  .logits_tokens = 64,
                                  .verify_tokens = 16};
/// The profile portable with chunks that have decode's bits, for all codecs.
inline constexpr profile exact = [] {
  profile out = portable;
  out.name = "exact";
  out.coded_chunks = chunk_arithmetic::exact;
  return out;
}();
/// The profile portable with f16 attention of chunks by cooperative matrices, also where products are integers. Long
/// prompts of BitNet models are faster, and their bits differ from decode's.
inline constexpr profile attends_in_f16 = [] {
  profile out = portable;
  out.name = "attends_in_f16";
  out.chunk_attention = chunk_arithmetic::f16;
  return out;
}();
/// The profile portable with a screened head. It gives the same tokens, faster for greedy decoding and for sampling
/// with top-k or min-p. A workgroup takes twice the rows, since it computes few of their logits.
inline constexpr profile screened = [] {
  profile out = portable;
  out.name = "screened";
  out.work.head_groups /= 2;
  out.head_screen = true;
  return out;
}();
}  // namespace profiles

/// A profile whose KV caches have another element type: q8_0 takes 8.5 bits an element, q4_0 4.5; heads must have a
/// multiple of 64 channels. Decode with such a cache runs the chain of dispatches.
constexpr profile with_cache(const profile& from, kernels::element type) {
  profile out = from;
  out.cache_element = type;
  // Unpacking codes stalls less if two workgroups share a multiprocessor (docs/lab/long_contexts.md).
  if (kernels::is_coded(type)) out.work.attention_subgroups = (std::min)(out.work.attention_subgroups, 8u);
  return out;
}

}  // namespace intaglio::plan
