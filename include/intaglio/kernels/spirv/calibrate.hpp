// SPDX-License-Identifier: MIT
// Written by tools/embed_shaders from shaders/calibrate.comp -O: 4284 bytes of SPIR-V.
#pragma once
// clang-format off
namespace intaglio::kernels::spirv {

inline constexpr unsigned long long calibrate_source_hash = 0x77412b7acea1858aULL;
alignas(4) inline constexpr char calibrate_spirv[] =
    "\3\2#\7\0\6\1\0\13\0\15\0\246\4\0\0\0\0\0\0\21\0\2\0\1\0\0\0\21\0\2\0\343\24\0\0\13\0\6\0\3\0\0\0GLSL.std.450\0"
    "\0\0\0\16\0\3\0\344\24\0\0\1\0\0\0\17\0\10\0\5\0\0\0\6\0\0\0main\0\0\0\0\22\0\0\0*\0\0\0@\0\0\0K\1\6\0\6\0\0\0&"
    "\0\0\0\11\0\0\0\12\0\0\0\12\0\0\0\5\0\4\0\6\0\0\0main\0\0\0\0\5\0\10\0\22\0\0\0gl_LocalInvocationID\0\0\0\0\5\0"
    "\6\0*\0\0\0gl_WorkGroupID\0\0\5\0\4\0<\0\0\0Push\0\0\0\0\6\0\5\0<\0\0\0\0\0\0\0output_\0\6\0\5\0<\0\0\0\1\0\0\0r"
    "ounds\0\0\5\0\4\0>\0\0\0Words\0\0\0\6\0\4\0>\0\0\0\0\0\0\0at\0\0\5\0\3\0@\0\0\0\0\0\0\0G\0\4\0\11\0\0\0\1\0\0\0"
    "\0\0\0\0G\0\4\0\22\0\0\0\13\0\0\0\33\0\0\0G\0\4\0*\0\0\0\13\0\0\0\32\0\0\0G\0\3\0<\0\0\0\2\0\0\0H\0\5\0<\0\0\0\0"
    "\0\0\0#\0\0\0\0\0\0\0H\0\5\0<\0\0\0\1\0\0\0#\0\0\0\10\0\0\0G\0\4\0=\0\0\0\6\0\0\0\4\0\0\0G\0\3\0>\0\0\0\2\0\0\0H"
    "\0\5\0>\0\0\0\0\0\0\0#\0\0\0\0\0\0\0\23\0\2\0\4\0\0\0!\0\3\0\5\0\0\0\4\0\0\0\25\0\4\0\10\0\0\0 \0\0\0\0\0\0\0002"
    "\0\4\0\10\0\0\0\11\0\0\0\1\0\0\0+\0\4\0\10\0\0\0\12\0\0\0\1\0\0\0\26\0\3\0\13\0\0\0 \0\0\0+\0\4\0\13\0\0\0\16\0"
    "\0\0\0\0\200\?+\0\4\0\13\0\0\0\17\0\0\0\225\277\3263\27\0\4\0\20\0\0\0\10\0\0\0\3\0\0\0 \0\4\0\21\0\0\0\1\0\0\0"
    "\20\0\0\0;\0\4\0\21\0\0\0\22\0\0\0\1\0\0\0+\0\4\0\10\0\0\0\23\0\0\0\0\0\0\0 \0\4\0\24\0\0\0\1\0\0\0\10\0\0\0\24"
    "\0\2\0#\0\0\0;\0\4\0\21\0\0\0*\0\0\0\1\0\0\0\25\0\4\0001\0\0\0 \0\0\0\1\0\0\0+\0\4\0001\0\0\0002\0\0\0\1\0\0\0'"
    "\0\3\0;\0\0\0\345\24\0\0\36\0\4\0<\0\0\0;\0\0\0\10\0\0\0\35\0\3\0=\0\0\0\10\0\0\0\36\0\3\0>\0\0\0=\0\0\0 \0\4\0;"
    "\0\0\0\345\24\0\0>\0\0\0 \0\4\0\?\0\0\0\11\0\0\0<\0\0\0;\0\4\0\?\0\0\0@\0\0\0\11\0\0\0 \0\4\0A\0\0\0\11\0\0\0\10"
    "\0\0\0+\0\4\0\13\0\0\0U\0\0\0\0\0\0\?+\0\4\0\10\0\0\0o\0\0\0\271y7\236+\0\4\0001\0\0\0s\0\0\0\0\0\0\0 \0\4\0t\0"
    "\0\0\11\0\0\0;\0\0\0 \0\4\0w\0\0\0\345\24\0\0\10\0\0\0+\0\4\0\10\0\0\0Y\4\0\0\2\0\0\0+\0\4\0\10\0\0\0Z\4\0\0\3\0"
    "\0\0+\0\4\0\10\0\0\0[\4\0\0\4\0\0\0+\0\4\0\10\0\0\0\\\4\0\0\5\0\0\0+\0\4\0\10\0\0\0]\4\0\0\6\0\0\0+\0\4\0\10\0\0"
    "\0^\4\0\0\7\0\0\0006\0\5\0\4\0\0\0\6\0\0\0\0\0\0\0\5\0\0\0";

inline constexpr const char* calibrate_code =
    "[JC'*DEC-7856`DC++98SFC+.:9HGC-.;2:DGC-.<1;DEC-7N$M$6`DC++O$N$SFC+.Q$O$CGC-+NC$-O$SFC+.OC$NC$CGC-+ZC$dE$O$SFC+.["
    "C$ZC$CGC-+FD$]E$O$SFC+.GD$FD$CGC-+RD$^E$O$SFC+.SD$RD$CGC-+^D$_E$O$SFC+._D$^D$CGC-+JE$`E$O$SFC+.KE$JE$CGC-+VE$aE$"
    "O$SFC+.WE$VE$dJC'X$[JC'X$XJC1.HH$WE$*CC$Y$XJC1.GH$KE$*VBY$XJC1.FH$_D$*IBY$XJC1.EH$SD$*dAY$XJC1.DH$GD$*OAY$XJC1.C"
    "H$[C$*b@Y$XJC1.bG$OC$*U@Y$XJC1.aG$Q$*H@Y$XJC1+a&6*^%Y$DEC-D%E%C%U$`DC++F%E%SHC-F$G%a&F%YJC+Z$Y$#]JC+G%Y$Z$[JC'Y$"
    "OCC3.Y%&U$aG$<X%OCC3.])&U$bG$<X%OCC3.J*&U$CH$<X%OCC3.W*&U$DH$<X%OCC3.D+&U$EH$<X%OCC3.Q+&U$FH$<X%OCC3.^+&U$GH$<X%"
    "OCC3.K,&U$HH$<X%OCC3.X,&U$Y%<X%OCC3.E-&U$])<X%OCC3.R-&U$J*<X%OCC3._-&U$W*<X%OCC3.L.&U$D+<X%OCC3.Y.&U$Q+<X%OCC3.F"
    "/&U$^+<X%OCC3.S/&U$K,<X%OCC3.`/&U$X,<X%OCC3.M0&U$E-<X%OCC3.Z0&U$R-<X%OCC3.G1&U$_-<X%OCC3.T1&U$L.<X%OCC3.a1&U$Y.<"
    "X%OCC3.N2&U$F/<X%OCC3.[2&U$S/<X%OCC3.H3&U$`/<X%OCC3.U3&U$M0<X%OCC3.b3&U$Z0<X%OCC3.O4&U$G1<X%OCC3.d4&U$T1<X%OCC3."
    "I5&U$a1<X%OCC3.V5&U$N2<X%OCC3.C6&U$[2<X%OCC3.P6&U$H3<X%OCC3.]6&U$U3<X%OCC3.J7&U$b3<X%OCC3.W7&U$O4<X%OCC3.D8&U$d4"
    "<X%OCC3.Q8&U$I5<X%OCC3.^8&U$V5<X%OCC3.K9&U$C6<X%OCC3.X9&U$P6<X%OCC3.E:&U$]6<X%OCC3.R:&U$J7<X%OCC3._:&U$W7<X%OCC3"
    ".L;&U$D8<X%OCC3.Y;&U$Q8<X%OCC3.F<&U$^8<X%OCC3.S<&U$K9<X%OCC3.`<&U$X9<X%OCC3.M=&U$E:<X%OCC3.Z=&U$R:<X%OCC3.G>&U$_"
    ":<X%OCC3.T>&U$L;<X%OCC3.a>&U$Y;<X%OCC3.Nc&U$F<<X%OCC3.[c&U$S<<X%OCC3.H@&U$`<<X%OCC3.U@&U$M=<X%OCC3.b@&U$Z=<X%OCC"
    "3.OA&U$G><X%OCC3.dA&U$T><X%OCC3.IB&U$a><X%OCC3.VB&U$Nc<X%OCC3.CC$&U$[c<X%CGC-+^%a&U$dJC'X$[JC'Z$DGC-.O'aG$bG$DGC"
    "-.Z'O'CH$DGC-.E(Z'DH$DGC-.P(E(EH$DGC-.[(P(FH$DGC-.F)[(GH$DGC-.Q)F)HH$_FC++Q&Q)MHC-F$S&Q&R&ZJC)U&#]JC+S&T&U&[JC'T"
    "&DEC-W&X&C%V&`DC+^$Y&X&DEC/Z&[&Y&V&V&aDC-[&-%'dJC'U&[JC'U&`JC%[DC%";

inline constexpr const char* calibrate_exact =
    ";$V&......";

inline constexpr auto calibrate_parts = [](auto take) {
  return take(calibrate_spirv, 1071u, 112u, calibrate_exact, calibrate_code);
};

}  // namespace intaglio::kernels::spirv
