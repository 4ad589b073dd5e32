// SPDX-License-Identifier: MIT
#include "intaglio/platform/sockets.hpp"

#include <arpa/inet.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

using namespace intaglio::platform;

TEST_CASE("sockets: a peer that is there, one that sends no more, and one that went", "[sockets]") {
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0), here = ::socket(AF_INET, SOCK_STREAM, 0);
  ::sockaddr_in at{};
  ::socklen_t size = sizeof at;
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(listening, reinterpret_cast<::sockaddr*>(&at), size) == 0);
  REQUIRE(::listen(listening, 1) == 0);
  REQUIRE(::getsockname(listening, reinterpret_cast<::sockaddr*>(&at), &size) == 0);
  REQUIRE(::connect(here, reinterpret_cast<::sockaddr*>(&at), size) == 0);
  const int there = ::accept(listening, nullptr, nullptr);
  REQUIRE(there >= 0);
  CHECK(state_of_peer(here) == peer_state::there);
  ::shutdown(there, SHUT_WR);
  char byte = 0;
  CHECK(::recv(here, &byte, 1, 0) == 0);  // the end has come
  CHECK(state_of_peer(here) == peer_state::half_closed);
  ::linger at_once{1, 0};
  ::setsockopt(there, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(there);
  ::recv(here, &byte, 1, 0);  // the reset
  CHECK(state_of_peer(here) == peer_state::gone);
  CHECK(state_of_peer(-1) == peer_state::gone);
  for (const int each : {listening, here}) ::close(each);
}

TEST_CASE("sockets: as many open files as are asked for, as far as allowed", "[sockets]") {
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  ::rlimit less{64, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &less) == 0);
  allow_open_files(80);
  ::getrlimit(RLIMIT_NOFILE, &less);
  CHECK(less.rlim_cur == 80);
  allow_open_files(10);
  ::getrlimit(RLIMIT_NOFILE, &less);
  CHECK(less.rlim_cur == 80);
  ::setrlimit(RLIMIT_NOFILE, &before);
}
