// SPDX-License-Identifier: MIT
// Apart from the others: what only hnswlib needs.
#include "graph_search.hpp"

#if __has_include(<hnswlib/hnswlib.h>)
#include <intaglio/io/hnsw.hpp>
#endif

namespace intaglio::tool {

#if __has_include(<hnswlib/hnswlib.h>)

graph_report build_graph(const io::feature_index& index, const io::graph_parameters& parameters, unsigned threads,
                         std::function<void(const io::file_progress&)> progress) {
  const io::hnsw_build_report made =
      io::build_hnsw(index, {.parameters = parameters, .threads = threads, .progress = std::move(progress)});
  return {made.layers, made.kept, made.bytes};
}
graph_search open_graph(const io::feature_index& index, std::uint32_t layer, std::span<const float> gate) {
  const io::feature_graph_manifest manifest = io::read_feature_graph_manifest(index);
  const auto graph = std::make_shared<io::hnsw_graph>(gate, index.config().hidden_size, manifest.parameters,
                                                      io::read_feature_links(index, manifest, layer));
  return [graph](std::span<const float> x, std::size_t count) { return graph->nearest(x, count); };
}

#else

namespace {
[[noreturn]] void refuse() { throw error("--hnsw: this program was built without hnswlib (docs/packaging.md)"); }
}  // namespace

graph_report build_graph(const io::feature_index&, const io::graph_parameters&, unsigned,
                         std::function<void(const io::file_progress&)>) {
  refuse();
}
graph_search open_graph(const io::feature_index&, std::uint32_t, std::span<const float>) { refuse(); }

#endif

}  // namespace intaglio::tool
