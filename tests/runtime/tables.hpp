// SPDX-License-Identifier: MIT
// Plans that the runtime's tests share; tables.cpp alone pays for engraving them.
#pragma once

#include "intaglio/plan/table.hpp"

/// The shipped story teller, planned for CPU drivers and for any GPU.
const intaglio::plan::table& fable_table();
const intaglio::plan::table& fable_portable_table();
/// The second with a screened head.
const intaglio::plan::table& fable_screened_table();
/// The first with a context of 64.
const intaglio::plan::table& fable_short_table();
/// conformance/bitnet-tiny, as the architecture bitnet-b1.58 of its GGUF files and its Hugging Face folders say it.
const intaglio::plan::table& bitnet_tiny_table();
const intaglio::plan::table& bitnet_tiny_portable_table();
/// conformance/bitnet-tiny as the architecture bitnet says it: SiLU and f32 activations.
const intaglio::plan::table& bitnet_tiny_silu_table();
const intaglio::plan::table& bitnet_tiny_silu_portable_table();
/// conformance/bitnet-tiny with embedding and head in f32, which holds what comes out of Q6_K.
const intaglio::plan::table& bitnet_tiny_silu_f32_table();
const intaglio::plan::table& bitnet_tiny_silu_f32_portable_table();
/// bitnet_tiny with a head of its own.
const intaglio::plan::table& bitnet_tiny_untied_table();
/// fable and bitnet_tiny with FFNs that decode walks.
const intaglio::plan::table& fable_walk_table();
const intaglio::plan::table& fable_walk_portable_table();
const intaglio::plan::table& bitnet_tiny_walk_table();
/// A model of 190 MB for tests of loading.
const intaglio::plan::table& bitnet_middle_table();
