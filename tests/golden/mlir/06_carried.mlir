// run: plan-memory case.mlir -o planned.mlir
// Carried values: one place for init, argument, what is yielded and the result; scalars take none. A while loop, and views.
func.func @carried(%x : memref<16x16x16xf16, #hivm.address_space<gm>>, %y : memref<16x16x16xf16, #hivm.address_space<gm>>, %true : i1) -> memref<16x16x16xf16, #hivm.address_space<ub>> {
  %0 = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  %1 = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  %2 = memref.alloc() : memref<16x16x16xf16, #hivm.address_space<ub>>
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  hivm.hir.load ins(%x : memref<16x16x16xf16, #hivm.address_space<gm>>) outs(%0 : memref<16x16x16xf16, #hivm.address_space<ub>>)
  hivm.hir.load ins(%x : memref<16x16x16xf16, #hivm.address_space<gm>>) outs(%1 : memref<16x16x16xf16, #hivm.address_space<ub>>)
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %1, %n = %c0) -> (memref<16x16x16xf16, #hivm.address_space<ub>>, index) {
    hivm.hir.vadd ins(%acc, %0 : memref<16x16x16xf16, #hivm.address_space<ub>>, memref<16x16x16xf16, #hivm.address_space<ub>>) outs(%2 : memref<16x16x16xf16, #hivm.address_space<ub>>)
    %m = arith.addi %n, %i : index
    scf.yield %2, %m : memref<16x16x16xf16, #hivm.address_space<ub>>, index
  }
  %w:2 = scf.while (%p = %r#0, %go = %true) : (memref<16x16x16xf16, #hivm.address_space<ub>>, i1) -> (memref<16x16x16xf16, #hivm.address_space<ub>>, i1) {
    scf.condition(%go) %p, %go : memref<16x16x16xf16, #hivm.address_space<ub>>, i1
  } do {
  ^bb0(%q: memref<16x16x16xf16, #hivm.address_space<ub>>, %still: i1):
    %flat = memref.collapse_shape %q [[0, 1], [2]] : memref<16x16x16xf16, #hivm.address_space<ub>> into memref<256x16xf16, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%flat : memref<256x16xf16, #hivm.address_space<ub>>) outs(%flat : memref<256x16xf16, #hivm.address_space<ub>>)
    scf.yield %q, %still : memref<16x16x16xf16, #hivm.address_space<ub>>, i1
  }
  return %w#0 : memref<16x16x16xf16, #hivm.address_space<ub>>
}
