// SPDX-License-Identifier: MIT
// AltUp's operations on a token's streams, which are adjacent: one step per dispatch, one workgroup per token (y).
// variant: streams -DWIDE_LOADS=0
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#include "arithmetic.glsl"
#include "memory.glsl"
#include "state.glsl"

layout(constant_id = 0) const uint workgroup_size = 32;
layout(constant_id = 1) const uint width = 256;
layout(constant_id = 2) const uint streams = 4;
layout(constant_id = 3) const uint step_ = 0;
layout(constant_id = 4) const uint stream = 0;
layout(constant_id = 5) const float scale = 1.0;
layout(constant_id = 6) const float eps = 1e-6;
layout(local_size_x_id = 0) in;

layout(push_constant, scalar) uniform Push {
  Words input_, branch, target, norm_weight, router, mixing, output_, state;
};

// kernels::stream_step
const uint take_stream = 0u;
const uint weigh_stream = 1u;
const uint predict = 2u;
const uint correct = 3u;
const uint spread = 4u;
const uint append = 5u;
const uint join = 6u;
const uint shrink = 7u;
const uint most_streams = 8u;

shared float lanes[(most_streams + 1u) * 32u];

float add_squares(float sum, vec4 x) {
  precise vec4 square = x * x;
  precise float out_ = sum + ((square.x + square.y) + (square.z + square.w));
  return out_;
}
// The sum of the numbers of lanes 0 .. 31, added in order; `which` of several sums.
float sum_of_lanes(uint which) {
  precise float all = 0.0;
  for (uint v = 0u; v < 32u; ++v) all = all + lanes[which * 32u + v];
  return all;
}

// Entries of the router's choice, [streams]: tanh of its rows times the norm of x, over width.
float choices[most_streams];
void find_choices(Words x, uint first) {
  uint quads = width / 4u;
  for (uint v = gl_LocalInvocationIndex; v < 32u; v += workgroup_size) {
    precise float squares = 0.0, sums[most_streams];
    for (uint k = 0u; k < streams; ++k) sums[k] = 0.0;
    for (uint quad = v; quad < quads; quad += 32u) {
      vec4 value = float_quad(x, first + quad);
      squares = add_squares(squares, value);
      precise vec4 weighed = value * float_quad(norm_weight, quad);
      for (uint k = 0u; k < streams; ++k) {
        precise vec4 y = weighed * float_quad(router, k * quads + quad);
        sums[k] = sums[k] + ((y.x + y.y) + (y.z + y.w));
      }
    }
    lanes[v] = squares;
    for (uint k = 0u; k < streams; ++k) lanes[(k + 1u) * 32u + v] = sums[k];
  }
  barrier();
  precise float mean = sum_of_lanes(0u) / float(width) + eps, r = 1.0 / sqrt(mean);
  for (uint k = 0u; k < streams; ++k) {
    precise float normed = sum_of_lanes(k + 1u) * r, logit = normed / float(width);
    precise float growth = canonical_exp(2.0 * logit) + 1.0, choice = 1.0 - 2.0 / growth;
    choices[k] = choice;
  }
}
// Row `row` of the mixing matrix, [rows, streams], times the choices. In a correction entries are clamped to -120 ..
// 120, and 1 is added.
shared float mixed[most_streams * most_streams];
float mix_choices(uint row) {
  precise float sum = 0.0;
  for (uint k = 0u; k < streams; ++k) {
    float w = uintBitsToFloat(mixing.at[row * streams + k]);
    if (step_ == correct && w > 120.0) w = 120.0;
    if (step_ == correct && w < -120.0) w = -120.0;
    precise float part = choices[k] * w;
    sum = sum + part;
  }
  if (step_ == correct) sum = sum + 1.0;
  return sum;
}

// The factor that makes a branch as large as the target.
float factor_of(uint first, uint target_first) {
  for (uint v = gl_LocalInvocationIndex; v < 32u; v += workgroup_size) {
    precise float own = 0.0, wanted = 0.0;
    for (uint quad = v; quad < width / 4u; quad += 32u) {
      own = add_squares(own, float_quad(branch, first + quad));
      wanted = add_squares(wanted, float_quad(target, target_first + quad));
    }
    lanes[v] = own;
    lanes[32u + v] = wanted;
  }
  barrier();
  precise float own = sum_of_lanes(0u) / float(width), wanted = sum_of_lanes(1u) / float(width);
  if (own < 1e-5) own = 1e-5;
  precise float out_ = sqrt(wanted) / sqrt(own);
  return out_;
}

