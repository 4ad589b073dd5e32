// SPDX-License-Identifier: MIT
// The code around a snippet that cuts a model over several devices.
#include <intaglio/io/checkpoint.hpp>
#include <intaglio/runtime/cut_session.hpp>

#include <array>
#include <span>

using namespace intaglio;

void shown(std::span<const plan::table* const> tables, const io::checkpoint& checkpoint) {
  // the block
}
