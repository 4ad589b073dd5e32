// SPDX-License-Identifier: MIT
// Recall@10 and time of a graph over random gates, zero-mean and of equal size as those of a layer are, against plain
// search over all of them. The default is a layer of Gemma-3 4B's shape at the default parameters. One thread, whose
// CPU time counts. Fails where the recall is below 0.95.
#include <intaglio/io/hnsw.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

using namespace intaglio::io;

namespace {

double seconds_since(std::clock_t start) { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int at, std::uint32_t otherwise) {
    return count > at ? static_cast<std::uint32_t>(std::strtoul(arguments[at], nullptr, 10)) : otherwise;
  };
  graph_parameters parameters;
  const std::size_t width = number(1, 2560), features = number(2, 10240);
  parameters = {number(3, parameters.links), number(4, parameters.construction), number(5, parameters.search)};
  const std::size_t queries = number(6, 100);
  if (count > 7 || width == 0 || features == 0 || queries == 0) {
    std::fprintf(stderr, "usage: hnsw [WIDTH [FEATURES [LINKS [CONSTRUCTION [SEARCH [QUERIES]]]]]]\n");
    return 2;
  }
  try {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> gate(width * features), x(width * queries);
    for (float& value : gate) value = normal(random);
    for (float& value : x) value = normal(random);
    std::clock_t start = std::clock();
    const hnsw_graph graph(gate, width, parameters);
    const double built = seconds_since(start);
    double plain = 0, searched = 0;
    std::size_t found = 0;
    for (std::size_t q = 0; q < queries; ++q) {
      const auto query = std::span(x).subspan(q * width, width);
      start = std::clock();
      const auto exact = nearest_gates(gate, query, 10);
      plain += seconds_since(start);
      start = std::clock();
      const auto near = graph.nearest(query, 10);
      searched += seconds_since(start);
      for (const near_feature& each : near) found += static_cast<std::size_t>(std::ranges::count(exact, each));
    }
    const double many = static_cast<double>(queries), recall = static_cast<double>(found) / (10 * many);
    std::printf("%zu gates of %zu, %u links, construction %u, search %u, %zu queries\n", features, width,
                parameters.links, parameters.construction, parameters.search, queries);
    std::printf("built in %.1f s, %zu bytes of links\nrecall@10 %.3f\nby the graph %.2f ms, by plain search %.2f ms\n",
                built, feature_links_bytes(graph.links(), parameters).size(), recall, 1e3 * searched / many,
                1e3 * plain / many);
    return recall >= 0.95 ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "hnsw: %s\n", failure.what());
    return 1;
  }
}
