// SPDX-License-Identifier: MIT
// An activation with a double in it.
// expect: operator \*: expected value<float> or float on both sides, found double \(a literal of float ends in f\) and value<float>
#include "mistake.hpp"

struct half_of {
#ifdef INTAGLIO_TWIN
  constexpr shader::real operator()(shader::real gate) const { return 0.5f * gate; }
#else
  constexpr shader::real operator()(shader::real gate) const { return 0.5 * gate; }
#endif
};
constexpr gated_ffn<dtype::i2_s> step{256, 1024, half_of{}};
static_assert(step.act->size != 0);
