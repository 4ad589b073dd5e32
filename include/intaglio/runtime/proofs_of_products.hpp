// SPDX-License-Identifier: MIT
// Proofs of matrix products: compares some rows of each with the CPU reference.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

[[gnu::cold]] inline double ternary_product(kernel_trial& trial, const plan::dispatch& call) {
  using kernels::epilogue, kernels::kernel, kernels::prologue;
  const std::uint32_t columns = trial.constant(call, "columns"), rows = trial.constant(call, "rows");
  const auto how = static_cast<epilogue>(trial.constant(call, "epilogue"));
  const bool of_integers = call.kernel == kernel::ternary_chunk || call.kernel == kernel::ternary_batch ||
                           call.kernel == kernel::ternary_rows;
  const auto before = of_integers ? prologue::quantized : static_cast<prologue>(trial.constant(call, "prologue"));
  const bool rounds = call.kernel != kernels::kernel::ternary_float;
  std::vector<float> plain;
  std::vector<std::int8_t> codes(std::size_t{trial.tokens} * columns);
  std::vector<reference::factors> factors(trial.tokens);
  gpu::buffer in, sums;
  if (!rounds) {
    const auto values = trial.floats(codes.size());
    plain = values;
    if (before == prologue::norm)
      for (std::size_t at = 0; at < values.size(); at += columns)
        reference::rms_norm(std::span(values).subspan(at, columns),
                            trial.weight<float>(trial.operand(call, "norm_weight"), 0, columns),
                            trial.real(call, "eps"), std::span(plain).subspan(at, columns));
    in = trial.filled(values, std::size_t{trial.width} * columns);
  } else if (quantizes(before)) {
    const auto values = trial.floats(codes.size());
    reference::norm_quantize(values, norm_of(trial, call, columns), columns, trial.real(call, "eps"), codes, factors);
    in = trial.filled(values, std::size_t{trial.width} * columns);
  } else {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<std::int8_t>(static_cast<int>(trial.next() % 255) - 127);
      factors[i / columns].sum += codes[i];
    }
    for (auto& each : factors) each.inverse_scale = 0.01f;
    in = trial.filled(codes, std::size_t{trial.width} * columns);
    sums = trial.filled(factors, trial.width);
  }
  reference::ternary_matmul_shape shape;
  shape.columns = columns;
  shape.epilogue = how;
  shape.gate = call.act();
  shape.context = trial.constant(call, "context");
  shape.cache_element = static_cast<kernels::element>(trial.constant(call, "cache_element"));
  const std::uint32_t q_size = trial.constant(call, "q_size"), kv_size = trial.constant(call, "kv_size"),
                      head = trial.constant(call, "head_dim");
  std::vector<std::uint32_t> firsts;  // of the runs of rows that are compared
  std::uint32_t run_rows = (std::min)(rows, 32u), out_width = how == epilogue::gated ? rows / 2 : rows;
  if (how == epilogue::rope_cache) {
    firsts = {q_size - head, q_size, q_size + kv_size};
    run_rows = head;
    out_width = q_size;
    shape.head_dim = shape.q_size = shape.kv_size = head;
    shape.rope_theta = trial.real(call, "rope_theta");
  } else {
    firsts = {0, (rows - run_rows) / 8 * 4, rows - run_rows};
  }
  const auto start = trial.floats(std::size_t{trial.tokens} * out_width);
  const gpu::buffer out = trial.filled(start, std::size_t{trial.width} * out_width),
                    keys = trial.room(how == epilogue::rope_cache ? trial.cache_of(call).key_bytes : 0),
                    values = trial.room(how == epilogue::rope_cache ? trial.cache_of(call).value_bytes : 0),
                    memory = trial.memory_of(trial.state());
  kernel_trial::named_buffers buffers{
      {"input", &in}, {"output", &out}, {"state", &memory}, {"keys", &keys}, {"values", &values}};
  if (before == prologue::quantized) buffers.emplace_back("factors", &sums);
  trial.run(call, buffers);
  const auto expect = [&](std::span<const std::uint32_t> words, std::span<const float> scales, std::span<float> output,
                          std::span<std::byte> k = {}, std::span<std::byte> v = {}) {
    if (rounds) reference::ternary_matmul(shape, codes, factors, words, scales, output, kernel_trial::position, k, v);
    else reference::ternary_float(shape, plain, words, scales, output, kernel_trial::position, k, v);
  };

  const auto scales = trial.weight<float>(trial.operand(call, "scales"), 0,
                                          trial.table->weights[trial.operand(call, "scales").slot].bytes / 4);
  const auto tiles = [&](std::uint32_t first) {
    return trial.weight<std::uint32_t>(trial.operand(call, "weight"), std::uint64_t{first} * columns / 16,
                                       std::uint64_t{run_rows} * columns / 16);
  };
  if (how == epilogue::rope_cache) {
    shape.rows = 3 * head;
    std::vector<std::uint32_t> words;
    for (const std::uint32_t first : firsts) {
      const auto part = tiles(first);
      words.insert(words.end(), part.begin(), part.end());
    }
    const std::size_t element = shape.cache_element == kernels::element::f32 ? 4 : 2;
    std::vector<std::byte> k(kernels::key_cache_elements(1, head, shape.context) * element),
        v(kernels::value_cache_elements(1, head, shape.context) * element);
    std::vector<float> q(std::size_t{trial.tokens} * head);
    expect(words, scales, q, k, v);
    return (std::max)(apart(trial.last_heads(out, q_size, head), q), caches_apart(keys, k, values, v, element));
  }
  double worst = 0;
  const std::uint32_t halves = how == epilogue::gated ? 2 : 1;
  shape.rows = run_rows;
  for (const std::uint32_t first : firsts) {
    std::vector<float> expected, found;
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      const std::size_t at = std::size_t{t} * out_width + first / halves, count = run_rows / halves;
      expected.insert(expected.end(), start.begin() + static_cast<std::ptrdiff_t>(at),
                      start.begin() + static_cast<std::ptrdiff_t>(at + count));
      const auto row = read<float>(out, at, count);
      found.insert(found.end(), row.begin(), row.end());
    }
    expect(tiles(first), scales, expected);
    worst = (std::max)(worst, apart(found, expected));
  }
  return worst;
}

