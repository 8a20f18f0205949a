/* THE writer of JSON: --json of every command and the .json report. docs/json.md is the contract
 * of what is written.
 *
 *   ot_json j = {.f = stdout};
 *   ot_json_open(&j, NULL);                      {
 *   ot_json_put_text(&j, "model", "net.onnx");     "model": "net.onnx",
 *   ot_json_list(&j, "regions");                   "regions": [
 *   ot_json_open(&j, NULL);                          {
 *   ot_json_put_int(&j, "id", 0);                     "id": 0}
 *   ot_json_close(&j); ...                           ]}
 *
 * Members of the outermost object, and items of lists in it, have a line each, so that output
 * diffs. Keys are the program's own, never a stranger's. Names inside values may be anything:
 * what comes out is valid JSON.
 */
#ifndef OT_BASE_JSON_H
#define OT_BASE_JSON_H

#include "base.h"

#define OT_JSON_DEPTH 16

typedef struct ot_json {
    FILE *f;        /* errors stay in it: ferror */
    uint32_t depth; /* objects and lists that are open */
    bool is_list[OT_JSON_DEPTH], has_items[OT_JSON_DEPTH];
} ot_json;

/* An object or a list. key: its name in the object around it, '-' written as '_'; not looked at
 * in lists and outermost. */
void ot_json_open(ot_json *j, const char *key);
void ot_json_list(ot_json *j, const char *key);
void ot_json_close(ot_json *j); /* the last one ends the line */

/* NULL is null. */
void ot_json_put_text(ot_json *j, const char *key, const char *text);
/* Up to 12 digits; null for what is not finite: there is no such figure. */
void ot_json_put_number(ot_json *j, const char *key, double v);
/* The same, 0 for what is not finite: members that were always numbers. */
void ot_json_put_figure(ot_json *j, const char *key, double v);
void ot_json_put_int(ot_json *j, const char *key, int64_t v);
void ot_json_put_truth(ot_json *j, const char *key, bool v);
void ot_json_put_null(ot_json *j, const char *key);
/* A number or word that is JSON already. */
void ot_json_put_word(ot_json *j, const char *key, const char *word);

/* ---- values alone (traces) ---- */

/* With its quotes; escaped, so that any bytes give valid JSON. */
void ot_json_string(const char *text, FILE *f);
/* Up to 12 digits; 0 for what is not finite. */
void ot_json_number(double v, FILE *f);

#endif
