// SPDX-License-Identifier: MIT
#pragma once

#include <intaglio/batch_session.hpp>
#include <intaglio/models/bitnet_b158.hpp>

using tellers = intaglio::batch_session<intaglio::models::fable, intaglio::plan::batch_shape{.slot_count = 2}>;
