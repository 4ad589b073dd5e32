// SPDX-License-Identifier: MIT
// Parts of an address, as libcurl reads them. Included where the tool has libcurl.
#pragma once

#include <string>

namespace intaglio::tool {

/// Scheme, host and path of an address.
struct url_parts {
  std::string scheme, host, path, user, fragment;

  /// @throws argument_error: the text is no address; input_error: there is no libcurl
  explicit url_parts(const std::string& text);
  bool on_this_machine() const;
  /// @throws argument_error: neither https nor http to this machine
  void require_safe(const std::string& text) const;
};

std::string without_fragment(const std::string& text);

}  // namespace intaglio::tool
