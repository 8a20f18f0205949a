/* Slice relation of Einsum: a label of the result is cut in every operand that has it.
 *
 *   "bij,jk->bik"      i of operand 0, k of operand 1, b of operand 0; j is summed up: whole
 *   "...ij,...jk"      what "..." covers has labels, too, counted from its end as they broadcast:
 *                      [8,1,i,j] and [4,j,k] are  B A i j  and  A j k
 *   "iij->ij"          a label that an operand has twice (a diagonal) is not cut, others are
 */
#include "access_same.h"

/* One letter per axis; what "..." covers has numbers from 1 on, counted from its end. */
typedef struct term {
    char label[OT_RANK_MAX];
    uint32_t n;
    int32_t dots; /* labels in front of "..."; -1: there is none */
} term;

typedef struct equation {
    term in[OT_ACC_ARITY], out;
    bool arrow;
} equation;

static bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static uint32_t count_of(const term *t, char c)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < t->n; k++) count += t->label[k] == c;
    return count;
}

/* Split "ij,jk->ik" into terms. */
static bool read_terms(const char *text, uint32_t n_in, equation *e, ot_why *why)
{
    uint32_t k = 0;
    e->out.dots = -1;
    for (uint32_t i = 0; i < n_in; i++) e->in[i].dots = -1;
    for (const char *c = text; *c; c++) {
        term *t = e->arrow ? &e->out : &e->in[k];
        if (*c == ' ') continue;
        if (*c == ',' && !e->arrow && k + 1 < n_in) {
            k++;
        } else if (c[0] == '-' && c[1] == '>' && !e->arrow) {
            e->arrow = true;
            c++;
        } else if (strncmp(c, "...", 3) == 0 && t->dots < 0) {
            t->dots = (int32_t)t->n;
            c += 2;
        } else if (is_label(*c) && t->n < OT_RANK_MAX) {
            t->label[t->n++] = *c;
        } else {
            return ot_acc_refuse(why, OT_WHY_EINSUM_MALFORMED);
        }
    }
    return k + 1 == n_in ? true : ot_acc_refuse(why, OT_WHY_EINSUM_OPERANDS);
}

/* Labels of the `covered` axes that "..." stands for. */
static bool cover(term *t, uint32_t covered)
{
    if (t->dots < 0 || t->n + covered > OT_RANK_MAX) return t->dots < 0 && covered == 0;
    const uint32_t at = (uint32_t)t->dots;
    memmove(t->label + at + covered, t->label + at, t->n - at);
    for (uint32_t k = 0; k < covered; k++) t->label[at + k] = (char)(covered - k);
    t->n += covered;
    return true;
}

/* No "->": what "..." covers, and the labels that occur once, in the order of the alphabet. */
static bool imply_result(equation *e, uint32_t n_in)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (uint32_t k = 0; k < n_in; k++)
        if (e->in[k].dots >= 0) e->out.dots = 0;
    for (const char *c = letters; *c; c++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < n_in; k++) count += count_of(&e->in[k], *c);
        if (count != 1) continue;
        if (e->out.n == OT_RANK_MAX) return false;
        e->out.label[e->out.n++] = *c;
    }
    return true;
}

/* A label for every axis of every operand and of the result. */
static bool read_equation(const ot_graph *g, const ot_node *n, equation *e, ot_why *why)
{
    const char *text = ot_attr_str(n, "equation", NULL);
    uint32_t most = 0;
    if (!text || n->n_in == 0) return ot_acc_refuse(why, OT_WHY_EINSUM_MISSING);
    if (!read_terms(text, n->n_in, e, why)) return false;
    if (!e->arrow && !imply_result(e, n->n_in)) return ot_acc_refuse(why, OT_WHY_EINSUM_OPERANDS);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *v = ot_acc_in(g, n, k);
        if (!v || (uint32_t)v->rank < e->in[k].n) return ot_acc_refuse(why, OT_WHY_EINSUM_OPERANDS);
        const uint32_t covered = (uint32_t)v->rank - e->in[k].n;
        if (!cover(&e->in[k], covered)) return ot_acc_refuse(why, OT_WHY_EINSUM_OPERANDS);
        if (covered > most) most = covered;
    }
    return cover(&e->out, most) ? true : ot_acc_refuse(why, OT_WHY_EINSUM_RESULT);
}

static bool einsum_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    equation e = {.arrow = false};
    bool any = false;
    (void)out_axis;
    if (!ot_acc_regular(g, n, why) || !read_equation(g, n, &e, why)) return false;
    if (e.out.n != (uint32_t)out->rank) return ot_acc_refuse(why, OT_WHY_EINSUM_RESULT);
    const char label = e.out.label[axis];
    if (count_of(&e.out, label) != 1) return ot_acc_refuse(why, OT_WHY_EINSUM_MALFORMED);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const uint32_t times = count_of(&e.in[k], label);
        if (times == 0) continue;
        if (times > 1) return ot_acc_refuse(why, OT_WHY_EINSUM_DIAGONAL);
        const char *at = memchr(e.in[k].label, label, e.in[k].n);
        int32_t ax = (int32_t)(at - e.in[k].label);
        const int64_t extent = ot_acc_in(g, n, k)->dims[ax];
        if (extent != out->dims[axis]) ax = extent == 1 ? OT_AX_WHOLE : OT_AX_BAD;
        if (!ot_acc_set(in_axis, k, ax, why)) return false;
        any = any || ax >= 0;
    }
    return any ? true : ot_acc_refuse(why, OT_WHY_EINSUM_NO_OPERAND);
}

const ot_access_ops ot_access_einsum = {einsum_axis, NULL, NULL};
