// run: plan-memory case.mlir -o planned.mlir
// A planned text: %C was marked as one buffer, and level 1 doubled it. The mark of one says nothing beside the other.
func.func @mark(%x : memref<1024xi8, #hivm.address_space<gm>>, %y : memref<1024xi8, #hivm.address_space<gm>>) {
  %c0_i64 = arith.constant 0 : i64
  %c1024_i64 = arith.constant 1024 : i64
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %C = hivm.hir.pointer_cast(%c0_i64, %c1024_i64) : memref<1024xi8, #hivm.address_space<ub>>
    annotation.mark %C {hivm.multi_buffer = 2 : i32} : memref<1024xi8, #hivm.address_space<ub>>
    annotation.mark %C {hivm.multi_buffer = 1 : i32} : memref<1024xi8, #hivm.address_space<ub>>
    hivm.hir.load ins(%x : memref<1024xi8, #hivm.address_space<gm>>) outs(%C : memref<1024xi8, #hivm.address_space<ub>>)
    hivm.hir.store ins(%C : memref<1024xi8, #hivm.address_space<ub>>) outs(%y : memref<1024xi8, #hivm.address_space<gm>>)
  }
  return
}
