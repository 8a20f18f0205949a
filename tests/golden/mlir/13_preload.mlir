// run: plan-memory case.mlir -o planned.mlir --mode search
// A buffer with a preload mark is alive throughout its loop: c may not lie over it, though it is read no more.
module {
  func.func @preload(%x : memref<16xf16, #hivm.address_space<gm>>, %y : memref<16xf16, #hivm.address_space<gm>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %a = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
      annotation.mark %a {hivm.multi_buffer = 3 : i32, hivm.preload_local_buffer = 1 : i32} : memref<16xf16, #hivm.address_space<ub>>
      hivm.hir.load ins(%x : memref<16xf16, #hivm.address_space<gm>>) outs(%a : memref<16xf16, #hivm.address_space<ub>>)
      %b = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
      hivm.hir.vexp ins(%a : memref<16xf16, #hivm.address_space<ub>>) outs(%b : memref<16xf16, #hivm.address_space<ub>>)
      %c = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
      hivm.hir.vtranspose ins(%b : memref<16xf16, #hivm.address_space<ub>>) outs(%c : memref<16xf16, #hivm.address_space<ub>>)
      hivm.hir.store ins(%c : memref<16xf16, #hivm.address_space<ub>>) outs(%y : memref<16xf16, #hivm.address_space<gm>>)
    }
    return
  }
}
