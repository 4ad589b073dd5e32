// SPDX-License-Identifier: MIT
// The file that defines sessions for caller.cpp; with SECOND it engraves one more model.
#define INTAGLIO_IMPLEMENTATION
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/session.hpp>

template class intaglio::session<intaglio::models::fable>;
#if defined(SECOND)
#include <intaglio/models/llama.hpp>
template class intaglio::session<intaglio::models::stories260k<>>;
#endif
