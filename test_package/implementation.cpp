// SPDX-License-Identifier: MIT
// Engraves the model; defines all that sessions run, too, where the program does not link with intaglio::compiled.
#define INTAGLIO_IMPLEMENTATION
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>

template class intaglio::session<intaglio::models::fable>;
