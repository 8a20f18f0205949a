/* Tile kernels: a library of its own (`make tk`: build/libonnxtile_tk.a).
 *
 * A tile kernel says what happens to a tile: loads from slow memory, operations on buffers in
 * memories near to a unit, stores; with loops and branches around them. Buffers have a shape and
 * a memory but no address. The library reads such kernels, finds how long each buffer is needed,
 * gives every buffer its place, and runs, checks or translates the result. It knows nothing of
 * ONNX, of graphs or of who made a kernel.
 *
 *   text (.tk)  --ot_kernel_parse--.                                    .--ot_krun--> results
 *   code        --ot_kernel_build--+--> ot_kernel --ot_mem_plan_kernel--+--ot_kg_make--> OpenCL,
 *   MLIR (HIVM) --ot_mlir_parse----'        |              ^            |                  CUDA C
 *                                           |        ot_tk_machine      '--ot_kernel_print,
 *                                  ot_kaccess_analyse                      ot_mlir_write--> text
 *
 *   language/kernel.h          the language, its parser, checks, printer, builder
 *   planmem/planmem.h          lifetimes and places, memory by memory; tables of buffers
 *   mlir/mlir.h                the same kernels in the form of a compiler's MLIR
 *   access/kernel_access.h     what a kernel's addresses cost: bank conflicts, sectors, granules
 *   interpreter/interpreter.h  runs a planned kernel: the oracle of every other way to run it
 *   codegen/codegen.h          a planned kernel as the program of a device
 *
 * A machine is told by its memories alone: fill an ot_tk_machine (machine/tk_machine.h), name,
 * bytes and alignment of each scope that it has. Everything that is made lives in arenas that
 * one call frees; messages go to an ot_diag, with line and column of the text. Running on
 * devices (device/kernel_device_run.h) needs their drivers and is not part of the library.
 *
 *     ot_kernel *k;
 *     ot_mem_plan *p;
 *     ot_tk_machine m = {.name = "mine", .scopes = {[OT_SCOPE_UB] = {65536, 32}}};
 *     ot_kernel_parse("k.tk", text, strlen(text), &d, &k);
 *     ot_mem_plan_kernel(k, "k.tk", &m, &(ot_mem_options){.threads = 1}, &d, &p);
 *     ot_krun(k, "k.tk", p, &options, &d, &out);
 */
#ifndef OT_TK_TK_H
#define OT_TK_TK_H

#include "tk/access/kernel_access.h"
#include "tk/codegen/codegen.h"
#include "tk/interpreter/interpreter.h"
#include "tk/language/kernel.h"
#include "tk/mlir/mlir.h"
#include "tk/planmem/planmem.h"

#endif
