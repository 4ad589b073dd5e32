// SPDX-License-Identifier: MIT
// Includes all code that depends on a codec again for a further codec. The including shader has `codec` as a macro, and
// OF_CODEC, which maps each name below, and `codec_row`, to another name. The first time the names are used unchanged.
#ifndef INTAGLIO_ONCE_MORE
#define INTAGLIO_ONCE_MORE
#define codec_row OF_CODEC(codec_row)
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
#define addresses_in_group OF_CODEC(addresses_in_group)
#define load_codes OF_CODEC(load_codes)
#define load_factors OF_CODEC(load_factors)
#define octet_of OF_CODEC(octet_of)
#define signed_table OF_CODEC(signed_table)
#define signed_numbers OF_CODEC(signed_numbers)
#define table_unit OF_CODEC(table_unit)
#define table_bits_0 OF_CODEC(table_bits_0)
#define table_bits_1 OF_CODEC(table_bits_1)
#define table_bits_2 OF_CODEC(table_bits_2)
#define table_bits_3 OF_CODEC(table_bits_3)
#define planes_of OF_CODEC(planes_of)
#define less_zero OF_CODEC(less_zero)
#define words_ahead OF_CODEC(words_ahead)
#define plain_codes_at OF_CODEC(plain_codes_at)
#define code_word_at OF_CODEC(code_word_at)
#define stored_codes OF_CODEC(stored_codes)
#define plain_codes OF_CODEC(plain_codes)
#define code_word OF_CODEC(code_word)
#define f16_factors OF_CODEC(f16_factors)
#define row_factors OF_CODEC(row_factors)
#define load_columns OF_CODEC(load_columns)
#define add_block OF_CODEC(add_block)
#define round_factors OF_CODEC(round_factors)
#define supers_each OF_CODEC(supers_each)
#define addresses_of OF_CODEC(addresses_of)
#define rounds_after OF_CODEC(rounds_after)
#define load_pair OF_CODEC(load_pair)
#define first_addresses OF_CODEC(first_addresses)
#define fetch OF_CODEC(fetch)
#define add_round OF_CODEC(add_round)
#define add_rounds OF_CODEC(add_rounds)
#define multiply OF_CODEC(multiply)
#endif
#define ONCE_MORE
#include "codec.glsl"
#include "coded_product.glsl"
#undef ONCE_MORE
#include "coded_pairs.glsl"
