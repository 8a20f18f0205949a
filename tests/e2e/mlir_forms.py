"""Constructs of kernels in MLIR, one function each: read, planned, and no higher than it must be.

usage: mlir_forms.py TOOL FOLDER [NAME]

A form is written in short lines: `a = ub 256xf16` allocates, `load a` and `store a` move it,
`vadd a b > c` computes; all other lines are MLIR, where T[a] is the type of a. `top N`: the ub's
height at most; `is N`: exactly; `fails WORDS`: exit status and message.
"""

import re
import subprocess
import sys

FORMS = """
== chain, each output in its input's place
a = ub 8x32xf16
b = ub 8x32xf16
c = ub 8x32xf16
load a
vadd a a > b
vmul b b > c
store c
top 512
== nothing in a temporary buffer of no elements
a = ub 512xi64
b = ub 512xi32
t = ub 0xi64
load a
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) temp_buffer (%t : T[t]) round_mode = <truncwithoverflow>
store b
top 6144
== a loop's transfers and results
scf.for %i = %c0 to %c8 step %c1 {
a = ub 64xf32
b = ub 64xf32
load a
vadd a a > b
store b
c = ub 64xf32
d = ub 64xf32
load c
vmul c c > d
store d
}
top 512
== a sum takes the place of its first operand
a = ub 64xf16
load a
b = ub 64xf16
load b
c = ub 64xf16
vadd a b > c
store c
top 256
== wider than its input: no place shared
a = ub 8x8xf16
load a
b = ub 8x8xf32
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<rint>
store b
top 384
== as wide as its input
a = ub 8x8xf16
load a
b = ub 8x8xi16
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<trunc>
store b
top 128
== narrower in one dimension
a = ub 512xf32
load a
b = ub 512xf16
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<trunc>
store b
top 2048
== narrower in two dimensions
a = ub 16x32xf32
load a
b = ub 16x32xf16
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<trunc>
store b
top 3072
== every other element, as wide
a = ub 512xf16, strided<[2]>
load a
b = ub 512xi16, strided<[2]>
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<trunc>
store b
top 2048
== every other element, narrower
a = ub 512xf32, strided<[2]>
load a
b = ub 512xf16, strided<[2]>
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<trunc>
store b
top 6144
== a branch's result
a = ub 64xf32
b = ub 64xf32
c = ub 64xf32
d = ub 64xf32
load a
load b
load c
load d
r = ub 64xf32
s = ub 64xf32
%r2 = scf.if %flag -> (T[a]) {
vadd a b > r
scf.yield %r : T[a]
} else {
vadd c d > s
scf.yield %s : T[a]
}
hivm.hir.store ins(%r2 : T[a]) outs(%out : G[a])
top 1280
== a loop's result is returned
a = ub 64xf32
b = ub 64xf32
c = ub 64xf32
d = ub 64xf32
e = ub 64xf32
load a
load b
load e
vadd a b > c
%r = scf.for %i = %c0 to %c8 step %c1 iter_args(%k = %e) -> (T[a]) {
hivm.hir.vadd ins(%a, %k : T[a], T[a]) outs(%d : T[a])
scf.yield %d : T[a]
}
store c
return %r : T[a]
top 768
== a part is stored
a = ub 8x8xf16
b = ub 8x8xf16
c = ub 8x8xf16
load a
load b
vadd a b > c
%p = memref.subview %c[0, 0] [2, 8] [1, 1] : T[c] to memref<2x8xf16, strided<[8, 1]>, #hivm.address_space<ub>>
hivm.hir.store ins(%p : memref<2x8xf16, strided<[8, 1]>, #hivm.address_space<ub>>) outs(%out : memref<2x8xf16, #hivm.address_space<gm>>)
top 256
== other shapes of the same bytes
a = ub 8x8xf16
b = ub 8x8xf16
load a
vexp a > b
%p = memref.collapse_shape %b [[0, 1]] : T[b] into memref<64xf16, #hivm.address_space<ub>>
%q = memref.expand_shape %p [[0, 1]] output_shape [4, 16] : memref<64xf16, #hivm.address_space<ub>> into memref<4x16xf16, #hivm.address_space<ub>>
hivm.hir.store ins(%q : memref<4x16xf16, #hivm.address_space<ub>>) outs(%out : memref<4x16xf16, #hivm.address_space<gm>>)
top 128
== a temporary buffer has bytes of its own
a = ub 1x16xi16
load a
b = ub 8x16xi16
t = ub 128xi16
hivm.hir.vbrc ins(%a : T[a]) outs(%b : T[b]) temp_buffer(%t : T[t]) broadcast_dims = [0]
store b
top 544
== two buffers in turn, by hand
a = ub 512xf32
b = ub 512xf32
c = ub 512xf32
d = ub 512xf32
e = ub 512xf32
f = ub 512xf32
%n = hivm.hir.get_block_idx -> i64
%m = arith.index_cast %n : i64 to index
%base = affine.apply affine_map<()[s0] -> (s0 * 512)>()[%m]
scf.for %i = %c0 to %c64 step %c1 {
%k = affine.apply affine_map<(d0) -> (d0 mod 2)>(%i)
%odd = arith.index_cast %k : index to i1
%x = arith.select %odd, %a, %b : T[a]
%y = arith.select %odd, %c, %d : T[a]
%z = arith.select %odd, %e, %f : T[a]
hivm.hir.load ins(%out : G[a]) outs(%x : T[a])
hivm.hir.load ins(%out : G[a]) outs(%y : T[a])
hivm.hir.vadd ins(%x, %y : T[a], T[a]) outs(%z : T[a])
hivm.hir.store ins(%z : T[a]) outs(%out : G[a])
}
top 12288
== sizes known at run time
a = ub 1024xi8
%n = memref.dim %dyn, %c0 : memref<?xi16, #hivm.address_space<gm>>
%v = memref.view %a[%c0][%n] : T[a] to memref<1x?xi16, #hivm.address_space<ub>>
hivm.hir.load ins(%dyn : memref<?xi16, #hivm.address_space<gm>>) outs(%v : memref<1x?xi16, #hivm.address_space<ub>>)
%w = memref.reinterpret_cast %v to offset: [0], sizes: [%n, 1], strides: [1, 1] : memref<1x?xi16, #hivm.address_space<ub>> to memref<?x1xi16, #hivm.address_space<ub>>
hivm.hir.store ins(%w : memref<?x1xi16, #hivm.address_space<ub>>) outs(%dyn : memref<?xi16, #hivm.address_space<gm>>)
top 1024
== a single buffer in place of two
scf.for %i = %c0 to %c16 step %c4 {
a = ub 16xf16 x2
b = ub 16xf16
load a
vadd a a > b
store b
}
top 64
== four in place of four
scf.for %i = %c0 to %c16 step %c4 {
a = ub 16xf16 x4
b = ub 16xf16 x4
load a
vadd a a > b
store b
}
top 128
== the mark is on a part
scf.for %i = %c0 to %c16 step %c4 {
a = ub 8x8xf16
%p = memref.subview %a[0, 0] [8, 1] [1, 1] : T[a] to memref<8x1xf16, strided<[8, 1]>, #hivm.address_space<ub>>
annotation.mark %p {hivm.multi_buffer = 2 : i32} : memref<8x1xf16, strided<[8, 1]>, #hivm.address_space<ub>>
hivm.hir.load ins(%out : memref<8x1xf16, #hivm.address_space<gm>>) outs(%p : memref<8x1xf16, strided<[8, 1]>, #hivm.address_space<ub>>)
hivm.hir.store ins(%p : memref<8x1xf16, strided<[8, 1]>, #hivm.address_space<ub>>) outs(%out : memref<8x1xf16, #hivm.address_space<gm>>)
}
top 256
== single buffers and four slots that are scarce
scf.for %i = %c0 to %c16 step %c4 {
a = ub 12288xf32 x4
b = ub 12288xf32
c = ub 12288xf32 x4
d = ub 12288xf32
load a
vadd a a > c
store c
load b
vadd b b > d
store d
}
top 196608
== two of four slots that are scarce
scf.for %i = %c0 to %c16 step %c4 {
a = ub 9728xf32 x4
b = ub 9728xf32 x2
c = ub 9728xf32 x4
d = ub 9728xf32 x2
load a
vadd a a > c
store c
load b
vadd b b > d
store d
}
top 196608
== what a loop writes is read behind it
s = ub 64xf32
scf.for %i = %c0 to %c8 step %c1 {
a = ub 64xf32
load a
vadd a a > s
}
store s
top 512
== another shape by a global
%g = memref.get_global @sizes : memref<3xi64>
a = ub 2x8xi16
load a
%r = memref.reshape %a(%g) : (T[a], memref<3xi64>) -> memref<2x2x4xi16, #hivm.address_space<ub>>
hivm.hir.store ins(%r : memref<2x2x4xi16, #hivm.address_space<ub>>) outs(%out : memref<2x2x4xi16, #hivm.address_space<gm>>)
top 32
== element by element
a = ub 64xf32
b = ub 64xf32
load a
scf.for %i = %c0 to %c64 step %c1 {
%x = memref.load %a[%i] : T[a]
%y = arith.addf %x, %x : f32
memref.store %y, %b[%i] : T[b]
}
store b
top 512
== scalars in buffers
a = ub 1xf32
load a
%x = memref.load %a[%c0] : T[a]
%y = arith.mulf %x, %f1 : f32
b = ub 1xf32
memref.store %y, %b[%c0] : T[b]
c = ub 1xf32
%z = memref.load %b[%c0] : T[b]
%w = math.sqrt %z : f32
memref.store %w, %c[%c0] : T[c]
store c
top 96
== a product of cubes
a = cbuf 16xf32
hivm.hir.nd2nz {dst_continuous} ins(%out : G[a]) outs(%a : T[a])
b = cbuf 16xf32
hivm.hir.nd2nz {dst_continuous} ins(%out : G[b]) outs(%b : T[b])
c = cc 256xf32
hivm.hir.mmadL1 ins(%a, %b, %true, %c16, %c64, %c16 : T[a], T[b], i1, index, index, index) outs(%c : T[c])
hivm.hir.fixpipe {enable_nz2nd} ins(%c : T[c]) outs(%out : G[c])
top 0
== accumulators with two slots, in branches and loops
a = cbuf 64x64xf16
load a
b = cbuf 64x64xf16
load b
scf.for %i = %c0 to %c64 step %c1 {
scf.if %flag {
c = cc 128x128xf32 x2
hivm.hir.mmadL1 ins(%a, %b, %flag, %c64, %c64, %c64 : T[a], T[b], i1, index, index, index) outs(%c : T[c])
hivm.hir.fixpipe ins(%c : T[c]) outs(%out : G[a])
}
scf.if %flag {
d = cc 128x128xf32 x2
hivm.hir.mmadL1 ins(%a, %b, %flag, %c64, %c64, %c64 : T[a], T[b], i1, index, index, index) outs(%d : T[d])
hivm.hir.fixpipe ins(%d : T[d]) outs(%out : G[a])
}
}
scf.for %i = %c0 to %c64 step %c1 {
e = cc 128x128xf32 x2
hivm.hir.mmadL1 ins(%a, %b, %flag, %c64, %c64, %c64 : T[a], T[b], i1, index, index, index) outs(%e : T[e])
hivm.hir.fixpipe ins(%e : T[e]) outs(%out : G[a])
}
top 0
== larger than the memory
a = ub 60000xf32
load a
b = ub 60000xf16
hivm.hir.vcast ins(%a : T[a]) outs(%b : T[b]) round_mode = #hivm.round_mode<trunc>
store b
fails 3 ub overflow, requires 1920000 bits while 1572864 bits available!
== two of which only one fits
a = ub 30000xf32
b = ub 30000xf32
load a
load b
%x = memref.load %a[%c0] : T[a]
%y = memref.load %b[%c4] : T[b]
%z = arith.mulf %x, %y : f32
c = ub 30000xf32
memref.store %z, %c[%c0] : T[c]
fails 3 ub overflow, requires 1920000 bits while 1572864 bits available!
== other buffers in each branch
a = ub 64xi32
b = ub 64xi32
load a
load b
c = ub 64xi32
hivm.hir.vand ins(%a, %b : T[a], T[b]) outs(%c : T[c])
scf.if %flag {
d = ub 64xi64
hivm.hir.vcast ins(%c : T[c]) outs(%d : T[d])
store d
} else {
e = ub 64xf32
load e
f = ub 64xf32
hivm.hir.vmul ins(%e, %f1 : T[e], f32) outs(%f : T[f])
g = ub 64xi64
hivm.hir.vcast ins(%c : T[c]) outs(%g : T[g])
store g
}
top 1792
== read before it is written
a = ub 8x2xf32
b = ub 8x1xf32
hivm.hir.vdeinterleave ins(%a : T[a]) outs(%b : T[b]) channel_num = 2 index_mode = <CHANNEL_0>
store b
fails 1 is read before anything is written to it
== a column is broadcast
a = ub 16x32xf32
b = ub 16x1xf32
load a
load b
c = ub 16x32xf32
t = ub 128xf32
hivm.hir.vsub ins(%a, %b : T[a], T[b]) outs(%c : T[c]) temp_buffer(%t : T[t]) broadcast = [1]
store c
top 2624
== a column in front is broadcast
a = ub 16x1xf32
b = ub 16x32xf32
load a
load b
c = ub 16x32xf32
t = ub 128xf32
hivm.hir.vsub ins(%a, %b : T[a], T[b]) outs(%c : T[c]) temp_buffer(%t : T[t]) broadcast = [1]
store c
top 2624
== a quotient with a temporary buffer of the same size
a = ub 16xf32
load a
b = ub 16xf32
t = ub 16xf32
hivm.hir.vdiv ins(%a, %f1 : T[a], f32) outs(%b : T[b]) temp_buffer(%t : T[t])
store b
top 128
== both are broadcast: no place is shared
a = ub 4x1x16xf32
b = ub 4x1x16xf32
load a
load b
c = ub 4x16x16xf32
t = ub 256xf32
hivm.hir.vmul ins(%a, %b : T[a], T[b]) outs(%c : T[c]) temp_buffer(%t : T[t]) broadcast = [1]
store c
top 5632
== whole views of sizes that are constants
a = ub 64xi16
b = ub 64xi16
%va = memref.subview %a[0] [%c64] [1] : T[a] to memref<?xi16, #hivm.address_space<ub>>
%vb = memref.subview %b[0] [%c64] [1] : T[b] to memref<?xi16, #hivm.address_space<ub>>
hivm.hir.load ins(%dyn : memref<?xi16, #hivm.address_space<gm>>) outs(%va : memref<?xi16, #hivm.address_space<ub>>)
hivm.hir.load ins(%dyn : memref<?xi16, #hivm.address_space<gm>>) outs(%vb : memref<?xi16, #hivm.address_space<ub>>)
c = ub 64xi16
%vc = memref.subview %c[0] [%c64] [1] : T[c] to memref<?xi16, #hivm.address_space<ub>>
t = ub 64xi16
hivm.hir.vmul ins(%va, %vb : memref<?xi16, #hivm.address_space<ub>>, memref<?xi16, #hivm.address_space<ub>>) outs(%vc : memref<?xi16, #hivm.address_space<ub>>) temp_buffer(%t : T[t]) broadcast = [0]
hivm.hir.store ins(%vc : memref<?xi16, #hivm.address_space<ub>>) outs(%dyn : memref<?xi16, #hivm.address_space<gm>>)
top 384
== views of sizes known at run time
a = ub 512xi8
b = ub 512xi8
%n = memref.dim %dyn, %c0 : memref<?xi16, #hivm.address_space<gm>>
%va = memref.view %a[%c0][%n] : T[a] to memref<4x?xi16, #hivm.address_space<ub>>
%vb = memref.view %b[%c0][%n] : T[b] to memref<4x?xi16, #hivm.address_space<ub>>
hivm.hir.load ins(%dyn : memref<?xi16, #hivm.address_space<gm>>) outs(%va : memref<4x?xi16, #hivm.address_space<ub>>)
hivm.hir.load ins(%dyn : memref<?xi16, #hivm.address_space<gm>>) outs(%vb : memref<4x?xi16, #hivm.address_space<ub>>)
c = ub 512xi8
%vc = memref.view %c[%c0][%n] : T[c] to memref<4x?xi16, #hivm.address_space<ub>>
hivm.hir.vmul ins(%va, %vb : memref<4x?xi16, #hivm.address_space<ub>>, memref<4x?xi16, #hivm.address_space<ub>>) outs(%vc : memref<4x?xi16, #hivm.address_space<ub>>)
hivm.hir.store ins(%vc : memref<4x?xi16, #hivm.address_space<ub>>) outs(%dyn : memref<?xi16, #hivm.address_space<gm>>)
top 1024
== carried values are selected
a = ub 32xf32
b = ub 32xf32
load a
load b
%r:2 = scf.for %i = %c0 to %c64 step %c1 iter_args(%p = %a, %q = %b) -> (T[a], T[a]) {
%s = arith.select %flag, %p, %q : T[a]
c = ub 32xf32
load c
%t = arith.select %flag, %c, %p : T[a]
%u = arith.select %flag, %q, %c : T[a]
d = ub 32xf32
hivm.hir.copy ins(%t : T[a]) outs(%d : T[a])
e = ub 32xf32
hivm.hir.copy ins(%u : T[a]) outs(%e : T[a])
scf.yield %d, %e : T[a], T[a]
}
top 640
== a while loop of scalars
s = ub 16xf32
%n = scf.while (%k = %i0) : (i32) -> i32 {
%go = arith.cmpi eq, %k, %i1 : i32
scf.condition(%go) %k : i32
} do {
^bb0(%k: i32):
a = ub 16xf32
load a
vadd a a > s
%m = arith.addi %k, %i1 : i32
scf.yield %m : i32
}
store s
top 128
== a while loop passes on what it does not carry
a = ub 16xf32
load a
b = ub 16xf32
load b
%r = scf.while (%k = %a) : (T[a]) -> T[a] {
%go = arith.cmpi eq, %i0, %i1 : i32
scf.condition(%go) %b : T[a]
} do {
^bb0(%m: T[a]):
c = ub 16xf32
load c
d = ub 16xf32
hivm.hir.vadd ins(%m, %c : T[a], T[a]) outs(%d : T[a])
e = ub 16xf32
hivm.hir.vadd ins(%m, %d : T[a], T[a]) outs(%e : T[a])
scf.yield %e : T[a]
}
hivm.hir.store ins(%r#0 : T[a]) outs(%out : G[a])
top 192
== a do-while loop
a = ub 16xf32
load a
%r = scf.while (%k = %a) : (T[a]) -> T[a] {
b = ub 16xf32
load b
c = ub 16xf32
load c
d = ub 16xf32
hivm.hir.vadd ins(%k, %c : T[a], T[a]) outs(%d : T[a])
e = ub 16xf32
vadd b d > e
%go = arith.cmpi eq, %i0, %i1 : i32
scf.condition(%go) %e : T[a]
} do {
^bb0(%m: T[a]):
scf.yield %m : T[a]
}
hivm.hir.store ins(%r#0 : T[a]) outs(%out : G[a])
top 192
== two slots in the body of a while loop
%r = scf.while (%go = %true) : (i1) -> i1 {
scf.condition(%go) %go : i1
} do {
^bb0(%in: i1):
a = ub 8xf32 x2
load a
store a
scf.yield %in : i1
}
top 64
== two slots in the condition of a while loop
%r = scf.while (%go = %true) : (i1) -> i1 {
a = ub 8xf32 x2
load a
store a
scf.condition(%go) %go : i1
} do {
^bb0(%in: i1):
scf.yield %in : i1
}
top 64
== branches between blocks
a = ub 16xf16
load a
cf.cond_br %flag, ^bb1(%a : T[a]), ^bb2(%a : T[a])
^bb1(%p : T[a]):
b = ub 16xf16
load b
c = ub 16xf16
hivm.hir.vadd ins(%p, %b : T[a], T[a]) outs(%c : T[a])
cf.br ^bb3(%c, %p : T[a], T[a])
^bb2(%q : T[a]):
d = ub 16xf16
load d
e = ub 16xf16
hivm.hir.vsub ins(%q, %d : T[a], T[a]) outs(%e : T[a])
cf.br ^bb3(%e, %q : T[a], T[a])
^bb3(%s : T[a], %t : T[a]):
f = ub 16xf16
hivm.hir.vadd ins(%s, %t : T[a], T[a]) outs(%f : T[a])
store f
return
top 128
== a bare mark keeps a buffer
a = ub 4096x8xf32
load a
store a
b = ub 4096x8xf32
load b
store b
annotation.mark %a : T[a]
fails 3 ub overflow, requires 2097152 bits while 1572864 bits available!
== a branch in a branch
a = ub 64xf32
b = ub 64xf32
c = ub 64xf32
d = ub 64xf32
e = ub 64xf32
load a
load c
load d
load e
%r = scf.if %flag -> (T[a]) {
%s = scf.if %flag -> (T[a]) {
scf.yield %a : T[a]
} else {
vadd a d > b
scf.yield %b : T[a]
}
f = ub 64xf32
hivm.hir.copy ins(%s : T[a]) outs(%f : T[a])
scf.yield %f : T[a]
} else {
vadd c e > b
scf.yield %b : T[a]
}
hivm.hir.store ins(%r : T[a]) outs(%out : G[a])
top 1536
== a vector function reads a branch's result
a = ub 64xf32
b = ub 64xf32
load b
hivm.hir.copy ins(%b : T[b]) outs(%a : T[a])
%r = scf.if %flag -> (T[a]) {
%s = scf.if %flag -> (T[a]) {
c = ub 64xf32
load c
scf.yield %c : T[a]
} else {
scf.yield %a : T[a]
}
d = ub 64xf32
hivm.hir.copy ins(%s : T[a]) outs(%d : T[a])
e = ub 64xf32
load e
scf.yield %e : T[a]
} else {
scf.yield %a : T[a]
}
func.call @outlined(%r) {hivm.vector_function, no_inline} : (T[a]) -> ()
top 1280
== scopes hand on a preloaded buffer
z = ub 64xi32
hivm.hir.vbrc ins(%hex : i32) outs(%z : T[z])
scf.for %i = %i0 to %i1 step %i1  : i32 {
a = ub 64xi32
hivm.hir.copy ins(%z : T[z]) outs(%a : T[a])
%r = scf.for %j = %i0 to %i1 step %i1 iter_args(%k = %a) -> (T[a])  : i32 {
%s = scope.scope : () -> (T[a]) {
b = ub 256xi8
load b
c = ub 256xi32
hivm.hir.vcast ins(%b : T[b]) outs(%c : T[c])
store c
d = ub 64xi32
annotation.mark %d {hivm.multi_buffer = 4 : i32, hivm.preload_local_buffer = 1 : i32} : T[d]
scf.for %m = %c0 to %c4 step %c1 {
e = ub 64xi32
load e
hivm.hir.vmax ins(%k, %e : T[a], T[e]) outs(%d : T[d])
}
scope.return %d : T[a]
} {hivm.loop_core_type = #hivm.tcore_type<VECTOR>, hivm.preload_num = 2 : i32, no_inline}
%t = scope.scope : () -> T[a] {
f = ub 64xi32
load f
g = ub 64xi32
hivm.hir.vadd ins(%s, %f : T[a], T[f]) outs(%g : T[g])
scope.return %g : T[a]
} {hivm.loop_core_type = #hivm.tcore_type<VECTOR>, hivm.preload_num = 0 : i32, no_inline}
scf.yield %t : T[a]
}
hivm.hir.store ins(%r : T[a]) outs(%out : G[a])
}
top 4096
== a preloaded buffer lives in its own loop
scf.for %i = %c0 to %c4 step %c1 {
scope.scope : () -> () {
a = ub 49152xi8
annotation.mark %a {
  hivm.multi_buffer = 4 : i32,
  hivm.preload_local_buffer = 1 : i32
} : T[a]
load a
store a
scope.return
}
}
scf.for %i = %c0 to %c4 step %c1 {
scope.scope : () -> () {
b = ub 49152xi8
annotation.mark %b {hivm.multi_buffer = 4 : i32, hivm.preload_local_buffer = 1 : i32} : T[b]
load b
store b
scope.return
}
}
top 196608
== loops in loops that carry
a = ub 64xf32
load a
%r = scf.for %i = %c0 to %c64 step %c1 iter_args(%k = %a) -> (T[a]) {
%s = scf.for %j = %c0 to %c64 step %c1 iter_args(%m = %k) -> (T[a]) {
b = ub 64xf32
hivm.hir.copy ins(%m : T[a]) outs(%b : T[a])
c = ub 64xf32
hivm.hir.copy ins(%b : T[a]) outs(%c : T[a])
scf.yield %c : T[a]
}
%t = scf.if %flag -> (T[a]) {
d = ub 64xf32
hivm.hir.copy ins(%s : T[a]) outs(%d : T[a])
scf.yield %d : T[a]
} else {
e = ub 64xf32
load e
scf.yield %e : T[a]
}
scf.yield %t : T[a]
}
func.call @outlined(%r) {hivm.vector_function, no_inline} : (T[a]) -> ()
top 1024
== branches yield what is outside, in loops
a = ub 64xf32
%flat = memref.collapse_shape %a [[0]] : T[a] into T[a]
load a
%r = scf.if %flag -> (T[a]) {
b = ub 64xf32
vadd a a > b
scf.yield %b : T[a]
} else {
scf.yield %a : T[a]
}
scf.for %i = %c0 to %c64 step %c4 {
%s = scf.if %flag -> (T[a]) {
scf.yield %a : T[a]
} else {
c = ub 64xf32
hivm.hir.vadd ins(%r, %r : T[a], T[a]) outs(%c : T[a])
scf.yield %c : T[a]
}
hivm.hir.vadd ins(%s, %s : T[a], T[a]) outs(%a : T[a])
}
store a
hivm.hir.store ins(%flat : T[a]) outs(%out : G[a])
top 768
== a selection of 64 bits takes its operand's place
a = ub 16xi64
load a
b = ub 16xi64
load b
m = ub 16xi1
hivm.hir.vcmp ins(%a, %l0 : T[a], i64) outs(%m : T[m])
c = ub 16xi64
hivm.hir.vsel ins(%m, %a, %b : T[m], T[a], T[b]) outs(%c : T[c])
store c
top 288
== a selection by a part of a filled mask
m = ub 2048xi1
linalg.fill ins(%l0: i64) outs(%m : T[m])
%p = memref.subview %m[0] [16] [1] : T[m] to memref<16xi1, #hivm.address_space<ub>>
c = ub 16xi64
hivm.hir.vsel ins(%p, %l0, %l0 : memref<16xi1, #hivm.address_space<ub>>, i64, i64) outs(%c : T[c])
store c
top 384
== parts at other offsets share no place
a = ub 8x16x32xf16
load a
%p = memref.subview %a[0, 1, 4] [7, 13, 13] [1, 1, 2] : T[a] to memref<7x13x13xf16, strided<[512, 32, 2], offset: 36>, #hivm.address_space<ub>>
b = ub 8x16x32xf16
%q = memref.subview %b[1, 3, 6] [7, 13, 13] [1, 1, 2] : T[b] to memref<7x13x13xf16, strided<[512, 32, 2], offset: 614>, #hivm.address_space<ub>>
hivm.hir.vabs ins(%p : memref<7x13x13xf16, strided<[512, 32, 2], offset: 36>, #hivm.address_space<ub>>) outs(%q : memref<7x13x13xf16, strided<[512, 32, 2], offset: 614>, #hivm.address_space<ub>>)
hivm.hir.store ins(%q : memref<7x13x13xf16, strided<[512, 32, 2], offset: 614>, #hivm.address_space<ub>>) outs(%out : memref<7x13x13xf16, #hivm.address_space<gm>>)
top 16384
== a debug statement reads
a = ub 16x256xf32
hivm.hir.vbrc ins(%fhex : f32) outs(%a : T[a])
b = ub 128x256xf32
hivm.hir.vbrc ins(%fhex : f32) outs(%b : T[b])
hivm.hir.debug {debugtype = "print", hex = false, prefix = " %a: ", tcoretype = #hivm.tcore_type<CUBE_OR_VECTOR>} %a : T[a]
c = ub 48x256xf32
hivm.hir.vbrc ins(%fhex : f32) outs(%c : T[c])
hivm.hir.debug {debugtype = "print", hex = false, prefix = " %c: ", tcoretype = #hivm.tcore_type<CUBE_OR_VECTOR>} %c : T[c]
hivm.hir.debug {debugtype = "print", hex = false, prefix = " %b: ", tcoretype = #hivm.tcore_type<CUBE_OR_VECTOR>} %b : T[b]
top 196608
== what DMA fills lies over itself where it must
a = ub 32x32x32xf32
load a
store a
b = ub 32x32x32xf32
load b
store b
top 131072
== unique: no other lies there
a = ub 32x32x32xf32
annotation.mark %a {mem_unique} : T[a]
load a
store a
b = ub 32x32x32xf32
load b
store b
fails 3 ub overflow, requires 2097152 bits while 1572864 bits available!
== unique in a branch
a = ub 64xf32
annotation.mark %a {mem_unique} : T[a]
load a
b = ub 64xf32
load b
%r = scf.if %flag -> (T[a]) {
c = ub 64xf32
vadd a b > c
scf.yield %c : T[a]
} else {
scf.yield %a : T[a]
}
hivm.hir.store ins(%r : T[a]) outs(%out : G[a])
top 768
== unique, with two slots
a = ub 16x32xf16
annotation.mark %a {mem_unique, hivm.multi_buffer = 2 : i32} : T[a]
load a
store a
b = ub 16x32xf16
load b
store b
top 3072
== what another core writes
a = ub 64xf32
annotation.mark %a {effects = ["write", "read"], hivm.tightly_coupled_buffer = #hivm.tightly_coupled_buffer<4>} : T[a]
b = ub 64xf32
vexp a > b
store b
top 512
== a vector function in place
a = ub 64xf32
b = ub 64xf32
load a
call @log_of(%a, %b) {hivm.vector_function} : (T[a], T[b]) -> ()
store b
top 256
== its input is read once more
a = ub 64xf32
b = ub 64xf32
load a
call @log_of(%a, %b) {hivm.vector_function} : (T[a], T[b]) -> ()
store b
store a
is 512
== a vector function on the same parts of two buffers
a = ub 128xf32
b = ub 128xf32
%p = memref.subview %a[0] [64] [1] : T[a] to memref<64xf32, #hivm.address_space<ub>>
%q = memref.subview %b[0] [64] [1] : T[b] to memref<64xf32, #hivm.address_space<ub>>
hivm.hir.load ins(%out : memref<64xf32, #hivm.address_space<gm>>) outs(%p : memref<64xf32, #hivm.address_space<ub>>)
call @log_of(%p, %q) {hivm.vector_function} : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
hivm.hir.store ins(%q : memref<64xf32, #hivm.address_space<ub>>) outs(%out : memref<64xf32, #hivm.address_space<gm>>)
top 512
== rows to a narrower type, the better place first
a = ub 64x64xf32
b = ub 64x64xf16
c = ub 64x64xf32
load a
call @rows(%a, %b, %c) {hivm.vector_function} : (T[a], T[b], T[c]) -> ()
store b
store c
top 24576
== rows to a narrower type alone
a = ub 64x64xf32
b = ub 64x64xf16
c = ub 64x64xf32
load a
call @rows(%a, %b, %c) {hivm.vector_function} : (T[a], T[b], T[c]) -> ()
store a
store b
store c
top 40960
== columns are not read where they are written
a = ub 64x64xf32
b = ub 64x64xf32
load a
call @turned(%a, %b) {hivm.vector_function} : (T[a], T[b]) -> ()
store b
is 32768
== an input that is read in each round
a = ub 64x64xf32
b = ub 64x64xf32
load a
call @rounds(%a, %b) {hivm.vector_function} : (T[a], T[b]) -> ()
store b
is 32768
== a workspace that has its place
%w = memref_ext.alloc_workspace() from %ws offset = [%c0] : from memref<?xi8, #hivm.address_space<gm>> to memref<16x16xf16, #hivm.address_space<gm>>
a = ub 16x16xf16
hivm.hir.load ins(%w : memref<16x16xf16, #hivm.address_space<gm>>) outs(%a : T[a])
store a
top 512
== workspaces with and without their place
%w = memref_ext.alloc_workspace() from %ws offset = [%c0] : from memref<?xi8, #hivm.address_space<gm>> to memref<64xf16, #hivm.address_space<gm>>
%v = memref_ext.alloc_workspace() from %ws : from memref<?xi8, #hivm.address_space<gm>> to memref<64xf16, #hivm.address_space<gm>>
fails 1 workspaces with and without an offset in one function
== what is selected is yielded
a = ub 64xf32
load a
b = ub 64xf32
load b
%r = scf.for %i = %c0 to %c4 step %c1 iter_args(%k = %a) -> (T[a]) {
%s = arith.select %flag, %k, %b : T[a]
c = ub 64xf32
hivm.hir.vexp ins(%s : T[a]) outs(%c : T[c])
%t = arith.select %flag, %c, %b : T[a]
scf.yield %t : T[a]
}
hivm.hir.store ins(%r : T[a]) outs(%out : G[a])
fails 1 may be one of several buffers: what is carried or yielded is one
== a scope in a branch in a loop
scf.for %i = %c0 to %c4 step %c1 {
%r = scf.if %flag -> (memref<64xf32, #hivm.address_space<ub>>) {
%s = scope.scope : () -> (memref<64xf32, #hivm.address_space<ub>>) {
a = ub 64xf32
load a
scope.return %a : T[a]
} {no_inline}
scf.yield %s : T[a]
} else {
b = ub 64xf32
load b
scf.yield %b : T[b]
}
hivm.hir.store ins(%r : T[b]) outs(%out : G[b])
}
top 512
"""

