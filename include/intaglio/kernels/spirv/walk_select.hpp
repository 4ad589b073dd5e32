// SPDX-License-Identifier: MIT
// Written by tools/embed_shaders from shaders/walk_select.comp -O -DWIDE_LOADS=0: 9300 bytes of SPIR-V.
#pragma once
// clang-format off
namespace intaglio::kernels::spirv {

inline constexpr unsigned long long walk_select_source_hash = 0xc23bc06b87be9f92ULL;
alignas(4) inline constexpr char walk_select_spirv[] =
    "\3\2#\7\0\6\1\0\13\0\15\0\1\5\0\0\0\0\0\0\21\0\2\0\1\0\0\0\21\0\2\0\343\24\0\0\13\0\6\0\5\0\0\0GLSL.std.450\0\0"
    "\0\0\16\0\3\0\344\24\0\0\1\0\0\0\17\0\13\0\5\0\0\0\10\0\0\0main\0\0\0\0!\0\0\0M\0\0\0\254\0\0\0L\1\0\0z\1\0\0\7"
    "\2\0\0K\1\6\0\10\0\0\0&\0\0\0\13\0\0\0\14\0\0\0\14\0\0\0\5\0\4\0\10\0\0\0main\0\0\0\0\5\0\10\0!\0\0\0gl_LocalInv"
    "ocationIndex\0\5\0\4\0%\0\0\0columns\0\5\0\6\0&\0\0\0workgroup_size\0\0\5\0\4\0)\0\0\0stretch\0\5\0\4\0:\0\0\0co"
    "unt\0\0\0\5\0\4\0M\0\0\0counts\0\0\5\0\4\0]\0\0\0keeps\0\0\0\5\0\5\0\254\0\0\0sixteens\0\0\0\0\5\0\4\0L\1\0\0fou"
    "nd\0\0\0\5\0\5\0z\1\0\0found_by_32\0\5\0\4\0\3\2\0\0Push\0\0\0\0\6\0\5\0\3\2\0\0\0\0\0\0input_\0\0\6\0\5\0\3\2\0"
    "\0\1\0\0\0choice\0\0\6\0\5\0\3\2\0\0\2\0\0\0state\0\0\0\5\0\4\0\5\2\0\0Words\0\0\0\6\0\4\0\5\2\0\0\0\0\0\0at\0\0"
    "\5\0\3\0\7\2\0\0\0\0\0\0\5\0\5\0\"\2\0\0WordPairs\0\0\0\6\0\4\0\"\2\0\0\0\0\0\0at\0\0G\0\4\0\13\0\0\0\1\0\0\0\0"
    "\0\0\0G\0\4\0!\0\0\0\13\0\0\0\35\0\0\0G\0\4\0%\0\0\0\1\0\0\0\1\0\0\0G\0\4\0&\0\0\0\1\0\0\0\0\0\0\0G\0\4\0:\0\0\0"
    "\1\0\0\0\2\0\0\0G\0\3\0\3\2\0\0\2\0\0\0H\0\5\0\3\2\0\0\0\0\0\0#\0\0\0\0\0\0\0H\0\5\0\3\2\0\0\1\0\0\0#\0\0\0\10\0"
    "\0\0H\0\5\0\3\2\0\0\2\0\0\0#\0\0\0\20\0\0\0G\0\4\0\4\2\0\0\6\0\0\0\4\0\0\0G\0\3\0\5\2\0\0\2\0\0\0H\0\5\0\5\2\0\0"
    "\0\0\0\0#\0\0\0\0\0\0\0G\0\4\0!\2\0\0\6\0\0\0\10\0\0\0G\0\3\0\"\2\0\0\2\0\0\0H\0\5\0\"\2\0\0\0\0\0\0#\0\0\0\0\0"
    "\0\0\23\0\2\0\6\0\0\0!\0\3\0\7\0\0\0\6\0\0\0\25\0\4\0\12\0\0\0 \0\0\0\0\0\0\0002\0\4\0\12\0\0\0\13\0\0\0\1\0\0\0"
    "+\0\4\0\12\0\0\0\14\0\0\0\1\0\0\0 \0\4\0\17\0\0\0\7\0\0\0\12\0\0\0 \0\4\0 \0\0\0\1\0\0\0\12\0\0\0;\0\4\0 \0\0\0!"
    "\0\0\0\1\0\0\0002\0\4\0\12\0\0\0%\0\0\0\0\4\0\0002\0\4\0\12\0\0\0&\0\0\0 \0\0\0004\0\6\0\12\0\0\0'\0\0\0\200\0\0"
    "\0%\0\0\0&\0\0\0004\0\6\0\12\0\0\0(\0\0\0\202\0\0\0'\0\0\0\14\0\0\0004\0\6\0\12\0\0\0)\0\0\0\206\0\0\0(\0\0\0&\0"
    "\0\0\24\0\2\0-\0\0\0+\0\4\0\12\0\0\0006\0\0\0\0\0\0\0002\0\4\0\12\0\0\0:\0\0\0@\0\0\0+\0\4\0\12\0\0\0<\0\0\0\30"
    "\0\0\0+\0\4\0\12\0\0\0I\0\0\0\0\1\0\0\34\0\4\0K\0\0\0\12\0\0\0I\0\0\0 \0\4\0L\0\0\0\4\0\0\0K\0\0\0;\0\4\0L\0\0\0"
    "M\0\0\0\4\0\0\0 \0\4\0O\0\0\0\4\0\0\0\12\0\0\0+\0\4\0\12\0\0\0S\0\0\0\2\0\0\0+\0\4\0\12\0\0\0T\0\0\0\10\1\0\0+\0"
    "\4\0\12\0\0\0\\\0\0\0\200\0\0\0004\0\6\0-\0\0\0]\0\0\0\262\0\0\0)\0\0\0\\\0\0\0004\0\5\0-\0\0\0a\0\0\0\250\0\0\0"
    "]\0\0\0+\0\4\0\12\0\0\0w\0\0\0\10\0\0\0+\0\4\0\12\0\0\0\205\0\0\0\377\0\0\0\25\0\4\0\212\0\0\0 \0\0\0\1\0\0\0+\0"
    "\4\0\212\0\0\0\213\0\0\0\1\0\0\0+\0\4\0\12\0\0\0\225\0\0\0\20\0\0\0\34\0\4\0\252\0\0\0\12\0\0\0\225\0\0\0 \0\4\0"
    "\253\0\0\0\4\0\0\0\252\0\0\0;\0\4\0\253\0\0\0\254\0\0\0\4\0\0\0+\0\4\0\12\0\0\0\301\0\0\0\17\0\0\0\27\0\4\0 \1\0"
    "\0\12\0\0\0\2\0\0\0,\0\5\0 \1\0\0#\1\0\0006\0\0\0006\0\0\0004\0\5\0-\0\0\0.\1\0\0\250\0\0\0]\0\0\0\34\0\4\0J\1\0"
    "\0 \1\0\0&\0\0\0 \0\4\0K\1\0\0\4\0\0\0J\1\0\0;\0\4\0K\1\0\0L\1\0\0\4\0\0\0 \0\4\0O\1\0\0\4\0\0\0 \1\0\0+\0\4\0"
    "\12\0\0\0Y\1\0\0\37\0\0\0004\0\6\0\12\0\0\0Z\1\0\0\200\0\0\0&\0\0\0Y\1\0\0+\0\4\0\12\0\0\0[\1\0\0 \0\0\0004\0\6"
    "\0\12\0\0\0\\\1\0\0\206\0\0\0Z\1\0\0[\1\0\0004\0\6\0\12\0\0\0v\1\0\0\200\0\0\0&\0\0\0Y\1\0\0004\0\6\0\12\0\0\0w"
    "\1\0\0\206\0\0\0v\1\0\0[\1\0\0\34\0\4\0x\1\0\0 \1\0\0w\1\0\0 \0\4\0y\1\0\0\4\0\0\0x\1\0\0;\0\4\0y\1\0\0z\1\0\0\4"
    "\0\0\0+\0\4\0\12\0\0\0\224\1\0\0\340\377\377\3774\0\5\0-\0\0\0\267\1\0\0\250\0\0\0]\0\0\0004\0\7\0\12\0\0\0\370"
    "\1\0\0\251\0\0\0]\0\0\0)\0\0\0\14\0\0\0\34\0\4\0\371\1\0\0\12\0\0\0\370\1\0\0'\0\3\0\2\2\0\0\345\24\0\0\36\0\5\0"
    "\3\2\0\0\2\2\0\0\2\2\0\0\2\2\0\0\35\0\3\0\4\2\0\0\12\0\0\0\36\0\3\0\5\2\0\0\4\2\0\0 \0\4\0\2\2\0\0\345\24\0\0\5"
    "\2\0\0 \0\4\0\6\2\0\0\11\0\0\0\3\2\0\0;\0\4\0\6\2\0\0\7\2\0\0\11\0\0\0+\0\4\0\212\0\0\0\10\2\0\0\0\0\0\0 \0\4\0"
    "\11\2\0\0\11\0\0\0\2\2\0\0004\0\6\0\12\0\0\0\15\2\0\0\202\0\0\0%\0\0\0\14\0\0\0 \0\4\0\17\2\0\0\345\24\0\0\12\0"
    "\0\0+\0\4\0\12\0\0\0\32\2\0\0\377\377\377\177'\0\3\0 \2\0\0\345\24\0\0\35\0\3\0!\2\0\0 \1\0\0\36\0\3\0\"\2\0\0!"
    "\2\0\0 \0\4\0 \2\0\0\345\24\0\0\"\2\0\0 \0\4\0,\2\0\0\345\24\0\0 \1\0\0+\0\4\0\212\0\0\0.\2\0\0\2\0\0\0004\0\6\0"
    "\12\0\0\0K\2\0\0\202\0\0\0%\0\0\0\14\0\0\0 \0\4\0o\4\0\0\7\0\0\0\371\1\0\0\1\0\3\0 \1\0\0\0\5\0\0006\0\5\0\6\0\0"
    "\0\10\0\0\0\0\0\0\0\7\0\0\0";

inline constexpr const char* walk_select_code =
    "[JC',^DC+RF$^2*ZJC)`5#^JC)Y$a5[JC'a5DEC-L3R4J3Q4`DC+E3S4R4DEC/R3T4S4K3N'`DC/-U4T4%'MHC-P$V4U4Y$ZJC)X4#]JC+V4W4X4"
    "[JC'W4dJC'`5[JC'X4`DC+-[4D$GGC--d4[4L$ZJC)^4#]JC+`%]4^4[JC']4dJC'`4[JC'`4XJC1-YF$Y$]4T5a4SHC-P$F5YF$L$YJC+b4a4$]"
    "JC+F5a4b4[JC'a4LHC/-H5`%YF$Y$DEC-L3I5J3K3`DC+E3J5I5CGC--M5d4YF$OCC1-O5(I$M5N5DEC/R3P5J5K3O5`DC/-Q5P5%'DEC-2R5^2H"
    "5aDC)R5Q5CGC--T5YF$N'dJC'`4[JC'b4dJC'^4[JC'^4SHC-P$d7d4H$ZJC)b7#]JC+d7]7a7[JC']7EGC--_7H$d4OCC1-`7(I$L$_7dJC'b7["
    "JC'a7dJC'b7[JC'b7XJC1-ZF$`7]7Y$a7dJC'D8[JC'D8XJC1-RG$Y$b7S=X=XJC1-LG$_$b7Z=X=XJC1-aF$]$b7^G$X=YJC+V=X=#dJC'G8[JC"
    "'G8XJC1-[F$[4D8P8K8SHC-P$J8[F$L%YJC+Q8K8#]JC+J8K8Q8[JC'K8DEC-R%M8P%[F$aDC)M8Y$CGC--P8[F$I$dJC'G8[JC'Q8CJC+V%V%W%"
    "dJC'R8[JC'R8XJC1-dF$Y$Q8]9[9LHC/-V8`%L$ZF$SHC-P$W8dF$V8YJC+^9[9$]JC+W8X8^9[JC'X8SHC-P$[8dF$ZF$IHC-P$d8D&[8ZJC)Z9"
    "#]JC+d8]8Z9[JC']8CGC--`8d4dF$ZJC)`C$#]JC+`%TC$YC$[JC'TC$LHC/-VC$`%dF$Y$DEC-2WC$^2VC$`DC+-XC$WC$dJC'`C$[JC'YC$DEC"
    "-L3ZC$J3K3`DC+E3[C$ZC$OCC1-]C$(I$`8P3DEC/R3^C$[C$K3]C$`DC/-_C$^C$%'dJC'`C$[JC'`C$XJC1-PI$XC$TC$_C$YC$JIC--PC$PI$"
    "]3MHC-P$D9LG$_$KHC+P$E9D9ZJC)P9#]JC+E9F9P9[JC'F9CGC--I9LG$Z&EIC--J9PC$I9EIC--N9RG$I9MHC-P$O9J9N9dJC'P9[JC'P9XJC1"
    "P$Q9D9`C$O9F9ZJC)Y9#]JC+Q9R9Y9[JC'R9EIC--U9PC$LG$JIC--V9U9H'DEC-R%W9P%V9MJC1-X9W9/Y$/dJC'Y9[JC'Y9dJC'Z9[JC'Z9dJC"
    "'[9[JC'[9CGC--]9dF$N'dJC'R8[JC'^9CJC+V%V%W%dJC'`9[JC'`9XJC1-]F$[4^9[:Y:SHC-P$C:]F$X'YJC+d:Y:#]JC+C:D:d:[JC'D:dJC"
    "'E:[JC'E:XJC1-OI$Y$D:Q:I:XJC1-MI$Y$D:T:I:SHC-P$H:MI$X'YJC+U:I:$]JC+H:I:U:[JC'I:GGC--K:X']F$CGC--M:K:MI$DEC-R%N:P"
    "%M:`DC+-O:N:CGC--Q:OI$O:CGC--T:MI$N'dJC'E:[JC'U:DEC-R%X:O(]F$aDC)X:OI$dJC'Y:[JC'Y:CGC--[:]F$I$dJC'`9[JC'd:CJC+V%"
    "V%W%dJC'_:[JC'_:XJC1-JI$aF$d:KI$a;XJC1-FI$Y$d:R;a;XJC1-CG$aF$d:V;a;XJC1-bF$Y$d:C<a;SHC-P$b:bF$X'YJC+D<a;$]JC+b:C"
    ";D<[JC'C;EGC--E;D)bF$DEC-R%G;O(E;`DC+-H;G;NHC-P$J;JI$Y$QHC-P$M;H;JI$JHC-P$N;J;M;LHC/-R;N;E;FI$LHC/-V;N;JI$CG$ZJC"
    ")_;#]JC+N;X;Y;[JC'X;dJC'_;[JC'Y;OCC1-];(I$JI$H;EGC--^;JI$];dJC'_;[JC'_;XJC1-KI$Y$X;^;Y;dJC'a;[JC'a;CGC--C<bF$N'd"
    "JC'_:[JC'D<dJC'F<[JC'F<XJC1-GI$CG$D<HI$K=XJC1-^G$aF$D<`<K=XJC1-EG$Y$D<d<K=XJC1-DG$Y$D<M=K=SHC-P$I<DG$X'YJC+N=K=$"
    "]JC+I<J<N=[JC'J<GGC--L<X'FI$CGC--M<L<D)EGC--O<M<DG$DEC-R%Q<P%O<`DC+-R<Q<NHC-P$T<GI$Y$QHC-P$W<R<GI$JHC-P$X<T<W<LH"
    "C/-d<X<O<EG$LHC/-`<X<GI$^G$ZJC)I=#]JC+X<b<C=[JC'b<dJC'I=[JC'C=OCC1-G=(I$GI$R<EGC--H=GI$G=dJC'I=[JC'I=XJC1-HI$Y$b"
    "<H=C=dJC'K=[JC'K=CGC--M=DG$N'dJC'F<[JC'N=GIC--Q=EG$LG$HIC--S=RG$Q=CJC+V%V%W%MHC-P$U=LG$Y$ZJC)W=#]JC+U=V=W=[JC'V="
    "dJC'd=[JC'W=dJC'X=[JC'X=EGC--Z=LG$Z&dJC'D8[JC'd=XJC1C,TG$F,V=KJ$Y>XJC1-SG$Y$V=[>Y>SHC-P$a=SG$V8YJC+d>Y>$]JC+a=b="
    "d>[JC'b=SHC-P$E>SG$ZF$IHC-P$F>Q,E>ZJC)X>#]JC+F>G>X>[JC'G>CGC--J>d4SG$ZJC)YD$#]JC+`%MD$RD$[JC'MD$LHC/-OD$`%SG$Y$D"
    "EC-2PD$^2OD$`DC+-QD$PD$dJC'YD$[JC'RD$DEC-L3SD$J3K3`DC+E3TD$SD$OCC1-VD$(I$J>P3DEC/R3WD$TD$K3VD$`DC/-XD$WD$%'dJC'Y"
    "D$[JC'YD$XJC1-`H$QD$MD$XD$RD$JIC--ID$`H$]3OHC-P$O>ID$S=LHC/-P>O>/Y$MHC-P$S>ID$S=LHC/-T>S>/Y$SEC-C,U>P>T>CGC-C,W>"
    "TG$U>dJC'X>[JC'X>XJC1C,KJ$TG$b=W>YD$dJC'Y>[JC'Y>CGC--[>SG$N'dJC'd=[JC'd>DEC-R-_>O-[4aDC)_>TG$CJC+V%V%W%dJC'a>[JC"
    "'a>XJC1-UG$[4d>`c^cSHC-P$DcUG$_-YJC+ac^c#]JC+DcEcac[JC'EcGGC--Gc^-UG$CGC--HcGc^-OCC1-Ic(I$HcI$dJC'Lc[JC'LcXJC1C,"
    "_H$F,EcVcQcXJC1-]H$GcEcYcQcSHC-P$Pc]H$IcYJC+ZcQc#]JC+PcQcZc[JC'QcDEC-R-ScO-]H$`DC+C,TcScCGC-C,Vc_H$TcCGC--Yc]H$N"
    "'dJC'Lc[JC'ZcDEC-R-]c].UG$aDC)]c_H$dJC'^c[JC'^cCGC--`cUG$I$dJC'a>[JC'acCJC+V%V%W%dJC'bc[JC'bcXJC1C,YG$F,acM@H@XJ"
    "C1-VG$Y$acP@H@IGC--F@[4^-SHC-P$G@VG$F@YJC+Q@H@#]JC+G@H@Q@[JC'H@DEC-R-J@].VG$`DC+C,K@J@CGC-C,M@YG$K@CGC--P@VG$N'd"
    "JC'bc[JC'Q@JIC--S@[4W/dJC'T@[JC'T@XJC1C,XG$YG$Q@^@Y@XJC1-WG$S@Q@a@Y@SHC-P$X@WG$[4YJC+b@Y@#]JC+X@Y@b@[JC'Y@DEC-R-"
    "[@O-WG$`DC+C,d@[@CGC-C,^@XG$d@CGC--a@WG$N'dJC'T@[JC'b@TEC--DAXG$#TEC--FAXG$$OCC1-HA(I$FA^G$CGC--IADAHAdJC'JA[JC'"
    "JAXJC1-RH$IAb@^J$EC$XJC1C,IH$XG$b@VJ$EC$XJC1-`G$Y$b@GC$EC$SHC-P$OA`G$V8YJC+HC$EC$$]JC+OAPAHC$[JC'PASHC-P$SA`G$ZF"
    "$IHC-P$TAZ0SAZJC)DC$#]JC+TAUADC$[JC'UACGC--XAd4`G$ZJC)RE$#]JC+`%FE$KE$[JC'FE$LHC/-HE$`%`G$Y$DEC-2IE$^2HE$`DC+-JE"
    "$IE$dJC'RE$[JC'KE$DEC-L3LE$J3K3`DC+E3ME$LE$OCC1-OE$(I$XAP3DEC/R3PE$ME$K3OE$`DC/-QE$PE$%'dJC'RE$[JC'RE$XJC1-aG$JE"
    "$FE$QE$KE$JIC--bD$aG$]3OHC-P$]AbD$S=KHC+P$^A]AZJC)JB#]JC+^A_AJB[JC'_AMHC-P$bAbD$S=ZJC)HB#]JC+bACBHB[JC'CBTEC--EB"
    "IH$$SHC-P$GBEB^G$dJC'HB[JC'HBXJC1P$IBbA_AGBCBdJC'JB[JC'JBXJC1P$KB]ARE$IBHBMHC-P$NBbD$S=LHC/-OBNB/Y$TEC--QBIH$$CG"
    "C--RBQBOBUEC/C,XF$RBCK$$SHC-P$VBRH$]$JHC-P$WBKBVBZJC)_B#]JC+WBXB_B[JC'XBDEC-L3WE$J3N'`DC+E3XE$WE$_FC+C4YE$XE$ZJC"
    ")PF$#]JC+`%DF$IF$[JC'DF$LHC/-FF$`%`G$Y$DEC-2GF$^2FF$`DC+-HF$GF$dJC'PF$[JC'IF$DEC-L3JF$J3K3`DC+E3KF$JF$OCC1-MF$(I"
    "$XAP3DEC/R3NF$KF$K3MF$`DC/-OF$NF$%'dJC'PF$[JC'PF$XJC1-WH$HF$DF$OF$IF$SEC-C,_E$XAWH$DEC/O4`E$YE$K3RH$aDC-`E$_E$%+"
    "dJC'_B[JC'_BLHC/-aBKB/Y$CGC--CC$RH$aBdJC'DC$[JC'DC$XJC1-^J$RH$PACC$_BXJC1C,VJ$IH$PAXF$_BdJC'EC$[JC'EC$CGC--GC$`G"
    "$N'dJC'JA[JC'HC$dJC'`5[JC'`5`JC%[DC%";

inline constexpr const char* walk_select_exact =
    "";

inline constexpr auto walk_select_parts = [](auto take) {
  return take(walk_select_spirv, 2325u, 188u, walk_select_exact, walk_select_code);
};

}  // namespace intaglio::kernels::spirv
