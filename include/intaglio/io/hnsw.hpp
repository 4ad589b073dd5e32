// SPDX-License-Identifier: MIT
// HNSW graphs over the gates of a feature index, made and searched by hnswlib (https://github.com/nmslib/hnswlib,
// header-only, 0.6.2 or newer). Only this header needs hnswlib. hnswlib's own files are never read; the links come from
// feature_graph.hpp.
#pragma once

#include "intaglio/core/compiler.hpp"

#if !__has_include(<hnswlib/hnswlib.h>)
#error "intaglio/io/hnsw.hpp needs hnswlib (Debian: libhnswlib-dev): see docs/packaging.md"
#endif
// Distances come from nearest_gates.hpp. With its own distances off, hnswlib 0.6.2 defines no functions that two files
// of a program would both define.
#ifndef NO_MANUAL_VECTORIZATION
#define NO_MANUAL_VECTORIZATION
#endif
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "intaglio/io/feature_graph.hpp"
#include "intaglio/io/feature_index_build.hpp"
#include "intaglio/io/nearest_gates.hpp"

namespace intaglio::io {

/// A layer's graph. The nearest features are those with the largest magnitude of the inner product, whatever its sign,
/// as features are ranked. Not movable; several threads may search at once.
class hnsw_graph {
 public:
  /// @param gate   [features, width], which must outlive the graph; hnswlib holds an address for each
  /// @param added  counts the features that were added
  /// @throws argument_error for parameters out of range, gates of another width, numbers that are none
  hnsw_graph(std::span<const float> gate, std::size_t width, const graph_parameters& parameters,
             std::atomic<std::uint64_t>* added = nullptr)
      : hnsw_graph(gate, width, parameters, empty{}) {
    guarded([&] {
      for (std::size_t f = 0; f < features_; ++f) {
        const float* row = gate.data() + f * width;
        graph_->addPoint(&row, f);
        if (added != nullptr) ++*added;
      }
    });
  }
  /// Makes a graph from existing links. A vector may have changed since: it is found where its links lead.
  /// @param gate  at least one vector for each feature of the links; further ones are not searched
  hnsw_graph(std::span<const float> gate, std::size_t width, const graph_parameters& parameters,
             const feature_links& links)
      : hnsw_graph(gate.first((std::min)(gate.size(), links.features() * width)), width, parameters, empty{}) {
    if (links.features() != features_)
      throw argument_error("gates", std::to_string(links.features()) + " of the graph", std::to_string(features_));
    guarded([&] { take(gate, links); });
  }
  hnsw_graph(const hnsw_graph&) = delete;
  hnsw_graph& operator=(const hnsw_graph&) = delete;

  std::size_t features() const { return features_; }
  const graph_parameters& parameters() const { return parameters_; }

  feature_links links() const {
    feature_links out;
    out.entry = graph_->enterpoint_node_;
    for (std::uint32_t f = 0; f < features_; ++f) {
      const auto levels = static_cast<std::uint32_t>(graph_->element_levels_[f]);
      if (levels > graph_limits::level)
        throw argument_error("level of feature " + std::to_string(f), "at most " + std::to_string(graph_limits::level),
                             std::to_string(levels));
      out.add_feature(levels);
      for (std::uint32_t level = 0; level <= levels; ++level) {
        auto* const list = graph_->get_linklist_at_level(f, static_cast<int>(level));
        out.add_links({list + 1, graph_->getListCount(list)});
      }
    }
    return out;
  }

  /// The `count` features that the search finds nearest, the nearest first; fewer where it reaches fewer.
  /// @param x  [width]  @throws argument_error for another width or numbers that are not finite
  std::vector<near_feature> nearest(std::span<const float> x, std::size_t count) const {
    gates::expect_query(x, space_->width);
    std::vector<near_feature> out;
    const float* query = x.data();
    guarded([&] {
      for (auto found = graph_->searchKnn(&query, (std::min)(count, features_)); !found.empty(); found.pop()) {
        const auto feature = static_cast<std::uint32_t>(found.top().second);
        float* row = nullptr;
        std::memcpy(&row, graph_->getDataByInternalId(feature), sizeof row);
        out.push_back({feature, space_->dot(row, query, space_->width)});
      }
    });
    std::ranges::sort(out, gates::nearer);
    return out;
  }

