// SPDX-License-Identifier: MIT
#include "intaglio/kernels/delta_net.hpp"

#include "intaglio/reference/recurrent.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

struct shape {
  std::uint32_t subgroups, lanes;
};
/// Shapes with workgroups of all widths, with an invocation a column or four.
std::vector<shape> shapes(const kernel_device& on) {
  std::vector<shape> out;
  for (const std::uint32_t subgroups : on.widths())
    for (const std::uint32_t lanes : {1u, 4u}) out.push_back({subgroups, lanes});
  return out;
}

/// What a run reads and writes.
struct operands {
  const guarded_buffer &qkv, &beta, &alpha, &decay, &shift, &output, &recurrent, &state;
};
/// The rows of a batch's slots, whose states are `slot_floats` apart, or the tokens of a single session.
struct batch_rows {
  std::uint32_t rows = 1, words = 0, floats = 0;
};
void run(kernel_device& on, const shape& of, const delta_net_config& sizes, std::uint32_t gate_stride,
         std::uint32_t gate_group, const operands& to, const batch_rows& batch = {}) {
  const std::uint32_t parts = (sizes.value_dim + 31) / 32;
  on.run(kernels::kernel::delta_net, of.subgroups,
         {{"key_heads", sizes.key_heads},
          {"value_heads", sizes.value_heads},
          {"key_dim", sizes.key_dim},
          {"value_dim", sizes.value_dim},
          {"in_turn", sizes.in_turn ? 1u : 0u},
          {"parts", parts},
          {"gate_stride", gate_stride},
          {"gate_group", gate_group},
          {"slot_words", batch.words},
          {"slot_floats", batch.floats},
          {"lanes", of.lanes}},
         {{"qkv", &to.qkv},
          {"beta", &to.beta},
          {"alpha", &to.alpha},
          {"decay", &to.decay},
          {"shift", &to.shift},
          {"output", &to.output},
          {"recurrent", &to.recurrent},
          {"state", &to.state}},
         {sizes.value_heads * parts, batch.rows, 1});
}

/// What came out is what was expected, what is after it is untouched, and the states are `kept`.
void check_came_out(kernel_device& on, const guarded_buffer& out, const std::vector<std::uint32_t>& untouched,
                    const std::vector<float>& expected, const guarded_buffer& states, const std::vector<float>& kept) {
  const auto found = out.read<float>();
  CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(expected.size())),
             expected);
  CHECK_SAME(on, states.read<float>(), kept);
  const auto words = out.read<std::uint32_t>();
  CHECK(std::equal(words.begin() + static_cast<std::ptrdiff_t>(expected.size()), words.end(),
                   untouched.begin() + static_cast<std::ptrdiff_t>(expected.size())));
}

}  // namespace

TEST_CASE("delta_net gives the reference's bits, of what comes out and of its state", "[kernels]") {
  kernel_device on;
  random_numbers random(41);
  constexpr std::uint32_t room = 6;
  const std::uint32_t tokens = GENERATE(1u, 5u), position = GENERATE(0u, 9u), group = GENERATE(1u, 3u),
                      key_dim = GENERATE(4u, 33u), value_dim = GENERATE(4u, 68u);
  const bool in_turn = GENERATE(false, true), together = in_turn == (group == 1);
  const delta_net_config sizes{2, 2 * group, key_dim, value_dim, in_turn};
  const std::uint32_t stride = (together ? 2 : 1) * sizes.value_heads, gate_group = (together ? 2 : 1) * group;
  const auto qkv = random.floats(std::size_t{room} * sizes.qkv_size(), -2, 2),
             beta = random.floats(std::size_t{room} * stride, -4, 4),
             alpha = random.floats(std::size_t{room} * stride, -30, 30),
             decay = random.floats(sizes.value_heads, -3, 0), shift = random.floats(sizes.value_heads, -2, 2);
  auto kept = random.floats(std::size_t{sizes.value_size()} * key_dim, -1, 1);
  const auto before = kept;
  std::vector<float> expected(std::size_t{tokens} * sizes.value_size());
  reference::delta_net(sizes, {stride, gate_group}, qkv, beta, alpha, decay, shift, position, kept, expected);
  for (const shape& of : shapes(on)) {
    const auto in = on.filled(qkv), b = on.filled(beta), a = on.filled(alpha), d = on.filled(decay),
               s = on.filled(shift), states = on.filled(before),
               out = on.poisoned(std::size_t{4} * room * sizes.value_size()),
               state = on.filled(fresh_state(position, tokens, room, 64));
    const auto untouched = out.read<std::uint32_t>();
    run(on, of, sizes, stride, gate_group, {in, b, a, d, s, out, states, state});
    check_came_out(on, out, untouched, expected, states, kept);
  }
}

