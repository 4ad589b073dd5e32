// SPDX-License-Identifier: MIT
// An activation with a function that no kernel has.
// expect: sqrt: expected an operation of shader values, .* found another one
#include "mistake.hpp"

struct rooted {
#ifdef INTAGLIO_TWIN
  constexpr shader::real operator()(shader::real gate) const { return exp(gate); }
#else
  constexpr shader::real operator()(shader::real gate) const { return sqrt(gate); }
#endif
};
constexpr gated_ffn<dtype::i2_s> step{256, 1024, rooted{}};
static_assert(step.act->size != 0);
