// run: plan-memory case.mlir -o planned.mlir
// What a branch gives back shares its place with what both branches made.
func.func @branch(%x : memref<16x16x16xf16, #hivm.address_space<gm>>, %y : memref<16x16x16xf16, #hivm.address_space<gm>>, %cond : i1) {
  %a = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  %c = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  hivm.hir.load ins(%x : memref<16x16x16xf16, #hivm.address_space<gm>>) outs(%a : memref<16x16x16xf16, #hivm.address_space<ub>>)
  %r = scf.if %cond -> (memref<16x16x16xf16, #hivm.address_space<ub>>) {
    hivm.hir.vtranspose ins(%a : memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%b : memref<16x16x16xf16, #hivm.address_space<ub>>) permutation = [1, 0, 2]
    scf.yield %b : memref<16x16x16xf16, #hivm.address_space<ub>>
  } else {
    hivm.hir.vtranspose ins(%a : memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%c : memref<16x16x16xf16, #hivm.address_space<ub>>) permutation = [0, 2, 1]
    scf.yield %c : memref<16x16x16xf16, #hivm.address_space<ub>>
  }
  hivm.hir.store ins(%r : memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%y : memref<16x16x16xf16, #hivm.address_space<gm>>)
  return
}
