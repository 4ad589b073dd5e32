// SPDX-License-Identifier: MIT
// What runs chat templates of no known family.
#pragma once

#include <intaglio/io/chat_template.hpp>

namespace intaglio::tool {

/// Jinja where the tool was built with minja, else nothing: such templates are refused then.
io::template_renderer template_engine();

}  // namespace intaglio::tool
