// SPDX-License-Identifier: MIT
// Decode on the CPU reference with walks in the FFNs of some layers (reference/walk.hpp), over vectors from another
// source, such as a feature index. Everything else is the plan's own. It is the oracle of full, exact and sparse walks
// of Llama, Gemma and BitNet, and measures their error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "intaglio/core/error.hpp"
#include "intaglio/plan/product_facts.hpp"
#include "intaglio/reference/machine.hpp"
#include "intaglio/reference/walk.hpp"

namespace intaglio::reference {

/// Gives the vectors of a layer, which must stay valid until the next call. In ternary models they are -s, 0 and s,
/// where s is the matrix's scale.
using layer_vectors = std::function<walked_layer(std::uint32_t layer)>;

/// The features that a walk reads, in rising order, and the weight of each one's value; all weights are 1 where
/// `weights` is empty.
struct routed_features {
  routed_features() = default;
  routed_features(std::vector<std::uint32_t> which, std::vector<float> how_much = {})
      : features(std::move(which)), weights(std::move(how_much)) {}
  std::vector<std::uint32_t> features;
  std::vector<float> weights;
};

/// The layers that are walked and the features that a walk reads.
struct walk_choice {
  std::uint32_t first_layer = 0;                                  ///< layers below are dense
  std::size_t count = (std::numeric_limits<std::size_t>::max)();  ///< number of features of a layer that are read,
                                                                  ///< those with the largest |score|; all of them: the
                                                                  ///< full walk
  std::vector<std::size_t> counts{};                              ///< numbers for each layer, instead of `count`
  bool active_only = false;                                       ///< the exact walk: inactive features are left out
  /// Chooses the features that a layer reads for an input of its gates. Without it all are read; in a mixture the
  /// features of the experts that its own router chose, with its weights. No other gates are computed.
  std::function<routed_features(std::uint32_t layer, std::span<const float> x, std::size_t features)> route{};
  std::size_t of_layer(std::uint32_t layer) const { return counts.empty() ? count : counts.at(layer); }
};

/// Times of a walk's parts in nanoseconds: gate scores, the choice of features, the up vectors of the chosen ones, and
/// their down vectors.
struct walk_times {
  double gate = 0, select = 0, gather = 0, accumulate = 0;
  double all() const { return gate + select + gather + accumulate; }
};

/// A report of one layer's walk.
struct walked_ffn {
  std::uint32_t layer = 0;
  std::span<const float> input;   ///< input of the gates, [hidden_size]; in ternary models the int8 values times their
                                  ///< step
  std::span<const float> scores;  ///< gate_f . input, [features]; 0 for features that a router left out
  std::span<const std::uint32_t> chosen;  ///< features that were read, in rising order
  std::span<const float> values;          ///< of the chosen features: the factors of their down vectors
  walked_layer vectors;
  walk_times times;
};

/// Runs the decode sequence for the token that the machine was fed with.
/// @error argument_error: an FFN that is no gated product followed by a product, or vectors of another shape
class walked_decode {
 public:
  /// @param after is called after each walk  @param dense is called after each dense FFN below the walked layers, with
  /// the layer and the time of its products in nanoseconds
  walked_decode(machine& on, const plan::table& table, layer_vectors vectors, walk_choice choice,
                std::function<void(const walked_ffn&)> after = {},
                std::function<void(std::uint32_t, double)> dense = {})
      : machine_(on), table_(table), vectors_(std::move(vectors)), choice_(std::move(choice)), after_(std::move(after)),
        dense_(std::move(dense)) {}

  void run() {
    const plan::sequence& s = table_.decode;
    for (const auto& d : s.prologue) machine_.step(d, 0);
    for (std::uint32_t layer = 0; layer < s.layers; ++layer) {
      std::size_t walked = 0;
      const auto block = s.block(s.pattern(layer));
      for (std::size_t i = 0; i < block.size(); ++i) {
        if (layer < choice_.first_layer || !is_gate_up(block[i])) {
          const auto start = clock::now();
          machine_.step(block[i], layer);
          if (!dense_ || !is_gate_up(block[i]) || i + 1 == block.size()) continue;
          machine_.step(block[++i], layer);
          dense_(layer, nanoseconds(start, clock::now()));
          continue;
        }
        if (i + 1 == block.size() || !is_product(block[i + 1]) ||
            block[i + 1][facts_of(block[i + 1]).at.input].offset != block[i][facts_of(block[i]).at.output].offset)
          throw argument_error("walk", "a product after the gated one of layer " + std::to_string(layer),
                               "another FFN");
        const bool mixture = is_mixture(block[i]);
        if (mixture && (i + 2 >= block.size() || block[i + 2].kernel != kernels::kernel::expert_sum ||
                        block[i + 2][at_sum.input].offset != block[i + 1][facts_of(block[i + 1]).at.output].offset))
          throw argument_error("walk", "the sum of experts after the products of layer " + std::to_string(layer),
                               "another FFN");
        walk(block[i], mixture ? block[i + 2] : block[i + 1], layer);
        i += mixture ? 2 : 1, ++walked;
      }
      if (layer >= choice_.first_layer && walked != 1)
        throw argument_error("walk", "one gated FFN in layer " + std::to_string(layer), std::to_string(walked));
    }
    for (const auto& d : s.epilogue) machine_.step(d, 0);
  }

