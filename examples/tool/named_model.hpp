// SPDX-License-Identifier: MIT
// An entry in the list of engraved models: a model's type and the name that commands know it by.
#pragma once

#include <string_view>

namespace intaglio::tool {

template <class Model>
struct named_model {
  std::string_view name;
};

}  // namespace intaglio::tool
