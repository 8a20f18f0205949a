#include "region_program.h"
bool inner_has(const ot_target *t) { return (void)t, false; }
ot_status inner_op(prog *p, const prog_op *op) { return prog_statement(p, op); }
