// run: plan-memory case.mlir -o planned.mlir
// run: plan-memory case.mlir -o planned.mlir --mem-plan-mode local -q
// run: plan-memory case.mlir -o planned.mlir --mem-plan-mode workspace --workspace-reuse
// A product goes to the vector unit through global memory, twice. Both plan modes, and each by itself.
#map = affine_map<()[s0] -> (s0 * 16)>
module attributes {hacc.target = #hacc.target<"Ascend910B1">} {
  func.func private @other(memref<?xi8>, i64) -> i32
  func.func @cv(%arg0: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %ws: memref<?xi8> {hacc.arg_type = #hacc.arg_type<workspace>},
                %a: memref<128x128xf16, #hivm.address_space<gm>>, %b: memref<128x128xf16, #hivm.address_space<gm>>, %y: memref<128x128xf32, #hivm.address_space<gm>>)
      attributes {hacc.entry, hivm.func_core_type = #hivm.func_core_type<MIX>} {
    hivm.hir.set_ffts_base_addr %arg0
    hivm.hir.set_mask_norm
    %true = arith.constant true
    %c128 = arith.constant 128 : index
    %0 = hivm.hir.get_block_idx -> i64
    %1 = arith.index_cast %0 : i64 to index
    %2 = affine.apply #map()[%1]
    %w0 = memref_ext.alloc_workspace() from %ws : from memref<?xi8> to memref<128x128xf32, #hivm.address_space<gm>>
    %w1 = memref_ext.alloc_workspace() : memref<128x128xf32, #hivm.address_space<gm>>
    %l1a = memref.alloc() : memref<8x8x16x16xf16, #hivm.address_space<cbuf>>
    %l1b = memref.alloc() : memref<8x8x16x16xf16, #hivm.address_space<cbuf>>
    %l0c = memref.alloc() : memref<8x8x16x16xf32, #hivm.address_space<cc>>
    %u = memref.alloc() : memref<64x128xf32, #hivm.address_space<ub>>
    hivm.hir.nd2nz {dst_continuous} ins(%a : memref<128x128xf16, #hivm.address_space<gm>>) outs(%l1a : memref<8x8x16x16xf16, #hivm.address_space<cbuf>>)
    hivm.hir.nd2nz {dst_continuous} ins(%b : memref<128x128xf16, #hivm.address_space<gm>>) outs(%l1b : memref<8x8x16x16xf16, #hivm.address_space<cbuf>>)
    hivm.hir.mmadL1 ins(%l1a, %l1b, %true, %c128, %c128, %c128 : memref<8x8x16x16xf16, #hivm.address_space<cbuf>>, memref<8x8x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index)
                    outs(%l0c : memref<8x8x16x16xf32, #hivm.address_space<cc>>)
    hivm.hir.fixpipe {enable_nz2nd} ins(%l0c : memref<8x8x16x16xf32, #hivm.address_space<cc>>) outs(%w0 : memref<128x128xf32, #hivm.address_space<gm>>)
    hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_MTE2>] flag = 1
    %half = memref.subview %w0[%2, 0] [64, 128] [1, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<64x128xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.load ins(%half : memref<64x128xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>) outs(%u : memref<64x128xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%u : memref<64x128xf32, #hivm.address_space<ub>>) outs(%u : memref<64x128xf32, #hivm.address_space<ub>>)
    %out = memref.subview %y[%2, 0] [64, 128] [1, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<64x128xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.store ins(%u : memref<64x128xf32, #hivm.address_space<ub>>) outs(%out : memref<64x128xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>)
    hivm.hir.mmadL1 ins(%l1b, %l1a, %true, %c128, %c128, %c128 : memref<8x8x16x16xf16, #hivm.address_space<cbuf>>, memref<8x8x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index)
                    outs(%l0c : memref<8x8x16x16xf32, #hivm.address_space<cc>>)
    hivm.hir.fixpipe {enable_nz2nd} ins(%l0c : memref<8x8x16x16xf32, #hivm.address_space<cc>>) outs(%w1 : memref<128x128xf32, #hivm.address_space<gm>>)
    return
  }
}
