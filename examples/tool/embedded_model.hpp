// SPDX-License-Identifier: MIT
// The story teller that the tool carries.
#pragma once

#include <cstddef>
#include <span>

namespace intaglio::tool {

/// The bytes of fable.gguf.
std::span<const std::byte> embedded_model();

}  // namespace intaglio::tool
