// SPDX-License-Identifier: MIT
// Every pipeline of a plan shows on the device, before it is used, that it computes what its kernel says: made-up
// activations, the model's own weights of layer 0, and the CPU reference for a few rows of each product. Takes some
// milliseconds beside compiling.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/core/number_text.hpp"
#include "intaglio/runtime/kernel_trial.hpp"
#include "intaglio/runtime/proofs_of_attention.hpp"
#include "intaglio/runtime/proofs_of_experts.hpp"
#include "intaglio/runtime/proofs_of_norms.hpp"
#include "intaglio/runtime/proofs_of_products.hpp"
#include "intaglio/runtime/proofs_of_recurrences.hpp"
#include "intaglio/runtime/proofs_of_sampling.hpp"
#include "intaglio/runtime/proofs_of_walks.hpp"

namespace intaglio::runtime {

/// What a pipeline did wrong; empty kernel: nothing.
struct kernel_fault {
  std::string kernel, label;
  double apart = 0;  ///< largest difference, in units of the largest expected value
};

/// @error device_error naming the kernel, always
[[noreturn]] inline void refuse(const gpu::device& on, const kernel_fault& fault) {
  throw device_error(on.label(), "prove the kernel " + fault.kernel + " (" + fault.label + ")",
                     "it differs from the reference by " + number_text(static_cast<float>(fault.apart)) +
                         " of the largest value; it is not used");
}

class kernel_proof {
 public:
  kernel_proof(const gpu::device& on, const plan::table& of, const kernel_set& kernels, const weight_memory& weights)
      : trial_(on, of, kernels, weights) {}

