// SPDX-License-Identifier: MIT
// Proves every pipeline of a plan on the device before it is used: runs its kernel with made-up activations and the
// model's own weights of layer 0, and compares a few rows of each product with the CPU reference. It takes some
// milliseconds beside compiling.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <iterator>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "intaglio/core/array_view.hpp"
#include "intaglio/core/definition.hpp"
#include "intaglio/core/error.hpp"
#include "intaglio/core/joining_thread.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/runtime/kernel_trial.hpp"
#include "intaglio/runtime/proofs_of_attention.hpp"
#include "intaglio/runtime/proofs_of_experts.hpp"
#include "intaglio/runtime/proofs_of_norms.hpp"
#include "intaglio/runtime/proofs_of_products.hpp"
#include "intaglio/runtime/proofs_of_recurrences.hpp"
#include "intaglio/runtime/proofs_of_sampling.hpp"
#include "intaglio/runtime/proofs_of_streams.hpp"
#include "intaglio/runtime/proofs_of_walks.hpp"

namespace intaglio::runtime {

namespace proofs {
/// Proves a product of f32 activations and coded weights, of one matrix or of experts.
[[gnu::cold]] inline double product(kernel_trial& trial, const plan::dispatch& call) {
  const bool of_experts = plan::product_facts::of(call, plan::coded_products{}).experts_used != 0;
  return of_experts ? expert_matmul(trial, call) : matmul(trial, call);
}
/// Placeholder for resident kernels: executor::prove and batch_executor::prove compare them with a chain.
inline double held_by_a_chain(kernel_trial&, const plan::dispatch&) { return 0; }
}  // namespace proofs

#define INTAGLIO_PROOF(which, by)                                                                              \
  template <>                                                                                                  \
  INTAGLIO_DEFINITION double prove<kernels::kernel::which>(kernel_trial & trial, const plan::dispatch& call) { \
    return proofs::by(trial, call);                                                                            \
  }
INTAGLIO_PROOF(embed, embed)
INTAGLIO_PROOF(norm_quantize, norm_quantize)
INTAGLIO_PROOF(ternary_matmul, ternary_product)
INTAGLIO_PROOF(ternary_batch, ternary_product)
INTAGLIO_PROOF(ternary_chunk, ternary_product)
INTAGLIO_PROOF(ternary_float, ternary_product)
INTAGLIO_PROOF(ternary_rows, ternary_product)
INTAGLIO_PROOF(attention, attention)
INTAGLIO_PROOF(attention_batch, attention)
INTAGLIO_PROOF(attention_chunk, attention)
INTAGLIO_PROOF(attention_f16, attention)
INTAGLIO_PROOF(dense_matmul, dense_matmul)
INTAGLIO_PROOF(dense_batch, dense_batch)
INTAGLIO_PROOF(dense_rows, dense_rows)
INTAGLIO_PROOF(head_screen, head_screen)
INTAGLIO_PROOF(head_rescore, head_rescore)
INTAGLIO_PROOF(matmul, product)
INTAGLIO_PROOF(matmul_chunk, product)
INTAGLIO_PROOF(matmul_batch, product)
INTAGLIO_PROOF(fixed, fixed)
INTAGLIO_PROOF(quantize_f16, quantize_f16)
INTAGLIO_PROOF(route, route)
INTAGLIO_PROOF(expert_tiles, expert_tiles)
INTAGLIO_PROOF(expert_sum, expert_sum)
INTAGLIO_PROOF(gated, gated)
INTAGLIO_PROOF(short_conv, short_conv)
INTAGLIO_PROOF(delta_net, delta_net)
INTAGLIO_PROOF(head_gate, head_gate)
INTAGLIO_PROOF(streams, streams)
INTAGLIO_PROOF(turn, turn)
INTAGLIO_PROOF(norm_add, norm_add)
INTAGLIO_PROOF(rms_norm, rms_norm)
INTAGLIO_PROOF(walk_gate_up, walk_gate_up)
INTAGLIO_PROOF(walk_down, walk_down)
INTAGLIO_PROOF(walk_select, walk_select)
INTAGLIO_PROOF(walk_up, walk_up)
INTAGLIO_PROOF(walk_sum, walk_sum)
INTAGLIO_PROOF(walk_trace, walk_trace)
INTAGLIO_PROOF(sample, sample)
INTAGLIO_PROOF(accept, accept)
INTAGLIO_PROOF(pages, pages)
INTAGLIO_PROOF(layers, held_by_a_chain)
INTAGLIO_PROOF(layers_coded, held_by_a_chain)
INTAGLIO_PROOF(layers_rows, held_by_a_chain)
INTAGLIO_PROOF(layers_ternary_rows, held_by_a_chain)
INTAGLIO_PROOF(layers_batch, held_by_a_chain)
INTAGLIO_PROOF(layers_rows_normed, held_by_a_chain)
INTAGLIO_PROOF(layers_batch_normed, held_by_a_chain)
#undef INTAGLIO_PROOF

/// A pipeline that computed a wrong result; with an empty kernel there was none.
struct kernel_fault {
  std::string kernel, label;
  double apart = 0;  ///< largest difference, relative to the largest expected value
};
/// Throws the error of a kernel whose result differs from the reference's.
/// @error device_error naming the kernel, always
[[noreturn]] inline void refuse(const gpu::device& on, const kernel_fault& fault) {
  throw device_error(on.label(), "prove the kernel " + fault.kernel + " (" + fault.label + ")",
                     "it differs from the reference by " + number_text(static_cast<float>(fault.apart)) +
                         " of the largest value; it is not used");
}

/// Compares a plan's dispatches on a device with the CPU reference.
class kernel_proof {
 public:
  kernel_proof(const gpu::device& on, const plan::table& of, const kernel_set& kernels, const weight_memory& weights)
      : source_(kernels.source()), trial_(on, of, kernels, weights) {}

