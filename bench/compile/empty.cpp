// SPDX-License-Identifier: MIT
// What a compiler costs that has nothing to do.
int main() {}
