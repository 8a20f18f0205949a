/* Names that emscripten lacks: `PLATFORM=wasm` puts this header before every file (-include). */
#ifndef OT_BASE_PORT_WASM_H
#define OT_BASE_PORT_WASM_H

/* sysconf knows none such and says so. */
#define _SC_LEVEL2_CACHE_SIZE (-1)
#define _SC_LEVEL3_CACHE_SIZE (-1)
#endif
