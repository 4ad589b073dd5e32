// SPDX-License-Identifier: MIT
// A model on the CPU reference whose FFNs are walked over a feature index with the changes of its journal
// (docs/walk.md). It computes logits token by token, with a choice of features and an observer. The tool's walk
// commands and the tests of walks use it; it is exact, not fast.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/io/checkpoint_data.hpp"
#include "intaglio/io/feature_index.hpp"
#include "intaglio/io/feature_patch.hpp"
#include "intaglio/kernels/state.hpp"
#include "intaglio/reference/walked_decode.hpp"
#include "intaglio/runtime/weight_image.hpp"

namespace intaglio::runtime {

/// Everything that it is given must outlive it. The patch may change between tokens: each token uses the patch as it is
/// then.
class walked_model {
 public:
  /// @throws mismatch_error for an index of a model of another shape
  /// @param held bytes of f32 vectors that are kept between tokens; layers beyond that are read again from the mapped
  ///   files
  walked_model(const plan::table& table, const io::checkpoint& file, const io::feature_index& index,
               const io::feature_patch* patch = nullptr, std::size_t held = std::size_t{2} << 30)
      : most_held_(held), table_(&table), file_(&file), index_(&index), patch_(patch), image_(file, table),
        machine_(table, [this](std::uint32_t slot, std::uint32_t at) { return weight(slot, at); }) {
    if (auto differences = index.differences(file.config()); !differences.empty())
      throw mismatch_error((index.path() / io::feature_index_file).string(), std::move(differences), {});
    image_.measure(1, [](std::uint64_t) {});
    machine_.state[kernels::state::repeat_penalty] = std::bit_cast<std::uint32_t>(1.f);
  }
  walked_model(const walked_model&) = delete;
  walked_model& operator=(const walked_model&) = delete;

  const plan::table& table() const { return *table_; }
  const decoder_config& config() const { return *table_->config; }
  const io::feature_index& index() const { return *index_; }

  /// Starts again at position 0.
  void restart() { position_ = 0; }
  std::uint32_t position() const { return position_; }

  /// Logits after one more token, [vocab_size], valid until the next call. @param choice nullptr: dense, as in the
  /// checkpoint
  /// @throws argument_error where the context is full, or for an FFN that cannot be walked
  std::span<const float> feed(std::uint32_t token, const reference::walk_choice* choice,
                              const std::function<void(const reference::walked_ffn&)>& after = {},
                              const std::function<void(std::uint32_t, double)>& dense = {}) {
    if (position_ >= table_->context)
      throw argument_error("tokens", "at most the context's " + std::to_string(table_->context), "more");
    machine_.feed(position_++, {&token, 1});
    if (choice == nullptr) machine_.run(table_->decode);
    else
      reference::walked_decode(
          machine_, *table_, [this](std::uint32_t layer) { return vectors(layer); }, *choice, after, dense)
          .run();
    return machine_.floats(table_->decode.logits_offset, config().vocab_size);
  }

  /// A layer's vectors with the changes; valid until the next call.
  reference::walked_layer vectors(std::uint32_t layer) {
    if (patch_ != nullptr && patch_->changes() != seen_changes_)
      vectors_.clear(), held_ = 0, seen_changes_ = patch_->changes();
    const std::size_t width = config().hidden_size,
                      features = patch_ != nullptr ? patch_->features(layer) : index_->layer(layer).features;
    if (!vectors_.contains(layer)) {
      const std::size_t bytes = 3 * sizeof(float) * width * features;
      if (held_ + bytes > most_held_) vectors_.clear(), held_ = 0;
      held_ += bytes;
      auto& of = vectors_[layer];
      for (const io::feature_vector which : io::feature_vectors) {
        auto& values = of[static_cast<std::size_t>(which)];
        values.resize(width * features);
        if (patch_ != nullptr) patch_->read_f32(layer, which, 0, features, values);
        else index_->read_f32(layer, which, 0, features, values);
      }
    }
    const auto& of = vectors_[layer];
    return {width, of[0], of[1], of[2]};
  }

