// SPDX-License-Identifier: MIT
// The device's draw on the host: bit for bit what reference::choose and the kernel `sample` give, without sorting the
// whole vocabulary.
#pragma once

#include <intaglio/runtime/sampling.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace intaglio::serve {

/// The token after the one at `position`; logits.size() where a logit is NaN or none is finite. Logits may be minus
/// infinity.
/// @param logits [vocab_size]; the repetition penalty is applied to them  @param recent tokens that it looks at
std::uint32_t draw_token(std::vector<float>& logits, std::span<const std::uint32_t> recent,
                         const sampling_options& options, std::uint32_t position);

/// The logarithm of the sum of all exponentials: logit minus this is the logarithm of the token's probability.
double log_sum_exp(std::span<const float> logits);

}  // namespace intaglio::serve
