// SPDX-License-Identifier: MIT
// Proofs of kernels that prepare activations: embeddings, norms, and rounding in front of products.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "intaglio/core/float16.hpp"
#include "intaglio/kernels/arithmetic.hpp"
#include "intaglio/kernels/matmul_layout.hpp"
#include "intaglio/reference/activation.hpp"
#include "intaglio/reference/experts.hpp"
#include "intaglio/reference/matmul.hpp"
#include "intaglio/reference/matmul_chunk.hpp"
#include "intaglio/reference/norm_quantize.hpp"
#include "intaglio/runtime/kernel_trial.hpp"

namespace intaglio::runtime::proofs {

/// Compares the kernel embed with the reference. @return the largest difference
[[gnu::cold]] inline double embed(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::embed_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::embed_kernel>;
  const std::uint32_t width = c.width, rows = c.vocab_size;
  const auto type = c.table_element;
  const float scale = c.scale;
  // Rows of floats are after each other, others in groups of four.
  const std::uint32_t together = kernels::is_dense(type) ? 1 : 4;
  const std::uint64_t bytes = kernels::matmul_group_bytes(type, width) * together / 4;
  auto words = trial.state();
  const std::uint32_t ids[] = {rows - 1, rows / 3};
  const std::uint32_t positions = c.positions, kinds = c.kinds;
  if (kinds > 1) words[kernels::state::second_text] = kernel_trial::position + 1;  // the first token's kind is 0
  std::vector<float> expected;
  for (std::uint32_t t = 0; t < trial.tokens; ++t) {
    words[kernels::state::tokens + t] = ids[t];
    const auto group = trial.weight<std::byte>(call[at.table], ids[t] / together * bytes, bytes);
    std::vector<float> kind(width), by_position(width);
    if (kinds != 0)
      kind = trial.weight<float>(call[at.kind_table], std::size_t{t != 0 && kinds > 1 ? width : 0u}, width);
    if (positions != 0)
      by_position = trial.weight<float>(
          call[at.position_table], std::size_t{(std::min)(kernel_trial::position + t, positions - 1)} * width, width);
    for (std::uint32_t i = 0; i < width; ++i) {
      const float value = reference::weight_at(type, group, width, ids[t] % together, i),
                  row = scale == 0 ? value : kernels::arithmetic::product(value, scale);
      expected.push_back(row + kind[i] + by_position[i]);
    }
  }
  const gpu::buffer output = trial.room(std::uint64_t{4} * trial.width * width), memory = trial.memory_of(words);
  plan::dispatch rows_alone = call;  // cleared exchange memory may take hundreds of megabytes; the kernels that wait
                                     // for it are proven as a whole (executor::prove_resident)
  rows_alone.groups[0] = 1;
  trial.run(rows_alone, {{at.output, &output}, {at.state, &memory}});
  return apart(read<float>(output, 0, expected.size()), expected);
}

/// Compares the kernel rms_norm with the reference. @return the largest difference
[[gnu::cold]] inline double rms_norm(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::rms_norm_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::rms_norm_kernel>;
  const std::uint32_t width = c.width, groups = call.groups[0];
  const std::uint64_t row = std::uint64_t{width} * groups;
  const auto input = trial.floats(trial.tokens * row), norm = trial.weight<float>(call[at.norm_weight], 0, row);
  const gpu::buffer in = trial.filled(input, trial.width * row), out = trial.room(4 * trial.width * row),
                    memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.state, &memory}});
  std::vector<float> expected(input.size()), bias;
  const std::uint32_t centered = c.centered;
  if (centered == 1) bias = trial.weight<float>(call[at.bias], 0, width);
  for (std::size_t t = 0; t < std::size_t{trial.tokens} * groups; ++t) {
    const std::span<const float> x = std::span(input).subspan(t * width, width),
                                 weight = std::span(norm).subspan(t % groups * width, width);
    const std::span<float> y = std::span(expected).subspan(t * width, width);
    if (centered != 0) reference::layer_norm(x, weight, bias, c.eps, y);
    else reference::rms_norm(x, weight, c.eps, y);
  }
  return apart(read<float>(out, 0, expected.size()), expected);
}

