// SPDX-License-Identifier: MIT
// What JSON Schema's `format` names, as patterns.
#include <map>
#include <string>

#include "text_language.hpp"

namespace intaglio::serve {

std::optional<text_language> language_of_format(std::string_view format, language_budget& budget) {
  // Days that each year has: the 29th of February is left out. RFC 3339, 4122, 4291, 5321, 3986, ISO 8601.
  const std::string date =
                        "(?:[1-9]\\d{3})-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]"
                        "\\d|30)|02-(?:0[1-9]|1\\d|2[0-"
                        "8]))",
                    clock = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?",
                    zone = "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)",
                    label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?", host = label + "(?:\\." + label + "){0,5}",
                    byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)", four = byte + "(?:\\." + byte + "){3}",
                    group = "[0-9a-fA-F]{1,4}",
                    six = "(?:(?:" + group + ":){7}" + group + "|(?:" + group + ":){1,6}:" + group + "|::" + group +
                          "|::)",
                    letters = "[A-Za-z0-9_+-]";
  const std::string uri = "[a-z][a-z0-9+.-]{0,15}://" + host +
                          "(?::[1-9]\\d{0,3})?(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})*)?" +
                          "(?:\\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*)?(?:#[A-Za-z0-9._~/-]*)?";
  const std::map<std::string_view, std::string> known{
      {"date", date},
      {"time", clock + zone},
      {"date-time", date + "T" + clock + zone},
      {"duration", "P(?:\\d{1,6}D(?:T\\d{1,5}[HMS])?|\\d{1,5}W|T(?:\\d{1,5}H)?(?:\\d{1,5}M)?\\d{1,5}S|\\d{1,4}[YM])"},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"},
      {"email", letters + "+(?:\\." + letters + "+){0,5}@" + label + "(?:\\." + label + "){0,4}\\.[A-Za-z]{2,12}"},
      {"hostname", host},
      {"ipv4", four},
      {"ipv6", six},
      {"ipvanyaddress", four + "|" + six},
      {"ipv4interface", four},
      {"ipv6interface", six},
      {"ipvanyinterface", four + "|" + six},
      {"ipv4network", four + "/32"},
      {"ipv6network", six + "/128"},
      {"ipvanynetwork", four + "/32"},
      {"cidrv4", four + "/(?:[12]?\\d|3[0-2])"},
      {"e164", "\\+[1-9]\\d{6,14}"},
      {"uri", uri},
      {"url", uri},
      {"base64", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"},
      {"byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"},
      {"base64url", "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?"},
  };
  // They say what a text is for, not what it looks like.
  for (const std::string_view any : {"password", "binary", "path", "file-path", "directory-path"})
    if (format == any) return text_language::all();
  const auto found = known.find(format);
  if (found == known.end()) return {};
  return text_language::of_pattern("^(?:" + found->second + ")$", budget);
}

}  // namespace intaglio::serve
