// SPDX-License-Identifier: MIT
// Apart from the others: minja takes long to compile.
#include "template_engine.hpp"

#if __has_include(<minja/minja.hpp>)
#include <intaglio/io/jinja.hpp>
#endif

namespace intaglio::tool {

io::template_renderer template_engine() {
#if __has_include(<minja/minja.hpp>)
  return io::jinja_renderer();
#else
  return {};
#endif
}

}  // namespace intaglio::tool
