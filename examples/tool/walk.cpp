// SPDX-License-Identifier: MIT
// walk run, bench, sweep, memory and knn: a model's FFNs walked feature by feature on the CPU reference (docs/walk.md).
#include "device_gates.hpp"
#include "graph_search.hpp"
#include "walk_page.hpp"
#include "walked_files.hpp"

#include <intaglio/platform/facts.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

std::string dumped(const json& of) { return of.dump(-1, ' ', false, json::error_handler_t::replace); }
const io::feature_patch* journal(const walked_files& files, const walk_options& options) {
  return options.base ? nullptr : &files.patch;
}

/// A row of right-aligned cells, 12 wide.
std::string row(const std::vector<std::string>& cells) {
  std::string out;
  for (const auto& each : cells) out += std::string(each.size() < 12 ? 12 - each.size() : 1, ' ') + each;
  return out;
}
std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

/// Logits behind every token. @param choice nullptr: dense
std::vector<std::vector<float>> all_logits(runtime::walked_model& model, std::span<const std::uint32_t> ids,
                                           const reference::walk_choice* choice) {
  std::vector<std::vector<float>> out;
  model.restart();
  for (const std::uint32_t id : ids) {
    const auto row = model.feed(id, choice);
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}
runtime::walk_error error_of(const std::vector<std::vector<float>>& walked,
                             const std::vector<std::vector<float>>& dense) {
  runtime::walk_error out;
  for (std::size_t i = 0; i < dense.size(); ++i) out.add(walked[i], dense[i]);
  return out;
}

/// Bytes a second that one thread sums up in a large buffer, the best of some times: the limit of what reads each
/// weight once.
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

/// Gate, up or down, of a layer or of all its experts.
bool is_ffn_matrix(std::string_view name) {
  const std::string_view ends[] = {".weight", "_exps.weight"}, kinds[] = {"ffn_gate", "ffn_up", "ffn_down"};
  return std::ranges::any_of(kinds, [&](std::string_view kind) {
    return name.starts_with(kind) && std::ranges::find(ends, name.substr(kind.size())) != std::end(ends);
  });
}

/// How a layer's graph does against plain search over all gates.
struct graph_figures {
  std::uint32_t layer = 0;
  std::size_t searches = 0, found = 0, wanted = 0;  ///< of the features that are nearest, those that the graph found
  double exact = 0, graph = 0;                      ///< nanoseconds
  double recall() const { return wanted == 0 ? 1 : static_cast<double>(found) / static_cast<double>(wanted); }
  double each(double ns) const { return searches == 0 ? 0 : ns / static_cast<double>(searches); }
};
/// The graphs of an index, opened layer by layer. What its journal changed is scored besides, since no links lead
/// there.
class graphs {
 public:
  graphs(const walked_files& files, const io::feature_patch* journal) : files_(files) {
    expect_one_ffn(files.source.config(), "--hnsw", "plain search looks at the gates of a token's own experts alone");
    if (io::feature_graph_layers(files.index) != files.index.layers())
      throw file_error((files.index.path() / io::feature_graph_file).string(), std::nullopt, "the graph",
                       "all layers; `intaglio index MODEL -o INDEX --hnsw` makes them",
                       std::to_string(io::feature_graph_layers(files.index)));
    if (journal != nullptr) changed_ = journal->changed();
    for (std::uint32_t layer = 0; layer < files.index.layers(); ++layer) figures_.push_back({.layer = layer});
  }
  /// The features nearest to a gate input, timed and held against plain search.
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
  /// Of the layers that were searched, and all of them as one.
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
  json as_json() const {
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
    print_line(row({"layer", "recall", "graph", "plain"}));
    const auto all = figures();
    for (std::size_t i = 0; i < all.size(); ++i)
      print_line(row({i + 1 == all.size() ? "all" : std::to_string(all[i].layer), fixed(all[i].recall(), 3),
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

}  // namespace

void walk_run(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, journal(files, options));
  const auto ids = files.ids(options.prompt, options.ids);
  reference::walk_choice choice{.active_only = !options.count};
  if (options.count) choice.count = *options.count;
  const auto whole = continued(files, model, ids, options.tokens, &choice);
  const std::vector<std::int32_t> made(whole.begin() + static_cast<std::ptrdiff_t>(ids.size()), whole.end());
  std::string text;
  if (files.words)
    io::append_replacing_invalid(
        text, files.words->decode(std::vector<std::int32_t>(whole.begin(), whole.end()), {.skip_control = true}));
  if (options.json)
    return print_line(
        dumped(json{{"text", text}, {"ids", made}, {"changes", options.base ? 0 : files.patch.changes()}}));
  print_line(text);
}

void walk_bench(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, journal(files, options));
  const decoder_config& c = files.source.config();
  auto ids = files.ids(options.prompt, options.ids);
  ids = continued(files, model, ids, options.tokens, nullptr);
  const std::size_t some = options.count.value_or(std::max(1u, features_of_token(c) / 4));
  struct way {
    std::string name;
    reference::walk_choice choice;
    std::vector<double> layers;  ///< ns of each layer's FFN, summed over tokens
    reference::walk_times parts{};
    double chosen = 0, written = 0;  ///< features; those of them whose down vectors add something
  };
  std::vector<way> ways{{"dense", {.first_layer = c.num_hidden_layers}, {}},
                        {"full", {}, {}},
                        {"exact", {.active_only = true}, {}},
                        {"sparse " + std::to_string(some), {.count = some}, {}}};
  progress_bar bar("walking");
  for (std::size_t w = 0; w < ways.size(); ++w) {
    way& each = ways[w];
    each.layers.assign(c.num_hidden_layers, 0);
    model.restart();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      bar.show(static_cast<double>(w * ids.size() + i) / static_cast<double>(ways.size() * ids.size()), each.name);
      if (i == 0) {  // reads weights and vectors
        model.feed(ids[i], &each.choice);
        continue;
      }
      model.feed(
          ids[i], &each.choice,
          [&](const reference::walked_ffn& of) {
            each.layers[of.layer] += of.times.all();
            each.parts.gate += of.times.gate, each.parts.select += of.times.select,
                each.parts.gather += of.times.gather, each.parts.accumulate += of.times.accumulate;
            each.chosen += static_cast<double>(of.chosen.size());
            each.written +=
                static_cast<double>(std::ranges::count_if(of.values, [](float value) { return value != 0; }));
          },
          [&](std::uint32_t layer, double ns) { each.layers[layer] += ns; });
    }
  }
  std::optional<graphs> by_graph;
  if (options.hnsw) {
    by_graph.emplace(files, journal(files, options));
    model.restart();
    for (const std::uint32_t id : ids)
      model.feed(id, &ways[2].choice, [&](const reference::walked_ffn& of) { by_graph->nearest(of, 10); });
  }
  bar.clear();
  const double tokens = static_cast<double>(std::max<std::size_t>(1, ids.size() - 1));
  const auto us = [&](double ns) { return ns / 1e3 / tokens; };
  const auto whole = [&](const way& of) { return us(std::accumulate(of.layers.begin(), of.layers.end(), 0.)); };
  // Vectors in f32 that a part must read, bytes a token; and its share of a streaming read of as many.
  const double rate = streaming_rate(), vector = 4. * c.hidden_size;
  struct part_read {
    const char* name;
    double bytes, ns;
    double limit(double of) const { return ns == 0 ? 0 : 100 * bytes / (ns / 1e9) / of; }
  };
  const auto reads = [&](const way& of) {
    const double all = vector * features_of_token(c) * c.num_hidden_layers, ups = vector * of.chosen / tokens,
                 downs = vector * of.written / tokens;
    return std::array{part_read{"gate", all, of.parts.gate / tokens},
                      part_read{"gather", ups, of.parts.gather / tokens},
                      part_read{"accumulate", downs, of.parts.accumulate / tokens}};
  };
  if (options.json) {
    json out{{"tokens", ids.size() - 1}, {"unit", "us a token, CPU reference"}, {"streaming_read", rate}};
    for (const way& each : ways) {
      json layers = json::array();
      for (const double ns : each.layers) layers.push_back(us(ns));
      out["ways"].push_back({{"name", each.name},
                             {"ffn", whole(each)},
                             {"layers", layers},
                             {"features", each.chosen / tokens / c.num_hidden_layers},
                             {"profile",
                              {{"gate", us(each.parts.gate)},
                               {"select", us(each.parts.select)},
                               {"gather", us(each.parts.gather)},
                               {"accumulate", us(each.parts.accumulate)}}}});
      for (const part_read& read : reads(each))
        if (each.chosen != 0)
          out["ways"].back()["reads"].push_back(
              {{"part", read.name}, {"bytes", read.bytes}, {"percent_of_streaming_read", read.limit(rate)}});
    }
    if (by_graph) out["hnsw"] = by_graph->as_json();
    return print_line(dumped(out));
  }
  print_line("FFNs on the CPU reference, us a token over " + std::to_string(ids.size() - 1) + " tokens");
  std::vector<std::string> head{"layer"};
  for (const way& each : ways) head.push_back(each.name);
  print_line(row(head));
  for (std::uint32_t layer = 0; layer <= c.num_hidden_layers; ++layer) {
    std::vector<std::string> cells{layer == c.num_hidden_layers ? "all" : std::to_string(layer)};
    for (const way& each : ways)
      cells.push_back(fixed(layer == c.num_hidden_layers ? whole(each) : us(each.layers[layer]), 1));
    print_line(row(cells));
  }
  print_line("of which");
  print_line(row({"", "gate", "select", "gather", "accumulate", "features"}));
  for (const way& each : ways)
    if (each.chosen != 0)
      print_line(row({each.name, fixed(us(each.parts.gate), 1), fixed(us(each.parts.select), 1),
                      fixed(us(each.parts.gather), 1), fixed(us(each.parts.accumulate), 1),
                      fixed(100 * each.chosen / tokens / c.num_hidden_layers / features_of_token(c), 1) + " %"}));
  print_line("bytes that each must read, and percent of a streaming read by one thread, " + fixed(rate / 1e9, 1) +
             " GB/s");
  print_line(row({"", "gate", "", "gather", "", "accumulate", ""}));
  for (const way& each : ways) {
    if (each.chosen == 0) continue;
    std::vector<std::string> cells{each.name};
    for (const part_read& read : reads(each))
      cells.insert(cells.end(), {bytes_text(read.bytes), fixed(read.limit(rate), 1) + " %"});
    print_line(row(cells));
  }
  if (by_graph) by_graph->print(10);
}

void walk_sweep(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, journal(files, options));
  const decoder_config& c = files.source.config();
  const auto ids = continued(files, model, files.ids(options.prompt, options.ids), options.tokens, nullptr);
  const auto dense = all_logits(model, ids, nullptr);
  const std::size_t features = features_of_token(c);
  std::vector<std::size_t> counts;
  for (std::size_t k = 16; k < features; k *= 2) {
    counts.push_back(k);
    if (k * 3 / 2 < features) counts.push_back(k * 3 / 2);
  }
  counts.push_back(features);
  std::vector<boundary_point> boundaries;
  std::vector<count_point> curve;
  progress_bar bar("sweeping");
  const double steps = static_cast<double>(counts.size()) + c.num_hidden_layers + 1;
  for (std::uint32_t first = 0; first <= c.num_hidden_layers; ++first) {
    bar.show(first / steps, "dense below layer " + std::to_string(first));
    const reference::walk_choice choice{.first_layer = first};
    boundaries.push_back({first, error_of(all_logits(model, ids, &choice), dense)});
  }
  for (const std::size_t k : counts) {
    bar.show((c.num_hidden_layers + 1. + static_cast<double>(curve.size())) / steps, std::to_string(k) + " features");
    const reference::walk_choice choice{.count = k};
    curve.push_back({k, error_of(all_logits(model, ids, &choice), dense)});
  }
  bar.clear();
  if (!options.html.empty()) {
    io::atomic_file file(platform::path_of(options.html));
    const std::string page = sweep_page(files.plans.name, ids.size(), features, boundaries, curve);
    file.write(std::as_bytes(std::span(page)));
    file.commit();
    note("wrote " + printable(options.html, 240));
  }
  if (options.json) {
    const auto figures = [](const runtime::walk_error& e) {
      return json{{"relative_error", e.relative()},
                  {"cosine", e.cosine},
                  {"top1_agreement", e.agreement()},
                  {"kl_nats", e.divergence}};
    };
    json out{{"tokens", ids.size()}, {"features", features}};
    for (const auto& each : boundaries)
      out["boundary"].push_back(json{{"first_walked_layer", each.first_layer}}),
          out["boundary"].back().update(figures(each.error));
    for (const auto& each : curve)
      out["count"].push_back(json{{"features", each.count}}), out["count"].back().update(figures(each.error));
    return print_line(dumped(out));
  }
  const auto cells = [](const std::string& first, const runtime::walk_error& e) {
    return row({first, std::to_string(e.same_top) + " of " + std::to_string(e.positions), scientific(e.relative()),
                fixed(e.cosine, 6), scientific(e.divergence)});
  };
  print_line("full walk from layer B on, dense below, " + std::to_string(ids.size()) + " tokens");
  print_line(row({"B", "same top-1", "relative", "cosine", "KL (nats)"}));
  for (const auto& each : boundaries) print_line(cells(std::to_string(each.first_layer), each.error));
  print_line("sparse walk, the K features of a layer with the largest gate score");
  print_line(row({"K", "same top-1", "relative", "cosine", "KL (nats)"}));
  for (const auto& each : curve) print_line(cells(std::to_string(each.count), each.error));
}

void walk_memory(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  const plan::table& table = files.plans.cpu;
  const auto ids = files.ids(options.prompt, options.ids);
  const reference::walk_choice exact{.active_only = true};
  struct figures {
    double anonymous = 0, mapped = 0;
  };
  const auto now = [] {
    const platform::memory_use use = platform::memory_of_process();
    return figures{static_cast<double>(use.own), static_cast<double>(use.of_files)};
  };
  const figures before = now();
  const auto measured = [&](const reference::walk_choice* choice) {
    // Vectors are read from the mapped files a layer at a time and not kept.
    runtime::walked_model model(table, files.model(), files.index, journal(files, options), 0);
    std::vector<float> last;
    for (const std::uint32_t id : ids) {
      const auto logits = model.feed(id, choice);
      last.assign(logits.begin(), logits.end());
    }
    const figures at = now();
    return std::pair(figures{at.anonymous - before.anonymous, at.mapped}, last);
  };
  const auto [walked, walked_logits] = measured(&exact);
  const auto [dense, dense_logits] = measured(nullptr);
  runtime::walk_error error;
  error.add(walked_logits, dense_logits);
  double ffn = 0;
  for (const plan::weight& each : table.weights) {
    bool is_ffn = false;
    for (std::size_t i = 0; i < each.source_count; ++i) is_ffn = is_ffn || is_ffn_matrix(each.sources[i].view());
    const bool scales =
        each.layout == plan::weight_layout::ternary_scales || each.layout == plan::weight_layout::vector_f32;
    if (is_ffn && !scales)
      ffn += static_cast<double>(each.bytes) * (each.per_layer ? files.source.config().num_hidden_layers : 1);
  }
  const double all = static_cast<double>(table.weight_bytes());
  if (options.json)
    return print_line(dumped(json{{"index_bytes", files.index.bytes()},
                                  {"weights", {{"dense", all}, {"walk_only", all - ffn}}},
                                  {"process",
                                   {{"dense", {{"anonymous", dense.anonymous}, {"mapped", dense.mapped}}},
                                    {"walk_only", {{"anonymous", walked.anonymous}, {"mapped", walked.mapped}}}}},
                                  {"same_top1", error.same_top == 1},
                                  {"relative_error", error.relative()}}));
  print_line(row({"", "dense", "walk only"}));
  print_line(row({"weights", bytes_text(all), bytes_text(all - ffn)}) + "   of the plan, as they lie in memory");
  print_line(row({"resident", bytes_text(dense.anonymous), bytes_text(walked.anonymous)}) +
             "   the process's own, beyond " + bytes_text(before.anonymous) + " before");
  print_line(row({"mapped", bytes_text(dense.mapped), bytes_text(walked.mapped)}) +
             "   pages of files that were touched, which the system takes back when it needs to");
  print_line("index " + bytes_text(static_cast<double>(files.index.bytes())) + ", mapped; last logits " +
             (error.relative() == 0 ? std::string("the same bits") : "apart by " + scientific(error.relative())));
}

void walk_knn(const walk_options& options) {
  const walked_files files(options.model, options.index, false);
  const io::feature_patch* const patch = journal(files, options);
  runtime::walked_model model(files.plans.cpu, files.model(), files.index, patch);
  const auto ids = files.ids(options.prompt, options.ids);
  if (options.layer && *options.layer >= files.index.layers())
    throw argument_error("--layer", "a layer of " + std::to_string(files.index.layers()),
                         std::to_string(*options.layer));
  if (options.top == 0) throw argument_error("--top", "at least 1", "0");
  if (options.on_device)
    expect_one_ffn(files.source.config(), "--on-device",
                   "the walk on the CPU scores the gates of a token's own experts alone");
  struct hit {
    std::size_t position;
    std::uint32_t layer;
    reference::scored_feature at;
    std::vector<float> down;
    std::vector<std::uint32_t> tokens;
  };
  std::vector<hit> hits;
  const auto add = [&](std::size_t position, std::uint32_t layer, const reference::walked_layer& of,
                       const reference::scored_feature& at) {
    const auto down = reference::walked_layer::row(of.down, at.feature, of.hidden_size);
    hits.push_back({position, layer, at, {down.begin(), down.end()}, {}});
  };
  const std::size_t first = options.each ? 0 : ids.size() - 1;
  std::map<std::uint32_t, std::vector<float>> inputs;  // by layer, [tokens from first on, hidden_size], for the device
  const reference::walk_choice exact{.active_only = true};
  std::optional<graphs> by_graph;
  if (options.hnsw) by_graph.emplace(files, patch);
  const auto nearest = [&](const reference::walked_ffn& of) {
    if (!by_graph) return reference::nearest_features(of.scores, options.top);
    std::vector<reference::scored_feature> out;
    for (const io::near_feature& each : by_graph->nearest(of, options.top))
      out.push_back({each.feature, of.scores[each.feature]});
    return out;
  };
  for (std::size_t i = 0; i < ids.size(); ++i)
    model.feed(ids[i], &exact, [&](const reference::walked_ffn& of) {
      if (i < first || (options.layer && of.layer != *options.layer)) return;
      if (options.on_device) inputs[of.layer].insert(inputs[of.layer].end(), of.input.begin(), of.input.end());
      else
        for (const auto& each : nearest(of)) add(i, of.layer, of.vectors, each);
    });
  if (options.on_device) {
    device_gates device(options.common, options.top);
    const std::uint32_t width = files.index.config().hidden_size;
    const auto changed = patch == nullptr ? std::vector<io::changed_feature>{} : patch->changed();
    std::vector<std::byte> rows;
    for (const auto& [layer, x] : inputs) {
      const io::feature_layer& of = files.index.layer(layer);
      dtype type = of[io::feature_vector::gate].type;
      const bool as_it_is = (type == dtype::f32 || type == dtype::f16 || type == dtype::bf16) &&
                            std::ranges::find(changed, layer, &io::changed_feature::layer) == changed.end();
      if (as_it_is) {
        rows.resize(static_cast<std::size_t>(of.features * files.index.row_bytes(layer, io::feature_vector::gate)));
        files.index.read_rows(layer, io::feature_vector::gate, 0, of.features, rows);
      } else {
        const auto gate = std::as_bytes(model.vectors(layer).gate);
        rows.assign(gate.begin(), gate.end());
        type = dtype::f32;
      }
      const auto found = device.nearest(type, rows, width, x);
      for (std::size_t i = 0; i < found.size(); ++i)
        for (const auto& each : found[i]) add(first + i, layer, model.vectors(layer), each);
    }
    note(device.summary());
  }
  std::ranges::stable_sort(hits, [](const hit& a, const hit& b) {
    return a.position != b.position ? a.position < b.position : a.layer < b.layer;
  });
  // Tokens at once: their logits take 256 MiB at most.
  const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 26) / files.source.config().vocab_size);
  for (std::size_t begin = 0; begin < hits.size(); begin += step) {
    std::vector<std::vector<float>> downs;
    for (std::size_t i = begin; i < std::min(begin + step, hits.size()); ++i) downs.push_back(std::move(hits[i].down));
    const auto promoted = model.promoted(downs);
    for (std::size_t i = 0; i < promoted.size(); ++i) hits[begin + i].tokens = largest(promoted[i], 5);
  }
  if (options.json) {
    json out = json::array();
    for (const hit& each : hits) {
      json tokens = json::array();
      for (const std::uint32_t token : each.tokens) tokens.push_back({{"id", token}, {"piece", files.piece(token)}});
      out.push_back({{"position", each.position},
                     {"layer", each.layer},
                     {"feature", each.at.feature},
                     {"score", each.at.score},
                     {"promotes", tokens}});
    }
    if (by_graph) out = {{"features", out}, {"hnsw", by_graph->as_json()}};
    return print_line(dumped(out));
  }
  std::size_t shown = ids.size();
  for (const hit& each : hits) {
    if (each.position != shown) {
      if (options.each)
        print_line("behind '" + printable(files.piece(ids[each.position]), 40) + "', token " +
                   std::to_string(each.position));
      print_line(row({"layer", "feature", "score"}) + "  promotes");
      shown = each.position;
    }
    std::string tokens;
    for (const std::uint32_t token : each.tokens) tokens += " '" + printable(files.piece(token), 40) + "'";
    print_line(row({std::to_string(each.layer), std::to_string(each.at.feature), fixed(each.at.score, 3)}) + " " +
               tokens);
  }
  if (by_graph) by_graph->print(options.top);
}

}  // namespace intaglio::tool