/// The best of the tokens that the workgroups found.
inline reference::ranked_token first_of(const gpu::buffer& firsts, std::uint32_t groups) {
  const auto found = read<reference::ranked_token>(firsts, 0, groups);
  return *std::max_element(found.begin(), found.end());
}

/// Some rows of a product, or one head each of q, k and v.
[[gnu::cold]] inline double matmul(kernel_trial& trial, const plan::dispatch& call) {
  using kernels::epilogue;
  reference::matmul_shape shape;
  shape.columns = trial.constant(call, "columns");
  shape.codec = static_cast<kernels::codec>(trial.constant(call, "codec"));
  shape.epilogue = static_cast<epilogue>(trial.constant(call, "epilogue"));
  shape.gate = call.act();
  shape.context = trial.constant(call, "context");
  const bool batch = call.kernel == kernels::kernel::matmul_batch;
  shape.ring = trial.constant(call, "ring") != 0;
  shape.cache_element = static_cast<kernels::element>(trial.constant(call, "cache_element"));
  const std::uint32_t columns = shape.columns, rows = trial.constant(call, "rows"),
                      q_size = trial.constant(call, "q_size"), kv_size = trial.constant(call, "kv_size"),
                      head = trial.constant(call, "head_dim");
  const bool turns = shape.epilogue == epilogue::rope_cache;
  const std::uint32_t out_width = turns ? q_size : shape.epilogue == epilogue::gated ? rows / 2 : rows;
  const auto values = trial.floats(std::size_t{trial.tokens} * columns),
             start = trial.floats(std::size_t{trial.tokens} * out_width);
  std::vector<float> input = values;
  const bool chunk = call.kernel == kernels::kernel::matmul_chunk;
  if (!chunk && !batch && static_cast<kernels::prologue>(trial.constant(call, "prologue")) == kernels::prologue::norm)
    for (std::size_t at = 0; at < values.size(); at += columns)
      reference::rms_norm(std::span(values).subspan(at, columns),
                          trial.weight<float>(trial.operand(call, "norm_weight"), 0, columns), trial.real(call, "eps"),
                          std::span(input).subspan(at, columns));
  std::vector<reference::f16_token> halved;
  std::vector<std::uint16_t> bits;
  std::vector<float> factor;
  for (std::size_t at = 0; chunk && at < values.size(); at += columns) {
    halved.push_back(reference::quantize_f16(std::span(values).subspan(at, columns)));
    factor.push_back(halved.back().factor);
  }
  if (chunk) {
    const kernels::f16_order order =
        call.variant == kernels::variant::matmul_chunk_batch ? kernels::f16_order::tiles
        : call.variant == kernels::variant::matmul_chunk_fragments
            ? kernels::fragment_order(static_cast<kernels::codec>(trial.constant(call, "codec")))
            : kernels::f16_order::rows;
    bits = reference::ordered_f16(order, halved, columns);
  }
  std::vector<std::uint32_t> prepared;
  for (std::size_t at = 0; batch && at < values.size(); at += columns) {
    const auto words = reference::fixed_words(std::span(values).subspan(at, columns));
    prepared.insert(prepared.end(), words.begin(), words.end());
  }
  if (call.variant == kernels::variant::matmul_batch_tiled) prepared = reference::tiled_words(prepared, columns);
  const gpu::buffer in = chunk   ? trial.filled(bits, std::size_t{trial.width} * columns)
                         : batch ? trial.filled(prepared, std::size_t{trial.width} * kernels::fixed_words(columns))
                                 : trial.filled(values, std::size_t{trial.width} * columns),
                    factors = trial.filled(factor, trial.width),
                    out = trial.filled(start, std::size_t{trial.width} * out_width),
                    keys = trial.room(shape.epilogue == epilogue::rope_cache ? trial.cache_of(call).key_bytes : 0),
                    cached = trial.room(shape.epilogue == epilogue::rope_cache ? trial.cache_of(call).value_bytes : 0),
                    memory = trial.memory_of(trial.state());
  kernel_trial::named_buffers buffers{
      {"input", &in}, {"output", &out}, {"state", &memory}, {"keys", &keys}, {"values", &cached}};
  if (chunk) buffers.emplace_back("factors", &factors);
  const bool keeps_gates =
      call.kernel == kernels::kernel::matmul && trial.operand(call, "gates").where != plan::region::none;
  gpu::buffer gates;
  if (keeps_gates)
    gates = trial.room(std::uint64_t{4} * trial.width * out_width), buffers.emplace_back("gates", &gates);
  const bool finds_first = call.kernel == kernels::kernel::matmul && trial.constant(call, "keeps_firsts") != 0;
  gpu::buffer firsts;
  if (finds_first) firsts = trial.room(std::uint64_t{8} * call.groups[0]), buffers.emplace_back("firsts", &firsts);
  trial.run(call, buffers);
  if (finds_first && first_of(firsts, call.groups[0]) != reference::first_ranked(read<float>(out, 0, rows))) return 1;
  const auto expect = [&](std::span<const std::byte> weights, std::span<float> y, std::span<std::byte> k = {},
                          std::span<std::byte> v = {}, std::span<const std::uint64_t> turned = {},
                          std::span<float> kept = {}) {
    if (chunk) reference::matmul_chunk(shape, halved, weights, y, kernel_trial::position, k, v, turned);
    else reference::matmul(shape, input, weights, y, kernel_trial::position, k, v, turned, kept);
  };
  const std::uint64_t group_bytes = kernels::matmul_group_bytes(shape.codec, columns);
  const auto groups = [&](std::uint32_t first, std::uint32_t count) {
    return trial.weight<std::byte>(trial.operand(call, "weight"), first / 4 * group_bytes,
                                   (count + 3) / 4 * group_bytes);
  };
  if (turns) {
    shape.head_dim = shape.q_size = shape.kv_size = head;
    shape.rows = 3 * head;
    std::vector<std::byte> of_heads;
    for (const std::uint32_t first : {q_size - head, q_size, q_size + kv_size}) {
      const auto part = groups(first, head);
      of_heads.insert(of_heads.end(), part.begin(), part.end());
    }
    std::vector<float> q(std::size_t{trial.tokens} * head);
    const std::size_t element = shape.cache_element == kernels::element::f32 ? 4 : 2;
    std::vector<std::byte> k(kernels::key_cache_elements(1, head, shape.context) * element),
        v(kernels::value_cache_elements(1, head, shape.context) * element);
    expect(of_heads, q, k, v, trial.weight<std::uint64_t>(trial.operand(call, "rope"), 0, head / 2));
    return (std::max)(apart(trial.last_heads(out, q_size, head), q), caches_apart(keys, k, cached, v, element));
  }
  double worst = 0;
  const std::uint32_t halves = shape.epilogue == epilogue::gated ? 2 : 1;
  for (const std::uint32_t first : {0u, rows / 8 * 4, (rows - 1) / 4 * 4}) {
    shape.rows = (std::min)(rows - first, 16u);
    std::vector<float> expected, found;
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      const std::size_t at = std::size_t{t} * out_width + first / halves, count = shape.rows / halves;
      expected.insert(expected.end(), start.begin() + static_cast<std::ptrdiff_t>(at),
                      start.begin() + static_cast<std::ptrdiff_t>(at + count));
      const auto row = read<float>(out, at, count);
      found.insert(found.end(), row.begin(), row.end());
    }
    std::vector<float> kept(keeps_gates ? expected.size() : 0);
    expect(groups(first, shape.rows), expected, {}, {}, {}, kept);
    worst = (std::max)(worst, apart(found, expected));
    if (keeps_gates)
      worst = (std::max)(worst, apart(read<float>(gates, first / halves, kept.size()), kept));  // of one token
  }
  return worst;
}

