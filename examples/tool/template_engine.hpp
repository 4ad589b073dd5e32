// SPDX-License-Identifier: MIT
// What runs chat templates of no known family.
#pragma once

#include <intaglio/io/chat_template.hpp>

namespace intaglio::tool {

/// Jinja, each template in a process of its own.
io::template_renderer template_engine();

}  // namespace intaglio::tool
