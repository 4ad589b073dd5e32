// SPDX-License-Identifier: MIT
// The screened head: bounds that hold, exact logits where they are wanted, and the token of the dense head, whatever
// the weights are like.
#include "intaglio/reference/head_screen.hpp"

#include <limits>

#include "intaglio/kernels/row_codes.hpp"
#include "intaglio/runtime/sampling.hpp"
#include "kernels/kernel_device.hpp"

using namespace intaglio;
using namespace intaglio::testing;
namespace at = kernels::state;

namespace {

constexpr std::uint32_t max_tokens = 1, context = 16, ring_size = 4;
constexpr std::uint32_t groups = 24;
constexpr float infinite = std::numeric_limits<float>::infinity();

struct problem {
  std::uint32_t columns, rows;
  kernels::element type;
  std::vector<float> input, norm_weight;
  std::vector<std::byte> weight;

  /// @param values of the weights, not yet rounded to their type
  problem(std::uint32_t columns_, kernels::element type_, std::vector<float> input_, std::vector<float> norm_weight_,
          const std::vector<float>& values)
      : columns(columns_), rows(static_cast<std::uint32_t>(values.size()) / columns_), type(type_),
        input(std::move(input_)), norm_weight(std::move(norm_weight_)), weight(elements_of(values, type_)) {}

