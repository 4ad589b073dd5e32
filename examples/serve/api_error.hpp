// SPDX-License-Identifier: MIT
// A refusal in the shape that OpenAI's clients know: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace intaglio::serve {

/// Ends a request with a status. Texts are sentences of ours: of what the client sent they show at most 100 bytes,
/// escaped.
class api_error : public std::runtime_error {
 public:
  api_error(int status, const std::string& message, std::string param = {}, std::string code = {},
            std::optional<unsigned> retry_after = {})
      : std::runtime_error(message), status(status), param(std::move(param)), code(std::move(code)),
        retry_after(retry_after) {}

  int status;
  std::string param;                    ///< the field at fault: "messages[2].role"; empty: none
  std::string code;                     ///< for programs: "context_length_exceeded"; empty: none
  std::optional<unsigned> retry_after;  ///< seconds
  std::string allow;                    ///< methods, with 405

  std::string type() const {
    switch (status) {
      case 401:
        return "authentication_error";
      case 403:
        return "permission_error";
      case 404:
        return "not_found_error";
      case 429:
        return "rate_limit_error";
      case 503:
        return "service_unavailable_error";
      default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
  }
};

/// 400 naming the field, what it may be and what came.
[[noreturn]] inline void refuse_field(const std::string& field, const std::string& expected, const std::string& found,
                                      std::string code = {}) {
  throw api_error(400, field + ": expected " + expected + ", found " + found, field, std::move(code));
}

}  // namespace intaglio::serve
