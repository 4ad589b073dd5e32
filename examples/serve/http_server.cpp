// SPDX-License-Identifier: MIT
#include "http_server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <stdexcept>

#include <intaglio/platform/console.hpp>

#include "connection.hpp"

namespace intaglio::serve {

bool is_address(const std::string& text) {
  boost::system::error_code problem;
  boost::asio::ip::make_address(text, problem);
  return !problem;
}

namespace {

/// The group of addresses whose connections are counted together: an address; for IPv6 its network of 64 bits.
std::string address_group(const net::ip::address& of) {
  if (of.is_v4()) return of.to_string();
  const net::ip::address_v6 six = of.to_v6();
  if (six.is_v4_mapped()) return net::ip::make_address_v4(net::ip::v4_mapped, six).to_string();
  const auto bytes = six.to_bytes();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

}  // namespace

void server_core::enter(connection* one) {
  open.insert(one);
  ++by_address[one->address()];
  connections = open.size();
}
void server_core::leave(connection* one) {
  if (open.erase(one) == 0) return;
  const auto at = by_address.find(one->address());
  if (--at->second == 0) by_address.erase(at);
  connections = open.size();
}

/// Closes the connection that is worth least among those that wait, of one address or of all.
/// @return false: none of them waits
bool server_core::make_room(const std::string* address) {
  connection* least = nullptr;
  for (connection* each : open)
    if (each->is_waiting() && (address == nullptr || each->address() == *address) &&
        (least == nullptr || each->worth() < least->worth()))
      least = each;
  if (least == nullptr) return false;
  leave(least);
  least->close();
  return true;
}

void server_core::listen() {
  error_code problem;
  const auto address = net::ip::make_address(options.address, problem);
  if (problem) throw std::runtime_error("--host: expected an IP address or localhost, found '" + options.address + "'");
  const tcp::endpoint at(address, options.port);
  const std::string where = options.address + " port " + std::to_string(options.port);
  acceptor.open(at.protocol(), problem);
  if (!problem) acceptor.set_option(tcp::acceptor::reuse_address(true), problem);
  if (!problem) acceptor.bind(at, problem);
  if (!problem) acceptor.listen(1024, problem);
  if (problem) throw std::runtime_error("cannot listen on " + where + ": " + problem.message());
  // As many descriptors as the connections need.
  platform::allow_open_files(limit.connections + 256u);
  platform::ignore_broken_pipes();
#ifdef INTAGLIO_SERVE_TLS
  if (!options.certificate.empty()) {
    tls.emplace(net::ssl::context::tls_server);
    tls->set_options(net::ssl::context::default_workarounds | net::ssl::context::no_tlsv1 |
                     net::ssl::context::no_tlsv1_1);
    tls->use_certificate_chain_file(options.certificate, problem);
    if (problem) throw std::runtime_error(options.certificate + ": cannot read the certificate: " + problem.message());
    tls->use_private_key_file(options.private_key, net::ssl::context::pem, problem);
    if (problem) throw std::runtime_error(options.private_key + ": cannot read the private key: " + problem.message());
  }
#endif
}

task<void> server_core::accept() {
  while (acceptor.is_open()) {
    error_code problem;
    net::steady_timer pause(sockets);
    if (open.size() >= limit.connections && !make_room(nullptr)) {  // the others wait in the system's queue
      pause.expires_after(std::chrono::milliseconds(20));
      co_await pause.async_wait(net::redirect_error(net::use_awaitable, problem));
      continue;
    }
    tcp::endpoint from;
    tcp::socket socket(sockets);
    co_await acceptor.async_accept(socket, from, net::redirect_error(net::use_awaitable, problem));
    if (problem == net::error::operation_aborted) co_return;
    if (problem) {  // out of descriptors
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(net::redirect_error(net::use_awaitable, problem));
      continue;
    }
    const std::string group = address_group(from.address());
    if (const auto known = by_address.find(group);
        known != by_address.end() && known->second >= limit.connections_per_address && !make_room(&group))
      continue;  // closes it
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(tcp::socket::send_buffer_size(limit.send_buffer_bytes), ignored);
    const auto client = std::make_shared<connection>(*this, std::move(socket), from.address().to_string(), group);
    net::co_spawn(
        sockets, [client]() -> task<void> { co_await client->serve(); }, net::detached);
  }
}

struct http_server::parts : server_core {
  using server_core::server_core;
};

bool has_tls() {
#ifdef INTAGLIO_SERVE_TLS
  return true;
#else
  return false;
#endif
}

http_server::http_server(http_application& application, const listen_options& options, const limits& limit,
                         std::atomic<std::uint64_t>& connections)
    : parts_(std::make_unique<parts>(application, options, limit, connections)) {
  parts_->listen();
}
http_server::~http_server() = default;

std::uint16_t http_server::port() const { return parts_->acceptor.local_endpoint().port(); }

void http_server::run(const std::function<void()>& draining, const std::function<void()>& overdue) {
  parts& server = *parts_;
  net::co_spawn(
      server.sockets, [&server]() -> task<void> { co_await server.accept(); }, net::detached);
  server.signals.async_wait([&](const error_code& problem, int) {
    if (problem) return;
    // From here on a signal ends the process as it would without us.
    server.signals.clear();
    server.stopping = true;
    error_code ignored;
    server.acceptor.close(ignored);
    draining();
    for (connection* each : server.open)
      if (each->is_idle()) each->close();
    server.over.expires_after(server.options.drain);
    server.over.async_wait([&](const error_code& cancelled) {
      if (cancelled) return;
      overdue();
      server.over.expires_after(std::chrono::seconds(2));
      server.over.async_wait([&](const error_code& early) {
        if (early) return;
        for (connection* each : server.open) each->close();
      });
    });
    // When the last connection is gone, nothing keeps the sockets' thread but this timer.
    net::co_spawn(
        server.sockets,
        [&server]() -> task<void> {
          net::steady_timer pause(server.sockets);
          while (!server.open.empty()) {
            error_code woken;
            pause.expires_after(std::chrono::milliseconds(10));
            co_await pause.async_wait(net::redirect_error(net::use_awaitable, woken));
          }
          server.over.cancel();
        },
        net::detached);
  });
  server.sockets.run();
  server.workers.join();
  server.light_worker.join();
}

}  // namespace intaglio::serve
