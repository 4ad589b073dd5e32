// SPDX-License-Identifier: MIT
// What the tool is engraved with unless INTAGLIO_ENGRAVED_HEADER says otherwise.
#pragma once

#include "named_model.hpp"

#include <intaglio/models/bitnet_b158.hpp>

#include <tuple>

inline constexpr std::tuple engraved_models{
    intaglio::tool::named_model<intaglio::models::fable>{},
    intaglio::tool::named_model<intaglio::models::bitnet_2b_4t>{},
};
