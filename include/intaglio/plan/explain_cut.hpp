// SPDX-License-Identifier: MIT
// A cut plan as text and as JSON: each stage's layers and memory, and the bytes that cross between two stages.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <memory>
#include <span>
#include <string>

#include "intaglio/plan/cut.hpp"
#include "intaglio/plan/explain.hpp"

namespace intaglio::plan {

namespace explanation {

/// The title of a stage: "stage 0 on DEVICE, profile cpu: embedding, layers 0 to 1". @param devices as in explain_cut
inline std::string stage_title(std::size_t index, const stage& of, std::span<const std::string> devices) {
  const plan::table& t = of.table();
  const layer_range layers = of.layers();
  return "stage " + std::to_string(index) + (devices.size() > index ? " on " + devices[index] : std::string{}) +
         ", profile " + std::string(t.profile) + ": " + (layers.first == 0 ? "embedding, " : "") + "layers " +
         std::to_string(layers.first) + " to " + std::to_string(layers.end - 1) +
         (layers.end == t.model_layers ? ", head, sampler" : "");
}
/// What crosses after a stage.
inline std::string crossing_rows(const plan::table& t) {
  const crossing token = crossing_of(t, t.decode), chunk = crossing_of(t, t.prefill);
  return "f32 [tokens, " + std::to_string(t.config->hidden_size) + "] of the stream, " + number(token.bytes()) +
         " bytes a token, " + number(chunk.bytes()) + " a chunk of " + std::to_string(chunk.rows);
}
/// What the next stage's pass waits for. @param index of the stage before the crossing  @param chunk what crosses most
inline std::string crossing_wait(std::size_t index, const crossing& chunk) {
  const bool staged = &chunk.way() == &staged_crossing;
  return "through host memory: the host waits for the pass of stage " + std::to_string(index) +
         ", then submits that of stage " + std::to_string(index + 1) +
         (staged ? "; rows of a chunk cross on the queues for copies, while the devices compute" : "");
}

/// A stage as JSON. @param index of the stage  @param devices names of the stages' devices
inline std::string json(std::size_t index, const stage& of, std::span<const std::string> devices) {
  const plan::table& t = of.table();
  const bool is_last = of.layers().end == t.model_layers;
  const crossing token = crossing_of(t, t.decode), chunk = crossing_of(t, t.prefill);
  const row_memory rows = row_memory_of(t, false);
  return "{\"stage\":" + std::to_string(index) +
         ",\"device\":" + (devices.size() > index ? explanation::quoted(devices[index]) : "null") +
         ",\"first_layer\":" + std::to_string(of.layers().first) + ",\"end_layer\":" + std::to_string(of.layers().end) +
         ",\"embedding\":" + (of.layers().first == 0 ? "true" : "false") + ",\"head\":" + (is_last ? "true" : "false") +
         ",\"gives\":" +
         (is_last ? "null"
                  : "{\"type\":\"f32\",\"width\":" + std::to_string(t.config->hidden_size) + ",\"token_bytes\":" +
                        std::to_string(token.bytes()) + ",\"chunk_tokens\":" + std::to_string(chunk.rows) +
                        ",\"chunk_bytes\":" + std::to_string(chunk.bytes()) +
                        ",\"wait\":" + explanation::quoted(crossing_wait(index, chunk)) + "}") +
         ",\"row_bytes\":{\"device\":" + std::to_string(rows.of_device()) +
         ",\"host\":" + std::to_string(rows.of_host()) + "},\"plan\":" + explain_json(t, t.model) + "}";
}

}  // namespace explanation
/// Prints the stages of a cut and what crosses between them.
/// @param devices names of the stages' devices; stages past the list's end are printed without a name
inline std::string explain_cut(std::span<const std::shared_ptr<const stage>> stages,
                               std::span<const std::string> devices) {
  using explanation::number;
  std::string out;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const plan::table& t = stages[i]->table();
    const std::uint64_t rest = t.arena_bytes() + t.state_bytes() + kernels::ring_bytes(t.ring_size);
    const row_memory rows = row_memory_of(t, false);
    const std::uint64_t own_rows = rows.of_device() + (t.is_for_cpus() ? rows.of_host() : 0);
    out += explanation::stage_title(i, *stages[i], devices) +
           "\n  device memory: " + number(t.weight_bytes() + t.cache_bytes() + rest + own_rows) + " bytes: weights " +
           number(t.weight_bytes()) + ", cache " + number(t.cache_bytes()) + " (" + number(t.context) + " positions, " +
           std::string(kernels::cache_codec_of(t.cache_element).name) + "), arena and state " + number(rest) +
           ", rows that cross " + number(own_rows) + '\n';
    if (!t.is_for_cpus()) out += "  host memory: " + number(rows.of_host()) + " bytes for rows that cross\n";
    if (i + 1 == stages.size()) break;
    out += "crosses: " + explanation::crossing_rows(t) + "\n  " +
           explanation::crossing_wait(i, crossing_of(t, t.prefill)) + '\n';
  }
  return out;
}

/// The content of explain_cut() for scripts, with each stage's plan as explain_json() has it. @param devices as there
inline std::string explain_cut_json(std::span<const std::shared_ptr<const stage>> stages,
                                    std::span<const std::string> devices, std::string_view model) {
  std::string list;
  for (std::size_t i = 0; i < stages.size(); ++i)
    list += (i == 0 ? "" : ",") + explanation::json(i, *stages[i], devices);
  return "{\"model\":" + explanation::quoted(model) + ",\"stages\":[" + list + "]}";
}

}  // namespace intaglio::plan
