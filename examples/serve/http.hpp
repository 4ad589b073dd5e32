// SPDX-License-Identifier: MIT
// Requests and answers as the API sees them: no sockets here (http_server.hpp), no JSON there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace intaglio::serve {

struct http_request {
  std::string method, path, query;                          ///< path: decoded, without the query
  std::vector<std::pair<std::string, std::string>> fields;  ///< names in lower case
  std::string body;
  std::string peer;  ///< address of the client
  std::string id;    ///< the client's X-Request-Id, or one of ours

  /// A field's value, empty where there is none.
  std::string_view field(std::string_view name) const {
    for (const auto& [key, value] : fields)
      if (key == name) return value;
    return {};
  }
};

class pending_reply;

struct http_reply {
  int status = 200;
  std::string content_type = "application/json", body;
  std::vector<std::pair<std::string, std::string>> fields;
  std::shared_ptr<pending_reply> pending;  ///< the answer takes time; the rest of this is empty then
};

/// An answer that comes bit by bit, or at once but later. Used by one thread at a time.
class pending_reply {
 public:
  virtual ~pending_reply() = default;
  /// True: pieces are sent as server-sent events as they come; false: reply() is sent when it is done.
  virtual bool streams() const = 0;
  /// Type of the stream. Server-sent events have comments while there is no news.
  virtual std::string_view stream_type() const { return "text/event-stream"; }
  /// Takes the news, and returns the text to send.
  virtual std::string poll() = 0;
  virtual bool done() const = 0;
  /// May have a pending reply of its own.
  virtual http_reply reply() = 0;
  /// The client is gone.
  virtual void cancel() = 0;
};

/// What a server asks its application.
class http_application {
 public:
  virtual ~http_application() = default;
  /// Before the body is read: may this request go on? The fields of an answer that every client may see come back.
  /// @throws api_error
  virtual void admit(const http_request& head) = 0;
  /// Whether the answer takes no time, and must never wait for others': it then has a thread of its own.
  virtual bool is_light(const http_request& head) const = 0;
  /// @param wake may be called from any thread when a pending reply has something new
  /// @throws api_error
  virtual http_reply answer(const http_request& request, std::function<void()> wake) = 0;
  /// An error as a body, and its fields.
  virtual http_reply error_reply(const class api_error& error, const http_request& head) = 0;
  /// Fields that every answer has, by the request's origin.
  virtual std::vector<std::pair<std::string, std::string>> common_fields(const http_request& head) = 0;
  /// When a request is answered. @param status 0: the client went away
  virtual void answered(const http_request& request, int status, double seconds) = 0;
};

}  // namespace intaglio::serve
