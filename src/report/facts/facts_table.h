/* The shape of the facts as tables: which member of which struct has which name in
 * machine-readable reports.
 *
 *   FACTS_REPORT  fields: tool-version, kind, model, ...            one table, three users:
 *     lists: cards    --> card    fields: id, title, unit, ...        facts_write.c  facts --> sink
 *                                                                                    (XML, JSON)
 *            nodes    --> node    fields: name, op, region, ...       xml_read.c     XML --> facts
 *            regions  --> region  fields: ...; members; dims          csv_report.c   columns of the
 *              lists: candidates --> candidate  fields: ...; dims                    region table
 *            ...
 *
 * So XML and JSON hold the same facts under the same names (JSON and CSV with '_' for '-'), and
 * what is read is what was written. Names carry the unit. reports/benefit.xsd describes them all
 * and is to be changed together with the tables.
 */
#ifndef OT_REPORT_FACTS_FACTS_TABLE_H
#define OT_REPORT_FACTS_FACTS_TABLE_H

#include "facts.h"

#include "base/json.h"

#define FACT_WORD_SIZE 32
#define FACTS_FORMAT   "1" /* version of the form; grows when a name goes or changes its meaning */

typedef enum fact_type {
    FACT_TEXT,   /* const char *; NULL is written as "" */
    FACT_SOME,   /* const char *; NULL and "" are left out, and read as "" */
    FACT_MAYBE,  /* const char *; NULL is left out, and read as NULL */
    FACT_NUMBER, /* double; negative or not finite is left out, and read as OT_ABSENT */
    FACT_TIME,   /* the same; what is not positive was not timed: null in JSON */
    FACT_SIGNED, /* double; what is not finite is left out, and read as 0 */
    FACT_I64,    /* int64_t */
    FACT_LIMIT,  /* int64_t; 0: there is none, null in JSON */
    FACT_U32,    /* uint32_t */
    FACT_INDEX,  /* uint32_t; OT_NONE is left out */
    /* uint32_t, index into regions; written as the region's id; OT_NONE is left out */
    FACT_REGION,
    FACT_TRUTH,  /* bool */
    FACT_NAME,   /* an enum, by its name */
    FACT_DETAIL, /* the same; not in plans, which are made without it */
    /* the same; means nothing, and is left out, when the facts have no target: plan-memory of a
     * table */
    FACT_OF_KERNEL,
    FACT_LEVEL /* likewise; in JSON a number, null for the last of the names */
} fact_type;

typedef struct fact_field {
    const char *name;
    fact_type type;
    size_t offset;
    const char *const *names; /* [n_names] of the enum's values */
    uint32_t n_names;
    const char *json; /* name in JSON, where it is another; NULL */
} fact_field;

typedef struct fact_list fact_list;

typedef struct fact_struct {
    const fact_field *fields; /* ends with a field without name */
    const fact_list *lists;   /* ends with a list without name; NULL: none */
    size_t size;
    bool is_numbered; /* the first field is `id`: the place in its list */
    bool has_members; /* const uint32_t *nodes, uint32_t n_nodes at these: */
    size_t members, n_members;
    bool has_dims;                            /* parallel arrays of OT_DIMS_MAX: */
    size_t n_dims, axes, tiles, tile, extent; /* extent 0: no such array */
} fact_struct;

struct fact_list {
    const char *name, *item; /* tags of the list and of each item */
    const fact_struct *of;
    size_t items, count; /* where the parent has the pointer and the uint32_t */
    unsigned rules;      /* FACT_IF_ANY, FACT_NOT_IN_PLAN */
    const char *json;    /* name in JSON, where it is another; NULL */
};

#define FACT_IF_ANY      1u /* left out where there are no items */
#define FACT_NOT_IN_PLAN 2u /* reports only */

extern const fact_struct FACTS_REPORT, FACTS_REGION, FACTS_BARRIER, FACTS_REFUSAL, FACTS_SCOPE;
/* Of ot_bench_facts, whose two sides are an array inside it. */
extern const fact_struct FACTS_BENCH_HEAD, FACTS_BENCH_SIDE, FACTS_BENCH_REGION, FACTS_BENCH_OUTPUT;

static inline const char *fact_text_at(const void *base, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)base + offset, sizeof text);
    return text;
}
static inline uint32_t fact_u32_at(const void *base, size_t offset)
{
    uint32_t n;
    memcpy(&n, (const char *)base + offset, sizeof n);
    return n;
}
static inline const void *fact_pointer_at(const void *base, size_t offset)
{
    const void *p;
    memcpy(&p, (const char *)base + offset, sizeof p);
    return p;
}

/* ---- facts_write.c ---- */

/* Where facts go: objects with named values, and lists. The writer calls values of an object
 * before the lists inside it. */
typedef struct fact_sink fact_sink;
struct fact_sink {
    /* an object: a list's item, or a part of the object around it */
    void (*open)(fact_sink *s, const char *name);
    void (*list)(fact_sink *s, const char *name);
    void (*close)(fact_sink *s); /* the innermost of both */
    void (*text)(fact_sink *s, const char *name, const char *value);
    void (*word)(fact_sink *s, const char *name, const char *value); /* a number, true or false */
    /* in a list of members: a reference to a node */
    void (*node)(fact_sink *s, const char *number);
    bool is_json; /* JSON's names; null where a list's other items have a figure */
    bool is_plan; /* the JSON of a plan: nodes by name, and nothing of what only reports show */
};

void ot_facts_put(const ot_facts *f, fact_sink *s);
/* What one struct of the facts tells, into the object that is open; f may be NULL where it has no
 * references to nodes and regions, and is no part of a plan of memory. */
void ot_facts_put_struct(const ot_facts *f, const fact_struct *of, const void *base, fact_sink *s);
void ot_facts_put_fields(const ot_facts *f, const fact_struct *of, const void *base, fact_sink *s);

/* ---- facts_json.c ---- */

typedef struct fact_json {
    fact_sink base;
    ot_json *json;
} fact_json;

/* A sink whose objects, lists and values are written to j. */
fact_json ot_facts_json_sink(ot_json *j, bool is_plan);

/* The value of a field that is no text, as it is written; NULL: left out. */
const char *ot_fact_field_word(const ot_facts *f, const fact_field *field, const void *base,
                               char buffer[FACT_WORD_SIZE]);

/* ---- xml_read.c ---- */

/* The facts of an XML report. Fails: OT_E_SYSTEM (cannot be read), OT_E_INPUT naming file, line
 * and rule. */
ot_status ot_report_read(const char *path, ot_diag *d, ot_facts **out) OT_MUST_USE;

#endif