/// Compares the kernel norm_add with the reference. @return the largest difference
[[gnu::cold]] inline double norm_add(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::norm_add_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::norm_add_kernel>;
  const std::uint32_t width = c.width, parts = c.parts,
                      all = call.groups[0] * width;  // of a token's heads
  auto input = trial.floats(std::size_t{trial.tokens} * all * parts);
  auto expected = trial.floats(std::size_t{trial.tokens} * all);
  const gpu::buffer in = trial.filled(input, std::size_t{trial.width} * all * parts),
                    out = trial.filled(expected, std::size_t{trial.width} * all),
                    memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.state, &memory}});
  for (std::size_t step = parts / 2; step != 0; step /= 2)
    for (std::size_t i = 0; i < step * width; ++i) input[i] += input[i + step * width];
  input.resize(expected.size());
  const auto weights = trial.weight<float>(call[at.norm_weight], 0, width);
  if (c.biased != 0) reference::bias_add(input, weights, expected);
  else
    reference::norm_add(input, weights, c.eps, expected,
                        c.scaled != 0 ? trial.weight<float>(call[at.norm_weight], width, 1).front() : 1.f);
  return apart(read<float>(out, 0, expected.size()), expected);
}

/// The norm in front of a quantisation, or none.
[[gnu::cold]] inline std::vector<float> norm_of(kernel_trial& trial, const plan::operand& norm, kernels::prologue how,
                                                std::uint32_t width) {
  return how == kernels::prologue::quantize ? std::vector<float>{} : trial.weight<float>(norm, 0, width);
}
/// Compares the kernel norm_quantize with the reference. @return the largest difference
[[gnu::cold]] inline double norm_quantize(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::norm_quantize_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::norm_quantize_kernel>;
  const std::uint32_t width = c.width;
  const auto values = trial.floats(std::size_t{trial.tokens} * width),
             norm = norm_of(trial, call[at.norm_weight], c.prologue, width);
  std::vector<std::int8_t> codes(values.size());
  std::vector<reference::factors> factors(trial.tokens);
  reference::norm_quantize(values, norm, width, c.eps, codes, factors);
  const gpu::buffer in = trial.filled(values, std::size_t{trial.width} * width),
                    out = trial.room(std::uint64_t{trial.width} * width),
                    sums = trial.room(std::uint64_t{8} * trial.width), memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.factors, &sums}, {at.state, &memory}});
  const auto found = read<std::int8_t>(out, 0, codes.size());
  const auto found_factors = read<reference::factors>(sums, 0, trial.tokens);
  double worst = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) worst = (std::max)(worst, std::abs(found[i] - codes[i]) / 127.0);
  for (std::size_t t = 0; t < trial.tokens; ++t) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += found[t * width + i];
    if (sum != found_factors[t].sum) return 1;
    worst = (std::max)(worst,
                       static_cast<double>(std::abs(found_factors[t].inverse_scale / factors[t].inverse_scale - 1.0f)));
  }
  return worst;
}

