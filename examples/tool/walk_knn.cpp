// SPDX-License-Identifier: MIT
// walk knn: the features whose gates are nearest to a text, and the tokens that they promote (docs/walk.md).
#include "device_gates.hpp"
#include "walk_report.hpp"

#include <optional>

namespace intaglio::tool {
namespace {

using json = nlohmann::ordered_json;

/// A feature that was found after a token.
struct feature_hit {
  std::size_t position;
  std::uint32_t layer;
  reference::scored_feature at;
  std::vector<float> down;
  std::vector<std::uint32_t> tokens;  ///< that it promotes
};

/// Searches the features of a text, on the CPU or the device, and reports them.
class feature_search {
 public:
  explicit feature_search(const walk_options& options)
      : options_(options), files_(options.model, options.index, false), patch_(journal(files_, options)),
        model_(files_.plans.cpu, files_.model(), files_.index, patch_), ids_(files_.ids(options.prompt, options.ids)),
        first_(options.each ? 0 : ids_.size() - 1) {
    if (options.layer && *options.layer >= files_.index.layers())
      throw argument_error("--layer", "a layer of " + std::to_string(files_.index.layers()),
                           std::to_string(*options.layer));
    if (options.top == 0) throw argument_error("--top", "at least 1", "0");
    if (options.on_device)
      expect_one_ffn(files_.source.config(), "--on-device",
                     "the walk on the CPU scores the gates of a token's own experts alone");
    if (options.hnsw) graphs_.emplace(files_, patch_);
  }

  void run() {
    walk();
    if (options_.on_device) search_on_device();
    std::ranges::stable_sort(hits_, [](const feature_hit& a, const feature_hit& b) {
      return a.position != b.position ? a.position < b.position : a.layer < b.layer;
    });
    promote();
    options_.json ? print_line(dumped_json(as_json())) : print();
  }

 private:
  void add(std::size_t position, std::uint32_t layer, const reference::walked_layer& of,
           const reference::scored_feature& at) {
    const auto down = reference::walked_layer::row(of.down, at.feature, of.hidden_size);
    hits_.push_back({position, layer, at, {down.begin(), down.end()}, {}});
  }
  std::vector<reference::scored_feature> nearest(const reference::walked_ffn& of) {
    if (!graphs_) return reference::nearest_features(of.scores, options_.top);
    std::vector<reference::scored_feature> out;
    for (const io::near_feature& each : graphs_->nearest(of, options_.top))
      out.push_back({each.feature, of.scores[each.feature]});
    return out;
  }

  /// Feeds the text; finds features on the CPU, or keeps the gates' inputs for the device.
  void walk() {
    const reference::walk_choice exact{.active_only = true};
    for (std::size_t i = 0; i < ids_.size(); ++i)
      model_.feed(ids_[i], &exact, [&](const reference::walked_ffn& of) {
        if (i < first_ || (options_.layer && of.layer != *options_.layer)) return;
        if (options_.on_device) inputs_[of.layer].insert(inputs_[of.layer].end(), of.input.begin(), of.input.end());
        else
          for (const auto& each : nearest(of)) add(i, of.layer, of.vectors, each);
      });
  }

  void search_on_device() {
    device_gates device(options_.common, options_.top);
    const auto changed = patch_ == nullptr ? std::vector<io::changed_feature>{} : patch_->changed();
    std::vector<std::byte> rows;
    for (const auto& [layer, x] : inputs_) {
      const io::feature_layer& of = files_.index.layer(layer);
      dtype type = of[io::feature_vector::gate].type;
      const bool as_it_is = (type == dtype::f32 || type == dtype::f16 || type == dtype::bf16) &&
                            std::ranges::find(changed, layer, &io::changed_feature::layer) == changed.end();
      if (as_it_is) {
        rows.resize(static_cast<std::size_t>(of.features * files_.index.row_bytes(layer, io::feature_vector::gate)));
        files_.index.read_rows(layer, io::feature_vector::gate, 0, of.features, rows);
      } else {
        const auto gate = std::as_bytes(model_.vectors(layer).gate);
        rows.assign(gate.begin(), gate.end());
        type = dtype::f32;
      }
      const auto found = device.nearest(type, rows, files_.index.config().hidden_size, x);
      for (std::size_t i = 0; i < found.size(); ++i)
        for (const auto& each : found[i]) add(first_ + i, layer, model_.vectors(layer), each);
    }
    note(device.summary());
  }

  /// Finds the tokens that each feature promotes, of as many features at once as 256 MiB of logits allow.
  void promote() {
    const std::size_t step = std::max<std::size_t>(1, (std::size_t{1} << 26) / files_.source.config().vocab_size);
    for (std::size_t begin = 0; begin < hits_.size(); begin += step) {
      std::vector<std::vector<float>> downs;
      for (std::size_t i = begin; i < std::min(begin + step, hits_.size()); ++i)
        downs.push_back(std::move(hits_[i].down));
      const auto promoted = model_.promoted(downs);
      for (std::size_t i = 0; i < promoted.size(); ++i) hits_[begin + i].tokens = largest(promoted[i], 5);
    }
  }

  json as_json() const {
    json out = json::array();
    for (const feature_hit& each : hits_) {
      json tokens = json::array();
      for (const std::uint32_t token : each.tokens) tokens.push_back({{"id", token}, {"piece", files_.piece(token)}});
      out.push_back({{"position", each.position},
                     {"layer", each.layer},
                     {"feature", each.at.feature},
                     {"score", each.at.score},
                     {"promotes", tokens}});
    }
    if (graphs_) out = {{"features", out}, {"hnsw", graphs_->as_json()}};
    return out;
  }

  void print() const {
    std::size_t shown = ids_.size();
    for (const feature_hit& each : hits_) {
      if (each.position != shown) {
        if (options_.each)
          print_line("after '" + printable(files_.piece(ids_[each.position]), 40) + "', token " +
                     std::to_string(each.position));
        print_line(aligned_row({"layer", "feature", "score"}) + "  promotes");
        shown = each.position;
      }
      std::string tokens;
      for (const std::uint32_t token : each.tokens) tokens += " '" + printable(files_.piece(token), 40) + "'";
      print_line(aligned_row({std::to_string(each.layer), std::to_string(each.at.feature), fixed(each.at.score, 3)}) +
                 " " + tokens);
    }
    if (graphs_) graphs_->print(options_.top);
  }

  const walk_options& options_;
  walked_files files_;
  const io::feature_patch* patch_;
  runtime::walked_model model_;
  std::vector<std::uint32_t> ids_;
  std::size_t first_;                                     ///< position from which on features are searched
  std::map<std::uint32_t, std::vector<float>> inputs_{};  ///< by layer, [tokens from first_ on, hidden_size]
  std::optional<walked_graphs> graphs_{};
  std::vector<feature_hit> hits_{};
};

}  // namespace

void walk_knn(const walk_options& options) { feature_search(options).run(); }

}  // namespace intaglio::tool