HEAD = """memref.global @sizes : memref<3xi64>
func.func private @outlined(memref<64xf32, #hivm.address_space<ub>>)
func.func @log_of(%x: memref<64xf32, #hivm.address_space<ub>>, %y: memref<64xf32, #hivm.address_space<ub>>) attributes {hivm.vector_function, no_inline} {
  %cst = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %0 = vector.transfer_read %x[%c0], %cst {in_bounds = [true]} : memref<64xf32, #hivm.address_space<ub>>, vector<64xf32>
  %1 = math.log %0 : vector<64xf32>
  vector.transfer_write %1, %y[%c0] {in_bounds = [true]} : vector<64xf32>, memref<64xf32, #hivm.address_space<ub>>
  return
}
"""


def nest(name, outs, loops, at):
    """A vector function that writes `outs` from x, element by element along `loops`; at: where x is read."""
    types = {"x": "f32", "y": "f16" if len(outs) > 1 else "f32", "z": "f32"}
    def memref(a):
        return f"memref<64x64x{types[a]}, #hivm.address_space<ub>>"
    args = ", ".join(f"%{a}: {memref(a)}" for a in ("x", *outs))
    lines = [f"func.func @{name}({args}) attributes {{hivm.vector_function}} {{"]
    lines += [f"  %c{n} = arith.constant {n} : index" for n in (0, 1, 2, 64)]
    lines += [f"  scf.for %{i} = %c0 to %c{2 if i == 'r' else 64} step %c1 {{" for i in loops]
    lines.append(f"  %v = memref.load %x[{at}] : {memref('x')}")
    for out in outs:
        value = "%v"
        if types[out] == "f16":
            value = "%w"
            lines.append("  %w = arith.truncf %v : f32 to f16")
        lines.append(f"  memref.store {value}, %{out}[%i, %j] : {memref(out)}")
    return "\n".join(lines + ["  }"] * len(loops) + ["  return", "}", ""])


