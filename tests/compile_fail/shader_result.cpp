// SPDX-License-Identifier: MIT
// An activation that gives a comparison.
// expect: sign: expected value<float> as its result, found value<bool>
#include "mistake.hpp"

struct sign {
  static constexpr std::string_view name = "sign";
#ifdef INTAGLIO_TWIN
  constexpr auto operator()(shader::real gate) const { return select(gate > 0.0f, 1.0f, shader::real(0.0f)); }
#else
  constexpr auto operator()(shader::real gate) const { return gate > 0.0f; }
#endif
};
constexpr gated_ffn<dtype::i2_s> step{256, 1024, sign{}};
static_assert(step.act->size != 0);
