// SPDX-License-Identifier: MIT
// Grammars of JSON: of any object, and of what a JSON schema asks for. Texts of the grammar always hold to the schema,
// though not every text that holds to it is in the grammar: members come in the schema's order, none are made up, and
// white space is a blank or an indented line.
//
// Read: type (also a list), properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// minLength, maxLength, minimum and maximum of integers (exclusive ones too), enum, const, anyOf, allOf of one, $ref
// into the document (also recursive), true and {}. Words that only describe are passed over (title, description,
// default, examples ...). Any other word is refused with its place.
#pragma once

#include <string>

#include "grammar.hpp"
#include "json_document.hpp"

namespace intaglio::serve {

/// Nesting of values that no schema describes.
inline constexpr int free_depth = 12;

grammar any_json_object();

/// @param where the schema stands in the request, for errors
/// @throws api_error 400 naming the word and its place; the schema that no text can hold to; one that is too large
grammar grammar_of_schema(const json& schema, const std::string& where);

}  // namespace intaglio::serve