TEST_CASE("head_gate gives the reference's bits", "[kernels]") {
  kernel_device on;
  random_numbers random(42);
  constexpr std::uint32_t room = 4, tokens = 3;
  const std::uint32_t heads = GENERATE(1u, 3u), head_dim = GENERATE(4u, 132u), normed = GENERATE(0u, 1u),
                      logistic = GENERATE(0u, 1u), per_head = GENERATE(0u, 1u), adds = GENERATE(0u, 1u);
  const std::size_t count = std::size_t{tokens} * heads * head_dim, all = std::size_t{room} * heads * head_dim;
  const auto input = random.floats(all, -3, 3), gate = random.floats(all, -20, 20),
             norm = random.floats(head_dim, -2, 2), start = random.floats(all, -3, 3);
  auto expected = start;
  reference::head_gate({head_dim, 1e-6f, logistic != 0, per_head != 0, adds != 0}, std::span(input).first(count), gate,
                       normed != 0 ? std::span<const float>(norm) : std::span<const float>{}, expected);
  for (const std::uint32_t subgroups : on.widths()) {
    const auto in = on.filled(input), by = on.filled(gate), w = on.filled(norm), out = on.filled(start),
               state = on.filled(fresh_state(5, tokens, room, 64));
    on.run(kernels::kernel::head_gate, subgroups,
           {{"heads", heads},
            {"head_dim", head_dim},
            {"normed", normed},
            {"eps", 1e-6f},
            {"logistic", logistic},
            {"per_head", per_head},
            {"adds", adds}},
           {{"input", &in}, {"gate", &by}, {"norm_weight", &w}, {"output", &out}, {"state", &state}}, {heads, room, 1});
    CHECK_SAME(on, out.read<float>(), expected);
  }
}

TEST_CASE("delta_net takes more tokens than it makes ready at once as the reference does", "[kernels]") {
  kernel_device on;
  random_numbers random(43);
  constexpr std::uint32_t tokens = 19;  // more than are made ready at once
  const delta_net_config sizes{1, 2, 24, 40, false};
  const auto qkv = random.floats(std::size_t{tokens} * sizes.qkv_size(), -2, 2),
             beta = random.floats(std::size_t{tokens} * 2, -4, 4),
             alpha = random.floats(std::size_t{tokens} * 2, -4, 4), decay = random.floats(2, -3, 0),
             shift = random.floats(2, -2, 2);
  auto kept = random.floats(std::size_t{2} * 24 * 40, -1, 1);
  const auto before = kept;
  std::vector<float> expected(std::size_t{tokens} * sizes.value_size());
  reference::delta_net(sizes, {2, 2}, qkv, beta, alpha, decay, shift, 7, kept, expected);
  for (const shape& of : shapes(on)) {
    const auto in = on.filled(qkv), b = on.filled(beta), a = on.filled(alpha), d = on.filled(decay),
               s = on.filled(shift), states = on.filled(before), out = on.poisoned(4 * expected.size()),
               state = on.filled(fresh_state(7, tokens, tokens, 64));
    run(on, of, sizes, 2, 2, {in, b, a, d, s, out, states, state});
    CHECK_SAME(on, out.read<float>(), expected);
    CHECK_SAME(on, states.read<float>(), kept);
  }
}

