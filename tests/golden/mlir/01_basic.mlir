// run: plan-memory case.mlir -o planned.mlir
// run: plan-memory case.mlir -o planned.mlir --no-inplace
// A load, two sums in place and a store: one address does for all, in place forbidden each has its own.
module {
  func.func @basic(%src : memref<16x16x16xf16, #hivm.address_space<gm>>, %dst : memref<16x16x16xf16, #hivm.address_space<gm>>) {
    %copy_in = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
    %sum = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
    %copy_out = memref.alloc() {alignment = 64 : i64} : memref<16x16x16xf16, #hivm.address_space<ub>>
    hivm.hir.load ins(%src : memref<16x16x16xf16, #hivm.address_space<gm>>)
                  outs(%copy_in : memref<16x16x16xf16, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%copy_in, %copy_in : memref<16x16x16xf16, #hivm.address_space<ub>>, memref<16x16x16xf16, #hivm.address_space<ub>>)
                  outs(%sum : memref<16x16x16xf16, #hivm.address_space<ub>>)
    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    hivm.hir.vadd ins(%sum, %sum : memref<16x16x16xf16, #hivm.address_space<ub>>, memref<16x16x16xf16, #hivm.address_space<ub>>)
                  outs(%copy_out : memref<16x16x16xf16, #hivm.address_space<ub>>)
    hivm.hir.store ins(%copy_out : memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%dst : memref<16x16x16xf16, #hivm.address_space<gm>>)
    return
  }
}