 private:
  struct empty {};
  /// The vector space for hnswlib: it stores an address where hnswlib would store a vector, so the gates are in memory
  /// once.
  struct space final : hnswlib::SpaceInterface<float> {
    explicit space(std::size_t columns) : width(columns) {}
    std::size_t get_data_size() override { return sizeof(const float*); }
    hnswlib::DISTFUNC<float> get_dist_func() override {
      return [](const void* a, const void* b, const void* of) {
        const float *one = nullptr, *two = nullptr;
        std::memcpy(&one, a, sizeof one);
        std::memcpy(&two, b, sizeof two);
        const auto& self = *static_cast<const space*>(of);
        const float size = std::fabs(self.dot(one, two, self.width));
        return size == size ? -size : 0.f;  // both sums overflowed
      };
    }
    void* get_dist_func_param() override { return this; }
    std::size_t width;
    gates::dot_function dot = gates::fastest_dot();
  };
  using graph = hnswlib::HierarchicalNSW<float>;

  hnsw_graph(std::span<const float> gate, std::size_t width, const graph_parameters& parameters, empty)
      : features_(width == 0 ? 0 : gate.size() / width), parameters_(parameters),
        space_(std::make_unique<space>(width)) {
    expect_graph_parameters(parameters);
    if (features_ == 0 || gate.size() != features_ * width || features_ > config_limits::intermediate_size)
      throw argument_error(
          "gates", "1 to " + std::to_string(config_limits::intermediate_size) + " vectors of " + std::to_string(width),
          std::to_string(gate.size()) + " values");
    for (const float value : gate)
      if (!std::isfinite(value))
        throw argument_error("gates", "finite numbers", std::isnan(value) ? "NaN" : "infinity");
    guarded([&] {
      graph_ = std::make_unique<graph>(space_.get(), features_, parameters.links, parameters.construction);
      graph_->setEf(parameters.search);
    });
  }

  /// Puts links into hnswlib's structure, as addPoint would; feature_links_of has checked them.
  void take(std::span<const float> gate, const feature_links& links) {
    const auto list = [&](hnswlib::linklistsizeint* to, std::span<const std::uint32_t> from) {
      graph_->setListCount(to, static_cast<unsigned short>(from.size()));
      std::ranges::copy(from, to + 1);
    };
    for (std::uint32_t f = 0; f < features_; ++f) {
      std::memset(graph_->data_level0_memory_ + f * graph_->size_data_per_element_, 0, graph_->size_data_per_element_);
      const float* row = gate.data() + f * space_->width;
      std::memcpy(graph_->getDataByInternalId(f), &row, sizeof row);
      graph_->setExternalLabel(f, f);
      const std::uint32_t levels = links.level(f);
      if (levels != 0) {
        const std::size_t bytes = graph_->size_links_per_element_ * levels + 1;
        graph_->linkLists_[f] = static_cast<char*>(std::calloc(bytes, 1));  // hnswlib frees it
        if (graph_->linkLists_[f] == nullptr) throw std::bad_alloc();
      }
      graph_->element_levels_[f] = static_cast<int>(levels);
      graph_->cur_element_count = f + 1;
      for (std::uint32_t level = 0; level <= levels; ++level)
        list(graph_->get_linklist_at_level(f, static_cast<int>(level)), links.at(f, level));
    }
    graph_->enterpoint_node_ = links.entry;
    graph_->maxlevel_ = static_cast<int>(links.level(links.entry));
  }

  /// Converts hnswlib's std::runtime_error.
  template <class Work>
  static void guarded(Work&& work) {
    try {
      work();
    } catch (const error&) { throw; } catch (const std::runtime_error& failure) {
      throw error("hnswlib: " + printable(failure.what(), 200));
    }
  }

