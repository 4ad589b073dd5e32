// SPDX-License-Identifier: MIT
// Products of one tile, 4 rows x 16 columns of codes 0, 1, 2, and 16 int8 activations: by integer dot products, or by
// plain multiplications of two codes each. Word r of a tile is row r; bits 2f+1..2f of byte b are column 4f + b.
#ifndef INTAGLIO_TERNARY
#define INTAGLIO_TERNARY

#if INTEGER_DOT

// Masks leave the codes in place; the resulting powers of four are divided out once per tile.
void accumulate_one(inout ivec4 sums, uvec4 codes, uvec4 x) {
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
    uint v = codes[r];
    int ones = dotPacked4x8EXT(int(v & 0x03030303u), int(x.x));
    int fours = dotPacked4x8EXT(int(v & 0x0c0c0c0cu), int(x.y));
    int sixteens =
        dotPacked4x8EXT(int(v & 0x30303030u), int(x.z)) + dotPacked4x8EXT(int((v >> 2) & 0x30303030u), int(x.w));
    sums[r] += ones + (fours >> 2) + (sixteens >> 4);
  }
}

// One word of four codes for each row and word of activations.
struct unpacked_codes {
  uvec4 row[4];
};

unpacked_codes unpack(uvec4 codes) {
  unpacked_codes u;
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) u.row[r] =
      uvec4(codes[r], codes[r] >> 2, codes[r] >> 4, codes[r] >> 6) & 0x03030303u;
  return u;
}

// Activations of a tile in the form that products use.
struct prepared {
  uvec4 x;
};
prepared prepare(uvec4 x) { return prepared(x); }

void accumulate(inout ivec4 sums, unpacked_codes codes, prepared p) {
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) sums[r] +=
      dotPacked4x8EXT(int(codes.row[r][f]), int(p.x[f]));
}

#else

int byte_of(uint word, int b) { return bitfieldExtract(int(word), 8 * b, 8); }

// (c0 + c2 * 2^16) * (x2 + x0 * 2^16) modulo 2^32 has c0 x0 + c2 x2 in its upper 16 bits and c0 x2 in its lower 16
// bits, both signed. Sums of eight such products of a tile fit in 16 bits, so one correction per tile and row separates
// them.
struct unpacked_codes {
  uint row[4][8];
};

unpacked_codes unpack(uvec4 codes) {
  unpacked_codes u;
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) u.row[r][i] =
      (codes[r] >> (2u * i)) & 0x00030003u;
  return u;
}

// Activations of a tile in the form that products use: those of bytes b and b + 2 of each word, for b of 0 and 1.
struct prepared {
  uint pair[8];
};
prepared prepare(uvec4 x) {
  prepared p;
  LATER_UNROLLED for (uint f = 0u; f < 4u; ++f) {
    p.pair[f] = (uint(byte_of(x[f], 0)) << 16) + uint(byte_of(x[f], 2));
    p.pair[f + 4u] = (uint(byte_of(x[f], 1)) << 16) + uint(byte_of(x[f], 3));
  }
  return p;
}

void accumulate(inout ivec4 sums, unpacked_codes codes, prepared p) {
  LATER_UNROLLED for (uint r = 0u; r < 4u; ++r) {
    uint both = 0u;
    LATER_UNROLLED for (uint i = 0u; i < 8u; ++i) both += codes.row[r][i] * p.pair[i];
    int low = int(both << 16) >> 16;
    sums[r] += (int(both) - low) >> 16;
  }
}

void accumulate_one(inout ivec4 sums, uvec4 codes, uvec4 x) { accumulate(sums, unpack(codes), prepare(x)); }

#endif
#endif
