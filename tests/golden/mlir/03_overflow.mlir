// run: plan-memory case.mlir -o planned.mlir --capacity 16K
// The compiler's message, with loc(...); exit 3 and no file.
  func.func @loop(%x : memref<2048xf32, #hivm.address_space<gm>>, %y : memref<2048xf32, #hivm.address_space<gm>>) {
    %c0 = arith.constant 0 : index
    %c1024 = arith.constant 1024 : index
    %c128 = arith.constant 128 : index
    scf.for %iv = %c0 to %c1024 step %c128 {
      %in = memref.alloc() : memref<2048xf32, #hivm.address_space<ub>>
      annotation.mark %in {hivm.multi_buffer = 2 : i32} : memref<2048xf32, #hivm.address_space<ub>>
      %out = memref.alloc() : memref<2048xf32, #hivm.address_space<ub>>
      %t = memref.alloc() : memref<2048xf32, #hivm.address_space<ub>>
      %u = memref.alloc() : memref<2048xf32, #hivm.address_space<ub>>
      annotation.mark %out {hivm.multi_buffer = 2 : i32} : memref<2048xf32, #hivm.address_space<ub>>
      hivm.hir.load ins(%x : memref<2048xf32, #hivm.address_space<gm>>) outs(%in : memref<2048xf32, #hivm.address_space<ub>>)
      hivm.hir.vtranspose ins(%in : memref<2048xf32, #hivm.address_space<ub>>) outs(%t : memref<2048xf32, #hivm.address_space<ub>>) permutation = [0]
      hivm.hir.vtranspose ins(%t : memref<2048xf32, #hivm.address_space<ub>>) outs(%u : memref<2048xf32, #hivm.address_space<ub>>) permutation = [0]
      hivm.hir.vtranspose ins(%u : memref<2048xf32, #hivm.address_space<ub>>) outs(%out : memref<2048xf32, #hivm.address_space<ub>>) permutation = [0]
      hivm.hir.store ins(%out : memref<2048xf32, #hivm.address_space<ub>>) outs(%y : memref<2048xf32, #hivm.address_space<gm>>)
    }
    return
  }
