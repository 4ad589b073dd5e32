// SPDX-License-Identifier: MIT
// Makes routers of a feature index. An expert is a run of neighbouring features, a cluster of gate vectors with similar
// directions, or an expert of a mixture.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint.hpp"
#include "intaglio/io/feature_router.hpp"
#include "intaglio/io/ordered_work.hpp"

namespace intaglio::io {
/// How features are divided among experts.
enum class router_method : std::uint8_t {
  contiguous,  ///< features [e n / experts, (e + 1) n / experts)
  clusters,    ///< k-means over the directions of the gate vectors, starting from evenly spaced features
};
/// Options for building a router.
struct router_build_options {
  std::uint32_t experts = 16;  ///< number of experts of each layer
  router_method method = router_method::clusters;
  std::uint32_t rounds = 12;                             ///< largest number of rounds of k-means
  unsigned threads = 0;                                  ///< number of threads; 0: one for each processor
  std::function<void(std::uint32_t layers)> progress{};  ///< called on the calling thread with the number of finished
                                                         ///< layers
};

/// Assigns gate vectors to experts by their directions. The result is deterministic, and every expert has a feature.
/// @shape gates: [features, width]
inline std::vector<std::uint32_t> clustered_experts(std::span<const float> gates, std::size_t width,
                                                    std::uint32_t experts, std::uint32_t rounds) {
  const std::size_t features = gates.size() / width;
  std::vector<float> directions(gates.begin(), gates.end()), centres(experts * width);
  for (std::size_t f = 0; f < features; ++f) {
    double square = 0;
    for (std::size_t i = 0; i < width; ++i)
      square += static_cast<double>(gates[f * width + i]) * static_cast<double>(gates[f * width + i]);
    const float scale = square > 0 ? static_cast<float>(1 / std::sqrt(square)) : 0;
    for (std::size_t i = 0; i < width; ++i) directions[f * width + i] *= scale;
  }
  for (std::size_t e = 0; e < experts; ++e)
    std::copy_n(directions.begin() + static_cast<std::ptrdiff_t>(e * features / experts * width), width,
                centres.begin() + static_cast<std::ptrdiff_t>(e * width));
  std::vector<std::uint32_t> out(features, experts);
  std::vector<float> likeness(features);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    bool moved = false;
    std::vector<std::size_t> sizes(experts);
    for (std::size_t f = 0; f < features; ++f) {
      std::uint32_t best = 0;
      float most = -HUGE_VALF;
      for (std::uint32_t e = 0; e < experts; ++e) {
        float sum = 0;
        for (std::size_t i = 0; i < width; ++i) sum += directions[f * width + i] * centres[e * width + i];
        if (sum > most) most = sum, best = e;
      }
      moved = moved || out[f] != best;
      out[f] = best;
      likeness[f] = most;
      ++sizes[best];
    }
    for (std::uint32_t e = 0; e < experts; ++e) {
      if (sizes[e] != 0) continue;
      // An empty expert gets the feature that is least like the others of its expert.
      std::size_t least = features;
      for (std::size_t f = 0; f < features; ++f)
        if (sizes[out[f]] > 1 && (least == features || likeness[f] < likeness[least])) least = f;
      --sizes[out[least]];
      out[least] = e;
      sizes[e] = 1;
      likeness[least] = 1;
      moved = true;
    }
    if (!moved) break;
    std::ranges::fill(centres, 0.f);
    for (std::size_t f = 0; f < features; ++f)
      for (std::size_t i = 0; i < width; ++i) centres[out[f] * width + i] += directions[f * width + i];
    for (std::size_t e = 0; e < experts; ++e) {
      double square = 0;
      for (std::size_t i = 0; i < width; ++i)
        square += static_cast<double>(centres[e * width + i]) * static_cast<double>(centres[e * width + i]);
      const float scale = square > 0 ? static_cast<float>(1 / std::sqrt(square)) : 0;
      for (std::size_t i = 0; i < width; ++i) centres[e * width + i] *= scale;
    }
  }
  return out;
}

