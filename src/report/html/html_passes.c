/* A kernel's text after each pass of plan-memory, what the pass changed marked, and the memories as
 * they would be without the passes that follow.
 *
 *   As written               Sizes and memories        In place             Places
 *   alloc a: auto f32 @auto  alloc a: 64x96 f32 @ub    ... # with b         ... offset=0
 *                            [map: each by itself]     [map: lifetimes]     [the map above]
 */
#include "html.h"

#define LINES_SHOWN 1000 /* of one text */

static void put_lines(html *h, const ot_fact_pass *p)
{
    const uint32_t n = p->n_lines < LINES_SHOWN ? p->n_lines : LINES_SHOWN;
    html_scroll(h, "panel scroll tall ir", p->title);
    for (uint32_t k = 0; k < n; k++)
        html_leaf(h, "code", p->lines[k].changed ? "new" : NULL, p->lines[k].text);
    html_close(h);
    if (n < p->n_lines)
        html_leaf(h, "p", "quiet note", "The rest of the text is in the XML and JSON reports.");
}

static uint32_t count_changes(const ot_fact_pass *p)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_lines; k++) n += p->lines[k].changed;
    return n;
}

static void put_pass(html *h, const ot_fact_pass *p, bool first)
{
    html_open_class(h, "details", "panel");
    html_attr(h, "id", p->id);
    html_attr(h, "open", "open");
    html_open(h, "summary");
    html_leaf(h, "b", NULL, p->title);
    html_close(h);
    html_leaf(h, "p", "lead", p->what);
    if (!first && count_changes(p) == 0)
        html_leaf(h, "p", "quiet note", "It changes nothing here.");
    put_lines(h, p);
    for (uint32_t k = 0; k < p->n_maps; k++)
        if (p->maps[k].n_boxes > 0) html_kernel_map(h, &p->maps[k]);
    html_close(h);
}

void html_passes(html *h)
{
    html_section(h, "passes", "Passes",
                 "The kernel before and after each pass, with the lines that it changed marked, "
                 "and its memories as they would be if nothing followed.");
    for (uint32_t k = 0; k < h->f->n_passes; k++) put_pass(h, &h->f->passes[k], k == 0);
    html_close(h);
}
