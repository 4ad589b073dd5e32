// SPDX-License-Identifier: MIT
// The code around a snippet that uses sessions.
#include <intaglio/batch_session.hpp>
#include <intaglio/graph/layers/walk_ffn.hpp>
#include <intaglio/io/jinja.hpp>
#include <intaglio/models/bitnet_b158.hpp>
#include <intaglio/models/gemma3.hpp>
#include <intaglio/session.hpp>

using namespace intaglio;
using Model = models::fable;
using traced_gemma = models::gemma3<models::gemma3_4b_config, dtype::q4_0, dtype::q4_0, graph::traced<32>::ffn>;

void shown(gpu::device& device, basic_session& session, basic_session& other) {
  // the block
}
