// SPDX-License-Identifier: MIT
// The rows of rows.h in C++: how the device holds a codec of blocks and computes with it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "intaglio/codecs/rows.h"
#include "intaglio/core/dtype.hpp"

namespace intaglio::codecs {
/// How the factor of some weights is stored; rows.h describes each form.
enum class factor_form : std::uint32_t {
  half = FACTOR_HALF,
  brain = FACTOR_BRAIN,
  byte = FACTOR_BYTE,
  six = FACTOR_SIX
};
/// @{
/// A table with the numbers of codes 0 to 15. With FACTOR_BYTE a weight is d * `unit` * factor * number.
struct value_table {
  std::uint32_t id;
  float unit;
  std::array<std::int8_t, 16> numbers;
};
#define INTAGLIO_TABLE(id, unit, ...) value_table{id, unit, {__VA_ARGS__}},
inline constexpr value_table value_tables[] = {INTAGLIO_VALUE_TABLES(INTAGLIO_TABLE)};
#undef INTAGLIO_TABLE
constexpr const std::array<std::int8_t, 16>& numbers_of(std::uint32_t table) { return value_tables[table - 1].numbers; }
/// The 16 values that codes of IQ4_NL and IQ4_XS stand for. @source ggml-common.h, kvalues_iq4nl
inline constexpr std::array<std::int8_t, 16> iq4_values = numbers_of(1);
/// Twice the values of the codes of MXFP4 and NVFP4. @source OCP Microscaling Formats 1.0, E2M1
inline constexpr std::array<std::int8_t, 16> fp4_values = [] {
  std::array<std::int8_t, 16> out = numbers_of(2);
  for (std::int8_t& each : out) each = static_cast<std::int8_t>(each - 12);
  return out;
}();
/// @}
/// One row of rows.h: how the device holds a codec. @see rows.h
struct device_row {
  dtype type{};
  std::uint32_t id = 0, bits = 0;
  std::int32_t zero = 0;
  std::uint32_t table = 0;
  factor_form form{};
  std::uint32_t per = 32;
  bool least = false;

  /// The number that a code stands for, before it is scaled.
  constexpr std::int32_t number(std::uint8_t code) const {
    return (table != 0 ? numbers_of(table)[code & 15] : bits == 8 ? static_cast<std::int8_t>(code) : code) - zero;
  }
  /// The factor `unit` of the number table, 1 without a table. Only tables of rows with FACTOR_BYTE have another unit
  /// than 1.
  constexpr float unit() const { return table != 0 ? value_tables[table - 1].unit : 1.f; }
  /// Bytes of a row's factors: those of each 32 columns, and those of each 256.
  constexpr std::uint32_t factor_bytes() const {
    const std::uint32_t each = form == factor_form::six ? 0 : form == factor_form::byte ? 1 : 2;
    return each * (32 / per) * (least ? 2 : 1);
  }
  constexpr std::uint32_t super_bytes() const {
    return form == factor_form::six ? 16 : form == factor_form::byte ? (least ? 4 : 2) : 0;
  }
  /// Bytes of a row's codes for each 32 columns.
  constexpr std::uint32_t code_bytes() const { return 4 * bits; }
};
#define INTAGLIO_ROW(name, id, bits, zero, table, form, per, least) \
  device_row{dtype::name, id, bits, zero, table, factor_form{form}, per, (least) != 0u},
inline constexpr device_row device_rows[] = {INTAGLIO_BLOCK_CODECS(INTAGLIO_ROW)};  ///< a row for each codec
#undef INTAGLIO_ROW
#define INTAGLIO_IS_KNOWN(name, id, bits, zero, table, form, per, least) \
  &&INTAGLIO_KNOWN_ROW(bits, table, form, per, least)
static_assert(true INTAGLIO_BLOCK_CODECS(INTAGLIO_IS_KNOWN), "codecs/rows.h: expected rows that kernels compute");
#undef INTAGLIO_IS_KNOWN
/// The row of a type. A type without a row gives one with no bits.
constexpr device_row row_of(dtype type) {
  for (const device_row& row : device_rows)
    if (row.type == type) return row;
  return {};
}
/// Whether a row keeps what INTAGLIO_KNOWN_ROW does not ask: a table has numbers for codes of 4 bits, `zero` has 6
/// bits, and codes of 8 bits are signed.
constexpr bool is_sound(const device_row& row) {
  return (row.table == 0 || row.bits <= 4) && row.zero >= 0 && row.zero < 64 && (row.bits != 8 || row.zero == 0);
}
static_assert(std::all_of(std::begin(device_rows), std::end(device_rows), is_sound),
              "codecs/rows.h: expected at most 4 bits beside a table, a zero of 0 to 63, and none beside 8 bits");
inline constexpr std::size_t device_row_count = std::size(device_rows);  ///< number of codecs

}  // namespace intaglio::codecs
