// SPDX-License-Identifier: MIT
#include "web_address.hpp"

#include <intaglio/core/error.hpp>

#include <algorithm>
#include <string>

#include "console.hpp"
#include "curl_library.hpp"
#include "download.hpp"
#include "web_answer.hpp"

namespace intaglio::tool {

#ifdef INTAGLIO_HAS_LIBCURL

url_parts::url_parts(const std::string& text) {
  const curl_library& of = curl();
  CURLU* const url = of.curl_url();
  const bool sound = url != nullptr && of.curl_url_set(url, CURLUPART_URL, text.c_str(), 0) == CURLUE_OK;
  if (sound) {
    const auto part = [&](CURLUPart which) {
      char* found = nullptr;
      if (of.curl_url_get(url, which, &found, 0) != CURLUE_OK || found == nullptr) return std::string{};
      std::string out(found);
      of.curl_free(found);
      return out;
    };
    scheme = part(CURLUPART_SCHEME), host = lower_case(part(CURLUPART_HOST)), path = part(CURLUPART_PATH),
    user = part(CURLUPART_USER), fragment = part(CURLUPART_FRAGMENT);
  }
  if (url != nullptr) of.curl_url_cleanup(url);
  if (!sound || host.empty())
    throw argument_error("--model", "an address https://HOST/PATH", "'" + printable(text, 200) + "'");
}

bool url_parts::on_this_machine() const {
  if (host == "localhost" || host == "[::1]" || host == "::1") return true;
  return host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3 &&
         host.find_first_not_of("0123456789.") == std::string::npos;
}

void url_parts::require_safe(const std::string& text) const {
  if (scheme != "https" && !(scheme == "http" && on_this_machine()))
    throw argument_error("--model", "an https address, or http to this machine", "'" + printable(text, 200) + "'");
}

std::string without_fragment(const std::string& text) { return text.substr(0, text.find('#')); }

model_url parse_url(const std::string& text) {
  const url_parts parts(text);
  parts.require_safe(text);
  if (!parts.user.empty())
    throw argument_error("--model", "an address without a user", "'" + printable(parts.user, 40) + "@'");
  model_url out;
  out.address = without_fragment(text);
  if (!parts.fragment.empty()) {
    const std::string sum =
        parts.fragment.starts_with("sha256=") ? lower_case(parts.fragment.substr(7)) : std::string{};
    if (!is_sha256(sum))
      throw argument_error("--model", "after # of an address sha256= and 64 digits",
                           "'" + printable(parts.fragment, 100) + "'");
    out.sha256 = sum;
  }
  const std::string last = parts.path.substr(parts.path.rfind('/') + 1);
  for (const char c : last)
    out.file_name +=
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'
            ? c
            : '_';
  if (out.file_name.empty() || out.file_name.front() == '.') out.file_name.insert(0, "model");
  if (out.file_name.size() > 120) out.file_name.erase(0, out.file_name.size() - 120);
  return out;
}

#else

model_url parse_url(const std::string&) {
  throw input_error("this tool was built without libcurl: models from the net cannot be fetched");
}

#endif

}  // namespace intaglio::tool
