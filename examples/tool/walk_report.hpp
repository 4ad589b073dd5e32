// SPDX-License-Identifier: MIT
// What the reports of walk's commands have in common: JSON, rows of a table, the journal, the graphs of an index.
#pragma once

#include "graph_search.hpp"
#include "walked_files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace intaglio::tool {

inline std::string dumped_json(const nlohmann::ordered_json& of) {
  return of.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// The changes of the index that count, none with --base.
inline const io::feature_patch* journal(const walked_files& files, const walk_options& options) {
  return options.base ? nullptr : &files.patch;
}

/// A row of right-aligned cells, 12 wide.
inline std::string aligned_row(const std::vector<std::string>& cells) {
  std::string out;
  for (const auto& each : cells) out += std::string(each.size() < 12 ? 12 - each.size() : 1, ' ') + each;
  return out;
}
inline std::string scientific_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

/// How the graph of a layer compares with plain search over all gates.
struct graph_figures {
  std::uint32_t layer = 0;
  std::size_t searches = 0, found = 0, wanted = 0;  ///< of the features that are nearest, those that the graph found
  double exact = 0, graph = 0;                      ///< nanoseconds
  double recall() const { return wanted == 0 ? 1 : static_cast<double>(found) / static_cast<double>(wanted); }
  double each(double ns) const { return searches == 0 ? 0 : ns / static_cast<double>(searches); }
};
/// The graphs of an index, opened layer by layer. What its journal changed is scored besides, since no links lead
/// there.
class walked_graphs {
 public:
  walked_graphs(const walked_files& files, const io::feature_patch* journal) : files_(files) {
    expect_one_ffn(files.source.config(), "--hnsw", "plain search looks at the gates of a token's own experts alone");
    if (io::feature_graph_layers(files.index) != files.index.layers())
      throw file_error((files.index.path() / io::feature_graph_file).string(), std::nullopt, "the graph",
                       "all layers; `intaglio index MODEL -o INDEX --hnsw` makes them",
                       std::to_string(io::feature_graph_layers(files.index)));
    if (journal != nullptr) changed_ = journal->changed();
    for (std::uint32_t layer = 0; layer < files.index.layers(); ++layer) figures_.push_back({.layer = layer});
  }
  /// The features nearest to a gate input, timed and compared with plain search.
  std::vector<io::near_feature> nearest(const reference::walked_ffn& of, std::size_t count) {
    using clock = std::chrono::steady_clock;
    graph_figures& figures = figures_[of.layer];
    opened& layer = opened_[of.layer];
    if (layer.gate.data() != of.vectors.gate.data() || !layer.search)
      layer = {of.vectors.gate, open_graph(files_.index, of.layer, of.vectors.gate)};
    const auto start = clock::now();
    const auto exact = io::nearest_gates(of.vectors.gate, of.input, count);
    const auto scored = clock::now();
    auto out = layer.search(of.input, count);
    for (const io::changed_feature& each : changed_)
      if (each.layer == of.layer) {
        std::erase_if(out, [&](const io::near_feature& at) { return at.feature == each.feature; });
        out.push_back({each.feature,
                       io::gates::fastest_dot()(
                           reference::walked_layer::row(of.vectors.gate, each.feature, of.vectors.hidden_size).data(),
                           of.input.data(), of.input.size())});
      }
    std::ranges::sort(out, io::gates::nearer);
    out.resize(std::min(out.size(), count));
    const auto searched = clock::now();
    figures.exact += std::chrono::duration<double, std::nano>(scored - start).count();
    figures.graph += std::chrono::duration<double, std::nano>(searched - scored).count();
    ++figures.searches;
    figures.wanted += exact.size();
    for (const auto& each : out)
      figures.found += static_cast<std::size_t>(std::ranges::count(exact, each.feature, &io::near_feature::feature));
    return out;
  }
  /// Figures of each layer that was searched, and of all layers together.
  std::vector<graph_figures> figures() const {
    std::vector<graph_figures> out;
    graph_figures all;
    for (const graph_figures& each : figures_) {
      if (each.searches == 0) continue;
      out.push_back(each);
      all.searches += each.searches, all.found += each.found, all.wanted += each.wanted, all.exact += each.exact,
          all.graph += each.graph;
    }
    out.push_back(all);
    return out;
  }
  nlohmann::ordered_json as_json() const {
    using json = nlohmann::ordered_json;
    json out = json::array();
    const auto all = figures();
    for (std::size_t i = 0; i < all.size(); ++i)
      out.push_back({{"layer", i + 1 == all.size() ? json("all") : json(all[i].layer)},
                     {"recall", all[i].recall()},
                     {"exact_us", all[i].each(all[i].exact) / 1e3},
                     {"graph_us", all[i].each(all[i].graph) / 1e3}});
    return out;
  }
  void print(std::size_t count) const {
    print_line("the nearest " + std::to_string(count) +
               " by the graph against plain search over all gates, us a search");
    print_line(aligned_row({"layer", "recall", "graph", "plain"}));
    const auto all = figures();
    for (std::size_t i = 0; i < all.size(); ++i)
      print_line(aligned_row({i + 1 == all.size() ? "all" : std::to_string(all[i].layer), fixed(all[i].recall(), 3),
                              fixed(all[i].each(all[i].graph) / 1e3, 1), fixed(all[i].each(all[i].exact) / 1e3, 1)}));
  }

 private:
  struct opened {
    std::span<const float> gate;
    graph_search search;
  };
  const walked_files& files_;
  std::vector<io::changed_feature> changed_;
  std::map<std::uint32_t, opened> opened_;
  std::vector<graph_figures> figures_;
};

}  // namespace intaglio::tool