HEAD += nest("rows", ("y", "z"), "ij", "%i, %j") + nest("turned", ("y",), "ij", "%j, %i") + nest("rounds", ("y",), "rij", "%i, %j")


def type_of(space, shape):
    layout = shape.split(", ", 1)
    return f"memref<{', '.join(layout + [f'#hivm.address_space<{space}>'])}>"


def lines_of(form):
    """MLIR of the body, and what is expected."""
    types, gm, body, want, ends = {}, {}, [], None, False
    for line in form:
        m = re.fullmatch(r"(\w+) = (ub|cbuf|cc) (.*?)(?: x(\d))?", line)
        if m:
            name, space, shape, slots = m.groups()
            types[name], gm[name] = type_of(space, shape), type_of("gm", shape)
            body.append(f"%{name} = memref.alloc() : {types[name]}")
            if slots:
                body.append(f"annotation.mark %{name} {{hivm.multi_buffer = {slots} : i32}} : "
                            f"{types[name]}")
            continue
        if line.startswith(("top ", "is ", "fails ")):
            want = line.split(" ", 1)
            continue
        m = re.fullmatch(r"(load|store) (\w+)", line)
        if m:
            first, second = f"%out : {gm[m[2]]}", f"%{m[2]} : {types[m[2]]}"
            if m[1] == "store":
                first, second = second, first
            line = f"hivm.hir.{m[1]} ins({first}) outs({second})"
        m = re.fullmatch(r"(v\w+) ([\w ]+) > (\w+)", line)
        if m:
            ins = m[2].split()
            line = (f"hivm.hir.{m[1]} ins({', '.join('%' + x for x in ins)} : "
                    f"{', '.join(types[x] for x in ins)}) outs(%{m[3]} : {types[m[3]]})")
        line = re.sub(r"T\[(\w+)\]", lambda m: types[m[1]], line)
        line = re.sub(r"G\[(\w+)\]", lambda m: gm[m[1]], line)
        ends = line.startswith("return")
        body.append(line)
    return body if ends else body + ["return"], want


