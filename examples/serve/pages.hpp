// SPDX-License-Identifier: MIT
// The web page's files, as they are, in the read-only data of the program.
#pragma once

#include <vector>

#include "api.hpp"

namespace intaglio::serve {

std::vector<page_file> page_files();

}  // namespace intaglio::serve
