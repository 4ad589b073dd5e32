// SPDX-License-Identifier: MIT
// The yardstick of bench/compile/measure: the headers and nothing else.
#include <intaglio/intaglio.hpp>
#include <intaglio/models/bitnet_b158.hpp>

int main() {}