def function_of(form):
    body, want = lines_of(form)
    result = next((" -> " + x.split(" : ")[1] for x in body if x.startswith("return %")), "")
    args = ("%out: memref<?xi8, #hivm.address_space<gm>>, "
            "%dyn: memref<?xi16, #hivm.address_space<gm>>, "
            "%ws: memref<?xi8, #hivm.address_space<gm>>, %flag: i1")
    lines = [f"func.func @form({args}){result} {{", "  %true = arith.constant true",
             "  %i0 = arith.constant 0 : i32", "  %i1 = arith.constant 1 : i32",
             "  %l0 = arith.constant 0 : i64", "  %f1 = arith.constant 1.0 : f32",
             "  %hex = arith.constant 0xFF8000 : i32",
             "  %fhex = arith.constant 0x00000000 : f32"]
    lines += [f"  %c{n} = arith.constant {n} : index" for n in (0, 1, 4, 8, 16, 64)]
    return HEAD + "\n".join(lines + ["  " + x for x in body] + ["}", ""]), want


def height(table):
    m = re.search(r"^  ub +\d+ +(\d+)", table, re.M)
    return int(m[1]) if m else 0


def stays(tool, folder):
    """A planned text comes out as it was."""
    done = subprocess.run([tool, "plan-memory", f"{folder}/out.mlir", "--function", "form", "-q",
                           "-o", "-"], capture_output=True, text=True, check=False)
    with open(f"{folder}/out.mlir", encoding="utf-8") as f:
        return done.stdout == f.read()


