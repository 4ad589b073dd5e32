// SPDX-License-Identifier: MIT
#define INTAGLIO_IMPLEMENTATION
#include <intaglio/session.hpp>
#include "batch.hpp"

template class intaglio::session<intaglio::models::fable>;
template class intaglio::batch_session<intaglio::models::fable, intaglio::plan::batch_shape{.slot_count = 2}>;
