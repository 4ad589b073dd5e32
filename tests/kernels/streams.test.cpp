// SPDX-License-Identifier: MIT
#include "intaglio/kernels/streams.hpp"

#include <limits>

#include "intaglio/reference/streams.hpp"
#include "kernels/matmul_problem.hpp"

using namespace intaglio;
using namespace intaglio::testing;

namespace {

/// A step of some tokens on the device, and in the reference.
struct step_trial {
  static constexpr std::uint32_t room = 4, tokens = 3;
  reference::streams_shape shape;
  std::vector<float> input, branch, target, norm, router, mixing, before;

  step_trial(random_numbers& random, const reference::streams_shape& of) : shape(of) {
    const auto sizes = this->sizes();
    input = random.floats(room * sizes.input, -3, 3);
    branch = random.floats(room * (std::max<std::size_t>)(4, sizes.branch), -3, 3);
    target = random.floats(room * (std::max<std::size_t>)(4, sizes.target), -9, 9);
    norm = random.floats((std::max<std::size_t>)(4, sizes.norm), -2, 2);
    router = random.floats((std::max<std::size_t>)(4, sizes.router), -9, 9);
    mixing = random.floats((std::max<std::size_t>)(4, sizes.mixing), -2, 2);
    mixing.front() = 130, mixing.back() = -200;  // beyond what a correction takes
    before = random.floats(room * sizes.output, -3, 3);
  }
  reference::streams_sizes sizes() const { return {shape.step, shape.width, shape.streams}; }

  std::vector<float> expected() const {
    const auto sizes = this->sizes();
    auto out = before;
    for (std::size_t token = 0; token < tokens; ++token) {
      const auto part = [&](const std::vector<float>& of, std::size_t row) {
        return std::span(of).subspan(token * row, row);
      };
      reference::streams(shape, part(input, sizes.input),
                         {part(branch, sizes.branch), part(target, sizes.target), norm, router, mixing},
                         std::span(out).subspan(token * sizes.output, sizes.output));
    }
    return out;
  }
  std::vector<float> on(kernel_device& device, std::uint32_t subgroups) const {
    const auto in = device.filled(input), by = device.filled(branch), to = device.filled(target),
               w = device.filled(norm), r = device.filled(router), m = device.filled(mixing),
               out = device.filled(before), state = device.filled(fresh_state(5, tokens, room, 64));
    device.run(kernels::kernel::streams, subgroups,
               {{"width", static_cast<std::uint32_t>(shape.width)},
                {"streams", static_cast<std::uint32_t>(shape.streams)},
                {"step", static_cast<std::uint32_t>(shape.step)},
                {"stream", static_cast<std::uint32_t>(shape.stream)},
                {"scale", shape.scale},
                {"eps", shape.eps}},
               {{"input", &in},
                {"branch", &by},
                {"target", &to},
                {"norm_weight", &w},
                {"router", &r},
                {"mixing", &m},
                {"output", &out},
                {"state", &state}},
               {1, room, 1});
    return out.read<float>();
  }
};

}  // namespace

TEST_CASE("streams gives the reference's bits in every step", "[kernels]") {
  kernel_device on;
  random_numbers random(44);
  using enum ir::stream_step;
  const auto step = GENERATE(take, weigh, predict, correct, spread, append, join, shrink);
  const std::size_t width = GENERATE(std::size_t{4}, std::size_t{132}, std::size_t{300}),
                    streams = step == shrink ? 1 : GENERATE(std::size_t{2}, std::size_t{4}, std::size_t{8});
  const step_trial trial(random, {width, streams, step, streams - 1, 0.70710678f, 1e-6f});
  INFO(ir::name(step) << " of " << streams << " streams of " << width);
  const auto expected = trial.expected();
  for (const std::uint32_t subgroups : on.widths()) CHECK_SAME(on, trial.on(on, subgroups), expected);
}

TEST_CASE("shrink leaves what is far above the mean, and what is no number", "[kernels]") {
  kernel_device on;
  random_numbers random(45);
  step_trial trial(random, {400, 1, ir::stream_step::shrink, 0, 1.6448536f, 0});
  const auto found = trial.on(on, 1);
  std::size_t above = 0;
  for (std::size_t i = 0; i < 400; ++i) above += found[i] > 0;
  CHECK((above > 0 && above < 40));  // of even numbers from -3 to 3 the cutoff is 2.85: 2.5 %
  trial.input[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(trial.on(on, 1)[7]));
  CHECK(std::isnan(trial.expected()[7]));
}

TEST_CASE("a branch of zeros joins as zeros", "[kernels]") {
  kernel_device on;
  random_numbers random(46);
  step_trial trial(random, {64, 4, ir::stream_step::join, 0, 1, 0});
  std::fill(trial.branch.begin(), trial.branch.end(), 0.0f);
  const auto expected = trial.expected();
  CHECK(std::equal(trial.input.begin(), trial.input.begin() + 3 * 64, expected.begin()));
  CHECK_SAME(on, trial.on(on, 1), expected);
}
