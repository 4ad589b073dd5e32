// SPDX-License-Identifier: MIT
#define INTAGLIO_IMPLEMENTATION
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>

template class intaglio::session<intaglio::models::fable>;