def main():
    tool, folder = sys.argv[1:3]
    forms = [f.split("\n") for f in FORMS.strip().split("== ")[1:]]
    good, bad = 0, []
    for name, *form in forms:
        if len(sys.argv) > 3 and sys.argv[3] not in name:
            continue
        text, (word, rest) = function_of([x for x in form if x])
        with open(f"{folder}/form.mlir", "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run([tool, "plan-memory", f"{folder}/form.mlir", "--function", "form",
                               "-o", f"{folder}/out.mlir"],
                              capture_output=True, text=True, check=False)
        if word == "fails":
            status, message = rest.split(" ", 1)
            ok = done.returncode == int(status) and message in done.stderr
        else:
            ok = done.returncode == 0 and height(done.stdout) <= int(rest)
            ok = ok and (word != "is" or height(done.stdout) == int(rest))
            if ok and not stays(tool, folder):
                bad.append(f"{name}: its plan is planned to something else")
        good += ok
        if not ok:
            last = done.stderr.strip().split("\n")[-1] if done.returncode else \
                f"{height(done.stdout)} bytes"
            bad.append(f"{name}: wanted {word} {rest}: exit {done.returncode}, {last}")
    print("\n".join(bad + [f"{good} forms as wanted, {len(bad)} not"]))
    if bad:
        sys.exit(1)


main()