[[gnu::cold]] inline double dense_matmul(kernel_trial& trial, const plan::dispatch& call) {
  const std::uint32_t columns = trial.constant(call, "columns"), rows = trial.constant(call, "rows"),
                      some = (std::min)(rows, 8u);
  const auto type = static_cast<kernels::element>(trial.constant(call, "weight_element"));
  const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
  const auto values = trial.floats(std::size_t{trial.tokens} * columns),
             norm = trial.weight<float>(trial.operand(call, "norm_weight"), 0, columns);
  const gpu::buffer in = trial.filled(values, std::size_t{trial.width} * columns),
                    out = trial.room(std::uint64_t{4} * trial.width * rows), memory = trial.memory_of(trial.state()),
                    firsts = trial.room(std::uint64_t{8} * trial.width * call.groups[0]);
  const bool finds_first = trial.constant(call, "keeps_firsts") != 0;
  kernel_trial::named_buffers buffers{{"input", &in}, {"output", &out}, {"state", &memory}};
  if (finds_first) buffers.emplace_back("firsts", &firsts);
  trial.run(call, buffers);
  if (finds_first && first_of(firsts, call.groups[0]) != reference::first_ranked(read<float>(out, 0, rows))) return 1;
  double worst = 0;
  for (const std::uint32_t first : {0u, rows - some}) {
    std::vector<float> expected(std::size_t{trial.tokens} * some), found;
    reference::dense_matmul(values, norm,
                            trial.weight<std::byte>(trial.operand(call, "weight"), first * row_bytes, some * row_bytes),
                            type, columns, some, trial.real(call, "eps"), expected);
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      const auto row = read<float>(out, std::size_t{t} * rows + first, some);
      found.insert(found.end(), row.begin(), row.end());
    }
    worst = (std::max)(worst, apart(found, expected));
  }
  return worst;
}

