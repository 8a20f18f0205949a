// run: plan-memory case.mlir -o planned.mlir
// run: plan-memory case.mlir -o planned.mlir --no-inplace
// Blocks whose argument is one of two buffers: the last sum may lie over either, so three places of 32 bytes do for six buffers.
module {
  func.func @diamond(%x: memref<16xf16, #hivm.address_space<gm>>, %y: memref<16xf16, #hivm.address_space<gm>>, %z: memref<16xf16, #hivm.address_space<gm>>, %c: i1) {
    %a = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
    hivm.hir.load ins(%x : memref<16xf16, #hivm.address_space<gm>>) outs(%a : memref<16xf16, #hivm.address_space<ub>>)
    cf.cond_br %c, ^bb1(%a : memref<16xf16, #hivm.address_space<ub>>), ^bb2(%a : memref<16xf16, #hivm.address_space<ub>>)
  ^bb1(%p: memref<16xf16, #hivm.address_space<ub>>):
    %b = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
    hivm.hir.load ins(%y : memref<16xf16, #hivm.address_space<gm>>) outs(%b : memref<16xf16, #hivm.address_space<ub>>)
    %s = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
    hivm.hir.vadd ins(%p, %b : memref<16xf16, #hivm.address_space<ub>>, memref<16xf16, #hivm.address_space<ub>>) outs(%s : memref<16xf16, #hivm.address_space<ub>>)
    cf.br ^bb3(%s : memref<16xf16, #hivm.address_space<ub>>)
  ^bb2(%q: memref<16xf16, #hivm.address_space<ub>>):
    %d = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
    hivm.hir.load ins(%y : memref<16xf16, #hivm.address_space<gm>>) outs(%d : memref<16xf16, #hivm.address_space<ub>>)
    %t = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
    hivm.hir.vsub ins(%q, %d : memref<16xf16, #hivm.address_space<ub>>, memref<16xf16, #hivm.address_space<ub>>) outs(%t : memref<16xf16, #hivm.address_space<ub>>)
    cf.br ^bb3(%t : memref<16xf16, #hivm.address_space<ub>>)
  ^bb3(%r: memref<16xf16, #hivm.address_space<ub>>):
    %u = memref.alloc() : memref<16xf16, #hivm.address_space<ub>>
    hivm.hir.vadd ins(%r, %r : memref<16xf16, #hivm.address_space<ub>>, memref<16xf16, #hivm.address_space<ub>>) outs(%u : memref<16xf16, #hivm.address_space<ub>>)
    hivm.hir.store ins(%u : memref<16xf16, #hivm.address_space<ub>>) outs(%z : memref<16xf16, #hivm.address_space<gm>>)
    return
  }
}
