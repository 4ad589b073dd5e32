// SPDX-License-Identifier: MIT
#define INTAGLIO_IMPLEMENTATION
#include <intaglio/readers.hpp>
