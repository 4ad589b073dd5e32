// SPDX-License-Identifier: MIT
// All that hangs on a codec, once more for another one: the including shader has `codec` as a macro, and OF_CODEC, by
// which each name below becomes another, as well as `row`: what its row of codecs/rows.h says, in one word, since
// choosing each number of it among all rows would take more declarations than a header holds. The first time these
// names are as they stand.
#ifndef INTAGLIO_ONCE_MORE
#define INTAGLIO_ONCE_MORE
#define code_bits OF_CODEC(code_bits)
#define value_table OF_CODEC(value_table)
#define factor_form OF_CODEC(factor_form)
#define zero_code OF_CODEC(zero_code)
#define by_halves_of_block OF_CODEC(by_halves_of_block)
#define has_least OF_CODEC(has_least)
#define is_subtracted OF_CODEC(is_subtracted)
#define signed_codes OF_CODEC(signed_codes)
#define late_zero OF_CODEC(late_zero)
#define takes_sums OF_CODEC(takes_sums)
#define factor_each OF_CODEC(factor_each)
#define row_code_bytes OF_CODEC(row_code_bytes)
#define factor_bytes OF_CODEC(factor_bytes)
#define super_bytes OF_CODEC(super_bytes)
#define place_in_group OF_CODEC(place_in_group)
#define load_codes OF_CODEC(load_codes)
#define load_factors OF_CODEC(load_factors)
#define octet_of OF_CODEC(octet_of)
#define signed_table OF_CODEC(signed_table)
#define signed_numbers OF_CODEC(signed_numbers)
#define table_unit OF_CODEC(table_unit)
#define planes_of OF_CODEC(planes_of)
#define table_word OF_CODEC(table_word)
#define table_words OF_CODEC(table_words)
#define less_zero OF_CODEC(less_zero)
#define words_ahead OF_CODEC(words_ahead)
#define plain_codes_at OF_CODEC(plain_codes_at)
#define code_word_at OF_CODEC(code_word_at)
#define number_0 OF_CODEC(number_0)
#define number_1 OF_CODEC(number_1)
#define number_2 OF_CODEC(number_2)
#define number_3 OF_CODEC(number_3)
#define number_4 OF_CODEC(number_4)
#define number_5 OF_CODEC(number_5)
#define number_6 OF_CODEC(number_6)
#define number_7 OF_CODEC(number_7)
#define number_8 OF_CODEC(number_8)
#define number_9 OF_CODEC(number_9)
#define number_10 OF_CODEC(number_10)
#define number_11 OF_CODEC(number_11)
#define number_12 OF_CODEC(number_12)
#define number_13 OF_CODEC(number_13)
#define number_14 OF_CODEC(number_14)
#define number_15 OF_CODEC(number_15)
#define plain_codes OF_CODEC(plain_codes)
#define code_word OF_CODEC(code_word)
#define halves_factors OF_CODEC(halves_factors)
#define row_factors OF_CODEC(row_factors)
#define load_columns OF_CODEC(load_columns)
#define add_block OF_CODEC(add_block)
#define round_factors OF_CODEC(round_factors)
#define supers_each OF_CODEC(supers_each)
#define place_of OF_CODEC(place_of)
#define behind OF_CODEC(behind)
#define load_pair OF_CODEC(load_pair)
#define first_place OF_CODEC(first_place)
#define fetch OF_CODEC(fetch)
#define add_round OF_CODEC(add_round)
#define add_rounds OF_CODEC(add_rounds)
#define multiply OF_CODEC(multiply)
#endif
#undef INTAGLIO_BLOCK_CODECS
#define INTAGLIO_BLOCK_CODECS(one)                                                                   \
  one(any, codec, (OF_CODEC(row) & 15u), int(OF_CODEC(row) >> 20u), 0u, (OF_CODEC(row) >> 4u & 15u), \
      (OF_CODEC(row) >> 8u & 63u), (OF_CODEC(row) >> 16u & 1u))
#define ONCE_MORE
#include "codec.glsl"
#include "coded_product.glsl"
#undef ONCE_MORE
#include "coded_pairs.glsl"
