/* What the commands that read kernels share: the file, the target. */
#ifndef OT_COMMANDS_KERNEL_FILE_H
#define OT_COMMANDS_KERNEL_FILE_H

#include "tk/planmem/planmem.h"

/* Everything that a file ("-": stdin) holds, in the arena; at most 1 GiB. Fails: OT_E_INPUT
 * (there is no such file, it is too large), OT_E_SYSTEM, OT_E_NOMEM. */
ot_status ot_read_text(const char *path, ot_arena *a, ot_diag *d, char **out,
                       size_t *n) OT_MUST_USE;
/* Does s end so, in large or small letters? */
bool ot_ends_with(const char *s, const char *end);
typedef enum ot_text_kind { OT_TEXT_KERNEL, OT_TEXT_TABLE, OT_TEXT_MLIR } ot_text_kind;
/* How the names of their files end: .tk, .csv, .mlir. */
extern const char *const ot_text_endings[3];
/* What a file holds: by its name, else by how its text begins. */
ot_text_kind ot_text_kind_of(const char *path, const char *text, size_t n);
/* The memories of the target `asked` (NULL: the kernel's own, else this machine). Kernels come
 * from strangers: they name shipped targets, not files. */
ot_status ot_kernel_machine(const ot_kernel *k, const char *path, const char *asked, ot_diag *d,
                            ot_tk_machine *out) OT_MUST_USE;

#endif
