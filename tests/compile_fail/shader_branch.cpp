// SPDX-License-Identifier: MIT
// An activation that asks, while compiling, for what only the device will know.
// expect: if, \?: expected bool, found value<bool>, which is known on the device alone; there is select\(condition, a, b\)
#include "mistake.hpp"

struct leaky {
#ifdef INTAGLIO_TWIN
  constexpr shader::real operator()(shader::real gate) const { return select(gate > 0.0f, gate, 0.01f * gate); }
#else
  constexpr shader::real operator()(shader::real gate) const { return gate > 0.0f ? gate : 0.01f * gate; }
#endif
};
constexpr gated_ffn<dtype::i2_s> step{256, 1024, leaky{}};
static_assert(step.act->size != 0);
