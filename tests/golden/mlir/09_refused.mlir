// run: plan-memory case.mlir -o planned.mlir
// run: plan-memory case.mlir -o planned.tk
// run: plan-memory case.mlir --size n=3
// What is outside of the subset: line and column, exit 1. Options that are for other files: exit 2.
module {
  func.func @k(%x : memref<1024xi8, #hivm.address_space<gm>>) {
    %a = memref.alloc() : memref<1024xi8, #hivm.address_space<ub>>
    hivm.hir.load ins(%x : memref<1024xi8, #hivm.address_space<gm>>) outs(%a : memref<1024xi8, #hivm.address_space<ub>>)
    %t = bufferization.to_tensor %a : memref<1024xi8, #hivm.address_space<ub>>
    return
  }
}
