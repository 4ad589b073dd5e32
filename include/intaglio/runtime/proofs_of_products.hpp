// SPDX-License-Identifier: MIT
// Proofs of matrix products: compares some rows of each with the CPU reference.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/plan/product_facts.hpp"
#include "intaglio/reference/dense_matmul.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "intaglio/reference/sample.hpp"
#include "intaglio/reference/ternary_float.hpp"
#include "intaglio/reference/ternary_matmul.hpp"
#include "intaglio/runtime/kernel_trial.hpp"
#include "intaglio/runtime/proofs_of_norms.hpp"

namespace intaglio::runtime::proofs {

/// Columns [first, first + count) of each token's output.
struct output_columns {
  std::vector<float> before, found;  ///< [tokens, count]: values before the run, and values of the device
};
/// Reads some columns of all tokens. @param start the outputs before the run  @shape out, start: [tokens, width]
inline output_columns outputs_of(const gpu::buffer& out, std::span<const float> start, std::uint32_t width,
                                 std::uint32_t first, std::uint32_t count, std::uint32_t tokens) {
  output_columns columns;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    const std::size_t at = std::size_t{t} * width + first;
    const auto before = start.subspan(at, count);
    columns.before.insert(columns.before.end(), before.begin(), before.end());
    const auto row = read<float>(out, at, count);
    columns.found.insert(columns.found.end(), row.begin(), row.end());
  }
  return columns;
}

/// A product with ternary weights in a trial: inputs, buffers, and the reference on some of its rows.
class ternary_proof {
 public:
  ternary_proof(kernel_trial& trial, const plan::dispatch& call)
      : trial_(trial), call_(call), facts_(plan::product_facts::of(call, plan::ternary_products{})),
        columns_(facts_.columns), rows_(facts_.rows), rounds_(call.kernel != kernels::kernel::ternary_float),
        run_rows_((std::min)(rows_, 32u)) {
    shape_.columns = columns_;
    shape_.epilogue = facts_.epilogue;
    shape_.gate = call.act();
    shape_.context = facts_.context;
    shape_.cache_element = facts_.cache_element;
    out_width_ = turns() ? facts_.q_size : shape_.epilogue == kernels::epilogue::gated ? rows_ / 2 : rows_;
  }

  /// Runs the dispatch. @return the largest difference, relative to the largest value
  double apart_of_run() {
    using kernels::prologue;
    const auto before = facts_.prologue;
    gpu::buffer in, sums;
    make_input(before, in, sums);
    start_ = trial_.floats(std::size_t{trial_.tokens} * out_width_);
    const gpu::buffer out = trial_.filled(start_, std::size_t{trial_.width} * out_width_),
                      keys = trial_.room(turns() ? trial_.cache_of(call_).key_bytes : 0),
                      values = trial_.room(turns() ? trial_.cache_of(call_).value_bytes : 0),
                      memory = trial_.memory_of(trial_.state());
    kernel_trial::bound_buffers buffers{{facts_.at.input, &in},
                                        {facts_.at.output, &out},
                                        {facts_.at.state, &memory},
                                        {facts_.at.keys, &keys},
                                        {facts_.at.values, &values}};
    if (before == prologue::quantized) buffers.emplace_back(facts_.some.factors, &sums);
    trial_.run(call_, buffers);
    scales_ = trial_.weight<float>(facts_.scales, 0, trial_.table->weights[facts_.scales.slot].bytes / 4);
    return turns() ? heads_apart(out, keys, values) : rows_apart(out);
  }

 private:
  bool turns() const { return shape_.epilogue == kernels::epilogue::rope_cache; }

