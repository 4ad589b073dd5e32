// SPDX-License-Identifier: MIT
// Token embedding of an encoder: the first layer of a model whose embedding includes a token's position and its text's
// kind.
#pragma once

#include "intaglio/core/family.hpp"
#include "intaglio/graph/layer.hpp"

namespace intaglio::graph {

/// The token's row of the table, plus the row of token_types for the kind of its text where the config has kinds, plus
/// the row of position_embd for its position where the family learns positions.
/// @shape  weight: [vocab_size, hidden_size], held as type; token_types.weight: [type_vocab_size, hidden_size] f32;
/// position_embd.weight: [max_position_embeddings, hidden_size] f32; out: [tokens, hidden_size] f32
/// @error  does not fit: hidden_size is no multiple of 4
/// @source Devlin et al. 2019; transformers, BertEmbeddings
struct text_embedding {
  std::uint32_t vocab_size, hidden_size, kinds, positions;  ///< rows of the three tables, and columns of all
  dtype type;                                               ///< the type in which the device holds the tokens' rows

  /// Takes sizes and epsilon from a config.
  constexpr text_embedding(const decoder_config& c, dtype held)
      : vocab_size(c.vocab_size), hidden_size(c.hidden_size), kinds(c.type_vocab_size),
        positions(family_of(c.model_type).learned_positions ? c.max_position_embeddings : 0), type(held) {}

  constexpr ir::value_id forward(ir::trace& t) const {
    return t.embedding("token_embd.weight", vocab_size, hidden_size, type, "token_types.weight", kinds,
                       "position_embd.weight", positions);
  }
};

}  // namespace intaglio::graph
