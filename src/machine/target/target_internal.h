/* Between the target files (private to src/plan): presets, this machine, XML. */
#ifndef OT_MACHINE_TARGET_TARGET_INTERNAL_H
#define OT_MACHINE_TARGET_TARGET_INTERNAL_H

#include "target.h"

#define OT_TARGET_CORES_MAX 4096

/* A preset and whether its rates are those of one core (then they scale with the thread count). */
typedef struct ot_target_preset {
    ot_target target;
    bool per_core;
} ot_target_preset;

/* [*n] presets in the order they are listed. */
const ot_target_preset *ot_target_presets(size_t *n);

/* Multiply rates and bandwidths of one core by `cores`. Slow and mid memory are shared: they
 * saturate at four cores' worth. A tile still has to fit one core's fast memory. */
void ot_target_scale(ot_target *t, uint32_t cores);

/* This machine; threads 0: every core we may run on. */
void ot_target_host(uint32_t threads, ot_target *t);

/* target_scopes.c: bytes of l2 and gm from the fast and slow memory; standard alignments where
 * there is none yet. */
void ot_target_fill_scopes(ot_target *t);
/* Standard alignment of a scope in bytes. */
int64_t ot_target_scope_alignment(ot_scope s);

/* target_runtime.c: the overheads that a loaded target says, those of its own runtime, become
 * `said`; says: it has some. Then those of the runtime are in force. */
void ot_target_fill_overheads(ot_target *t, bool says);

/* target_factors.c: the runtime r, with the factors that the target's file has for it. */
const ot_runtime *ot_target_runtime_of_file(const ot_target *t, const ot_runtime *r);
/* The target's runtime as it is without a file's factors. */
const ot_runtime *ot_target_plain_runtime(const ot_target *t);

/* Read and check an XML file. */
ot_status ot_target_read_xml(const char *path, ot_diag *diag, ot_target *t) OT_MUST_USE;

#endif