  /// Makes the activations, and the buffer that the prologue reads.
  void make_input(kernels::prologue before, gpu::buffer& in, gpu::buffer& sums) {
    codes_.resize(std::size_t{trial_.tokens} * columns_);
    factors_.resize(trial_.tokens);
    if (rounds_ && !quantizes(before)) {
      for (std::size_t i = 0; i < codes_.size(); ++i) {
        codes_[i] = static_cast<std::int8_t>(static_cast<int>(trial_.next() % 255) - 127);
        factors_[i / columns_].sum += codes_[i];
      }
      for (auto& each : factors_) each.inverse_scale = 0.01f;
      in = trial_.filled(codes_, std::size_t{trial_.width} * columns_);
      sums = trial_.filled(factors_, trial_.width);
      return;
    }
    const auto values = trial_.floats(codes_.size());
    if (rounds_) {
      reference::norm_quantize(values, norm_of(trial_, facts_.norm_weight, before, columns_), columns_, facts_.eps,
                               codes_, factors_);
    } else {
      plain_ = values;
      if (before == kernels::prologue::norm)
        for (std::size_t at = 0; at < values.size(); at += columns_)
          reference::rms_norm(std::span(values).subspan(at, columns_),
                              trial_.weight<float>(facts_.norm_weight, 0, columns_), facts_.eps,
                              std::span(plain_).subspan(at, columns_));
    }
    in = trial_.filled(values, std::size_t{trial_.width} * columns_);
  }

  void expect(std::span<const std::uint32_t> words, std::span<float> output, std::span<std::byte> k = {},
              std::span<std::byte> v = {}) const {
    if (rounds_)
      reference::ternary_matmul(shape_, codes_, factors_, words, scales_, output, kernel_trial::position, k, v);
    else reference::ternary_float(shape_, plain_, words, scales_, output, kernel_trial::position, k, v);
  }
  std::vector<std::uint32_t> tiles(std::uint32_t first) const {
    return trial_.weight<std::uint32_t>(facts_.weight, std::uint64_t{first} * columns_ / 16,
                                        std::uint64_t{run_rows_} * columns_ / 16);
  }

  /// Compares the last head of q, and the first heads of k and v in the caches.
  double heads_apart(const gpu::buffer& out, const gpu::buffer& keys, const gpu::buffer& values) {
    const std::uint32_t q_size = facts_.q_size, kv_size = facts_.kv_size, head = facts_.head_dim;
    run_rows_ = shape_.head_dim = shape_.q_size = shape_.kv_size = head;
    shape_.rope_theta = facts_.rope_theta;
    shape_.rows = 3 * head;
    std::vector<std::uint32_t> words;
    for (const std::uint32_t first : {q_size - head, q_size, q_size + kv_size}) {
      const auto part = tiles(first);
      words.insert(words.end(), part.begin(), part.end());
    }
    const std::size_t element = shape_.cache_element == kernels::element::f32 ? 4 : 2;
    std::vector<std::byte> k(kernels::key_cache_elements(1, head, shape_.context) * element),
        v(kernels::value_cache_elements(1, head, shape_.context) * element);
    std::vector<float> q(std::size_t{trial_.tokens} * head);
    expect(words, q, k, v);
    return (std::max)(apart(trial_.last_heads(out, q_size, head), q), caches_apart(keys, k, values, v, element));
  }

  /// Compares the first rows, rows in the middle, and the last rows.
  double rows_apart(const gpu::buffer& out) {
    double worst = 0;
    const std::uint32_t halves = shape_.epilogue == kernels::epilogue::gated ? 2 : 1;
    shape_.rows = run_rows_;
    for (const std::uint32_t first : {0u, (rows_ - run_rows_) / 8 * 4, rows_ - run_rows_}) {
      auto [expected, found] = outputs_of(out, start_, out_width_, first / halves, run_rows_ / halves, trial_.tokens);
      expect(tiles(first), expected);
      worst = (std::max)(worst, apart(found, expected));
    }
    return worst;
  }

  kernel_trial& trial_;
  const plan::dispatch& call_;
  plan::product_facts facts_;
  std::uint32_t columns_, rows_;
  bool rounds_;  ///< activations are int8
  std::uint32_t run_rows_, out_width_ = 0;
  reference::ternary_matmul_shape shape_;
  std::vector<float> plain_, start_, scales_;  ///< activations that are not rounded; outputs before the run
  std::vector<std::int8_t> codes_;
  std::vector<reference::factors> factors_;
};

/// Compares a kernel of ternary products with the reference. @return the largest difference
[[gnu::cold]] inline double ternary_product(kernel_trial& trial, const plan::dispatch& call) {
  return ternary_proof(trial, call).apart_of_run();
}

