/* Between the files that read and write target files (private to src/machine/target):
 * target_xml.c, target_factors.c. */
#ifndef OT_MACHINE_TARGET_TARGET_XML_H
#define OT_MACHINE_TARGET_TARGET_XML_H

#include "target_internal.h"

#include <libxml/tree.h>
#include <libxml/xmlwriter.h>

/* One reading. */
typedef struct ot_xml_reader {
    const char *path;
    ot_diag *diag; /* of what was last found to be wrong */
    ot_target *t;
    bool fuses;              /* attribute of the root */
    char found[OT_DIAG_MAX]; /* what is wrong so far, one after the other; "": nothing */
} ot_xml_reader;

/* Digits, sign, point, exponent, finite: no hexadecimal, no "inf", no locale. */
bool ot_xml_parse_double(const char *text, double *out);
/* Shortest text, from 12 digits on, that reads back as it was. */
void ot_xml_print_double(double d, char *buf, size_t n);
/* Only elements count; text that is not white space is an error. *out: the next element from n
 * on, or NULL. */
ot_status ot_xml_next_element(const ot_xml_reader *r, xmlNode *n, xmlNode **out) OT_MUST_USE;
/* <runtime>, e: the target's runtime becomes the one that it names, with the factors given in
 * place of the table's. Fails: OT_E_INPUT naming element, attribute and rule; OT_E_NOMEM. The
 * target then holds no factors. */
ot_status ot_xml_read_factors(const ot_xml_reader *r, xmlNode *e) OT_MUST_USE;
/* <runtime> of a target that has factors, else nothing. Returns what libxml2 returns: below 0 on
 * failure. */
int ot_xml_write_factors(xmlTextWriter *w, const ot_target *t);

#endif
