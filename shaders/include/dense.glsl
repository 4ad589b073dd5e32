// SPDX-License-Identifier: MIT
// Products of four rows of dense weights and a token's normalised activations. The including shader has `weight`,
// `columns`, `rows`, `weight_element` and the activations in shared_y.
#ifndef INTAGLIO_DENSE
#define INTAGLIO_DENSE

#include "octets.glsl"

#if WIDE_LOADS
// llvmpipe reads shared memory in a loop over the lanes for each load, whatever the load's size.
shared u64vec4 shared_y[columns / 8u];

void share_y(uint quad, vec4 y) {
  uvec4 bits = floatBitsToUint(y);
  u64vec2 half_octet = u64vec2(pack64(bits.xy), pack64(bits.zw));
  if ((quad & 1u) == 0u) shared_y[quad / 2u].xy = half_octet;
  else shared_y[quad / 2u].zw = half_octet;
}
octet octet_of_y(uint index) {
  u64vec4 y = shared_y[index];
  return octet(vec4(uintBitsToFloat(unpack32(y.x)), uintBitsToFloat(unpack32(y.y))),
               vec4(uintBitsToFloat(unpack32(y.z)), uintBitsToFloat(unpack32(y.w))));
}

// Adds the products of an octet of columns of four rows.
void add_octets(uint group, uint index, inout vec4 low[4], inout vec4 high[4]) {
  octet y = octet_of_y(index);
  LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) {
    octet w = load8(min(4u * group + k, rows - 1u), index);
    precise vec4 product_low = w.low * y.low, product_high = w.high * y.high, sum_low = low[k] + product_low,
                 sum_high = high[k] + product_high;
    low[k] = sum_low;
    high[k] = sum_high;
  }
}

// Products of rows 4 * group .. 4 * group + 3: a quarter of the lanes ends with each (virtual_sum4). All virtual lanes
// of a block are computed before the next block, in the order of memory, which prefetchers follow. Short rows stay in
// caches; there one virtual lane after the other needs fewer sums at a time.
float four_rows(uint group) {
  vec4 low[8][4], high[8][4], part[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) low[j][k] = high[j][k] =
      vec4(0.0);
  if (octets > 128u) {
    for (uint block = 0u; block < octets; block += 32u) LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
        uint index = block + virtual_lane + j * subgroup_size;
        if (j < virtual_count && (octets % 32u == 0u || index < octets)) add_octets(group, index, low[j], high[j]);
      }
  } else {
    LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) if (j < virtual_count) for (uint block = 0u; block < octets;
                                                                              block += 32u) {
      uint index = block + virtual_lane + j * subgroup_size;
      if (octets % 32u == 0u || index < octets) add_octets(group, index, low[j], high[j]);
    }
  }
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) part[j][k] =
      sum8(low[j][k], high[j][k]);
  return virtual_sum4(fold_virtual(part));
}
#else
shared vec4 shared_y[columns / 4u];
#define share_y(quad, y) shared_y[quad] = y

// Products of rows 4 * group .. 4 * group + 3: a quarter of the lanes ends with each (virtual_sum4).
float four_rows(uint group) {
  vec4 part[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
    part[j] = vec4(0.0);
    if (j < virtual_count) {
      precise vec4 low[4], high[4];
      LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) low[k] = high[k] = vec4(0.0);
      for (uint block = 0u; block < octets; block += 32u) {
        uint index = block + virtual_lane + j * subgroup_size;
        if (octets % 32u == 0u || index < octets) {
          vec4 y_low = shared_y[2u * index], y_high = shared_y[2u * index + 1u];
          LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) {
            octet w = load8(min(4u * group + k, rows - 1u), index);
            precise vec4 product_low = w.low * y_low, product_high = w.high * y_high;
            low[k] = low[k] + product_low;
            high[k] = high[k] + product_high;
          }
        }
      }
      LATER_UNROLLED for (uint k = 0u; k < 4u; ++k) part[j][k] = sum8(low[k], high[k]);
    }
  }
  return virtual_sum4(fold_virtual(part));
}
// The product of one row, in every lane, with the bits of four_rows.
float one_row(uint row) {
  float part[8];
  LATER_UNROLLED for (uint j = 0u; j < 8u; ++j) {
    part[j] = 0.0;
    if (j < virtual_count) {
      precise vec4 low = vec4(0.0), high = vec4(0.0);
      LATER_UNROLLED for (uint block = 0u; block < octets; block += 32u) {
        uint index = block + virtual_lane + j * subgroup_size;
        if (octets % 32u == 0u || index < octets) {
          octet w = load8(row, index);
          precise vec4 product_low = w.low * shared_y[2u * index], product_high = w.high * shared_y[2u * index + 1u];
          low = low + product_low;
          high = high + product_high;
        }
      }
      part[j] = sum8(low, high);
    }
  }
  return virtual_sum(part);
}
#endif
// The row that a lane ends with, and whether it is the one that stores it.
uint row_of(uint group) { return 4u * group + (lane & 31u) / lane_quarter; }
bool stores_row(uint row) { return (lane & (lane_quarter - 1u)) == 0u && lane < 32u && row < rows; }

#endif
