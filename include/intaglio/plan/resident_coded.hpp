// SPDX-License-Identifier: MIT
// Decode of coded weights with the resident dispatch (kernels::layers_coded_interface), made from the chain of
// dispatches. Each kind of block must be one that the kernel computes. It starts from the four products and the
// attention of a Llama. Blocks may add biases of q, k and v (Qwen2), norms of the heads of q and k (Qwen3), these and
// norms before additions to the stream (Gemma-3), and bounded scores (Gemma 2). They may have norms only there and over
// all heads (OLMo 2), or experts instead of an FFN (Mixtral). Each matrix of a layer may have one of four
// codecs (kernels::layers_coded::codecs), and layers may be of sixteen kinds by their codecs. v, or k and v, may have a
// matrix of their own.
#pragma once

#include <utility>

#include "intaglio/core/layer_pattern.hpp"
#include "intaglio/plan/coded_codecs.hpp"
#include "intaglio/plan/coded_values.hpp"

namespace intaglio::plan {

/// Makes the resident dispatch of layers_coded from the chain of dispatches of decode.
class resident_coded_layers : public coded_values {
 public:
  constexpr resident_coded_layers(const decoder_config& config, const profile& target, std::uint32_t context,
                                  std::uint64_t counters_end, const layer_pattern& pattern)
      : coded_values(config, target, context, counters_end), pattern_(pattern) {}

  /// @return false if the profile has no resident dispatch, or the kernel does not compute a block of this shape
  constexpr bool make(const std::vector<dispatch>& chain_prologue, const std::vector<dispatch>& chain_period,
                      const std::vector<dispatch>& chain_epilogue) {
    prologue = chain_prologue, period = chain_period, epilogue = chain_epilogue;
    if (target_.work.layers_parts == 0 || !cooperative() || !fits()) return false;
    parts_ = workgroups();
    place_values();
    for (const block_steps& each : chain_.blocks) bind(each);
    operand first = stream_;
    first.layer_stride = 0;
    move(prologue[0], at_embed.output, first);
    blank_beside();
    for (dispatch& each : epilogue) move_after(each);
    add_dispatch();
    return true;
  }

 private:
  /// Number of workgroups: the most that the device runs; for dense weights the smallest that takes as many turns for
  /// gate and up, if these then fill all turns (Gemma-3 4B: 128 instead of 132).
  constexpr std::uint32_t workgroups() const {
    const std::uint32_t all = target_.work.layers_parts, subgroups = kernels::layers_coded::resident_subgroups,
                        rows = config_.intermediate_size;
    if (chain_.codec_at(chain_.blocks[0].gated) > kernels::codec::bf16) return all;
    const std::uint32_t turns = (rows + all * subgroups - 1) / (all * subgroups),
                        fewer = (rows + turns * subgroups - 1) / (turns * subgroups);
    return 32 * fewer >= 31 * all ? fewer : all;
  }
  constexpr bool resident_fits_with(std::uint32_t workgroup_count) const {
    return resident_coded_fits(config_, codecs_.all, attention_.head_norms, workgroup_count, context_, attention_.ring,
                               ffns_, experts_.its, additions());
  }
  /// The constant `biased`.
  constexpr std::uint32_t additions() const {
    using kernels::layers_coded::addition;
    std::uint32_t out = 0;
    for (const auto& [is_there, which] : {std::pair{attention_.biased, addition::heads},
                                          {biased_projection_, addition::projection},
                                          {attention_.has_sinks, addition::sinks}})
      if (is_there) out |= static_cast<std::uint32_t>(which);
    return out;
  }

