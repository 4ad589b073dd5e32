// SPDX-License-Identifier: MIT
// A cut plan as text: each stage's layers and memory, and the bytes that cross between two stages.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <memory>
#include <span>
#include <string>

#include "intaglio/plan/cut.hpp"
#include "intaglio/plan/explain.hpp"

namespace intaglio::plan {

/// @param devices names of the stages' devices; stages past the list's end are printed without a name
inline std::string explain_cut(std::span<const std::shared_ptr<const stage>> stages,
                               std::span<const std::string> devices) {
  using explanation::number;
  std::string out;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const plan::table& t = stages[i]->table();
    const layer_range layers = stages[i]->layers();
    const std::uint64_t rest = t.arena_bytes() + t.state_bytes() + kernels::ring_bytes(t.ring_size);
    out += "stage " + std::to_string(i) + (devices.size() > i ? " on " + devices[i] : std::string{}) + ", profile " +
           std::string(t.profile) + ": " + (layers.first == 0 ? "embedding, " : "") + "layers " +
           std::to_string(layers.first) + " to " + std::to_string(layers.end - 1) +
           (layers.end == t.model_layers ? ", head, sampler" : "") +
           "\n  device memory: " + number(t.weight_bytes() + t.cache_bytes() + rest) + " bytes: weights " +
           number(t.weight_bytes()) + ", cache " + number(t.cache_bytes()) + " (" + number(t.context) + " positions, " +
           std::string(kernels::cache_codec_of(t.cache_element).name) + "), arena and state " + number(rest) + '\n';
    if (i + 1 == stages.size()) break;
    const crossing token = crossing_of(t, t.decode), chunk = crossing_of(t, t.prefill);
    out += "crosses: f32 [tokens, " + std::to_string(t.config->hidden_size) + "] of the stream, " +
           number(token.bytes()) + " bytes a token, " + number(chunk.bytes()) + " a chunk of " +
           std::to_string(chunk.rows) + "\n  through host memory: the host waits for the pass of stage " +
           std::to_string(i) + ", then submits that of stage " + std::to_string(i + 1) + '\n';
  }
  return out;
}

}  // namespace intaglio::plan
