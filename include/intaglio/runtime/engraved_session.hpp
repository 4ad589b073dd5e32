// SPDX-License-Identifier: MIT
// session<Model>: the engraved plans of a model, loaded onto a device. Only the constructors know the plans. A program
// whose other files include only runtime/session_handle.hpp writes `template class intaglio::session<Model>;` in one
// file.
#pragma once

#include "intaglio/core/compiler.hpp"

#include <array>

#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/variants_used.hpp"
#include "intaglio/runtime/session_handle.hpp"

namespace intaglio {
namespace runtime {

/// The plans that a session type carries.
template <class Model, const plan::profile&... Profiles>
inline constexpr std::array<const plan::table*, sizeof...(Profiles)> engraved_tables{
    &plan::engraved<Model, Profiles>::table...};
/// The plans of a session type that names no profile: one for CPU drivers and one for any GPU.
template <class Model>
inline constexpr std::array<const plan::table*, 2> engraved_tables<Model>{
    &plan::engraved<Model, plan::profiles::cpu>::table, &plan::engraved<Model, plan::profiles::portable>::table};
/// The modules of kernels that these plans use, found once for all constructors.
template <class Model, const plan::profile&... Profiles>
inline constexpr kernels::variant_set engraved_variants = plan::variants_used(engraved_tables<Model, Profiles...>);

}  // namespace runtime

template <class Model, const plan::profile&... Profiles>
session<Model, Profiles...>::session(const gpu::device& on, const std::filesystem::path& path,
                                     const session_options& options)
    : basic_session(on, runtime::engraved_tables<Model, Profiles...>, path, options,
                    &runtime::modules_of<runtime::engraved_variants<Model, Profiles...>>) {}

template <class Model, const plan::profile&... Profiles>
session<Model, Profiles...>::session(const gpu::device& on, const io::checkpoint& from, const session_options& options)
    : basic_session(on, runtime::engraved_tables<Model, Profiles...>, from, options,
                    &runtime::modules_of<runtime::engraved_variants<Model, Profiles...>>) {}

}  // namespace intaglio