TEST_CASE("delta_net of a batch takes a token of each slot that runs, with its state", "[kernels]") {
  kernel_device on;
  random_numbers random(42);
  constexpr std::uint32_t slots = 4, rows = 3, key_dim = 20, value_dim = 36;
  const delta_net_config sizes{2, 4, key_dim, value_dim, false};
  const std::uint32_t own = sizes.value_size() * key_dim, apart = own + 64;
  const std::size_t wide = sizes.qkv_size(), values = sizes.value_size(), heads = 4;
  const auto qkv = random.floats(slots * wide, -2, 2), beta = random.floats(slots * heads, -4, 4),
             alpha = random.floats(slots * heads, -4, 4), decay = random.floats(heads, -3, 0),
             shift = random.floats(heads, -2, 2);
  auto kept = random.floats(std::size_t{slots} * apart, -1, 1);
  const auto before = kept;
  const slots_of_batch batch({0, 5, 9, 2}, rows, 1);  // the second does not run, the last is after the rows
  std::vector<float> expected(rows * values);
  for (const std::uint32_t slot : {0u, 2u})
    reference::delta_net(sizes, {heads, 2}, std::span(qkv).subspan(slot * wide, wide),
                         std::span(beta).subspan(slot * heads, heads), std::span(alpha).subspan(slot * heads, heads),
                         decay, shift, batch.positions[slot], std::span(kept).subspan(slot * std::size_t{apart}, own),
                         std::span(expected).subspan(slot * values, values));
  for (const shape& of : shapes(on)) {
    const auto in = on.filled(qkv), b = on.filled(beta), a = on.filled(alpha), d = on.filled(decay),
               s = on.filled(shift), states = on.filled(before), out = on.filled(std::vector<float>(slots * values)),
               state = on.filled(batch.words);
    run(on, of, sizes, 4, 2, {in, b, a, d, s, out, states, state}, {slots, batch.slot_words, apart});
    const auto found = out.read<float>();
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(expected.size())),
               expected);
    CHECK_SAME(on, states.read<float>(), kept);
  }
}

namespace {

/// What Mamba-2's rule reads, and the state that it begins with, of `tokens` tokens.
struct state_space_problem {
  delta_net_config sizes;
  std::vector<float> xbc, steps, gate, decay, shift, skip;

  state_space_problem(random_numbers& random, const delta_net_config& of, std::size_t tokens)
      : sizes(of), xbc(random.floats(tokens * of.qkv_size(), -2, 2)),
        steps(random.floats(tokens * of.value_heads, -30, 30)), gate(random.floats(tokens * of.value_size(), -6, 6)),
        decay(random.floats(of.value_heads, -3, 0)), shift(random.floats(of.value_heads, -2, 2)),
        skip(random.floats(of.value_heads, -2, 2)) {}

  /// Expects the results of `count` tokens from the `first` on.
  void expect(std::size_t first, std::size_t count, std::uint32_t position, std::span<float> kept,
              std::span<float> output) const {
    const auto part = [&](const std::vector<float>& from, std::size_t row) {
      return std::span<const float>(from).subspan(first * row, count * row);
    };
    reference::state_space(sizes,
                           {part(xbc, sizes.qkv_size()), part(steps, sizes.value_heads), decay, shift, skip,
                            part(gate, sizes.value_size())},
                           position, kept, output.subspan(first * sizes.value_size(), count * sizes.value_size()));
  }
  void run(kernel_device& on, const shape& of, const guarded_buffer& output, const guarded_buffer& recurrent,
           const guarded_buffer& state, const batch_rows& batch = {}) const {
    const auto in = on.filled(xbc), a = on.filled(steps), g = on.filled(gate), d = on.filled(decay),
               s = on.filled(shift), k = on.filled(skip);
    const std::uint32_t parts = (sizes.value_dim + 31) / 32;
    on.run(kernels::kernel::delta_net, of.subgroups,
           {{"key_heads", sizes.key_heads},
            {"value_heads", sizes.value_heads},
            {"key_dim", sizes.key_dim},
            {"value_dim", sizes.value_dim},
            {"in_turn", 0u},
            {"parts", parts},
            {"gate_stride", sizes.value_heads},
            {"gate_group", sizes.value_heads / sizes.key_heads},
            {"slot_words", batch.words},
            {"slot_floats", batch.floats},
            {"lanes", of.lanes},
            {"state_space", 1u}},
           {{"qkv", &in},
            {"alpha", &a},
            {"gate", &g},
            {"decay", &d},
            {"shift", &s},
            {"skip", &k},
            {"output", &output},
            {"recurrent", &recurrent},
            {"state", &state}},
           {sizes.value_heads * parts, batch.rows, 1});
  }
};

}  // namespace

