/* Whose behaviour a table speaks of: bits of runtimes. */
#ifndef OT_ANALYSE_QUIRKS_H
#define OT_ANALYSE_QUIRKS_H
#define OT_BY_ONNXRUNTIME 1u
#define OT_BY_ENGINE      2u
#define OT_BY_DEVICE      4u
#define OT_BY_CHECKER     8u
#endif
