// SPDX-License-Identifier: MIT
#include "intaglio/runtime/page_pool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>

using intaglio::runtime::page_pool;

namespace {
std::vector<std::int32_t> counted(int count, int from = 0) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), from);
  return out;
}
}  // namespace

TEST_CASE("page pool: what a prompt filled is found by who begins alike, but for its last token") {
  page_pool pool(8, 4);
  const auto ids = counted(9);
  auto first = pool.take(ids, 12);
  REQUIRE(first);
  CHECK(first->pages == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(first->shared == 0);
  CHECK(pool.free() == 5);
  pool.remember(*first, std::span(ids).first(8));
  CHECK(first->shared == 2);

  auto same = pool.take(ids, 12), begins = pool.take(std::span(ids).first(8), 9), parts = pool.take(counted(9, 1), 8);
  CHECK(same->shared == 2);
  CHECK(same->pages == std::vector<std::uint32_t>{0, 1, 3});
  CHECK(begins->shared == 1);  // the second page would hold its last token
  CHECK(parts->shared == 0);
  CHECK(pool.free() == 0);
  CHECK_FALSE(pool.take(counted(2, 70), 1));
  for (auto* each : {&*first, &*same, &*begins, &*parts}) pool.release(*each);
  CHECK(pool.free() == 8);
  CHECK(pool.take(ids, 12)->shared == 2);  // remembered without users
}

TEST_CASE("page pool: pages that were written meanwhile replace those not yet written") {
  page_pool pool(6, 4);
  const auto ids = counted(10);
  auto a = pool.take(ids, 10), b = pool.take(ids, 10);
  CHECK(pool.free() == 0);
  pool.remember(*a, std::span(ids).first(9));
  pool.share(*b, ids, 10);
  CHECK(b->shared == 2);
  CHECK(b->pages == std::vector<std::uint32_t>{0, 1, 5});
  CHECK(pool.free() == 2);
  // Two that wrote the same: the first is found, and both are given back.
  auto c = pool.take(counted(10, 50), 10);
  CHECK_FALSE(c);
  pool.release(*a);
  pool.release(*b);
  CHECK(pool.free() == 6);
  auto d = pool.take(counted(10, 50), 10), e = pool.take(counted(10, 50), 10);
  REQUIRE((d && e));
  pool.remember(*d, counted(8, 50));
  pool.remember(*e, counted(10, 50));
  CHECK(e->shared == 0);
  pool.release(*e);
  pool.release(*d);
  CHECK(pool.free() == 6);
}

TEST_CASE(
    "page pool: what is longest unused is forgotten first, ends before beginnings, and nothing is found after what is "
    "gone") {
  page_pool pool(4, 2);
  const auto old = counted(5), late = counted(5, 10);
  auto a = pool.take(old, 4);
  pool.remember(*a, std::span(old).first(4));
  pool.release(*a);
  auto b = pool.take(late, 4);
  pool.remember(*b, std::span(late).first(4));
  pool.release(*b);
  auto c = pool.take(counted(1, 90), 2);  // one page: the end of what is oldest goes
  REQUIRE(c);
  CHECK(pool.take(old, 3)->shared == 1);
  auto d = pool.take(counted(1, 91), 2);
  CHECK_FALSE(pool.has_room(counted(1, 92), 5));
}

TEST_CASE("page pool: no page has two writers and none is lost, whatever comes and goes") {
  std::mt19937 random(7);
  page_pool pool(20, 4);
  struct user {
    page_pool::list pages;
    std::vector<std::int32_t> ids;
    bool written = false;
  };
  std::vector<user> users;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 2 == 0) {
      std::vector<std::int32_t> ids(1 + random() % 20);
      for (auto& id : ids) id = static_cast<std::int32_t>(random() % 2);
      const auto positions = static_cast<std::uint32_t>(ids.size() + random() % 5);
      const bool fits = pool.has_room(ids, positions);
      auto taken = pool.take(ids, positions);
      CHECK(fits == taken.has_value());
      if (taken) users.push_back({*taken, ids});
    } else if (!users.empty()) {
      const std::size_t which = random() % users.size();
      user& of = users[which];
      if (!of.written) {
        pool.share(of.pages, of.ids, static_cast<std::uint32_t>(of.ids.size()));
        pool.remember(of.pages, std::span(of.ids).first(of.ids.size() - 1));
        of.written = true;
      } else {
        pool.release(of.pages);
        users.erase(users.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    std::vector<int> writers(20), readers(20);
    for (const user& each : users)
      for (std::size_t p = 0; p < each.pages.pages.size(); ++p)
        ++(p < each.pages.shared ? readers : writers)[each.pages.pages[p]];
    std::uint32_t used = 0;
    for (std::size_t p = 0; p < 20; ++p) {
      CHECK((writers[p] == 0 || (writers[p] == 1 && readers[p] == 0)));
      used += writers[p] + readers[p] != 0 ? 1 : 0;
    }
    CHECK(pool.free() == 20 - used);
  }
}

TEST_CASE("page pool: a sequence takes more pages as it grows, or none") {
  page_pool pool(5, 4);
  auto a = pool.take(counted(3), 4), b = pool.take(counted(3, 9), 8);
  CHECK(pool.grow(*a, 4));
  CHECK(a->pages.size() == 1);
  CHECK(pool.grow(*a, 5));
  CHECK(a->pages.size() == 2);
  CHECK_FALSE(pool.grow(*a, 17));  // five in all, of which three are there
  CHECK(a->pages.size() == 2);
  CHECK(pool.grow(*b, 12));
  CHECK(pool.free() == 0);
  pool.release(*b);
  CHECK(pool.grow(*a, 20));
  pool.release(*a);
  CHECK(pool.free() == 5);
}

TEST_CASE("page pool: spoiled pages are not found, and not given out before they are clean") {
  page_pool pool(4, 4);
  const auto ids = counted(9);
  auto a = pool.take(ids, 9);
  pool.remember(*a, std::span(ids).first(8));
  auto b = pool.take(ids, 9);
  CHECK(b->shared == 2);
  pool.spoil(*a);
  CHECK(pool.spoiled().empty());  // as long as they have them
  const std::uint32_t alone = a->pages[2];
  pool.release(*a);
  CHECK(pool.spoiled() == std::vector<std::uint32_t>{alone});  // the other two are b's as well
  CHECK(pool.free() == 0);
  pool.cleaned();
  CHECK(pool.free() == 1);
  pool.remember(*b, std::span(ids).first(4));
  pool.release(*b);
  CHECK(pool.spoiled().size() == 2);
  CHECK(pool.free() == 2);
  pool.cleaned();
  CHECK(pool.free() == 4);
  CHECK(pool.take(ids, 9)->shared == 0);
}

TEST_CASE("remembered pages have names that their tokens find, and that no other content takes", "[runtime]") {
  page_pool pool(3, 4);
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6, 7, 8, 9};
  auto own = pool.take(tokens, 9);
  REQUIRE(own);
  CHECK(pool.names_of(tokens).empty());
  pool.remember(*own, std::span(tokens).first(4));
  const auto first = pool.names_of(tokens);
  CHECK((first.size() == 1 && first[0] != 0));
  pool.remember(*own, std::span(tokens).first(8));
  const auto both = pool.names_of(tokens);
  CHECK((both.size() == 2 && both[0] == first[0] && both[1] != both[0]));
  CHECK(pool.names_of(std::span(tokens).first(8)) == first);  // the last token goes through a pass of its own
  pool.release(*own);
  CHECK(pool.names_of(tokens) == both);
  const std::vector<std::int32_t> other{9, 8, 7, 6, 5, 4, 3, 2, 1};
  auto taken = pool.take(other, 9);  // all three pages
  REQUIRE(taken);
  CHECK(pool.names_of(tokens).empty());
  pool.remember(*taken, other);
  for (const std::uint64_t each : pool.names_of(other)) CHECK((each != both[0] && each != both[1]));
}

TEST_CASE("page pool: a forgotten beginning is not found, except pages that are in use", "[runtime]") {
  page_pool pool(6, 4);
  const auto ids = counted(13);
  auto one = pool.take(ids, 13);
  REQUIRE(one);
  pool.remember(*one, std::span(ids).first(12));
  CHECK(pool.known(ids) == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(pool.forget(ids) == 0);  // in use
  pool.release(*one);
  auto two = pool.take(std::span(ids).first(6), 6);
  REQUIRE(two);
  CHECK(two->shared == 1);
  CHECK(pool.forget(ids) == 2);
  CHECK(pool.known(ids) == std::vector<std::uint32_t>{0});
  CHECK(pool.free() == 4);
  pool.release(*two);
  CHECK(pool.forget(ids) == 1);
  CHECK(pool.forget(ids) == 0);
  CHECK(pool.free() == 6);
  CHECK(pool.take(ids, 24));  // each page once
}

TEST_CASE("page pool: a beginning is forgotten by its root", "[runtime]") {
  page_pool pool(6, 4);
  const auto ids = counted(9);
  for (const std::uint64_t root : {0ull, 1ull << 63}) {
    auto one = pool.take(ids, 9, root);
    REQUIRE(one);
    pool.remember(*one, std::span(ids).first(8));
    pool.release(*one);
  }
  CHECK(pool.forget(ids, 1ull << 63) == 2);
  CHECK((pool.known(ids).size() == 2 && pool.known(ids, 1ull << 63).empty()));
  CHECK(pool.forget(ids) == 2);
}