// The mean of a token's features and `scale` standard deviations.
float cutoff(uint first) {
  for (uint v = gl_LocalInvocationIndex; v < 32u; v += workgroup_size) {
    precise float sum = 0.0;
    for (uint quad = v; quad < width / 4u; quad += 32u) {
      vec4 x = float_quad(input_, first + quad);
      sum = sum + ((x.x + x.y) + (x.z + x.w));
    }
    lanes[v] = sum;
  }
  barrier();
  precise float center = sum_of_lanes(0u) / float(width);
  for (uint v = gl_LocalInvocationIndex; v < 32u; v += workgroup_size) {
    precise float sum = 0.0;
    for (uint quad = v; quad < width / 4u; quad += 32u) {
      precise vec4 x = float_quad(input_, first + quad) - center;
      sum = add_squares(sum, x);
    }
    lanes[32u + v] = sum;
  }
  barrier();
  precise float deviation = sqrt(sum_of_lanes(1u) / float(width)), far_ = deviation * scale, out_ = center + far_;
  return out_;
}

void main() {
  uint token = gl_WorkGroupID.y, quads = width / 4u;
  if (token >= state.at[state_count]) return;
  uint all = token * streams * quads, one = token * quads;
  FloatQuads to = FloatQuads(output_);
  if (step_ == take_stream || step_ == weigh_stream) {
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
      precise vec4 y = float_quad(input_, all + stream * quads + quad);
      if (step_ == weigh_stream) y = y * float_quad(norm_weight, quad);
      else y = y * scale;
      to.at[one + quad] = y;
    }
  } else if (step_ == predict || step_ == correct) {
    find_choices(step_ == predict ? input_ : branch, step_ == predict ? all : one);
    uint rows = step_ == predict ? streams * streams : streams;
    for (uint row = gl_LocalInvocationIndex; row < rows; row += workgroup_size) mixed[row] = mix_choices(row);
    barrier();
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
      vec4 s[most_streams];
      for (uint k = 0u; k < streams; ++k) s[k] = float_quad(input_, all + k * quads + quad);
      for (uint i = 0u; i < streams; ++i) {
        precise vec4 sum = vec4(0.0);
        if (step_ == predict) {
          for (uint k = 0u; k < streams; ++k) {
            precise vec4 part = s[k] * mixed[i * streams + k];
            sum = sum + part;
          }
        } else {
          precise vec4 apart = float_quad(branch, one + quad) - s[0];
          sum = apart * mixed[i];
        }
        precise vec4 y = s[i] + sum;
        to.at[all + i * quads + quad] = y;
      }
    }
  } else if (step_ == spread) {
    for (uint at = gl_LocalInvocationIndex; at < streams * quads; at += workgroup_size) {
      precise vec4 y = float_quad(input_, all + at);
      if (at >= quads) y = y + float_quad(branch, one + at % quads);
      to.at[all + at] = y;
    }
  } else if (step_ == append) {
    float by = factor_of(one, one);
    uint room = token * (streams + 1u) * quads;
    for (uint at = gl_LocalInvocationIndex; at < streams * quads; at += workgroup_size)
      to.at[room + at] = float_quad(input_, all + at);
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
      precise vec4 y = float_quad(branch, one + quad) * by;
      to.at[room + streams * quads + quad] = y;
    }
  } else if (step_ == shrink) {
    float above = cutoff(one);
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
      precise vec4 y = float_quad(input_, one + quad) - above;
      // NaN stays NaN.
      for (uint c = 0u; c < 4u; ++c)
        if (y[c] <= 0.0) y[c] = 0.0;
      to.at[one + quad] = y;
    }
  } else {
    float by = factor_of(one, all);
    for (uint quad = gl_LocalInvocationIndex; quad < quads; quad += workgroup_size) {
      precise vec4 part = float_quad(branch, one + quad) * by, y = float_quad(input_, one + quad) + part;
      to.at[one + quad] = y;
    }
  }
}