  /// A dispatch that is compared with the reference.
  struct claim {
    const plan::sequence* of = nullptr;
    const plan::dispatch* call = nullptr;
    bool may_wait = false;  ///< another form of this sampler runs first
  };
  /// Every dispatch of a sequence once, a period's dispatches for layer 0, without the resident dispatch. For a
  /// sequence that narrows another one: the dispatches whose pipelines the other one does not have.
  static std::vector<claim> claims_of(const plan::sequence& of) {
    std::vector<claim> out;
    for (const auto part : of.recorded())
      for (const auto& call : part) {
        if (plan::is_all_layers(call)) continue;
        if (of.narrows != nullptr && is_in(*of.narrows, call)) continue;
        const bool draws = part.data() == of.epilogue.data() && &call == &part.back();
        if (draws)
          for (const auto forms : {of.greedy, of.interim})
            for (const plan::dispatch& each : forms) out.push_back({&of, &each});
        out.push_back({&of, &call, draws && !of.interim.empty()});
      }
    return out;
  }

  /// @return the first fault of the sequence  @error device_lost, out_of_memory
  kernel_fault check(const plan::sequence& of) {
    for (const claim& each : claims_of(of))
      if (kernel_fault fault = check(each); !fault.kernel.empty()) return fault;
    return {};
  }
  /// Runs and compares a dispatch. @return a fault, or an empty kernel  @error device_lost, out_of_memory
  kernel_fault check(const claim& one) {
    const plan::sequence& of = *one.of;
    const plan::dispatch& call = *one.call;
    trial_.width = of.max_tokens;
    trial_.batched = of.batched;
    trial_.seed(12345);
    trial_.tokens = (std::min)(tokens_for(call), of.rows != 0 ? of.rows : of.max_tokens);
    const double apart = difference(call);
    if (!(apart <= tolerance(call)))
      return {std::string(kernels::interface_of(call.kernel).name), std::string(call.label.view()), apart};
    return {};
  }

 private:
  static bool is_in(const plan::sequence& other, const plan::dispatch& call) {
    for (const auto part : other.recorded())
      for (const plan::dispatch& each : part)
        if (each.variant == call.variant && each.specialization == call.specialization &&
            each.activation == call.activation && each.label.view() == call.label.view())
          return true;
    return false;
  }

