// SPDX-License-Identifier: MIT
// walk bench: what an FFN costs on the CPU reference, dense and by each way of walking it (docs/walk.md).
#include "walk_report.hpp"

#include <array>
#include <numeric>
#include <optional>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

/// The rate at which one thread sums up a large buffer, in bytes a second, best of several runs: the limit for code
/// that reads each weight once.
double streaming_rate() {
  const std::vector<float> memory(std::size_t{1} << 24, 1.f);
  double best = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    std::array<float, 16> sums{};
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < memory.size(); i += sums.size())
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += memory[i + k];
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (std::accumulate(sums.begin(), sums.end(), 0.f) > 0)
      best = std::max(best, static_cast<double>(sizeof(float) * memory.size()) / seconds);
  }
  return best;
}

/// A way of computing FFNs, and what it cost.
struct walked_way {
  std::string name;
  reference::walk_choice choice;
  std::vector<double> layers{};  ///< ns of each layer's FFN, summed over tokens
  reference::walk_times parts{};
  double chosen = 0, written = 0;  ///< features; those of them whose down vectors add something
};

/// Vectors in f32 that a part of a walk must read for a token.
struct part_read {
  const char* name;
  double bytes, ns;

  /// Percent of a streaming read of as many bytes. @param rate bytes a second
  double limit(double rate) const { return ns == 0 ? 0 : 100 * bytes / (ns / 1e9) / rate; }
};

/// Measures the ways, and reports them.
class ffn_bench {
 public:
  explicit ffn_bench(const walk_options& options)
      : options_(options), files_(options.model, options.index, false),
        model_(files_.plans.cpu, files_.model(), files_.index, journal(files_, options)) {
    const std::size_t some = options.count.value_or(std::max(1u, features_of_token(config()) / 4));
    ways_ = {{.name = "dense", .choice = {.first_layer = config().num_hidden_layers}},
             {.name = "full", .choice = {}},
             {.name = "exact", .choice = {.active_only = true}},
             {.name = "sparse " + std::to_string(some), .choice = {.count = some}}};
  }

  void run() {
    ids_ = continued(files_, model_, files_.ids(options_.prompt, options_.ids), options_.tokens, nullptr);
    tokens_ = static_cast<double>(std::max<std::size_t>(1, ids_.size() - 1));
    progress_bar bar("walking");
    for (std::size_t w = 0; w < ways_.size(); ++w) measure(w, bar);
    if (options_.hnsw) {
      graphs_.emplace(files_, journal(files_, options_));
      model_.restart();
      for (const std::uint32_t id : ids_)
        model_.feed(id, &ways_[2].choice, [&](const reference::walked_ffn& of) { graphs_->nearest(of, 10); });
    }
    bar.clear();
    rate_ = streaming_rate();
    options_.json ? print_line(dumped_json(as_json())) : print();
  }

 private:
  const decoder_config& config() const { return files_.source.config(); }
  double us(double ns) const { return ns / 1e3 / tokens_; }
  double whole(const walked_way& of) const { return us(std::accumulate(of.layers.begin(), of.layers.end(), 0.)); }
  std::array<part_read, 3> reads(const walked_way& of) const {
    const double vector = 4. * config().hidden_size;
    return {
        part_read{"gate", vector * features_of_token(config()) * config().num_hidden_layers, of.parts.gate / tokens_},
        part_read{"gather", vector * of.chosen / tokens_, of.parts.gather / tokens_},
        part_read{"accumulate", vector * of.written / tokens_, of.parts.accumulate / tokens_}};
  }

