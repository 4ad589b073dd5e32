// SPDX-License-Identifier: MIT
#include "intaglio/io/sha256.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using intaglio::io::sha256;

namespace {

std::string digest(const std::string& text, std::size_t piece) {
  sha256 out;
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    out.add(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  return out.hex();
}

}  // namespace

TEST_CASE("sha256: the standard's own examples, in pieces of any size") {
  for (const std::size_t piece : {1u, 7u, 64u, 1000u}) {
    CHECK(digest("", piece) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest("abc", piece) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", piece) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(digest(std::string(1'000'000, 'a'), piece) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}
