// SPDX-License-Identifier: MIT
// The kernel route: what it computes, its interface, and what plans have to know of it.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// The experts_used = k largest of each token's logits [tokens, experts], with biased 1 after bias f32 [experts] has
/// been added to them, of equal ones the lowest first: choice u32 [tokens, 2 k] has their numbers, then the bits of
/// exp(logit - largest) / sum of these, in that order; over_all: sum of all experts' instead;
/// times factor; with scaled 1 times the expert's number in scale f32 [experts]. score: expert_score. With another one
/// than 0 (logit) an expert counts its score: with 1 (logistic) 1 / (1 + exp(-logit)), with 2 (probability) its part of
/// the softmax over all experts. It is divided by max(sum of the chosen ones' scores, least) + added unless over_all is
/// 1, and the bias is added to scores for the choice alone. With stated 1, of k = 1, nothing is computed: a token has
/// the expert and the part that the state says (kernels/state.hpp, adapter), of a batch that of its slot. One workgroup
/// a token (y).
inline constexpr kernel_interface route_interface{"route",
                                                  {{{"logits"}, {"bias"}, {"choice"}, {"state"}, {"scale"}}},
                                                  {{{"workgroup_size"},
                                                    {"experts"},
                                                    {"experts_used"},
                                                    {"over_all"},
                                                    {"biased"},
                                                    {"scaled"},
                                                    {"stated"},
                                                    {"slot_words"},
                                                    {"score"},
                                                    {"factor", field_type::f32},
                                                    {"added", field_type::f32},
                                                    {"least", field_type::f32}}}};

struct route_kernel {
  static constexpr kernel id = kernel::route;
  static constexpr const kernel_interface& face = route_interface;
  static constexpr candidate candidates[] = {{variant::route, {}}};
  struct constants {
    std::uint32_t workgroup_size{};
    std::uint32_t experts{};
    std::uint32_t experts_used{};
    std::uint32_t over_all{};
    std::uint32_t biased{};
    std::uint32_t scaled{};
    std::uint32_t stated{};
    std::uint32_t slot_words{};
    std::uint32_t score{};
    float factor{1.f};
    float added{};
    float least{};
  };
};

}  // namespace intaglio::kernels