[[gnu::cold]] inline double dense_batch(kernel_trial& trial, const plan::dispatch& call) {
  const std::uint32_t columns = trial.constant(call, "columns"), rows = trial.constant(call, "rows"),
                      some = (std::min)(rows, 8u);
  const auto type = static_cast<kernels::element>(trial.constant(call, "weight_element"));
  const std::uint64_t row_bytes = std::uint64_t{columns} * (type == kernels::element::f32 ? 4 : 2);
  const auto values = trial.floats(std::size_t{trial.tokens} * columns);
  const gpu::buffer in = trial.filled(values, std::size_t{trial.width} * columns),
                    out = trial.room(std::uint64_t{4} * trial.width * rows), memory = trial.memory_of(trial.state());
  trial.run(call, {{"input", &in}, {"output", &out}, {"state", &memory}});
  double worst = 0;
  for (const std::uint32_t first : {0u, rows - some}) {
    std::vector<float> expected(std::size_t{trial.tokens} * some), found;
    reference::dense_batch(values,
                           trial.weight<std::byte>(trial.operand(call, "weight"), first * row_bytes, some * row_bytes),
                           type, columns, some, expected);
    for (std::uint32_t t = 0; t < trial.tokens; ++t) {
      const auto row = read<float>(out, std::size_t{t} * rows + first, some);
      found.insert(found.end(), row.begin(), row.end());
    }
    worst = (std::max)(worst, apart(found, expected));
  }
  return worst;
}

}  // namespace intaglio::runtime::proofs
