// SPDX-License-Identifier: MIT
#include "intaglio/shader/value.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace intaglio::shader;

namespace {

constexpr real gate_of_test() {
  step_list list;
  list.add(step{.what = operation::gate});
  return real(list);
}
constexpr std::size_t steps_of(const step_list& list, operation what) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < list.size; ++i) count += list.steps[i].what == what;
  return count;
}

// What is used twice is computed once, operands come first, and the last step is the result.
constexpr step_list square = [] {
  const real x = max(gate_of_test(), 0.0f);
  return (x * x).list();
}();
static_assert(square.size == 4 && square.steps[0].what == operation::gate &&
              square.steps[1].what == operation::constant);
static_assert(square.steps[2] == step{operation::maximum, {0, 1}} &&
              square.steps[3] == step{operation::multiply, {2, 2}});

// Operands keep their order; > and >= are < and <= turned round.
constexpr step_list greater = [] {
  const real x = gate_of_test();
  return (x > 1.5f).list();
}();
static_assert(greater.steps[0].bits == 0x3fc00000u && greater.steps[2] == step{operation::less, {0, 1}});

constexpr step_list choice = [] {
  const real x = gate_of_test();
  return select(!(x < 0.0f) && x <= 6.0f, x, x / 3.0f).list();
}();
static_assert(steps_of(choice, operation::gate) == 1 && steps_of(choice, operation::opposite) == 1 &&
              choice.steps[choice.size - 1u].what == operation::select);

// tanh is made of exp.
constexpr step_list hyperbolic = tanh(gate_of_test()).list();
static_assert(steps_of(hyperbolic, operation::exp) == 1 && steps_of(hyperbolic, operation::divide) == 1 &&
              !hyperbolic.full);

constexpr step_list long_one = [] {
  real x = gate_of_test();
  for (int i = 0; i < 70; ++i) x = x + 1.0f;
  return x.list();
}();
static_assert(long_one.full && long_one.size == max_steps);

// Operands that have nearly all steps in common stay within what compilers evaluate.
constexpr step_list folded = [] {
  real x = gate_of_test();
  for (int i = 0; i < 31; ++i) x = x * x + x;
  return x.list();
}();
static_assert(!folded.full && folded.size == 63);

}  // namespace

TEST_CASE("a list has room for all steps that a message promises") {
  real x = gate_of_test();
  for (std::size_t i = 0; i + 2 < max_steps; ++i) x = x + 1.0f;
  CHECK(x.list().size == max_steps);
  CHECK_FALSE(x.list().full);
}