  /// A dispatch to be held against the reference.
  struct claim {
    const plan::sequence* of = nullptr;
    const plan::dispatch* call = nullptr;
    bool may_wait = false;  ///< another form of this sampler runs first
  };
  /// Every dispatch of a sequence once, the period's for layer 0; what does all layers in one dispatch is left out. Of
  /// a sequence that narrows another one, those whose pipelines that one has not.
  static std::vector<claim> claims_of(const plan::sequence& of) {
    std::vector<claim> out;
    for (const auto part : of.recorded())
      for (const auto& call : part) {
        if (call.kernel == kernels::kernel::layers || plan::is_resident(call)) continue;
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
  /// Waits until the dispatch's pipeline is made, and runs it. @return a fault, or an empty kernel  @error device_lost,
  /// out_of_memory
  kernel_fault check(const claim& one) {
    const plan::sequence& of = *one.of;
    const plan::dispatch& call = *one.call;
    trial_.width = of.max_tokens;
    trial_.batched = of.batched;
    trial_.seed(12345);
    trial_.tokens = (std::min)(tokens_for(call), of.rows != 0 ? of.rows : of.max_tokens);
    const double apart = difference(call);
    // The device's own roots and divisions may be a little off, and then an int8 value may round the other way.
    const bool rounds =
        call.kernel == kernels::kernel::norm_quantize || call.kernel == kernels::kernel::walk_gate_up ||
        call.kernel == kernels::kernel::walk_down ||
        (call.kernel == kernels::kernel::ternary_matmul &&
         trial_.constant(call, "prologue") == static_cast<std::uint32_t>(kernels::prologue::norm_quantize));
    // Cooperative matrices sum in an order of their own, and take factors of blocks as halves; a half behind a norm or
    // in a cache may round the other way.
    const bool halves = call.kernel == kernels::kernel::matmul_chunk || call.kernel == kernels::kernel::halves ||
                        call.kernel == kernels::kernel::attention_halves;
    const bool fills_cache =
        call.kernel == kernels::kernel::turn ||
        ((call.kernel == kernels::kernel::matmul || call.kernel == kernels::kernel::matmul_few) &&
         trial_.constant(call, "epilogue") == static_cast<std::uint32_t>(kernels::epilogue::rope_cache));
    const bool rounds_cache = fills_cache && trial_.table->cache_element == kernels::element::f16;
    if (!(apart <= (rounds ? 3e-2 : halves ? 4e-3 : rounds_cache ? 1e-3 : 1e-4)))
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

  /// Whether a product multiplies a few tokens by cooperative matrices, in tiles of more than eight.
  static bool takes_matrices(const plan::dispatch& call) {
    using kernels::variant;
    return call.variant == variant::matmul_few_matrix || call.variant == variant::matmul_few_tiled ||
           call.variant == variant::ternary_few_matrix;
  }
  /// Whether it takes tokens by lists of expert_tiles.
  static bool lists_tokens(const plan::dispatch& call) {
    if (call.kernel == kernels::kernel::matmul_few)
      return kernels::constants_of<kernels::matmul_few_kernel>(call.specialization).experts_used != 0;
    return call.kernel == kernels::kernel::matmul &&
           kernels::matmul_kernel::lists_tokens(kernels::constants_of<kernels::matmul_kernel>(call.specialization));
  }
  /// Tiles show their borders only to more tokens than the first of them has.
  std::uint32_t tokens_for(const plan::dispatch& call) const {
    switch (call.kernel) {
      case kernels::kernel::ternary_chunk:
      case kernels::kernel::matmul_chunk:
        return 18;
      case kernels::kernel::attention_chunk:
        return 10;
      case kernels::kernel::attention_halves:
        return 70;
      case kernels::kernel::short_conv:
      case kernels::kernel::delta_net:
        return 5;
      default:
        return takes_matrices(call) ? 18 : lists_tokens(call) ? 6 : 2;
    }
  }

  double difference(const plan::dispatch& call) {
    switch (call.kernel) {
      case kernels::kernel::embed:
        return proofs::embed(trial_, call);
      case kernels::kernel::norm_quantize:
        return proofs::norm_quantize(trial_, call);
      case kernels::kernel::ternary_matmul:
      case kernels::kernel::ternary_few:
      case kernels::kernel::ternary_chunk:
      case kernels::kernel::ternary_float:
      case kernels::kernel::ternary_rows:
        return proofs::ternary_product(trial_, call);
      case kernels::kernel::attention:
      case kernels::kernel::attention_few:
      case kernels::kernel::attention_chunk:
      case kernels::kernel::attention_halves:
        return proofs::attention(trial_, call);
      case kernels::kernel::dense_matmul:
        return proofs::dense_matmul(trial_, call);
      case kernels::kernel::dense_few:
      case kernels::kernel::dense_rows:
        return proofs::dense_few(trial_, call);
      case kernels::kernel::head_screen:
        return proofs::head_screen(trial_, call);
      case kernels::kernel::head_rescore:
        return proofs::head_rescore(trial_, call);
      case kernels::kernel::matmul:
      case kernels::kernel::matmul_chunk:
      case kernels::kernel::matmul_few:
        return trial_.constant(call, "experts_used") == 0 ? proofs::matmul(trial_, call)
                                                          : proofs::expert_matmul(trial_, call);
      case kernels::kernel::fixed:
        return proofs::fixed(trial_, call);
      case kernels::kernel::halves:
        return proofs::halves(trial_, call);
      case kernels::kernel::route:
        return proofs::route(trial_, call);
      case kernels::kernel::expert_tiles:
        return proofs::expert_tiles(trial_, call);
      case kernels::kernel::expert_sum:
        return proofs::expert_sum(trial_, call);
      case kernels::kernel::gated:
        return proofs::gated(trial_, call);
      case kernels::kernel::short_conv:
        return proofs::short_conv(trial_, call);
      case kernels::kernel::delta_net:
        return proofs::delta_net(trial_, call);
      case kernels::kernel::head_gate:
        return proofs::head_gate(trial_, call);
      case kernels::kernel::turn:
        return proofs::turn(trial_, call);
      case kernels::kernel::norm_add:
        return proofs::norm_add(trial_, call);
      case kernels::kernel::rms_norm:
        return proofs::rms_norm(trial_, call);
      case kernels::kernel::walk_gate_up:
        return proofs::walk_gate_up(trial_, call);
      case kernels::kernel::walk_down:
        return proofs::walk_down(trial_, call);
      case kernels::kernel::walk_select:
        return proofs::walk_select(trial_, call);
      case kernels::kernel::walk_up:
        return proofs::walk_up(trial_, call);
      case kernels::kernel::walk_sum:
        return proofs::walk_sum(trial_, call);
      case kernels::kernel::walk_trace:
        return proofs::walk_trace(trial_, call);
      case kernels::kernel::sample:
        return proofs::sample(trial_, call);
      case kernels::kernel::accept:
        return proofs::accept(trial_, call);
      case kernels::kernel::pages:
        return proofs::pages(trial_, call);
      case kernels::kernel::layers:
      case kernels::kernel::layers_coded:
      case kernels::kernel::layers_few:
      case kernels::kernel::layers_ternary_few:
      case kernels::kernel::layers_many:
      case kernels::kernel::layers_few_normed:
      case kernels::kernel::layers_many_normed:
        break;  // executor::prove and batch_executor::prove hold it against a chain
    }
    return 0;
  }

  kernel_trial trial_;
};

/// Holds the dispatches of sequences against the reference, several at a time, each as soon as its pipeline is made.
/// @param draws with the form of samplers that may wait
/// @return the first fault in their order, as far as they came  @error device_lost, out_of_memory; as of kernel_set::of
[[gnu::cold]] inline kernel_fault prove_kernels(const gpu::device& on, const plan::table& table,
                                                const kernel_set& kernels, const weight_memory& weights,
                                                std::span<const plan::sequence* const> sequences, bool draws = true) {
  std::vector<kernel_proof::claim> claims;
  for (const plan::sequence* sequence : sequences) {
    const auto some = kernel_proof::claims_of(*sequence);
    std::copy_if(some.begin(), some.end(), std::back_inserter(claims),
                 [&](const auto& each) { return draws || !each.may_wait; });
  }
  std::vector<kernel_fault> faults(claims.size());
  std::vector<std::exception_ptr> failures(claims.size() + 1);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> ended{false};
  const auto work = [&]() noexcept {
    std::size_t i = claims.size();  // while the proof has no memory yet
    try {
      kernel_proof proof(on, table, kernels, weights);
      for (i = next++; i < claims.size() && !ended; i = next++)
        if (faults[i] = proof.check(claims[i]); !faults[i].kernel.empty()) ended = true;
    } catch (...) {
      failures[i] = std::current_exception();
      ended = true;
    }
  };
  {
    std::vector<std::jthread> workers;
    try {
      for (std::size_t i = 1;
           i < (std::min<std::size_t>)({16, (std::max)(1u, std::thread::hardware_concurrency()), claims.size()}); ++i)
        workers.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads to be had
    }
    work();
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (kernel_fault& fault : faults)
    if (!fault.kernel.empty()) return std::move(fault);
  return {};
}

}  // namespace intaglio::runtime
