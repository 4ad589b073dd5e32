// SPDX-License-Identifier: MIT
#include "paths.hpp"

const char* const paths::shared = INTAGLIO_SHARED;
const char* const paths::source = INTAGLIO_SOURCE;
const char* const paths::tool = INTAGLIO_TOOL;
