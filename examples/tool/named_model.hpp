// SPDX-License-Identifier: MIT
// An entry in the list of engraved models: a model's type. Commands know it by its name.
#pragma once

#include <string_view>

namespace intaglio::tool {

template <class Model>
struct named_model {
  static constexpr std::string_view name = Model::name;
};

}  // namespace intaglio::tool
