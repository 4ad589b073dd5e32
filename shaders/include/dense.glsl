// SPDX-License-Identifier: MIT
// Four rows of dense weights times the normalised activations of a token. The including shader has `weight`, `columns`, `rows`, `weight_element` and
// the activations in shared_y.
#ifndef INTAGLIO_DENSE
#define INTAGLIO_DENSE

#include "octets.glsl"

shared vec4 shared_y[columns / 4u];

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
// The row that a lane ends with, and whether it is the one that stores it.
uint row_of(uint group) { return 4u * group + (lane & 31u) / lane_quarter; }
bool stores_row(uint row) { return (lane & (lane_quarter - 1u)) == 0u && lane < 32u && row < rows; }

#endif
