// SPDX-License-Identifier: MIT
// The kernel route: its computation, its interface, and the facts that planning needs.
#pragma once

#include "intaglio/core/compiler.hpp"

#include "intaglio/kernels/descriptor.hpp"

namespace intaglio::kernels {

/// Chooses a token's experts: the experts_used = k largest of its logits [tokens, experts]; among equal ones the lowest
/// number. biased 1: bias f32 [experts] is added to the logits first. choice u32 [tokens, 2 k] has the experts'
/// numbers, then the bits of their parts exp(logit - largest) / sum, in that order. sum is over the chosen experts, or
/// with over_all over all. Parts are multiplied by factor, and with scaled 1 by the expert's number in scale f32
/// [experts].
/// score: an expert_score other than 0 (logit) replaces exp(logit - largest): 1 (logistic) is 1 / (1 + exp(-logit)); 2
/// (probability) is the softmax over all experts. It is divided by max(sum of the chosen scores, least) + added unless
/// over_all is 1. The bias is then added to scores only for the choice. With such scores and groups > 1 the experts are
/// equal groups of neighbours, and those of the groups_used best groups alone are chosen. A group is judged by its best
/// expert or, with biased 1, by the sum of its two best ones; among equal groups the lowest comes first.
/// stated 1, with k = 1: nothing is computed. A token has the expert and the part in the state (kernels/state.hpp,
/// adapter), in a batch the values of its slot. stated 2, with k = experts: all experts in order, whose parts are 1.
/// One workgroup a token (y).
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
                                                    {"least", field_type::f32},
                                                    {"groups"},
                                                    {"groups_used"}}}};

/// Descriptor of the kernel route, which chooses the experts of each token.
struct route_kernel {
  static constexpr kernel id = kernel::route;
  static constexpr const kernel_interface& face = route_interface;
  static constexpr candidate candidates[] = {{variant::route, {}}};
  template <class T>
  struct push {
    T logits, bias, choice, state, scale;
  };
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
    std::uint32_t groups{1};
    std::uint32_t groups_used{1};
  };
};

}  // namespace intaglio::kernels