/// Proves fixed-point inputs. They are compared as numbers, since the device's square root may differ slightly.
[[gnu::cold]] inline double fixed(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::fixed_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::fixed_kernel>;
  const std::uint32_t width = c.width;
  const std::size_t rows = std::size_t{trial.tokens} * c.rows_per_token,
                    room_for = std::size_t{trial.width} * c.rows_per_token;
  const auto values = trial.floats(rows * width);
  const gpu::buffer in = trial.filled(values, room_for * width),
                    out = trial.room(std::uint64_t{4} * room_for * kernels::fixed_words(width)),
                    memory = trial.memory_of(trial.state());
  trial.run(call, {{at.input, &in}, {at.output, &out}, {at.state, &memory}});
  const bool tiled = c.tiled != 0;
  const auto tiles = read<std::uint32_t>(out, 0, tiled ? (trial.tokens + 7) / 8 * 8 * kernels::fixed_words(width) : 0);
  double worst = 0;
  std::vector<std::uint32_t> expected;
  for (std::size_t t = 0; t < rows; ++t) {
    std::vector<float> y(values.begin() + static_cast<std::ptrdiff_t>(t * width),
                         values.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
    if (c.prologue == kernels::prologue::norm)
      reference::rms_norm(std::span(values).subspan(t * width, width),
                          trial.weight<float>(call[at.norm_weight], 0, width), c.eps, y);
    const auto found = tiled ? reference::untiled_words(tiles, width, t)
                             : read<std::uint32_t>(out, t * kernels::fixed_words(width), kernels::fixed_words(width));
    const auto numbers = reference::fixed_values(found);
    const auto words = reference::fixed_words(numbers);
    worst = (std::max)({worst, apart(numbers, y), tiled || words == found ? 0.0 : 1.0});
    expected.insert(expected.end(), words.begin(), words.end());
  }
  return tiled && reference::tiled_words(expected, width) != tiles ? 1.0 : worst;
}

/// Proves f16 inputs; with experts the rows of one list, whose pairs are in descending order.
[[gnu::cold]] inline double quantize_f16(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::quantize_f16_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::quantize_f16_kernel>;
  const std::uint32_t width = c.width, used = c.experts_used, inputs = trial.tokens * (c.own_input != 0 ? used : 1),
                      rows = used == 0 ? trial.tokens : (std::min)(trial.tokens * used, c.list_tokens);
  const auto values = trial.floats(std::size_t{inputs} * width);
  std::vector<std::uint32_t> tiles(used == 0 ? 0 : std::size_t{call.groups[1]} / c.list_tokens * (c.list_tokens + 2)),
      from(rows);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t pair = rows - 1 - row;
    from[row] = used == 0 ? row : c.own_input != 0 ? pair : pair / used;
    if (used != 0) tiles[1] = rows, tiles[2 + row] = pair;
  }
  const std::size_t all = used == 0 ? trial.width : call.groups[1];
  const gpu::buffer in = trial.filled(values, std::size_t{trial.width} * (std::max)(used, 1u) * width),
                    out = trial.room(2 * all * width), factors = trial.room(4 * all), lists = trial.filled(tiles, 1),
                    memory = trial.memory_of(trial.state());
  kernel_trial::bound_buffers buffers{{at.input, &in}, {at.output, &out}, {at.factors, &factors}, {at.state, &memory}};
  if (used != 0) buffers.emplace_back(at.tiles, &lists);
  trial.run(call, buffers);
  const kernels::f16_order order = static_cast<kernels::f16_order>(c.tiled);
  const auto found = read<std::uint16_t>(
      out, 0, (order == kernels::f16_order::tiles ? (rows + 7) / 8 * 8 : rows) * std::size_t{width});
  const auto found_factors = read<float>(factors, 0, rows);
  double worst = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto x = std::span(values).subspan(std::size_t{from[row]} * width, width);
    std::vector<float> y(x.begin(), x.end());
    if (c.prologue == kernels::prologue::norm)
      reference::rms_norm(x, trial.weight<float>(call[at.norm_weight], 0, width), c.eps, y);
    const auto expected = reference::quantize_f16(y);
    std::vector<float> widened(width);
    for (std::uint32_t k = 0; k < width; ++k) {
      y[k] = f32_from_f16(expected.bits[k]) * expected.factor;
      widened[k] = f32_from_f16(found[reference::ordered_index(order, row, k, width)]) * found_factors[row];
    }
    worst = (std::max)(worst, apart(widened, y));
  }
  return worst;
}