  std::size_t features_;
  graph_parameters parameters_;
  std::unique_ptr<space> space_;
  std::unique_ptr<graph> graph_;
};
/// Options for building a graph.
struct hnsw_build_options {
  graph_parameters parameters{};
  unsigned threads =
      0;  ///< layers that are processed at once, each with its gates in memory in f32; 0: one for each processor
  std::function<void(const file_progress&)> progress = {};  ///< called on the calling thread; counts gates
};
/// What a build of a graph wrote.
struct hnsw_build_report {
  std::uint32_t layers = 0, kept = 0;  ///< layers in the graph; of these, layers that an earlier build had made
  std::uint64_t bytes = 0;             ///< of the layers' files
};

/// Makes or completes the graph of an index, layer by layer. Each file is complete and on the disk before hnsw.json
/// names it. A complete graph is left unchanged, except for the parameter of searches. The bytes do not depend on the
/// number of threads.
/// @throws mismatch_error where a graph with other parameters exists; file_error
inline hnsw_build_report build_hnsw(const feature_index& index, const hnsw_build_options& options = {}) {
  expect_graph_parameters(options.parameters);
  const locked_folder lock(index.path());
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(index.path(), ignored))  // files that a killed build left unfinished
    if (const std::string file = entry.path().filename().string();
        file.starts_with("hnsw") && file.find(".partial-") != std::string::npos)
      std::filesystem::remove(entry.path(), ignored);

  feature_graph_manifest manifest{index.identity(), options.parameters, {}};
  const auto path = index.path() / feature_graph_file;
  if (std::filesystem::exists(path, ignored)) {
    const feature_graph_manifest before = read_feature_graph_manifest(index);
    std::vector<std::string> lines;
    if (before.parameters.links != options.parameters.links)
      lines.push_back("links: wanted " + std::to_string(options.parameters.links) + ", file " +
                      std::to_string(before.parameters.links));
    if (before.parameters.construction != options.parameters.construction)
      lines.push_back("construction: wanted " + std::to_string(options.parameters.construction) + ", file " +
                      std::to_string(before.parameters.construction));
    if (!lines.empty()) throw mismatch_error(path.string(), lines, {});
    for (std::uint32_t layer = 0; layer < before.layers.size(); ++layer) read_feature_links(index, before, layer);
    manifest.layers = before.layers;
    if (before.parameters.search != options.parameters.search) write_feature_graph_manifest(index.path(), manifest);
  }
  hnsw_build_report report{index.layers(), static_cast<std::uint32_t>(manifest.layers.size())};

  const std::uint64_t width = index.config().hidden_size, row = width * sizeof(float);
  std::uint64_t kept = 0;
  file_progress progress;
  progress.total_tensors = index.layers();
  for (std::uint32_t layer = 0; layer < index.layers(); ++layer) {
    progress.total_bytes += index.layer(layer).features * row;
    if (layer < report.kept) kept += index.layer(layer).features * row;
  }
  std::atomic<std::uint64_t> added = 0;
  const auto report_progress = [&] {
    progress.tensors = manifest.layers.size();
    progress.bytes = kept + added * row;
    if (options.progress) options.progress(progress);
  };
  const auto make = [&](std::uint32_t layer) {
    std::vector<float> gate(static_cast<std::size_t>(index.layer(layer).features * width));
    index.read_f32(layer, feature_vector::gate, 0, index.layer(layer).features, gate);
    return feature_links_bytes(hnsw_graph(gate, static_cast<std::size_t>(width), options.parameters, &added).links(),
                               options.parameters);
  };
  const auto begun = [&](std::uint32_t layer) {
    try {
      return std::async(std::launch::async, make, layer);
    } catch (const std::system_error&) {  // the system gives no more threads
      return std::async(std::launch::deferred, make, layer);
    }
  };
  const unsigned threads = worker_threads(options.threads);
  for (std::uint32_t first = report.kept; first < index.layers(); first += threads) {
    std::vector<std::future<std::vector<std::byte>>> made;
    for (std::uint32_t layer = first; layer < index.layers() && layer - first < threads; ++layer)
      made.push_back(begun(layer));
    for (auto& each : made) {
      progress.tensor = "gates";
      do report_progress();
      while (each.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
      const std::vector<std::byte> bytes = each.get();
      index.expect_unchanged();
      atomic_file file(index.path() / feature_graph_layer_file(static_cast<std::uint32_t>(manifest.layers.size())));
      file.write(bytes);
      file.commit();
      manifest.layers.push_back({bytes.size(), crc32(bytes)});
      write_feature_graph_manifest(index.path(), manifest);
      report_progress();
    }
  }
  for (const feature_graph_layer& each : manifest.layers) report.bytes += each.bytes;
  return report;
}

}  // namespace intaglio::io
