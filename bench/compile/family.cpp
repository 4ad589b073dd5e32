// SPDX-License-Identifier: MIT
// What engraving MODEL costs, a type of models/llama.hpp or models/gemma3.hpp.
#include <intaglio/intaglio.hpp>
#include <intaglio/models/gemma3.hpp>
#include <intaglio/models/llama.hpp>

using namespace intaglio;

int main() {
  return static_cast<int>(plan::engraved<MODEL, plan::profiles::portable>::table.decode.dispatch_count() & 1);
}
