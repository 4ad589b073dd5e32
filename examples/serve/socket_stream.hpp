// SPDX-License-Identifier: MIT
// A socket for coroutines, with TLS or without.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#ifdef INTAGLIO_SERVE_TLS
#include <boost/asio/ssl.hpp>
#endif

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <intaglio/platform/sockets.hpp>

namespace intaglio::serve {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;
using clock = std::chrono::steady_clock;
template <class T>
using task = net::awaitable<T>;

/// Ends a connection without an answer.
struct connection_over {};

/// A socket, with TLS or without. What fails ends the connection by connection_over.
class socket_stream {
 public:
#ifdef INTAGLIO_SERVE_TLS
  socket_stream(tcp::socket socket, net::ssl::context* tls) : socket_(std::move(socket)) {
    if (tls != nullptr) secure_.emplace(socket_, *tls);
  }
#else
  explicit socket_stream(tcp::socket socket) : socket_(std::move(socket)) {}
#endif

  task<void> handshake() {
#ifdef INTAGLIO_SERVE_TLS
    error_code problem;
    if (secure_)
      co_await secure_->async_handshake(net::ssl::stream_base::server,
                                        net::redirect_error(net::use_awaitable, problem));
    if (problem) throw connection_over();
#endif
    co_return;
  }
  /// @return 0 at the end
  task<std::size_t> read_some(net::mutable_buffer into) {
    error_code problem;
    std::size_t count = 0;
#ifdef INTAGLIO_SERVE_TLS
    if (secure_) count = co_await secure_->async_read_some(into, net::redirect_error(net::use_awaitable, problem));
    else
#endif
      count = co_await socket_.async_read_some(into, net::redirect_error(net::use_awaitable, problem));
    co_return problem ? 0 : count;
  }
  task<void> write(std::string_view bytes) {
    error_code problem;
    const auto all = net::buffer(bytes.data(), bytes.size());
#ifdef INTAGLIO_SERVE_TLS
    if (secure_) co_await net::async_write(*secure_, all, net::redirect_error(net::use_awaitable, problem));
    else
#endif
      co_await net::async_write(socket_, all, net::redirect_error(net::use_awaitable, problem));
    if (problem) throw connection_over();
  }
  task<void> shut_down() {
    error_code ignored;
#ifdef INTAGLIO_SERVE_TLS
    if (secure_) co_await secure_->async_shutdown(net::redirect_error(net::use_awaitable, ignored));
#endif
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }
  bool is_secure() const {
#ifdef INTAGLIO_SERVE_TLS
    return secure_.has_value();
#else
    return false;
#endif
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  platform::peer_state look() { return platform::state_of_peer(socket_.native_handle()); }

 private:
  tcp::socket socket_;
#ifdef INTAGLIO_SERVE_TLS
  std::optional<net::ssl::stream<tcp::socket&>> secure_;
#endif
};

}  // namespace intaglio::serve