/// The distance between the codes and factors that a trial wrote and the expected ones: relative differences of
/// factors, and 1/32 of the share of codes that differ by one, which a division that the device rounds the other way
/// may cause. Larger differences of codes count as a fault.
[[gnu::cold]] inline double codes_apart(const reference::cached& form, std::uint32_t heads, std::uint32_t tokens,
                                        std::span<const std::byte> found, std::span<const std::byte> expected) {
  double worst = 0, off = 0;
  for (std::uint32_t head = 0; head < heads; ++head)
    for (std::uint32_t t = 0; t < tokens; ++t)
      for (std::uint32_t c = 0; c < form.head_dim; ++c) {
        const std::uint32_t at = (kernel_trial::position + t) % form.context;
        const float factor = form.factor_of(expected, head, at, c);
        worst = (std::max)(worst, apart(std::vector{form.factor_of(found, head, at, c)}, std::vector{factor}));
        const float step = form.read(found, head, at, c) - form.read(expected, head, at, c);
        if (std::abs(step) > 1.5f * std::abs(factor)) return HUGE_VAL;
        off += form.code_of(found, head, at, c) != form.code_of(expected, head, at, c);
      }
  return (std::max)(worst, off / (32.0 * heads * tokens * form.head_dim));
}

/// Compares the kernel turn with the reference. @return the largest difference
[[gnu::cold]] inline double turn(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::turn_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::turn_kernel>;
  const reference::turn_shape shape{c.heads, c.kv_heads,    c.head_dim,      c.context,
                                    c.eps,   c.ring != 0,   c.cache_element, {c.q_stride, c.k_stride, c.v_stride},
                                    c.norms, c.rope_factor, c.v_norm != 0,   c.latent};
  const std::size_t q_size = std::size_t{c.heads} * c.head_dim, kv_size = std::size_t{c.kv_heads} * c.head_dim,
                    out_size = std::size_t{c.heads} * (c.latent + c.head_dim);
  const bool has_kv = c.kv_heads != 0;
  std::array<std::vector<float>, 3> rows;
  for (std::size_t i = 0; i < (has_kv ? 3 : 1); ++i)
    rows[i] = trial.floats(std::size_t{trial.tokens} * shape.strides[i]);
  const gpu::buffer q = trial.filled(rows[0], std::size_t{trial.width} * c.q_stride),
                    k = trial.filled(rows[1], std::size_t{trial.width} * c.k_stride),
                    v = trial.filled(rows[2], std::size_t{trial.width} * c.v_stride),
                    out = trial.room(4 * trial.width * out_size), keys = trial.room(trial.cache_of(call).key_bytes),
                    cached = trial.room(trial.cache_of(call).value_bytes), memory = trial.memory_of(trial.state());
  const auto latent_query = trial.floats(std::size_t{trial.tokens} * c.heads * c.latent);
  const gpu::buffer before = trial.filled(latent_query, std::size_t{trial.width} * c.heads * c.latent);
  trial.run(call, {{at.q, &q},
                   {at.k, &k},
                   {at.v, &v},
                   {at.output, &out},
                   {at.state, &memory},
                   {at.keys, &keys},
                   {at.values, &cached},
                   {at.latent_query, &before}});
  reference::turn_inputs in{{rows[0], rows[1], rows[2]}};
  in.latent_query = latent_query;
  std::vector<float> q_norm, k_norm, bias;
  if (c.norms != kernels::turn_norms::none) {
    const bool all = c.norms == kernels::turn_norms::all_heads;
    q_norm = trial.weight<float>(call[at.q_norm], 0, all ? q_size : c.head_dim);
    if (has_kv) k_norm = trial.weight<float>(call[at.k_norm], 0, all ? kv_size : c.head_dim);
    in.norms = {q_norm, k_norm};
  }
  if (c.latent != 0) in.norms[1] = k_norm = trial.weight<float>(call[at.k_norm], 0, c.latent);
  if (c.biased != 0) in.bias = bias = trial.weight<float>(call[at.bias], 0, q_size + 2 * kv_size);
  std::vector<std::byte> expected_keys(keys.mapped().size()), expected_values(cached.mapped().size());
  std::vector<float> expected(trial.tokens * out_size);
  reference::turn(shape, in, expected, kernel_trial::position, expected_keys, expected_values,
                  trial.weight<std::uint64_t>(call[at.rope], 0, c.head_dim / 2));
  const double of_queries = apart(read<float>(out, 0, expected.size()), expected);
  if (kernels::is_coded(c.cache_element)) {
    const reference::cached key_form{c.cache_element, false, c.latent + c.head_dim, c.context},
        value_form{c.cache_element, true, c.latent != 0 ? c.latent : c.head_dim, c.context};
    return (std::max)({of_queries, codes_apart(key_form, c.kv_heads, trial.tokens, keys.mapped(), expected_keys),
                       codes_apart(value_form, c.kv_heads, trial.tokens, cached.mapped(), expected_values)});
  }
  const std::size_t element = c.cache_element == kernels::element::f32 ? 4 : 2;
  return (std::max)(of_queries, caches_apart(keys, expected_keys, cached, expected_values, element));
}

