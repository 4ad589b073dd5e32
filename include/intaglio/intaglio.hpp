// SPDX-License-Identifier: MIT
// Everything except Vulkan: layers, models, plans and the proofs of plans. <intaglio/vulkan.hpp> runs the models.
#pragma once

#include "intaglio/core/compiler.hpp"
#include "intaglio/core/fits_together.hpp"
#include "intaglio/core/version.hpp"
#include "intaglio/graph/layers/embedding.hpp"
#include "intaglio/graph/layers/gated_ffn.hpp"
#include "intaglio/graph/layers/linear.hpp"
#include "intaglio/graph/layers/rms_norm.hpp"
#include "intaglio/graph/layers/self_attention.hpp"
#include "intaglio/plan/engrave.hpp"
#include "intaglio/plan/explain.hpp"
#include "intaglio/plan/profile.hpp"
