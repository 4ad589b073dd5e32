// SPDX-License-Identifier: MIT
// Makes one vector of a text from the stream after the last layer: the model's last norm, if it has one, then pooling.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intaglio/core/family.hpp"
#include "intaglio/core/pooling.hpp"
#include "intaglio/gpu/transfer.hpp"
#include "intaglio/plan/table.hpp"
#include "intaglio/runtime/embed_options.hpp"
#include "intaglio/runtime/weight_memory.hpp"

namespace intaglio::runtime {

/// Weights of the norm in front of the head, f32 [hidden_size], without the factor that a plan adds. Empty for an
/// encoder, whose stream is normalised already.
/// @error argument_error: a plan without such a norm; device_lost, out_of_memory
inline std::vector<float> last_norm(const gpu::device& on, const plan::table& of, const weight_memory& weights) {
  if (family_of(of.config->model_type).encoder) return {};
  // Families name it differently; it is the last vector of the stream's width that belongs to no layer.
  for (auto slot = static_cast<std::uint32_t>(of.weights.size()); slot-- > 0;) {
    const plan::weight& each = of.weights[slot];
    if (each.per_layer || each.layout != plan::weight_layout::vector_f32 ||
        each.bytes != sizeof(float) * std::uint64_t{of.config->hidden_size})
      continue;
    std::vector<float> out(of.config->hidden_size);
    const auto& item = weights.placed.items[weights.item(of, slot, 0)];
    gpu::transfer(on, std::uint64_t{1} << 16)
        .download(weights.placed.buffers[item.buffer], item.offset, std::as_writable_bytes(std::span(out)));
    for (float& value : out) value /= each.scale;
    return out;
  }
  throw argument_error("embedding", "a model with a norm in front of its head", "one without");
}

/// Pools the stream of a text's tokens, given in order, into one vector.
class pooled_states {
 public:
  /// @param norm weights of the last norm, [hidden_size], or empty
  pooled_states(const decoder_config& of, std::vector<float> norm, pooling how)
      : how_(how), norm_(std::move(norm)), sums_(of.hidden_size),
        // The stream is stored without the residual multiplier (models/llama.hpp).
        eps_(double{of.rms_norm_eps} / (double{of.residual_multiplier} * double{of.residual_multiplier})) {}

  /// Whether a token's state is part of the vector. @param position of `tokens`
  bool wants(std::uint32_t position, std::uint32_t tokens) const {
    return how_ == pooling::mean || position == (how_ == pooling::first ? 0 : tokens - 1);
  }
  /// @param row f32 [hidden_size], the stream of a token for which wants() is true
  void add(std::span<const float> row) {
    double squares = 0;
    for (const float x : row) squares += double{x} * double{x};
    const double factor = 1 / std::sqrt(squares / static_cast<double>(row.size()) + eps_);
    for (std::size_t i = 0; i < row.size(); ++i)
      sums_[i] += norm_.empty() ? double{row[i]} : double{row[i]} * factor * double{norm_[i]};
    ++count_;
  }
  /// @return f32 [hidden_size]  @error device_error: a value that is not finite
  std::vector<float> vector(bool normalize, const std::string& device) const {
    double squares = 0;
    for (const double x : sums_) squares += x * x;
    if (!std::isfinite(squares)) throw device_error(device, "embed a text", "states that are no numbers");
    const double length = std::sqrt(squares);
    const double factor = !normalize ? 1.0 / count_ : length > 0 ? 1 / length : 0;
    std::vector<float> out;
    for (const double x : sums_) out.push_back(static_cast<float>(x * factor));
    return out;
  }

 private:
  pooling how_;
  std::vector<float> norm_;
  std::vector<double> sums_;
  double eps_ = 0;
  std::uint32_t count_ = 0;
};

/// Feeds a text from position 0 on, chunk by chunk, and pools the stream of its tokens after the last layer.
/// @param feed (position, count) runs a pass of prefill over these tokens and waits for it
/// @param stream (first, into) reads rows of that pass's stream, from its token `first` on
/// @return f32 [hidden_size]
template <class Feed, class Stream>
std::vector<float> pool_text(const plan::table& of, pooled_states states, std::uint32_t tokens, std::uint32_t chunk,
                             Feed&& feed, Stream&& stream, bool normalize, const std::string& device) {
  const std::size_t width = of.config->hidden_size;
  std::vector<float> rows;
  for (std::uint32_t done = 0; done < tokens;) {
    const std::uint32_t count = (std::min)(chunk, tokens - done);
    feed(done, count);
    std::uint32_t first = 0, end = count;
    while (first < end && !states.wants(done + first, tokens)) ++first;
    while (end > first && !states.wants(done + end - 1, tokens)) --end;
    rows.resize((end - first) * width);
    if (first != end) stream(first, std::span<float>(rows));
    for (std::size_t at = 0; at < rows.size(); at += width) states.add(std::span(rows).subspan(at, width));
    done += count;
  }
  return states.vector(normalize, device);
}

}  // namespace intaglio::runtime
