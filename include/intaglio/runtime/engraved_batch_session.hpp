// SPDX-License-Identifier: MIT
// batch_session<Model, Shape>: sessions of one model that decode together, with the engraved plans. Only the
// constructors know the plans.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>

#include "intaglio/plan/engrave_batch.hpp"
#include "intaglio/plan/variants_used.hpp"
#include "intaglio/runtime/batch_handle.hpp"

namespace intaglio {
namespace runtime {

/// The plans that a batch's type carries.
template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
inline constexpr std::array<const plan::table*, sizeof...(Profiles)> engraved_batch_tables{
    &plan::engraved_batch<Model, Profiles, Shape>::table...};
/// The plans of a batch's type that names no profile: one for CPU drivers and one for any GPU.
template <class Model, plan::batch_shape Shape>
inline constexpr std::array<const plan::table*, 2> engraved_batch_tables<Model, Shape>{
    &plan::engraved_batch<Model, plan::profiles::cpu, Shape>::table,
    &plan::engraved_batch<Model, plan::profiles::portable, Shape>::table};
/// The modules of kernels that these plans use, found once for all constructors.
template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
inline constexpr kernels::variant_set engraved_batch_variants =
    plan::variants_used(engraved_batch_tables<Model, Shape, Profiles...>);

}  // namespace runtime

template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
batch_session<Model, Shape, Profiles...>::batch_session(const gpu::device& on, const std::filesystem::path& path,
                                                        const session_options& options)
    : basic_batch(on, runtime::engraved_batch_tables<Model, Shape, Profiles...>, path, options,
                  &runtime::modules_of<runtime::engraved_batch_variants<Model, Shape, Profiles...>>) {}

template <class Model, plan::batch_shape Shape, const plan::profile&... Profiles>
batch_session<Model, Shape, Profiles...>::batch_session(const gpu::device& on, const io::checkpoint& from,
                                                        const session_options& options)
    : basic_batch(on, runtime::engraved_batch_tables<Model, Shape, Profiles...>, from, options,
                  &runtime::modules_of<runtime::engraved_batch_variants<Model, Shape, Profiles...>>) {}

}  // namespace intaglio