  /// Whether the chain begins with an embedding, and ends with a head, its bounds and a sampler, as the kernel needs.
  constexpr bool ends_fit() const {
    if (prologue.size() != 1 || prologue[0].kernel != kernel::embed || epilogue.back().kernel != kernel::sample)
      return false;
    const bool bounded = epilogue.size() == 3 && epilogue[1].kernel == kernel::gated;  // of logits
    return epilogue.size() == (bounded ? 3u : 2u) &&
           (epilogue[0].kernel == kernel::matmul || epilogue[0].kernel == kernel::dense_matmul);
  }
  constexpr bool fits() {
    if (!ends_fit() || !chain_.finds_blocks(period, pattern_.kinds())) return false;
    const coded_ffns ffns = coded_ffns::of(chain_);
    ffns_ = ffns.its, experts_.its = ffns.experts, biased_projection_ = ffns.biased_projection;
    attention_ = coded_attention::of(chain_);
    if (attention_.has_sinks && !experts_.are_there()) return false;
    for (const block_steps& each : chain_.blocks)
      if (!attention_.is_in(chain_, each) || !codecs_.take(chain_, each) || !ffns.projects(chain_, each) ||
          !ffns.are_in(chain_, each))
        return false;
    return attention_.finds_windows(chain_, pattern_, context_) && codecs_.finds_kinds(chain_, pattern_) &&
           resident_fits_with(workgroups());
  }

  constexpr kernels::layers_coded_kernel::constants constants() const {
    using kernels::layers_coded::norms_around;
    kernels::layers_coded_kernel::constants out;
    codecs_.store(out);
    out.hidden_size = config_.hidden_size, out.intermediate_size = config_.intermediate_size;
    out.layers = config_.num_hidden_layers;
    out.parts = parts_, out.spin_limit = resident_spin_limit;
    out.eps = chain_.eps();
    out.head_dim = config_.head_dim;
    out.heads = config_.num_attention_heads, out.kv_heads = config_.num_key_value_heads;
    out.context = context_;
    out.inner_norms = static_cast<std::uint32_t>(!chain_.inner_norms  ? norms_around::before
                                                 : chain_.outer_norms ? norms_around::before_and_after
                                                                      : norms_around::after);
    out.head_norms = static_cast<std::uint32_t>(attention_.head_norms);
    out.biased = additions(), out.turned = attention_.turns ? 1 : 0;
    out.rope_factor = attention_.rope_factor;
    const auto attends = chain_.attention_at(chain_.blocks[pattern_(0)].attends);
    out.scale = attends.scale, out.softcap = attends.softcap;
    out.ffns = kernels::layers_coded::ffns_word(ffns_, experts_.its);
    out.window = attention_.window, out.full_every = attention_.full_every;
    out.ring = attention_.full_every != 1 ? attention_.ring : 256;
    return out;
  }
  constexpr void add_dispatch() {
    using kernel_of_all = kernels::layers_coded_kernel;
    dispatch d{.kernel = kernel_of_all::id, .barrier = true, .subgroups = kernels::layers_coded::resident_subgroups};
    constexpr auto at = kernels::push_ids<kernel_of_all>;
    d.label.append("all layers");
    const auto note = [&](region where, bool write, std::uint64_t offset, std::uint64_t bytes) {
      d.accesses[d.access_count++] = {where, write, 0, offset, bytes};
    };
    d[at.arguments] = {region::arguments};
    d[at.progress] = {region::state, 0, counters_end_};
    d[at.state] = {region::state};
    note(region::arguments, false, 0,
         std::uint64_t{8} * config_.num_hidden_layers * kernel_of_all::argument_count(constants()));
    note(region::state, true, counters_end_, kernels::layers::progress_bytes(config_.num_hidden_layers));
    note(region::state, false, 0, 16 * 4);
    note(region::arena, true, 0, layers_bytes_);
    const dispatch& caches = with_cache(chain_.blocks[0]);
    for (std::size_t i = 0; i < caches.access_count; ++i)
      if (const access& a = caches.accesses[i]; a.where == region::keys || a.where == region::values)
        note(a.where, true, 0, a.bytes);
    kernels::store(constants(), d.specialization);
    d.activation = period[chain_.blocks[0].activates()].activation;
    d.groups = {parts_, 1, 1};
    d.least_groups = least_resident(
        parts_, [&](std::uint32_t n) { return shares_heads(n) == shares_heads(parts_) && resident_fits_with(n); });
    for (std::uint32_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const block_steps& its = chain_.blocks[pattern_(layer)];
      for (std::size_t i = its.first; i < its.end; ++i) d.weight_bytes += period[i].weight_bytes;
    }
    resident.push_back(d);
  }

  layer_pattern pattern_;
  coded_codecs codecs_;
};

}  // namespace intaglio::plan