 private:
  using clock = std::chrono::steady_clock;
  static double nanoseconds(clock::time_point from, clock::time_point to) {
    return std::chrono::duration<double, std::nano>(to - from).count();
  }

  static constexpr auto at_coded = kernels::push_ids<kernels::matmul_kernel>;
  static constexpr auto at_ternary = kernels::push_ids<kernels::ternary_matmul_kernel>;
  static constexpr auto at_sum = kernels::push_ids<kernels::expert_sum_kernel>;

  static kernels::matmul_kernel::constants of_coded(const plan::dispatch& d) {
    return plan::constants_of<kernels::matmul_kernel>(d);
  }
  static kernels::ternary_matmul_kernel::constants of_ternary(const plan::dispatch& d) {
    return plan::constants_of<kernels::ternary_matmul_kernel>(d);
  }
  static plan::product_facts facts_of(const plan::dispatch& d) {
    return d.kernel == kernels::kernel::matmul ? plan::product_facts::of(d, plan::coded_products{})
                                               : plan::product_facts::of(d, plan::ternary_products{});
  }
  static bool is_product(const plan::dispatch& d) {
    return d.kernel == kernels::kernel::matmul || d.kernel == kernels::kernel::ternary_matmul;
  }
  static bool is_gate_up(const plan::dispatch& d) {
    if (!is_product(d)) return false;
    const plan::product_facts its = facts_of(d);
    return its.epilogue == kernels::epilogue::gated &&
           its.prologue ==
               (d.kernel == kernels::kernel::matmul ? kernels::prologue::norm : kernels::prologue::norm_quantize);
  }
  static bool is_mixture(const plan::dispatch& gate_up) {
    return gate_up.kernel == kernels::kernel::matmul && of_coded(gate_up).experts_used != 0;
  }
  std::span<const float> weight(const plan::operand& what, std::uint32_t layer, std::size_t count) const {
    return {reinterpret_cast<const float*>(machine_.weight(what, layer).data()), count};
  }

  /// @param last the dispatch that writes the FFN's output: the down product, or the sum of a mixture's experts
  void walk(const plan::dispatch& gate_up, const plan::dispatch& last, std::uint32_t layer) {
    const walked_layer of = vectors_(layer);
    const bool ternary = gate_up.kernel == kernels::kernel::ternary_matmul;
    const plan::product_facts its = facts_of(gate_up);
    const std::size_t width = its.columns,
                      features = (is_mixture(gate_up) ? table_.weights[its.weight.slot].rows : its.rows) / 2;
    // Inserted features are after the plan's. A ternary FFN has a norm over its features, which has no weights for
    // more.
    const bool fits = ternary ? of.features() == features : of.features() >= features;
    if (of.hidden_size != width || !fits || of.up.size() != of.gate.size() || of.down.size() != of.gate.size())
      throw argument_error("walk: vectors of layer " + std::to_string(layer),
                           std::to_string(features) + " of " + std::to_string(width),
                           std::to_string(of.features()) + " of " + std::to_string(of.hidden_size));
    const std::vector<float> y = ternary ? ternary_walk(of, gate_up, last, layer) : float_walk(of, gate_up, layer);
    const bool adds = is_mixture(gate_up) || facts_of(last).epilogue == kernels::epilogue::add;
    const plan::operand to = is_mixture(gate_up) ? last[at_sum.output] : last[facts_of(last).at.output];
    const auto out = reinterpret_cast<float*>(machine_.arena.data() + to.offset);
    for (std::size_t i = 0; i < width; ++i) out[i] = adds ? out[i] + y[i] : y[i];
  }