/// The best of the tokens that the workgroups found.
inline reference::ranked_token first_of(const gpu::buffer& firsts, std::uint32_t groups) {
  const auto found = read<reference::ranked_token>(firsts, 0, groups);
  return *std::max_element(found.begin(), found.end());
}

/// A product with coded weights in a trial: inputs, buffers, and the reference on some of its rows.
class matmul_proof {
 public:
  matmul_proof(kernel_trial& trial, const plan::dispatch& call)
      : trial_(trial), call_(call), facts_(plan::product_facts::of(call, plan::coded_products{})),
        chunk_(call.kernel == kernels::kernel::matmul_chunk), batch_(call.kernel == kernels::kernel::matmul_batch),
        columns_(facts_.columns), rows_(facts_.rows) {
    shape_.columns = columns_;
    shape_.codec = facts_.codec;
    shape_.epilogue = facts_.epilogue;
    shape_.gate = call.act();
    shape_.context = facts_.context;
    shape_.ring = facts_.ring;
    shape_.cache_element = facts_.cache_element;
    out_width_ = turns() ? facts_.q_size : shape_.epilogue == kernels::epilogue::gated ? rows_ / 2 : rows_;
  }

  /// Runs the dispatch. @return the largest difference, relative to the largest value
  double apart_of_run() {
    values_ = trial_.floats(std::size_t{trial_.tokens} * columns_);
    start_ = trial_.floats(std::size_t{trial_.tokens} * out_width_);
    const gpu::buffer in = make_input(), factors = trial_.filled(factors_of_tokens(), trial_.width),
                      out = trial_.filled(start_, std::size_t{trial_.width} * out_width_),
                      keys = trial_.room(turns() ? trial_.cache_of(call_).key_bytes : 0),
                      cached = trial_.room(turns() ? trial_.cache_of(call_).value_bytes : 0),
                      memory = trial_.memory_of(trial_.state());
    kernel_trial::bound_buffers buffers{{facts_.at.input, &in},
                                        {facts_.at.output, &out},
                                        {facts_.at.state, &memory},
                                        {facts_.at.keys, &keys},
                                        {facts_.at.values, &cached}};
    if (chunk_) buffers.emplace_back(facts_.some.factors, &factors);
    gpu::buffer gates, firsts;
    keeps_gates_ = call_.kernel == kernels::kernel::matmul && call_[facts_.some.gates].where != plan::region::none;
    if (keeps_gates_)
      gates = trial_.room(std::uint64_t{4} * trial_.width * out_width_),
      buffers.emplace_back(facts_.some.gates, &gates);
    const bool finds_first = facts_.keeps_firsts;
    if (finds_first)
      firsts = trial_.room(std::uint64_t{8} * call_.groups[0]), buffers.emplace_back(facts_.some.firsts, &firsts);
    trial_.run(call_, buffers);
    if (finds_first && first_of(firsts, call_.groups[0]) != reference::first_ranked(read<float>(out, 0, rows_)))
      return 1;
    return turns() ? heads_apart(out, keys, cached) : rows_apart(out, gates);
  }

 private:
  bool turns() const { return shape_.epilogue == kernels::epilogue::rope_cache; }

