/* What the tests of reports share: a folder of their own, files in it, texts of writers. */
#ifndef OT_REPORT_CHECK_H
#define OT_REPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report_sample.h"

typedef ot_status (*writer)(const ot_facts *, FILE *);

static char folder[] = "/tmp/test_report.XXXXXX"; /* the one name until make_folder */

static inline char *written(const ot_facts *f, writer write)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    assert_int_equal(write(f, out), OT_OK);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(strlen(text), n);
    return text;
}

static inline const char *in_folder(const char *name)
{
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static inline void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static inline char *get_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long n = ftell(f);
    assert_true(n >= 0);
    rewind(f);
    char *text = calloc(1, (size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

/* text with the first `from` in it replaced; malloc'ed. */
static inline char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(out);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"back.xml", "r.xml",   "r.json",    "r.csv", "a.xml",
                                        "b.xml",    "bad.xml", "page.html", "x.html"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) unlink(in_folder(names[k]));
    return rmdir(folder); /* fails when something was left behind */
}

#endif