  /// @param routed the features that are read, where not all are
  std::vector<std::uint32_t> choose(shader::activation_function act, std::span<const float> scores, std::uint32_t layer,
                                    const std::vector<std::uint32_t>& routed, bool some_only) const {
    const std::size_t count = choice_.of_layer(layer);
    if (some_only) {
      std::vector<float> some;
      for (const std::uint32_t f : routed) some.push_back(scores[f]);
      std::vector<std::uint32_t> out;
      for (const std::uint32_t i : choose_of(act, some, count)) out.push_back(routed[i]);
      return out;
    }
    return choose_of(act, scores, count);
  }
  std::vector<std::uint32_t> choose_of(shader::activation_function act, std::span<const float> scores,
                                       std::size_t count) const {
    if (choice_.active_only) return active_features(act, scores);
    if (count >= scores.size()) {
      std::vector<std::uint32_t> all(scores.size());
      std::iota(all.begin(), all.end(), 0u);
      return all;
    }
    // Squared ReLU is 0 for scores below 0, whatever their magnitude, so these never come before an active feature.
    std::vector<float> ranked(scores.begin(), scores.end());
    if (act == shader::activation_function(activation::relu_squared))
      for (float& score : ranked)
        if (score < 0) score = 0;
    const std::vector<scored_feature> nearest[] = {nearest_features(ranked, count)};
    return rising_union(nearest);
  }

  routed_features routes(const plan::dispatch& gate_up, std::uint32_t layer, std::span<const float> x,
                         std::size_t features) const {
    if (!choice_.route) return is_mixture(gate_up) ? of_chosen_experts(gate_up, features) : routed_features{};
    routed_features out = choice_.route(layer, x, features);
    const auto& which = out.features;
    if (!std::ranges::is_sorted(which, std::less_equal{}) || (!which.empty() && which.back() >= features) ||
        (!out.weights.empty() && out.weights.size() != which.size()))
      throw argument_error("route of layer " + std::to_string(layer), "rising features of " + std::to_string(features),
                           "others");
    return out;
  }

  /// The choice of kernel route: all features of each chosen expert, with the token's weights.
  routed_features of_chosen_experts(const plan::dispatch& gate_up, std::size_t features) const {
    const std::size_t used = of_coded(gate_up).experts_used, each = of_coded(gate_up).rows / 2;
    const auto choice = machine_.floats(gate_up[at_coded.choice].offset, 2 * used);
    std::vector<float> weight_of(features / each);
    for (std::size_t j = 0; j < used; ++j) weight_of.at(std::bit_cast<std::uint32_t>(choice[j])) = choice[used + j];
    routed_features out;
    for (std::size_t e = 0; e < weight_of.size(); ++e) {
      bool chosen = false;
      for (std::size_t j = 0; j < used; ++j) chosen = chosen || std::bit_cast<std::uint32_t>(choice[j]) == e;
      for (std::size_t f = e * each; chosen && f < (e + 1) * each; ++f)
        out.features.push_back(static_cast<std::uint32_t>(f)), out.weights.push_back(weight_of[e]);
    }
    return out;
  }

  std::vector<float> float_walk(const walked_layer& of, const plan::dispatch& gate_up, std::uint32_t layer) {
    const std::size_t width = of.hidden_size;
    std::vector<float> x(width);
    rms_norm(machine_.floats(gate_up[at_coded.input].offset, width),
             weight(gate_up[at_coded.norm_weight], layer, width), of_coded(gate_up).eps, x);
    const auto start = clock::now();
    const routed_features routed = routes(gate_up, layer, x, of.features());
    const bool some_only = choice_.route || is_mixture(gate_up);
    std::vector<float> scores;
    if (!some_only) scores = gate_scores(of.gate, x);
    else scores.resize(of.features());
    for (const std::uint32_t f : routed.features) scores[f] = dot(walked_layer::row(of.gate, f, width), x);
    const auto scored = clock::now();
    const std::vector<std::uint32_t> chosen = choose(gate_up.act(), scores, layer, routed.features, some_only);
    const auto selected = clock::now();
    std::vector<float> values = walk_values(of, gate_up.act(), scores, x, chosen);
    if (!routed.weights.empty())
      for (std::size_t i = 0, at = 0; i < chosen.size(); ++i) {
        while (routed.features[at] != chosen[i]) ++at;
        values[i] = product(values[i], routed.weights[at]);
      }
    const auto gathered = clock::now();
    std::vector<float> out = accumulate_features(of, chosen, values);
    if (after_)
      after_({layer,
              x,
              scores,
              chosen,
              values,
              of,
              {nanoseconds(start, scored), nanoseconds(scored, selected), nanoseconds(selected, gathered),
               nanoseconds(gathered, clock::now())}});
    return out;
  }