  /// Makes the activations in the form that the kernel reads.
  gpu::buffer make_input() {
    if (chunk_) return make_f16_input();
    if (batch_) return make_fixed_input();
    input_ = values_;
    if (facts_.prologue == kernels::prologue::norm)
      for (std::size_t at = 0; at < values_.size(); at += columns_)
        reference::rms_norm(std::span(values_).subspan(at, columns_),
                            trial_.weight<float>(facts_.norm_weight, 0, columns_), facts_.eps,
                            std::span(input_).subspan(at, columns_));
    return trial_.filled(values_, std::size_t{trial_.width} * columns_);
  }
  gpu::buffer make_f16_input() {
    for (std::size_t at = 0; at < values_.size(); at += columns_)
      halved_.push_back(reference::quantize_f16(std::span(values_).subspan(at, columns_)));
    const kernels::f16_order order = call_.variant == kernels::variant::matmul_chunk_batch ? kernels::f16_order::tiles
                                     : call_.variant == kernels::variant::matmul_chunk_fragments
                                         ? kernels::fragment_order(shape_.codec)
                                         : kernels::f16_order::rows;
    return trial_.filled(reference::ordered_f16(order, halved_, columns_), std::size_t{trial_.width} * columns_);
  }
  gpu::buffer make_fixed_input() {
    input_ = values_;
    std::vector<std::uint32_t> prepared;
    for (std::size_t at = 0; at < values_.size(); at += columns_) {
      const auto words = reference::fixed_words(std::span(values_).subspan(at, columns_));
      prepared.insert(prepared.end(), words.begin(), words.end());
    }
    if (call_.variant == kernels::variant::matmul_batch_tiled) prepared = reference::tiled_words(prepared, columns_);
    return trial_.filled(prepared, std::size_t{trial_.width} * kernels::fixed_words(columns_));
  }
  std::vector<float> factors_of_tokens() const {
    std::vector<float> out;
    for (const reference::f16_token& each : halved_) out.push_back(each.factor);
    return out;
  }

  void expect(std::span<const std::byte> weights, std::span<float> y, std::span<std::byte> k = {},
              std::span<std::byte> v = {}, std::span<const std::uint64_t> turned = {},
              std::span<float> kept = {}) const {
    if (chunk_) reference::matmul_chunk(shape_, halved_, weights, y, kernel_trial::position, k, v, turned);
    else reference::matmul(shape_, input_, weights, y, kernel_trial::position, k, v, turned, kept);
  }
  std::vector<std::byte> groups(std::uint32_t first, std::uint32_t count) const {
    const std::uint64_t group_bytes = kernels::matmul_group_bytes(shape_.codec, columns_);
    return trial_.weight<std::byte>(facts_.weight, first / 4 * group_bytes, (count + 3) / 4 * group_bytes);
  }

  /// Compares the last head of q, and the first heads of k and v in the caches.
  double heads_apart(const gpu::buffer& out, const gpu::buffer& keys, const gpu::buffer& cached) {
    const std::uint32_t q_size = out_width_, kv_size = facts_.kv_size, head = facts_.head_dim;
    shape_.head_dim = shape_.q_size = shape_.kv_size = head;
    shape_.rows = 3 * head;
    std::vector<std::byte> of_heads;
    for (const std::uint32_t first : {q_size - head, q_size, q_size + kv_size}) {
      const auto part = groups(first, head);
      of_heads.insert(of_heads.end(), part.begin(), part.end());
    }
    std::vector<float> q(std::size_t{trial_.tokens} * head);
    const std::size_t element = shape_.cache_element == kernels::element::f32 ? 4 : 2;
    std::vector<std::byte> k(kernels::key_cache_elements(1, head, shape_.context) * element),
        v(kernels::value_cache_elements(1, head, shape_.context) * element);
    expect(of_heads, q, k, v, trial_.weight<std::uint64_t>(facts_.rope, 0, head / 2));
    return (std::max)(apart(trial_.last_heads(out, q_size, head), q), caches_apart(keys, k, cached, v, element));
  }

  /// Compares the first rows, rows in the middle, and the last rows.
  double rows_apart(const gpu::buffer& out, const gpu::buffer& gates) {
    double worst = 0;
    const std::uint32_t halves = shape_.epilogue == kernels::epilogue::gated ? 2 : 1;
    for (const std::uint32_t first : {0u, rows_ / 8 * 4, (rows_ - 1) / 4 * 4}) {
      shape_.rows = (std::min)(rows_ - first, 16u);
      auto [expected, found] = outputs_of(out, start_, out_width_, first / halves, shape_.rows / halves, trial_.tokens);
      std::vector<float> kept(keeps_gates_ ? expected.size() : 0);
      expect(groups(first, shape_.rows), expected, {}, {}, {}, kept);
      worst = (std::max)(worst, apart(found, expected));
      if (keeps_gates_)
        worst = (std::max)(worst, apart(read<float>(gates, first / halves, kept.size()), kept));  // of one token
    }
    return worst;
  }

