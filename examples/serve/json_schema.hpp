// SPDX-License-Identifier: MIT
// Grammars of JSON: of any object, and of what a JSON schema asks for. Texts of the grammar always hold to the schema,
// though not every text that holds to it is in the grammar: members come in the schema's order, none are made up, white
// space is a blank or an indented line, items that have to differ come in the order in which the schema lists them, and
// numbers with bounds have at most 15 digits and no exponent.
//
// Read: type, enum, const, anyOf, oneOf of alternatives that exclude each other, allOf, $ref into the document (also
// recursive), true, false and {}; properties, required, additionalProperties, patternProperties, propertyNames,
// minProperties, maxProperties; items, prefixItems, minItems, maxItems, uniqueItems of items that are listed;
// minLength, maxLength, pattern, format, contentEncoding; minimum, maximum, exclusive ones, multipleOf. Words that only
// describe are passed over (title, description, default, examples ...). Any other word is refused with its path.
#pragma once

#include <string>

#include "grammar.hpp"
#include "json_document.hpp"

namespace intaglio::serve {

grammar any_json_object();

class json_rules;
/// Adds a rule for a schema to a grammar that has other rules too.
/// @throws as grammar_of_schema, except for a schema without any text; std::length_error: the grammar is too large
grammar::rule add_schema(grammar& to, json_rules& rules, const json& schema, const std::string& where);

/// @param where the schema is in the request, for errors
/// @throws api_error 400 naming the word and its path; the schema that no text can hold to; one that is too large
grammar grammar_of_schema(const json& schema, const std::string& where);

}  // namespace intaglio::serve
