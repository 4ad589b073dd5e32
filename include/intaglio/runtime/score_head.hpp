// SPDX-License-Identifier: MIT
// The head of a cross-encoder, which makes one number of a text's first state. It is a product of one or two matrices,
// computed on the host.
// host.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intaglio/io/checkpoint.hpp"

namespace intaglio::runtime {

/// Computes w . tanh(D x + d) + b, or w . x + b for a model without D.
/// @source transformers, BertPooler and BertForSequenceClassification
class score_head {
 public:
  /// The head of a cross-encoder; empty if the model has none.
  /// @param from a checkpoint with its tensors  @error file_error: values that cannot be read
  [[gnu::cold]] static std::optional<score_head> of(const io::checkpoint& from) {
    if (from.packed() != nullptr || from.find("cls.output.weight") == nullptr) return std::nullopt;
    const auto read = [&](const char* name) {
      std::vector<float> out;
      const io::checkpoint_tensor* const tensor = from.find(name);
      if (tensor == nullptr) return out;
      out.resize(static_cast<std::size_t>(tensor->stored.rows * tensor->stored.columns));
      from.read_f32(*tensor, 0, tensor->stored.rows, out);
      return out;
    };
    score_head out;
    out.dense_ = read("cls.weight"), out.dense_bias_ = read("cls.bias");
    out.weight_ = read("cls.output.weight"), out.bias_ = read("cls.output.bias");
    return out;
  }

  /// @param state f32 [hidden_size], of the text's first token
  float operator()(std::span<const float> state) const {
    const std::size_t width = weight_.size();
    double score = bias_.empty() ? 0 : bias_.front();
    for (std::size_t row = 0; row < width; ++row) {
      double y = state[row];
      if (!dense_.empty()) {
        y = dense_bias_.empty() ? 0 : dense_bias_[row];
        for (std::size_t i = 0; i < width; ++i) y += double{dense_[row * width + i]} * double{state[i]};
        y = std::tanh(y);
      }
      score += double{weight_[row]} * y;
    }
    return static_cast<float>(score);
  }

 private:
  std::vector<float> dense_, dense_bias_, weight_, bias_;
};

}  // namespace intaglio::runtime