  kernel_trial& trial_;
  const plan::dispatch& call_;
  plan::product_facts facts_;
  bool chunk_, batch_, keeps_gates_ = false;
  std::uint32_t columns_, rows_, out_width_ = 0;
  reference::matmul_shape shape_;
  std::vector<float> values_, input_, start_;  ///< activations, activations after the norm, outputs before the run
  std::vector<reference::f16_token> halved_;
};

/// Compares the kernel matmul with the reference. @return the largest difference
[[gnu::cold]] inline double matmul(kernel_trial& trial, const plan::dispatch& call) {
  return matmul_proof(trial, call).apart_of_run();
}

/// Compares the kernel dense_matmul with the reference. @return the largest difference
[[gnu::cold]] inline double dense_matmul(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::dense_matmul_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::dense_matmul_kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows, some = (std::min)(rows, 8u);
  const auto type = static_cast<kernels::element>(c.weight_element);
  const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
  const auto values = trial.floats(std::size_t{trial.tokens} * columns),
             norm = trial.weight<float>(call[at.norm_weight], 0, columns);
  const gpu::buffer in = trial.filled(values, std::size_t{trial.width} * columns),
                    out = trial.room(std::uint64_t{4} * trial.width * rows), memory = trial.memory_of(trial.state()),
                    firsts = trial.room(std::uint64_t{8} * trial.width * call.groups[0]);
  const bool finds_first = c.keeps_firsts != 0;
  kernel_trial::bound_buffers buffers{{at.input, &in}, {at.output, &out}, {at.state, &memory}};
  if (finds_first) buffers.emplace_back(at.firsts, &firsts);
  trial.run(call, buffers);
  if (finds_first && first_of(firsts, call.groups[0]) != reference::first_ranked(read<float>(out, 0, rows))) return 1;
  double worst = 0;
  for (const std::uint32_t first : {0u, rows - some}) {
    std::vector<float> expected(std::size_t{trial.tokens} * some), found;
    reference::dense_matmul(values, norm, trial.weight<std::byte>(call[at.weight], first * row_bytes, some * row_bytes),
                            type, columns, some, c.eps, expected);
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      const auto row = read<float>(out, std::size_t{t} * rows + first, some);
      found.insert(found.end(), row.begin(), row.end());
    }
    worst = (std::max)(worst, apart(found, expected));
  }
  return worst;
}
/// The largest difference of a product from the reference.
/// @tparam Kernel one of the kernels without a norm
template <class Kernel>
[[gnu::cold]] double dense_rows_apart(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<Kernel>(call);
  constexpr auto at = kernels::push_ids<Kernel>;
  const std::uint32_t columns = c.columns, rows = c.rows, some = (std::min)(rows, 8u);
  const auto type = static_cast<kernels::element>(c.weight_element);
  const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
  const auto values = trial.floats(std::size_t{trial.tokens} * columns);
  const gpu::buffer in = trial.filled(values, std::size_t{trial.width} * columns),
                    out = trial.room(std::uint64_t{4} * trial.width * rows), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.state, &memory}});
  double worst = 0;
  for (const std::uint32_t first : {0u, rows - some}) {
    std::vector<float> expected(std::size_t{trial.tokens} * some), found;
    reference::dense_batch(values, trial.weight<std::byte>(call[at.weight], first * row_bytes, some * row_bytes), type,
                           columns, some, expected);
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      const auto row = read<float>(out, std::size_t{t} * rows + first, some);
      found.insert(found.end(), row.begin(), row.end());
    }
    worst = (std::max)(worst, apart(found, expected));
  }
  return worst;
}

/// Compares the kernel dense_batch with the reference. @return the largest difference
[[gnu::cold]] inline double dense_batch(kernel_trial& trial, const plan::dispatch& call) {
  return dense_rows_apart<kernels::dense_batch_kernel>(trial, call);
}
/// Compares the kernel dense_rows with the reference. @return the largest difference
[[gnu::cold]] inline double dense_rows(kernel_trial& trial, const plan::dispatch& call) {
  return dense_rows_apart<kernels::dense_rows_kernel>(trial, call);
}

}  // namespace intaglio::runtime::proofs