  std::vector<float> logits() const {
    std::vector<float> out(rows);
    reference::dense_matmul(input, norm_weight, weight, type, columns, rows, 1e-5f, out);
    return out;
  }
};

struct outcome {
  std::vector<float> bounds, logits;  ///< after the first step, after the second
  std::vector<float> lowest;          ///< the workgroups' largest lower bounds
  std::uint32_t token = 0;
};

/// Behind four tokens, which are the likeliest ones: a penalty hits them.
std::vector<std::uint32_t> begun(const problem& p, const sampling_options& options) {
  auto state = fresh_state(3, 1, max_tokens, context);
  runtime::write_sampling(options, state);
  if (options.repeat_penalty == 1.0f) return state;
  const auto logits = p.logits();
  std::vector<std::uint32_t> order(p.rows);
  for (std::uint32_t i = 0; i < p.rows; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  for (std::uint32_t i = 0; i < 4; ++i) state[at::history(max_tokens) + i] = order[i];
  return state;
}

outcome screened(kernel_device& on, const problem& p, const sampling_options& options, std::uint32_t subgroups) {
  std::vector<std::int8_t> codes(std::size_t{p.rows} * p.columns);
  std::vector<float> scales, row(p.columns);
  for (std::size_t r = 0; r < p.rows; ++r) {
    for (std::size_t c = 0; c < p.columns; ++c) row[c] = reference::elements::read(p.weight, p.type, r * p.columns + c);
    scales.push_back(kernels::row_codes(row, std::span(codes).subspan(r * p.columns, p.columns)));
  }
  auto state = begun(p, options);
  const auto x = on.filled(p.input), n = on.filled(p.norm_weight), c = on.filled(codes), s = on.filled(scales),
             w = on.filled(p.weight), t = on.filled(state), ring = on.filled(std::vector<std::uint32_t>(ring_size));
  const auto bounds = on.poisoned(std::size_t{4} * p.rows), y = on.poisoned(std::size_t{4} * p.columns),
             lowest = on.poisoned(4 * groups), firsts = on.poisoned(8 * groups),
             scratch = on.poisoned(kernels::sample_scratch_bytes(p.rows));
  outcome out;
  on.run(kernels::kernel::head_screen, subgroups, {{"columns", p.columns}, {"rows", p.rows}, {"eps", 1e-5f}},
         {{"input", &x},
          {"norm_weight", &n},
          {"codes", &c},
          {"scales", &s},
          {"bounds", &bounds},
          {"y", &y},
          {"lowest", &lowest},
          {"state", &t}},
         {groups, 1, 1});
  out.bounds = bounds.read<float>();
  out.lowest = lowest.read<float>();
  on.run(kernels::kernel::head_rescore, subgroups,
         {{"columns", p.columns},
          {"rows", p.rows},
          {"weight_element", static_cast<std::uint32_t>(p.type)},
          {"lowest_count", groups}},
         {{"y", &y}, {"weight", &w}, {"bounds", &bounds}, {"lowest", &lowest}, {"firsts", &firsts}, {"state", &t}},
         {groups, 1, 1});
  out.logits = bounds.read<float>();
  on.run(kernels::kernel::sample, subgroups,
         {{"vocab_size", p.rows},
          {"ring_size", ring_size},
          {"context", context},
          {"max_tokens", max_tokens},
          {"first_count", groups},
          {"slice", kernels::sample_slice(p.rows)}},
         {{"logits", &bounds}, {"state", &t}, {"ring", &ring}, {"scratch", &scratch}, {"firsts", &firsts}}, {1, 1, 1});
  out.token = t.read<std::uint32_t>()[at::tokens];
  return out;
}

std::uint32_t dense_token(const problem& p, const sampling_options& options) {
  auto state = begun(p, options);
  std::vector<std::uint32_t> ring(ring_size);
  reference::sample(p.logits(), max_tokens, context, state, ring);
  return state[at::tokens];
}

/// Rows computed exactly.
std::size_t check(kernel_device& on, const problem& p, const sampling_options& options, std::uint32_t subgroups = 4) {
  const outcome found = screened(on, p, options, subgroups);
  const auto exact = p.logits();
  const bool same_bits = on.device().description().type == gpu::device_type::cpu;
  CHECK(found.token == dense_token(p, options));
  const reference::sampling parameters{options.temperature,
                                       options.top_p,
                                       options.min_p,
                                       options.repeat_penalty,
                                       options.top_k.value_or(0),
                                       options.repeat_last_n.value_or(runtime::default_repeat_last_n)};
  const reference::screening wanted = reference::screening_of(parameters, 4, p.rows, groups);
  const bool all = wanted.rank == 0;
  const float threshold = all                ? -infinite
                          : wanted.rank == 1 ? *std::max_element(found.lowest.begin(), found.lowest.end())
                                             : reference::least_of_shares(found.lowest, wanted.rank);
  std::size_t rescored = 0, wrong = 0;
  for (std::uint32_t row = 0; row < p.rows; ++row) {
    const bool open = all || !(found.bounds[row] < threshold - wanted.reach);
    if (!all) wrong += !(std::isnan(exact[row]) ? found.bounds[row] == infinite : exact[row] <= found.bounds[row]);
    const bool is_exact = std::bit_cast<std::uint32_t>(found.logits[row]) == std::bit_cast<std::uint32_t>(exact[row]) ||
                          (std::isnan(found.logits[row]) && std::isnan(exact[row]));
    rescored += open;
    if (open && same_bits) wrong += !is_exact;
    if (!open) wrong += found.logits[row] != found.bounds[row] && same_bits && !is_exact;
  }
  CHECK(wrong == 0);
  if (std::isfinite(threshold)) {  // `rank` logits reach it
    std::size_t reaching = 0;
    for (const float logit : exact) reaching += logit >= threshold;
    CHECK(reaching >= wanted.rank);
  }
  return rescored;
}

}  // namespace

TEST_CASE("screened head: the dense head's token for every element, width and way of sampling",
          "[kernels][head][dear]") {
  kernel_device on;
  on.integer_dot = GENERATE(true, false);
  random_numbers random(21);
  struct sizes {
    std::uint32_t columns, rows;
  };
  for (const auto& [columns, rows, type] : {std::tuple{256u, 1031u, kernels::element::f16},
                                            {16u, 200u, kernels::element::f32},
                                            {1040u, 300u, kernels::element::bf16}}) {
    if (!on.integer_dot && type != kernels::element::f16) continue;
    for (int round = 0; round < 6; ++round) {
      auto input = random.floats(columns, -2, 2);
      if (round == 1) input[columns / 2] = 300;  // one activation is nearly all of the magnitude
      const problem p(columns, type, input, random.floats(columns, 0.5f, 1.5f),
                      random.floats(std::size_t{rows} * columns, -0.5f, 0.5f));
      INFO("columns " << columns << ", element " << static_cast<int>(type) << ", round " << round);
      const std::size_t greedy = check(on, p, {}, round % 2 == 0 ? 4 : 1);
      if (columns == 256 && round != 1) CHECK(greedy < rows / 8);  // it leaves out what it can
      check(on, p, {.temperature = 0.8f, .min_p = 0.2f, .seed = 3});
      check(on, p, {.temperature = 0.3f, .top_k = 20, .seed = 5});
      check(on, p, {.temperature = 1.0f, .top_k = 9, .top_p = 0.9f, .seed = 7});
      check(on, p, {.temperature = 4.0f, .seed = 9});
      check(on, p, {.temperature = 4.0f, .top_k = 20, .min_p = 0.01f, .seed = 11});
      if (round < 3) check(on, p, {.repeat_penalty = 1.3f});
      if (round < 3) check(on, p, {.temperature = 1.0f, .top_k = 20, .repeat_penalty = 5.0f, .seed = 13});
      if (round == 0) check(on, p, {.repeat_penalty = 0.5f});
    }
  }
}

TEST_CASE("screened head: ties, rows that differ in the last bit, and rows that are no numbers", "[kernels][head]") {
  kernel_device on;
  random_numbers random(22);
  const std::uint32_t columns = 256, rows = 500;
  const auto input = random.floats(columns, -2, 2), norm = random.floats(columns, 0.5f, 1.5f);
  auto values = random.floats(std::size_t{rows} * columns, -0.25f, 0.25f);
  const auto row = [&](std::uint32_t r) { return std::span(values).subspan(std::size_t{r} * columns, columns); };
  const auto solve = [&] { return problem(columns, kernels::element::f16, input, norm, values); };
  // The largest logit at once at three indices, and neighbours of it that are a bit apart.
  const auto best = [&] {
    const auto logits = solve().logits();
    return static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  const std::vector<float> winner(row(best()).begin(), row(best()).end());
  for (const std::uint32_t r : {77u, 300u, 499u}) std::copy(winner.begin(), winner.end(), row(r).begin());
  check(on, solve(), {});
  for (std::uint32_t r = 100; r < 164; ++r) {
    std::copy(winner.begin(), winner.end(), row(r).begin());
    float& one = row(r)[r];
    one = f32_from_f16(static_cast<std::uint16_t>(f16_from_f32(one) + (r % 2 == 0 ? 1 : -1)));
  }
  CHECK(check(on, solve(), {}) >= 67);
  check(on, solve(), {.temperature = 0.3f, .seed = 4});
  // Every row the same: all are first, the lowest id wins.
  for (std::uint32_t r = 0; r < rows; ++r) std::copy(winner.begin(), winner.end(), row(r).begin());
  CHECK(check(on, solve(), {}) == rows);
  CHECK(dense_token(solve(), {}) == 0);
  // Rows of zeros and of numbers too small for a scale.
  std::fill(values.begin(), values.end(), 0.0f);
  check(on, solve(), {});
  for (std::uint32_t r = 0; r < rows; r += 3) row(r)[r % columns] = 6e-8f;
  check(on, solve(), {});
  // What is not finite counts as in the dense head: no token.
  values = random.floats(values.size(), -0.25f, 0.25f);
  for (const float bad : {infinite, -infinite, std::numeric_limits<float>::quiet_NaN()}) {
    row(250)[9] = bad;
    check(on, solve(), {});
  }
  row(250)[9] = 0;
  auto wrong = input;
  wrong[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK(check(on, problem(columns, kernels::element::f16, wrong, norm, values), {}) == rows);
  std::fill(wrong.begin(), wrong.end(), 0.0f);
  CHECK(check(on, problem(columns, kernels::element::f16, wrong, norm, values), {}) == rows);
  std::fill(wrong.begin(), wrong.end(), 3e38f);
  check(on, problem(columns, kernels::element::f16, wrong, norm, values), {});
}

TEST_CASE("screened head: no token of the pass changes nothing", "[kernels][head]") {
  kernel_device on;
  const std::vector<float> ones(16, 1.0f);
  const std::vector<std::int8_t> codes(64, 1);
  const auto x = on.filled(ones), c = on.filled(codes), t = on.filled(fresh_state(3, 0, max_tokens, context));
  const auto out = on.poisoned(64);
  on.run(kernels::kernel::head_screen, 1, {{"columns", 16u}, {"rows", 4u}, {"eps", 1e-5f}},
         {{"input", &x},
          {"norm_weight", &x},
          {"codes", &c},
          {"scales", &x},
          {"bounds", &out},
          {"y", &out},
          {"lowest", &out},
          {"state", &t}},
         {1, 1, 1});
  on.run(kernels::kernel::head_rescore, 1,
         {{"columns", 16u}, {"rows", 4u}, {"weight_element", 1u}, {"lowest_count", 1u}},
         {{"y", &out}, {"weight", &x}, {"bounds", &out}, {"lowest", &out}, {"firsts", &out}, {"state", &t}}, {1, 1, 1});
  CHECK(out.read<std::uint32_t>() == std::vector<std::uint32_t>(16, 0xa5a5a5a5u));
}
