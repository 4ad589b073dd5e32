// SPDX-License-Identifier: MIT
// HTTP/1.1 over Boost.Asio and Boost.Beast's parser: one thread for all sockets, and some threads for the work of
// requests before they wait for tokens. It keeps the limits of limits.hpp for any client, and disconnects idle or slow
// clients.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http.hpp"
#include "limits.hpp"

namespace intaglio::serve {

struct listen_options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;             ///< 0: any that is free
  std::string certificate, private_key;  ///< PEM files; empty: no TLS
  unsigned workers = 2;
  std::chrono::seconds drain{10};  ///< what a stop leaves running requests
};

/// Whether this build has TLS.
bool has_tls();

class http_server {
 public:
  /// Binds and listens. @throws std::runtime_error naming address and port, or the file of the certificate
  http_server(http_application& application, const listen_options& options, const limits& limit,
              std::atomic<std::uint64_t>& connections);
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  std::uint16_t port() const;
  /// Serves until SIGTERM or SIGINT; then takes no connection, lets what runs end, and returns. A second signal ends
  /// the process.
  /// @param draining called when the signal comes  @param overdue called when the time for draining is over
  void run(const std::function<void()>& draining, const std::function<void()>& overdue);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// Whether it is an IP address, of version 4 or 6.
bool is_address(const std::string& text);

}  // namespace intaglio::serve
