// SPDX-License-Identifier: MIT
// Graphs over the gates of an index, where the tool was built with hnswlib; else asking for one is refused.
#pragma once

#include <intaglio/io/feature_graph.hpp>
#include <intaglio/io/nearest_gates.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace intaglio::tool {

struct graph_report {
  std::uint32_t layers = 0, kept = 0;
  std::uint64_t bytes = 0;
};
/// io::build_hnsw. @throws error where the tool was built without hnswlib
graph_report build_graph(const io::feature_index& index, const io::graph_parameters& parameters, unsigned threads,
                         std::function<void(const io::file_progress&)> progress);

using graph_search = std::function<std::vector<io::near_feature>(std::span<const float> x, std::size_t count)>;
/// A layer's graph. @param gate  of the layer as changed, [features, hidden_size]; must outlive it  @throws error as
/// above, file_error where the index has no graph
graph_search open_graph(const io::feature_index& index, std::uint32_t layer, std::span<const float> gate);

}  // namespace intaglio::tool
