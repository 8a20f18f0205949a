// run: plan-memory case.mlir -o planned.mlir
// What is planned already keeps its addresses; the new buffer goes beside it. The name %c8256_i64 is taken.
func.func @again(%x : memref<16x16x16xf16, #hivm.address_space<gm>>, %y : memref<16x16x16xf16, #hivm.address_space<gm>>) {
  %c8256_i64 = arith.constant 8192 : i64
  %c64 = arith.constant 64 : i64
  %a = hivm.hir.pointer_cast(%c64) : memref<16x16x16xf16, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  hivm.hir.load ins(%x : memref<16x16x16xf16, #hivm.address_space<gm>>) outs(%a : memref<16x16x16xf16, #hivm.address_space<ub>>)
  hivm.hir.vtranspose ins(%a : memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%b : memref<16x16x16xf16, #hivm.address_space<ub>>) permutation = [1, 0, 2]
  hivm.hir.store ins(%b : memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%y : memref<16x16x16xf16, #hivm.address_space<gm>>)
  return
}
