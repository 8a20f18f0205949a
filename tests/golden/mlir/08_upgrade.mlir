// run: plan-memory case.mlir -o planned.mlir --capacity 2560
// Level 1: %C does not fit into the place of %B. It shares with the double buffer %A of the same loop and becomes double itself: two addresses, and a mark.
func.func @upgrade(%x : memref<1024xi8, #hivm.address_space<gm>>, %y : memref<1024xi8, #hivm.address_space<gm>>, %z : memref<1024xi8, #hivm.address_space<gm>>, %c : i8) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %A = memref.alloc() : memref<1024xi8, #hivm.address_space<ub>>
    annotation.mark %A {hivm.multi_buffer = 2 : i32} : memref<1024xi8, #hivm.address_space<ub>>
    %B = memref.alloc() : memref<512xi8, #hivm.address_space<ub>>
    %C = memref.alloc() : memref<1024xi8, #hivm.address_space<ub>>
    %D = memref.alloc() : memref<1024xi8, #hivm.address_space<ub>>
    annotation.mark %D {hivm.multi_buffer = 2 : i32} : memref<1024xi8, #hivm.address_space<ub>>
    hivm.hir.load ins(%x : memref<1024xi8, #hivm.address_space<gm>>) outs(%A : memref<1024xi8, #hivm.address_space<ub>>)
    hivm.hir.store ins(%A : memref<1024xi8, #hivm.address_space<ub>>) outs(%y : memref<1024xi8, #hivm.address_space<gm>>)
    hivm.hir.vbrc ins(%c : i8) outs(%B : memref<512xi8, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%B : memref<512xi8, #hivm.address_space<ub>>) outs(%B : memref<512xi8, #hivm.address_space<ub>>)
    hivm.hir.vbrc ins(%c : i8) outs(%C : memref<1024xi8, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%C : memref<1024xi8, #hivm.address_space<ub>>) outs(%C : memref<1024xi8, #hivm.address_space<ub>>)
    hivm.hir.load ins(%z : memref<1024xi8, #hivm.address_space<gm>>) outs(%D : memref<1024xi8, #hivm.address_space<ub>>)
    hivm.hir.store ins(%D : memref<1024xi8, #hivm.address_space<ub>>) outs(%z : memref<1024xi8, #hivm.address_space<gm>>)
  }
  return
}
