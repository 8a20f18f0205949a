// run: plan-memory case.mlir -o planned.mlir
// run: plan-memory case.mlir -o planned.mlir --capacity 8K
// Scopes, a fill, a copy, a size and a look at values: the first buffer is alive until the copy, the copy until it is looked at.
module {
  func.func @scopes(%src : memref<16x64xf32, #hivm.address_space<gm>>, %dst : memref<16x64xf32, #hivm.address_space<gm>>) {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %first = memref.alloc() : memref<16x64xf32, #hivm.address_space<ub>>
    %second = memref.alloc() : memref<16x64xf32, #hivm.address_space<ub>>
    scope.scope : () -> () {
      linalg.fill {block = 1 : i32} ins(%zero : f32) outs(%first : memref<16x64xf32, #hivm.address_space<ub>>)
      %n = memref.dim %first, %c1 : memref<16x64xf32, #hivm.address_space<ub>>
      scf.for %i = %c1 to %n step %c1 {
        scope.scope : () -> () {
          %local = memref.alloc() : memref<16x64xf32, #hivm.address_space<ub>>
          hivm.hir.load ins(%src : memref<16x64xf32, #hivm.address_space<gm>>) outs(%local : memref<16x64xf32, #hivm.address_space<ub>>)
          hivm.hir.vadd ins(%first, %local : memref<16x64xf32, #hivm.address_space<ub>>, memref<16x64xf32, #hivm.address_space<ub>>)
                        outs(%first : memref<16x64xf32, #hivm.address_space<ub>>)
          scope.return
        } {tcore_type = #hivm.tcore_type<VECTOR>}
      }
      memref.copy %first, %second : memref<16x64xf32, #hivm.address_space<ub>> to memref<16x64xf32, #hivm.address_space<ub>>
      scope.return
    }
    hivm.hir.store ins(%second : memref<16x64xf32, #hivm.address_space<ub>>) outs(%dst : memref<16x64xf32, #hivm.address_space<gm>>)
    hivm.hir.debug {debugtype = "print", hex = false, prefix = " second: "} %second : memref<16x64xf32, #hivm.address_space<ub>>
    return
  }
}
