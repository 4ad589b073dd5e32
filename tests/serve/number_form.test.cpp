// SPDX-License-Identifier: MIT
#include "../../examples/serve/number_form.hpp"

#include <catch2/catch_test_macros.hpp>

#include "texts.hpp"

using namespace intaglio::serve;

TEST_CASE("decimals are what JSON says") {
  const auto order = [](const char* a, const char* b) { return compare(decimal::of_text(a), decimal::of_text(b)); };
  CHECK(order("0.1", "1e-1") == 0);
  CHECK(order("-0", "0.0") == 0);
  CHECK(order("100", "1e2") == 0);
  CHECK(order("-2", "-1.5") == -1);
  CHECK(order("9", "10") == -1);
  CHECK(order("0.09", "0.1") == -1);
  CHECK(order("-1", "1e-300") == -1);
  CHECK(order("1e300", "1e301") == -1);
  CHECK(decimal::of(json(0.1)).digits == "1");
  CHECK(decimal::of(json(9007199254740991)).digits == "9007199254740991");
  CHECK(decimal::of(json(-2.5e-3)).decimals() == 4);
}

TEST_CASE("numbers of a range, with a step, are exactly those") {
  const struct {
    const char* schema;
    double least, most, step;
    bool least_open, most_open;
  } cases[]{
      {R"({"type":"number","minimum":0,"maximum":1})", 0, 1, 0.01, false, false},
      {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", 0, 1, 0.01, true, true},
      {R"({"type":"number","minimum":-1.25,"maximum":2.5})", -1.25, 2.5, 0.01, false, false},
      {R"({"type":"number","minimum":-0.3,"exclusiveMaximum":-0.1})", -0.3, -0.1, 0.01, false, true},
      {R"({"type":"number","minimum":-3,"maximum":3,"multipleOf":0.5})", -3, 3, 0.5, false, false},
      {R"({"type":"number","minimum":0.1,"maximum":2,"multipleOf":0.25})", 0.1, 2, 0.25, false, false},
      {R"({"type":"integer","minimum":-2,"maximum":2})", -2, 2, 1, false, false},
      {R"({"type":"integer","exclusiveMinimum":-2.5,"exclusiveMaximum":3})", -2.5, 3, 1, true, true},
      {R"({"type":"integer","multipleOf":3,"minimum":-10,"maximum":10})", -10, 10, 3, false, false},
      {R"({"type":"integer","multipleOf":1.5,"minimum":-9,"maximum":9})", -9, 9, 3, false, false},
      {R"({"type":"number","multipleOf":0.01,"minimum":-0.05,"maximum":0.05})", -0.05, 0.05, 0.01, false, false},
  };
  for (const auto& each : cases) {
    INFO(each.schema);
    const auto form = form_of(each.schema);
    int wrong = 0, within = 0;
    for (int hundredths = -400; hundredths <= 400; ++hundredths) {
      const int low = static_cast<int>(each.least * 100 + (each.least < 0 ? -0.5 : 0.5)),
                high = static_cast<int>(each.most * 100 + (each.most < 0 ? -0.5 : 0.5)),
                step = static_cast<int>(each.step * 100 + 0.5);
      const bool good = (hundredths > low || (hundredths == low && !each.least_open)) &&
                        (hundredths < high || (hundredths == high && !each.most_open)) && hundredths % step == 0;
      std::string text = std::to_string(std::abs(hundredths) / 100);
      if (hundredths % 100 != 0) {
        text += '.' + std::to_string(100 + std::abs(hundredths) % 100).substr(1);
        if (text.back() == '0') text.pop_back();
      }
      if (hundredths < 0) text = '-' + text;
      wrong += fits(form, text) != good;
      within += good;
    }
    CHECK(wrong == 0);
    CHECK(within > 0);
    CHECK_FALSE(fits(form, "01"));
    CHECK_FALSE(fits(form, "1."));
    CHECK_FALSE(fits(form, "1e0"));
  }
}

TEST_CASE("bounds beyond 15 digits are lowered to them") {
  const auto form = form_of(R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})");
  CHECK((fits(form, "0") && fits(form, "-999999999999999") && fits(form, "999999999999999")));
  CHECK_FALSE(fits(form, "1000000000000000"));
  const auto natural = form_of(R"({"type":"integer","minimum":0,"maximum":18446744073709551615})");
  CHECK((fits(natural, "0") && fits(natural, "7") && !fits(natural, "-1")));
  const auto small = form_of(R"({"type":"number","exclusiveMinimum":0,"maximum":1e-10})");
  CHECK((fits(small, "0.00000000001") && !fits(small, "0") && !fits(small, "0.001")));
  CHECK((fits(form_of(R"({"type":"number","minimum":-1e300})"), "-5.5")));
  CHECK_THROWS(form_of(R"({"type":"integer","minimum":1e17})"));
  CHECK_THROWS(form_of(R"({"type":"integer","minimum":3,"maximum":2})"));
  CHECK_THROWS(form_of(R"({"type":"integer","exclusiveMinimum":2,"exclusiveMaximum":3})"));
  CHECK_THROWS(form_of(R"({"type":"number","multipleOf":0})"));
  CHECK_THROWS(form_of(R"({"type":"number","multipleOf":-1})"));
  CHECK_THROWS(form_of(R"({"type":"number","minimum":"0"})"));
}