/// Inputs at the limits of the activation's branches, such as zeros and numbers whose exponential over- or underflows.
[[gnu::cold]] inline double gated(kernel_trial& trial, const plan::dispatch& call) {
  const auto c = plan::constants_of<kernels::gated_kernel>(call);
  constexpr auto at = kernels::push_ids<kernels::gated_kernel>;
  const std::size_t width = c.width, count = trial.tokens * width, stride = c.up_stride;
  auto gates = trial.floats(count), ups = trial.floats(trial.tokens * stride);
  for (std::size_t i = 0; i + 4 < count; i += 97)  // every stride is at least a width
    gates[i] = 0, gates[i + 1] *= 100, ups[i + 2] = 0, gates[i + 3] *= -100;
  const bool biased = c.biased == 1 || c.biased == 2, of_experts = c.biased == 1, own = c.biased == 3;
  const std::size_t used = c.experts_used;
  const auto gate_biases = trial.floats(2 * width / used), up_biases = trial.floats(2 * width / used);  // of 2 experts
  std::vector<std::uint32_t> choice(2 * trial.tokens * used);
  for (std::size_t i = 0; i < choice.size(); ++i) choice[i] = i % 2;
  std::vector<float> expected(count);
  const auto with = [&](const std::vector<float>& x, const std::vector<float>& biases) {
    if (of_experts) return reference::biased_experts(x, choice, used, biases);
    std::vector<float> out = x;
    for (std::size_t i = 0; biased && i < out.size(); ++i) out[i] += biases[i % width];
    return out;
  };
  const auto given_gates = with(gates, gate_biases), given_ups = with(ups, up_biases);
  const std::vector<float> parameters{0.8f, 0.6f, 0.5f, -0.125f};
  if (own) reference::gated_by_parameters(*call.act(), gates, parameters, expected);
  for (std::size_t t = 0; t < trial.tokens && !own; ++t)
    reference::gated(*call.act(), std::span(given_gates).subspan(t * width, width),
                     std::span(given_ups).subspan(t * stride, width), std::span(expected).subspan(t * width, width),
                     c.scale);
  const gpu::buffer chosen = trial.filled(choice, 2 * trial.width * used),
                    gate_bias = trial.filled(own ? parameters : gate_biases, own ? 4 : gate_biases.size()),
                    up_bias = trial.filled(up_biases, up_biases.size());
  const gpu::buffer gate = trial.filled(gates, trial.width * width), up = trial.filled(ups, trial.width * stride),
                    out = trial.room(trial.width * width * 4), memory = trial.memory_of(trial.state());
  kernel_trial::bound_buffers buffers{{at.gate, &gate}, {at.up, &up}, {at.output, &out}, {at.state, &memory}};
  if (biased) buffers.insert(buffers.end(), {{at.gate_bias, &gate_bias}, {at.up_bias, &up_bias}});
  if (own) buffers.emplace_back(at.gate_bias, &gate_bias);
  if (of_experts) buffers.emplace_back(at.choice, &chosen);
  trial.run(call, buffers);
  return apart(read<float>(out, 0, count), expected);
}

}  // namespace intaglio::runtime::proofs
