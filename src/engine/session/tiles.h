/* Operators of domain onnx_tile: what prog.c has to know of them. */
#ifndef OT_ENGINE_TILES_H
#define OT_ENGINE_TILES_H

#include "engine/core/engine.h"

/* Their kernel before lowering takes them out. */
ot_status ot_run_tile_op(ot_call *c);

#endif