/// Builds routers whose weights are the mean gate vectors of their experts: a token gets the experts whose features its
/// input activates most, on average.
/// @throws argument_error: more experts than features, an index of a mixture; file_error
inline feature_router build_router(const feature_index& index, const router_build_options& options = {}) {
  if (index.config().num_local_experts != 0)
    throw argument_error("method", "own: a mixture's features are its experts', and its own router chooses among them",
                         "another");
  for (std::uint32_t layer = 0; layer < index.layers(); ++layer) {
    const std::uint32_t most = (std::min)(index.layer(layer).features, feature_router::most_experts);
    if (options.experts == 0 || options.experts > most)
      throw argument_error("experts", "1 to " + std::to_string(most), std::to_string(options.experts));
  }
  if (options.rounds == 0) throw argument_error("rounds", "at least 1", "0");
  std::vector<router_layer> layers(index.layers());
  const unsigned threads = worker_threads(options.threads);
  std::uint32_t done = 0;
  ordered_work(
      threads, threads == 1 ? 1 : 2 * std::size_t{threads}, layers.size(),
      [&](std::size_t layer, std::size_t) {
        const std::size_t width = index.config().hidden_size,
                          features = index.layer(static_cast<std::uint32_t>(layer)).features;
        std::vector<float> gates(features * width);
        index.read_f32(static_cast<std::uint32_t>(layer), feature_vector::gate, 0, features, gates);
        router_layer& of = layers[layer];
        if (options.method == router_method::clusters) {
          of.expert_of = clustered_experts(gates, width, options.experts, options.rounds);
        } else {
          for (std::uint64_t e = 0; e < options.experts; ++e)
            of.expert_of.resize(static_cast<std::size_t>((e + 1) * features / options.experts),
                                static_cast<std::uint32_t>(e));
        }
        of.bias.assign(options.experts, 0.f);
        std::vector<double> sums(options.experts * width);
        std::vector<std::size_t> sizes(options.experts);
        for (std::size_t f = 0; f < features; ++f) {
          ++sizes[of.expert_of[f]];
          for (std::size_t i = 0; i < width; ++i)
            sums[of.expert_of[f] * width + i] += static_cast<double>(gates[f * width + i]);
        }
        for (std::size_t e = 0; e < options.experts; ++e)
          for (std::size_t i = 0; i < width; ++i)
            of.weights.push_back(static_cast<float>(sums[e * width + i] / static_cast<double>(sizes[e])));
      },
      [&](std::size_t, std::size_t) {
        ++done;
        if (options.progress) options.progress(done);
      });
  return {index, std::move(layers)};
}

/// Builds the routers of a mixture: its experts and the products by which it chooses them.
/// @throws argument_error: a model without experts, or an index of another model; file_error
inline feature_router mixture_router(const feature_index& index, const checkpoint& model) {
  const decoder_config& c = model.config();
  if (c.num_local_experts == 0)
    throw argument_error("model", "the mixture of experts that the index was made of", "one with one FFN a layer");
  if (const auto lines = index.differences(c); !lines.empty())
    throw mismatch_error((index.path() / feature_index_file).string(), lines, {});
  std::vector<router_layer> layers(index.layers());
  for (std::uint32_t layer = 0; layer < layers.size(); ++layer) {
    router_layer& of = layers[layer];
    for (std::uint32_t f = 0; f < index.layer(layer).features; ++f) of.expert_of.push_back(f / c.intermediate_size);
    of.bias.assign(c.num_local_experts, 0.f);
    of.weights.resize(std::size_t{c.num_local_experts} * c.hidden_size);
    model.read_f32(model.at("blk." + std::to_string(layer) + ".ffn_gate_inp.weight"), 0, c.num_local_experts,
                   of.weights);
  }
  return {index, std::move(layers)};
}

}  // namespace intaglio::io