  /// The direction of the stream that raises one token's logit over another's: the last norm's weight times the
  /// difference of the head's rows, [hidden_size].
  std::vector<float> written(std::uint32_t wanted, std::uint32_t unwanted) const {
    for (const std::uint32_t token : {wanted, unwanted})
      if (token >= config().vocab_size)
        throw argument_error("token", "a token of " + std::to_string(config().vocab_size), std::to_string(token));
    const std::size_t width = config().hidden_size;
    std::vector<float> norm(width), plus(width), minus(width);
    file_->read_f32(file_->at("output_norm.weight"), 0, 1, norm);
    file_->read_f32(head(), wanted, 1, plus);
    file_->read_f32(head(), unwanted, 1, minus);
    for (std::size_t i = 0; i < width; ++i) norm[i] *= plus[i] - minus[i];
    return norm;
  }
  /// Logits that vectors of the stream would add on their own, [vectors, vocab_size]: through the last norm's weight
  /// and the head.
  std::vector<std::vector<float>> promoted(std::span<const std::vector<float>> vectors) const {
    const std::size_t width = config().hidden_size, vocabulary = config().vocab_size;
    std::vector<float> norm(width);
    file_->read_f32(file_->at("output_norm.weight"), 0, 1, norm);
    std::vector<std::vector<float>> weighed(vectors.begin(), vectors.end()),
        out(vectors.size(), std::vector<float>(vocabulary));
    for (auto& each : weighed)
      for (std::size_t i = 0; i < width; ++i) each[i] *= norm[i];
    const std::size_t step = (std::max<std::size_t>)(1, (std::size_t{1} << 18) / width);
    std::vector<float> rows;
    for (std::size_t first = 0; first < vocabulary; first += step) {
      const std::size_t count = (std::min)(step, vocabulary - first);
      rows.resize(count * width);
      file_->read_f32(head(), first, count, rows);
      for (std::size_t v = 0; v < weighed.size(); ++v)
        for (std::size_t r = 0; r < count; ++r) {
          float sum = 0;
          for (std::size_t i = 0; i < width; ++i) sum += weighed[v][i] * rows[r * width + i];
          out[v][first + r] = sum;
        }
    }
    return out;
  }

 private:
  const io::checkpoint_tensor& head() const {
    const auto* own = file_->find("output.weight");
    return own != nullptr ? *own : file_->at("token_embd.weight");
  }
  std::span<const std::byte> weight(std::uint32_t slot, std::uint32_t layer) {
    auto& found = bytes_[{slot, layer}];
    if (found.empty()) {
      found.resize(table_->weights[slot].bytes);
      image_.fill(slot, layer, 0, found);
    }
    return found;
  }

  std::size_t most_held_;
  const plan::table* table_;
  const io::checkpoint* file_;
  const io::feature_index* index_;
  const io::feature_patch* patch_;
  weight_image image_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::byte>> bytes_;
  std::map<std::uint32_t, std::array<std::vector<float>, 3>> vectors_;
  std::size_t held_ = 0, seen_changes_ = 0;
  reference::machine machine_;
  std::uint32_t position_ = 0;
};

/// The difference between walked and dense logits, at one position or summed over several.
struct walk_error {
  std::size_t positions = 0, same_top = 0;
  double cosine = 0, divergence = 0;  ///< means over positions; KL(dense || walked) in nats
  double apart = 0, whole = 0;        ///< sums of squares of differences and of the dense logits

  void add(std::span<const float> walked, std::span<const float> dense) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      const double a = walked[i], b = dense[i];
      ab += a * b, aa += a * a, bb += b * b;
      apart += (a - b) * (a - b), whole += b * b;
    }
    const double one = aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa * bb), kl = divergence_of(walked, dense),
                 before = static_cast<double>(positions++);
    cosine += (one - cosine) / (before + 1);
    divergence += (kl - divergence) / (before + 1);
    same_top += std::ranges::max_element(walked) - walked.begin() == std::ranges::max_element(dense) - dense.begin();
  }
  /// The relative error |walked - dense| / |dense|.
  double relative() const { return whole == 0 ? 0 : std::sqrt(apart / whole); }
  double agreement() const {
    return positions == 0 ? 0 : static_cast<double>(same_top) / static_cast<double>(positions);
  }

 private:
  static double log_sum(std::span<const float> x) {
    const double top = *std::ranges::max_element(x);
    double sum = 0;
    for (const float value : x) sum += std::exp(static_cast<double>(value) - top);
    return top + std::log(sum);
  }
  static double divergence_of(std::span<const float> walked, std::span<const float> dense) {
    const double w = log_sum(walked), d = log_sum(dense);
    double out = 0;
    for (std::size_t i = 0; i < dense.size(); ++i) {
      const double p = static_cast<double>(dense[i]) - d;
      out += std::exp(p) * (p - (static_cast<double>(walked[i]) - w));
    }
    return (std::max)(0., out);
  }
};

}  // namespace intaglio::runtime