  /// Whether a product multiplies a small batch of tokens by cooperative matrices, in tiles of more than eight.
  static bool takes_matrices(const plan::dispatch& call) {
    using kernels::variant;
    return call.variant == variant::matmul_batch_matrix || call.variant == variant::matmul_batch_tiled ||
           call.variant == variant::ternary_batch_matrix;
  }
  /// Whether a product takes tokens by the lists of expert_tiles.
  static bool lists_tokens(const plan::dispatch& call) {
    if (call.kernel == kernels::kernel::matmul_batch)
      return kernels::constants_of<kernels::matmul_batch_kernel>(call.specialization).experts_used != 0;
    return call.kernel == kernels::kernel::matmul &&
           kernels::matmul_kernel::lists_tokens(kernels::constants_of<kernels::matmul_kernel>(call.specialization));
  }
  std::uint32_t tokens_for(const plan::dispatch& call) const {
    std::uint32_t out = 2;
    kernels::visit(call.kernel,
                   [&]<class Kernel>(std::type_identity<Kernel>) { out = kernels::proof_tokens<Kernel>(); });
    return out != 2 ? out : takes_matrices(call) ? 18 : lists_tokens(call) ? 6 : 2;
  }
  /// Largest difference allowed, relative to the largest expected value.
  double tolerance(const plan::dispatch& call) const {
    kernels::rounding of{};
    kernels::visit(call.kernel, [&]<class Kernel>(std::type_identity<Kernel>) {
      of = kernels::rounding_of<Kernel>(kernels::constants_of<Kernel>(call.specialization));
    });
    const bool rounds_cache = of == kernels::rounding::cache && trial_.table->cache_element != kernels::element::f32;
    return of == kernels::rounding::int8 ? 3e-2 : of == kernels::rounding::f16 ? 4e-3 : rounds_cache ? 1e-3 : 1e-4;
  }

  double difference(const plan::dispatch& call) {
    const auto proof = source_(call.variant).proof;
    return proof != nullptr ? proof(trial_, call) : std::numeric_limits<double>::infinity();
  }

  module_source source_;
  kernel_trial trial_;
};

/// Compares the dispatches of sequences with the reference, several at a time. Waits first until all their pipelines
/// are made: NVIDIA's driver 580.159 hung in one of fifteen loads of a batch that ran some pipelines while others were
/// made (docs/gpu.md).
/// @param draws whether to prove forms of samplers that may be made later
/// @param look is called between two proofs; what it throws ends them
/// @return the first fault in the order of the dispatches that ran  @error device_lost, out_of_memory; as
///   kernel_set::of
[[gnu::cold]] inline kernel_fault prove_kernels(const gpu::device& on, const plan::table& table,
                                                const kernel_set& kernels, const weight_memory& weights,
                                                array_view<const plan::sequence* const> sequences, bool draws = true,
                                                const load_look& look = {}) {
  std::vector<kernel_proof::claim> claims;
  for (const plan::sequence* sequence : sequences) {
    const auto some = kernel_proof::claims_of(*sequence);
    std::copy_if(some.begin(), some.end(), std::back_inserter(claims),
                 [&](const auto& each) { return draws || !each.may_wait; });
  }
  for (const kernel_proof::claim& each : claims) (void)kernels.of(*each.call, look);
  std::vector<kernel_fault> faults(claims.size());
  std::vector<std::exception_ptr> failures(claims.size() + 1);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> ended{false};
  const auto work = [&](const load_look& between) noexcept {
    std::size_t i = claims.size();  // if the proof has no memory yet
    try {
      kernel_proof proof(on, table, kernels, weights);
      for (i = next++; i < claims.size() && !ended; i = next++) {
        if (between) between();
        if (faults[i] = proof.check(claims[i]); !faults[i].kernel.empty()) ended = true;
      }
    } catch (...) {
      failures[i] = std::current_exception();
      ended = true;
    }
  };
  {
    std::vector<joining_thread> workers;
    try {
      for (std::size_t i = 1;
           i < (std::min<std::size_t>)({16, (std::max)(1u, std::thread::hardware_concurrency()), claims.size()}); ++i)
        workers.emplace_back([&work] { work({}); });
    } catch (const std::system_error&) {  // no more threads are available
    }
    work(look);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (kernel_fault& fault : faults)
    if (!fault.kernel.empty()) return std::move(fault);
  return {};
}

}  // namespace intaglio::runtime
