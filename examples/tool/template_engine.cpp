// SPDX-License-Identifier: MIT
#include "template_engine.hpp"

#include <intaglio/io/jinja.hpp>

namespace intaglio::tool {

io::template_renderer template_engine() { return io::jinja_renderer(); }

}  // namespace intaglio::tool
