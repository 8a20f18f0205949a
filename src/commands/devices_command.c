/* The list of devices as a table and as JSON. */
#include "devices_command.h"

#include "base/wrap.h"
#include "base/json.h"
#include "device/device.h"

static void print_table(const ot_device_list *l, FILE *f)
{
    if (l->n)
        fprintf(f, "%-10s %-44s %6s %10s %10s %10s  %s\n", "device", "name", "units", "memory",
                "one block", "shared", "");
    for (uint32_t k = 0; k < l->n; k++) {
        const ot_device_facts *x = &l->devices[k];
        char id[32], memory[32], block[32], shared[32];
        snprintf(id, sizeof id, "%s:%u", ot_dev_api_name(x->api), x->number);
        fprintf(f, "%-10s %-44.44s %6u %10s %10s %10s  %s%s%s%s\n", id, x->name, x->units,
                ot_format_bytes((double)x->memory_bytes, memory, sizeof memory),
                ot_format_bytes((double)x->allocation_most, block, sizeof block),
                ot_format_bytes((double)x->shared_bytes, shared, sizeof shared),
                x->is_cpu ? "cpu " : "", x->unified ? "unified " : "", x->has_f16 ? "f16 " : "",
                x->has_f64 ? "f64" : "");
    }
    for (uint32_t k = 0; k < OT_DEV_APIS; k++)
        if (*l->missing[k]) fprintf(f, "%-10s %s\n", ot_dev_api_name((ot_dev_api)k), l->missing[k]);
}

static void put_device(ot_json *j, const ot_device_facts *x)
{
    char id[32];
    snprintf(id, sizeof id, "%s:%u", ot_dev_api_name(x->api), x->number);
    ot_json_open(j, NULL);
    ot_json_put_text(j, "device", id);
    ot_json_put_text(j, "name", x->name);
    ot_json_put_text(j, "version", x->version);
    ot_json_put_truth(j, "cpu", x->is_cpu);
    ot_json_put_truth(j, "unified", x->unified);
    ot_json_put_truth(j, "f16", x->has_f16);
    ot_json_put_truth(j, "f64", x->has_f64);
    ot_json_put_int(j, "units", x->units);
    ot_json_put_int(j, "work_items", x->items_most);
    ot_json_put_int(j, "memory_bytes", x->memory_bytes);
    ot_json_put_int(j, "block_bytes", x->allocation_most);
    ot_json_put_int(j, "shared_bytes", x->shared_bytes);
    ot_json_put_int(j, "constant_bytes", x->constant_bytes);
    ot_json_put_int(j, "alignment_bytes", x->alignment);
    ot_json_put_int(j, "granule_bytes", x->granule);
    ot_json_put_int(j, "cache_line_bytes", x->cache_line);
    ot_json_put_int(j, "cache_bytes", x->cache_bytes);
    ot_json_put_int(j, "vector_floats", x->vector_floats);
    ot_json_close(j);
}

static void print_json(const ot_device_list *l, FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_json_list(&j, "devices");
    for (uint32_t k = 0; k < l->n; k++) put_device(&j, &l->devices[k]);
    ot_json_close(&j);
    ot_json_list(&j, "missing");
    for (uint32_t k = 0; k < OT_DEV_APIS; k++) {
        if (!*l->missing[k]) continue;
        ot_json_open(&j, NULL);
        ot_json_put_text(&j, "api", ot_dev_api_name((ot_dev_api)k));
        ot_json_put_text(&j, "reason", l->missing[k]);
        ot_json_close(&j);
    }
    ot_json_close(&j);
    ot_json_close(&j);
}

ot_status ot_devices_command(bool json, bool quiet, ot_diag *d)
{
    ot_device_list *l = NULL;
    ot_arena *a = ot_arena_new();
    ot_status s = a ? ot_devices_list(a, &l) : OT_E_NOMEM;
    if (s == OT_OK && json)
        print_json(l, stdout);
    else if (s == OT_OK && !quiet) {
        ot_wrap wrap;
        print_table(l, ot_wrap_open(&wrap, stdout));
        s = ot_wrap_close(&wrap);
    }
    ot_arena_free(a);
    return s == OT_E_NOMEM ? ot_fail_nomem(d) : s;
}