  void measure(std::size_t w, progress_bar& bar) {
    walked_way& each = ways_[w];
    each.layers.assign(config().num_hidden_layers, 0);
    model_.restart();
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      bar.show(static_cast<double>(w * ids_.size() + i) / static_cast<double>(ways_.size() * ids_.size()), each.name);
      if (i == 0) {  // reads weights and vectors
        model_.feed(ids_[i], &each.choice);
        continue;
      }
      model_.feed(
          ids_[i], &each.choice, [&](const reference::walked_ffn& of) { add(each, of); },
          [&](std::uint32_t layer, double ns) { each.layers[layer] += ns; });
    }
  }
  static void add(walked_way& to, const reference::walked_ffn& of) {
    to.layers[of.layer] += of.times.all();
    to.parts.gate += of.times.gate, to.parts.select += of.times.select;
    to.parts.gather += of.times.gather, to.parts.accumulate += of.times.accumulate;
    to.chosen += static_cast<double>(of.chosen.size());
    to.written += static_cast<double>(std::ranges::count_if(of.values, [](float value) { return value != 0; }));
  }

  json as_json() const {
    json out{{"tokens", ids_.size() - 1}, {"unit", "us a token, CPU reference"}, {"streaming_read", rate_}};
    for (const walked_way& each : ways_) {
      json layers = json::array();
      for (const double ns : each.layers) layers.push_back(us(ns));
      out["ways"].push_back({{"name", each.name},
                             {"ffn", whole(each)},
                             {"layers", layers},
                             {"features", each.chosen / tokens_ / config().num_hidden_layers},
                             {"profile",
                              {{"gate", us(each.parts.gate)},
                               {"select", us(each.parts.select)},
                               {"gather", us(each.parts.gather)},
                               {"accumulate", us(each.parts.accumulate)}}}});
      for (const part_read& read : reads(each))
        if (each.chosen != 0)
          out["ways"].back()["reads"].push_back(
              {{"part", read.name}, {"bytes", read.bytes}, {"percent_of_streaming_read", read.limit(rate_)}});
    }
    if (graphs_) out["hnsw"] = graphs_->as_json();
    return out;
  }

  void print() const {
    print_line("FFNs on the CPU reference, us a token over " + std::to_string(ids_.size() - 1) + " tokens");
    print_layers();
    print_parts();
    print_line("bytes that each must read, and percent of a streaming read by one thread, " + fixed(rate_ / 1e9, 1) +
               " GB/s");
    print_line(aligned_row({"", "gate", "", "gather", "", "accumulate", ""}));
    for (const walked_way& each : ways_) {
      if (each.chosen == 0) continue;
      std::vector<std::string> cells{each.name};
      for (const part_read& read : reads(each))
        cells.insert(cells.end(), {bytes_text(read.bytes), fixed(read.limit(rate_), 1) + " %"});
      print_line(aligned_row(cells));
    }
    if (graphs_) graphs_->print(10);
  }
  void print_layers() const {
    std::vector<std::string> head{"layer"};
    for (const walked_way& each : ways_) head.push_back(each.name);
    print_line(aligned_row(head));
    const std::uint32_t layers = config().num_hidden_layers;
    for (std::uint32_t layer = 0; layer <= layers; ++layer) {
      std::vector<std::string> cells{layer == layers ? "all" : std::to_string(layer)};
      for (const walked_way& each : ways_)
        cells.push_back(fixed(layer == layers ? whole(each) : us(each.layers[layer]), 1));
      print_line(aligned_row(cells));
    }
  }
  void print_parts() const {
    print_line("of which");
    print_line(aligned_row({"", "gate", "select", "gather", "accumulate", "features"}));
    for (const walked_way& each : ways_) {
      if (each.chosen == 0) continue;
      const double share = each.chosen / tokens_ / config().num_hidden_layers / features_of_token(config());
      print_line(aligned_row({each.name, fixed(us(each.parts.gate), 1), fixed(us(each.parts.select), 1),
                              fixed(us(each.parts.gather), 1), fixed(us(each.parts.accumulate), 1),
                              fixed(100 * share, 1) + " %"}));
    }
  }

  const walk_options& options_;
  walked_files files_;
  runtime::walked_model model_;
  std::vector<walked_way> ways_;
  std::vector<std::uint32_t> ids_{};
  std::optional<walked_graphs> graphs_{};
  double tokens_ = 1, rate_ = 0;
};

}  // namespace

void walk_bench(const walk_options& options) { ffn_bench(options).run(); }

}  // namespace intaglio::tool