  /// A token in integers, as norm_quantize leaves it: value c is codes[c] * inverse_scale.
  struct quantized_token {
    std::vector<std::int8_t> codes;
    float inverse_scale = 1;
    float value(std::size_t c) const { return product(static_cast<float>(codes[c]), inverse_scale); }
  };
  static quantized_token quantized(std::span<const float> x, std::span<const float> norm_weight, float eps) {
    quantized_token out{std::vector<std::int8_t>(x.size())};
    std::vector<factors> factor(1);
    norm_quantize(x, norm_weight, x.size(), eps, out.codes, factor);
    out.inverse_scale = factor[0].inverse_scale;
    return out;
  }
  static std::int32_t code_of(float weight) { return (weight > 0) - (weight < 0); }
  /// A row's product with a token: the integer sum times both scales. @param scale of the row
  static float ternary_product(std::span<const float> row, const quantized_token& x, float scale) {
    std::int32_t sum = 0;
    for (std::size_t c = 0; c < row.size(); ++c) sum += code_of(row[c]) * x.codes[c];
    return product(static_cast<float>(sum), product(x.inverse_scale, scale));
  }
  /// The sum of the down vectors of chosen features, each times its value. @param h values of all features
  static std::vector<float> ternary_sum(const walked_layer& of, const std::vector<std::uint32_t>& chosen,
                                        const quantized_token& h, float scale) {
    std::vector<std::int32_t> sums(of.hidden_size);
    for (const std::uint32_t f : chosen) {
      if (h.codes[f] == 0) continue;
      const auto row = walked_layer::row(of.down, f, of.hidden_size);
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += code_of(row[c]) * h.codes[f];
    }
    std::vector<float> out(sums.size());
    for (std::size_t c = 0; c < sums.size(); ++c)
      out[c] = product(static_cast<float>(sums[c]), product(h.inverse_scale, scale));
    return out;
  }

  /// Computes in integers, as the kernels do: with all active features the result is the dense FFN's, bit for bit.
  std::vector<float> ternary_walk(const walked_layer& of, const plan::dispatch& gate_up, const plan::dispatch& down,
                                  std::uint32_t layer) {
    const std::size_t width = of.hidden_size, features = of.features();
    const auto scales = weight(gate_up[at_ternary.scales], layer, 2);
    const quantized_token q = quantized(machine_.floats(gate_up[at_ternary.input].offset, width),
                                        weight(gate_up[at_ternary.norm_weight], layer, width), of_ternary(gate_up).eps);
    std::vector<float> x(width);
    for (std::size_t c = 0; c < width; ++c) x[c] = q.value(c);
    const auto start = clock::now();
    const std::vector<std::uint32_t> routed = routes(gate_up, layer, x, features).features;
    std::vector<float> scores(features);
    const auto score = [&](std::size_t f) {
      scores[f] = ternary_product(walked_layer::row(of.gate, f, width), q, scales[0]);
    };
    for (const std::uint32_t f : routed) score(f);
    for (std::size_t f = 0; !choice_.route && f < features; ++f) score(f);
    const auto scored = clock::now();
    const std::vector<std::uint32_t> chosen =
        choose(gate_up.act(), scores, layer, routed, static_cast<bool>(choice_.route));
    const auto selected = clock::now();
    std::vector<float> h(features);
    for (const std::uint32_t f : chosen)
      h[f] = evaluate(*gate_up.act(), scores[f], ternary_product(walked_layer::row(of.up, f, width), q, scales[1]));
    const quantized_token h8 =
        quantized(h, weight(down[at_ternary.norm_weight], layer, features), of_ternary(down).eps);
    const auto gathered = clock::now();
    std::vector<float> out = ternary_sum(of, chosen, h8, weight(down[at_ternary.scales], layer, 1)[0]);
    if (after_) {
      const auto end = clock::now();
      std::vector<float> values;
      for (const std::uint32_t f : chosen) values.push_back(h8.value(f));
      after_({layer,
              x,
              scores,
              chosen,
              values,
              of,
              {nanoseconds(start, scored), nanoseconds(scored, selected), nanoseconds(selected, gathered),
               nanoseconds(gathered, end)}});
    }
    return out;
  }

  machine& machine_;
  const plan::table& table_;
  layer_vectors vectors_;
  walk_choice choice_;
  std::function<void(const walked_ffn&)> after_;
  std::function<void(std::uint32_t, double)> dense_;
};

}  // namespace intaglio::reference
