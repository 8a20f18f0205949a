/* Where memory goes: the tensors that live while the untiled model holds most, what is in the
 * way of less, the command to use. */
#include "html.h"

static void put_node(html *h, uint32_t node, const char *none)
{
    const ot_facts *f = h->f;
    if (node == OT_NONE) {
        html_text(h, none);
        return;
    }
    html_text(h, f->nodes[node].op);
    html_text(h, " ");
    html_text(h, f->nodes[node].name);
}

static void put_alive(html *h)
{
    static const char *const heads[] = {"Tensor",  "Shape",        "#Bytes",     "#Share",
                                        "Made by", "Needed until", "When tiled", NULL};
    const ot_facts *f = h->f;
    html_scroll(h, "panel scroll", "Tensors alive at the peak");
    html_open(h, "table");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < f->n_alive; k++) {
        const ot_fact_alive *a = &f->alive[k];
        html_open(h, "tr");
        html_open(h, "th");
        html_attr(h, "scope", "row");
        html_text(h, a->value);
        html_close(h);
        html_leaf(h, "td", "shape", *a->shape ? a->shape : "-");
        if (a->bytes > 0)
            html_cell(h, a->bytes, "bytes");
        else
            html_leaf(h, "td", "num", "in place");
        html_cell(h, a->share, "percent");
        html_open(h, "td");
        put_node(h, a->maker, "-");
        html_close(h);
        html_open(h, "td");
        put_node(h, a->reader, "the end: an output");
        html_close(h);
        html_leaf(h, "td", NULL, a->in_tiles ? "in tiles only" : *a->shape ? "whole" : "-");
        html_close(h);
    }
    html_close(h);
    html_close(h);
    html_close(h);
}

static void put_obstacles(html *h)
{
    const ot_facts *f = h->f;
    if (!f->n_obstacles) return;
    html_leaf(h, "h3", NULL, "In the way of less");
    html_open_class(h, "div", "groups");
    for (uint32_t k = 0; k < f->n_obstacles; k++) {
        const ot_fact_obstacle *o = &f->obstacles[k];
        html_open_class(h, "div", "panel group");
        html_open_class(h, "span", "count");
        html_bytes(h, o->bytes);
        html_text(h, " ");
        html_text(h, o->value);
        html_close(h);
        html_leaf(h, "h4", NULL, o->reason);
        html_open_class(h, "p", "ops");
        put_node(h, o->node, "-");
        html_close(h);
        if (*o->lift) {
            html_open_class(h, "p", "lift");
            html_leaf(h, "b", NULL, "In the model, this would lift it: ");
            html_text(h, o->lift);
            html_close(h);
        }
        html_close(h);
    }
    html_close(h);
}

static void put_cures(html *h)
{
    static const char *const heads[] = {"Options", "#Growth", "#Live tensors", "#Time", NULL};
    const ot_facts *f = h->f;
    if (!f->n_cures) return;
    html_leaf(h, "h3", NULL, "What would help, tried on this model");
    html_scroll(h, "panel scroll", "Options that help");
    html_open(h, "table");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < f->n_cures; k++) {
        const ot_fact_cure *c = &f->cures[k];
        html_open(h, "tr");
        html_open(h, "th");
        html_attr(h, "scope", "row");
        html_leaf(h, "code", NULL, c->options);
        html_close(h);
        html_cell(h, c->growth, "bytes");
        html_cell(h, c->peak, "bytes");
        html_cell(h, c->time, "seconds");
        html_close(h);
    }
    html_close(h);
    html_close(h);
    html_close(h);
}

void html_explain(html *h)
{
    const ot_facts *f = h->f;
    html_section(h, "explain", "Where memory goes",
                 "The tensors that live while the untiled model holds most, and what is still "
                 "whole where the tiled one does.");
    html_open_class(h, "dl", "facts panel");
    for (uint32_t k = 0; k < f->n_peak; k++) {
        const ot_fact_entry *e = &f->peak[k];
        html_leaf(h, "dt", NULL, e->title);
        html_open(h, "dd");
        if (e->number >= 0)
            html_number(h, e->number, e->unit);
        else
            html_text(h, e->text && *e->text ? e->text : "-");
        html_close(h);
    }
    html_close(h);
    if (f->n_alive) put_alive(h);
    put_obstacles(h);
    put_cures(h);
    if (f->command) {
        html_leaf(h, "h3", NULL, "The command");
        html_open_class(h, "p", "panel");
        html_leaf(h, "code", NULL, f->command);
        html_close(h);
    }
    html_close(h);
}