TEST_CASE("delta_net by Mamba-2's rule gives the reference's bits, of what comes out and of its state", "[kernels]") {
  kernel_device on;
  random_numbers random(44);
  const std::uint32_t tokens = GENERATE(1u, 5u, 19u), position = GENERATE(0u, 9u), group = GENERATE(1u, 3u),
                      key_dim = GENERATE(4u, 33u), value_dim = GENERATE(4u, 68u), room = tokens + 2;
  const state_space_problem problem(random, {2, 2 * group, key_dim, value_dim, false}, room);
  const std::size_t values = problem.sizes.value_size();
  auto kept = random.floats(values * key_dim, -1, 1);
  const auto before = kept;
  std::vector<float> expected(tokens * values);
  problem.expect(0, tokens, position, kept, expected);
  for (const shape& of : shapes(on)) {
    const auto states = on.filled(before), out = on.poisoned(4 * room * values),
               state = on.filled(fresh_state(position, tokens, room, 64));
    const auto untouched = out.read<std::uint32_t>();
    problem.run(on, of, out, states, state);
    check_came_out(on, out, untouched, expected, states, kept);
  }
}

TEST_CASE("delta_net by Mamba-2's rule takes a token of each slot that runs, with its state", "[kernels]") {
  kernel_device on;
  random_numbers random(45);
  constexpr std::uint32_t slots = 4, rows = 3, key_dim = 20, value_dim = 36;
  const state_space_problem problem(random, {2, 4, key_dim, value_dim, false}, slots);
  const std::uint32_t own = problem.sizes.value_size() * key_dim, apart = own + 64;
  const std::size_t values = problem.sizes.value_size();
  auto kept = random.floats(std::size_t{slots} * apart, -1, 1);
  const auto before = kept;
  const slots_of_batch batch({0, 5, 9, 2}, rows, 1);  // the second does not run, the last is after the rows
  std::vector<float> expected(rows * values);
  for (const std::uint32_t slot : {0u, 2u})
    problem.expect(slot, 1, batch.positions[slot], std::span(kept).subspan(slot * std::size_t{apart}, own), expected);
  for (const shape& of : shapes(on)) {
    const auto states = on.filled(before), out = on.filled(std::vector<float>(slots * values)),
               state = on.filled(batch.words);
    problem.run(on, of, out, states, state, {slots, batch.slot_words, apart});
    const auto found = out.read<float>();
    CHECK_SAME(on, std::vector<float>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(expected.size())),
               expected);
    CHECK_SAME(on, states.read<float>(), kept);
  }
}

TEST_CASE("Mamba-2's rule is what its recurrence says, in double precision", "[kernels]") {
  random_numbers random(46);
  const state_space_problem problem(random, {2, 4, 12, 8, false}, 9);
  const std::size_t values = problem.sizes.value_size();
  std::vector<float> kept(values * 12), found(9 * values);
  problem.expect(0, 9, 0, kept, found);
  std::vector<double> state(kept.size());
  for (std::size_t t = 0; t < 9; ++t)
    for (std::size_t h = 0; h < 4; ++h)
      for (std::size_t j = 0; j < 8; ++j) {
        const float* row = problem.xbc.data() + t * problem.sizes.qkv_size();
        const double x = row[h * 8 + j],
                     step = std::log1p(std::exp(double{problem.steps[t * 4 + h]} + problem.shift[h]));
        double y = problem.skip[h] * x;
        for (std::size_t i = 0; i < 12; ++i) {
          double& s = state[(h * 12 + i) * 8 + j];
          s = std::exp(problem.decay[h] * step) * s + step * x * row[values + h / 2 * 12 + i];
          y += s * row[values + 24 + h / 2 * 12 + i];
        }
        const double g = problem.gate[t * values + h * 8 + j], expected = y * g / (1 + std::exp(-g));
        CHECK(std::abs(found[t * values + h * 8 + j] - expected) <= 1e-4 * (1 + std::abs(expected)));
      }
}
