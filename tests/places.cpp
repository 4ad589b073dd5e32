// SPDX-License-Identifier: MIT
#include "places.hpp"

const char* const places::shared = INTAGLIO_SHARED;
const char* const places::source = INTAGLIO_SOURCE;
const char* const places::tool = INTAGLIO_TOOL;
