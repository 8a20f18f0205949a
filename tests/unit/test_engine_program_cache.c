/* The cache of compiled programs: what is read back, and what is not read at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/gpu/program_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char KEY[] = "a device\nits version\n-w\n__kernel void k0() {}",
                  OTHER[] = "a device\nits version\n-w\n__kernel void k1() {}",
                  PROGRAM[] = "\177ELF and so on, some bytes of code";

static char root[] = "/tmp/onnx-tile-cache-XXXXXX";
static char path[128];
static ot_arena *a;

static ot_bytes text(const char *s) { return (ot_bytes){s, strlen(s)}; }

static bool is_there(const char *key)
{
    ot_bytes got;
    if (!ot_program_read(path, text(key), a, &got)) return false;
    assert_int_equal(got.n, strlen(PROGRAM));
    assert_memory_equal(got.data, PROGRAM, got.n);
    return true;
}

static void keep(void) { ot_program_write(path, text(KEY), text(PROGRAM), a); }

static int make_folder(void **state)
{
    (void)state;
    a = ot_arena_new();
    if (!a || !mkdtemp(root) || setenv("XDG_CACHE_HOME", root, 1) != 0) return -1;
    const char *folder = ot_cache_folder("device", a);
    if (!folder) return -1;
    snprintf(path, sizeof path, "%s/p.bin", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char folder[128];
    unlink(path);
    snprintf(folder, sizeof folder, "%s/onnx-tile/device", root);
    int failed = rmdir(folder);
    snprintf(folder, sizeof folder, "%s/onnx-tile", root);
    ot_arena_free(a);
    return failed | rmdir(folder) | rmdir(root);
}

static void kept_and_read(void **state)
{
    (void)state;
    struct stat st;
    assert_false(is_there(KEY));
    keep();
    assert_true(is_there(KEY));
    assert_false(is_there(OTHER));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

/* Every byte counts: cut off anywhere, one more, or another one. */
static void not_whole(void **state)
{
    (void)state;
    char whole[400];
    keep();
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(whole, 1, sizeof whole, f);
    fclose(f);
    assert_in_range(n, strlen(KEY) + strlen(PROGRAM), sizeof whole - 1);
    for (size_t k = 0; k <= 2 * n; k++) {
        f = fopen(path, "wb");
        assert_non_null(f);
        if (k >= n && k < 2 * n) whole[k - n] ^= 0x10;
        assert_int_equal(fwrite(whole, 1, k < n ? k : n, f), k < n ? k : n);
        if (k == 2 * n) fputc(0, f);
        fclose(f);
        if (k >= n && k < 2 * n) whole[k - n] ^= 0x10;
        assert_false(is_there(KEY));
    }
    keep();
    assert_true(is_there(KEY));
}

/* A pipe does not hold up whoever reads or writes; a link leads nowhere. */
static void no_files(void **state)
{
    (void)state;
    char target[160];
    struct stat st;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(is_there(KEY));
    keep();
    assert_true(is_there(KEY));
    snprintf(target, sizeof target, "%s.target", path);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_false(is_there(KEY));
    keep();
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_true(is_there(KEY));
    unlink(target);
}

static void of_others(void **state)
{
    (void)state;
    keep();
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(is_there(KEY));
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(is_there(KEY));
    if (geteuid() == 0) { /* only root can give files away */
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        assert_false(is_there(KEY));
    }
    unlink(path);
}

/* A folder that others can enter is closed; one that is another user's, or a link, is not used. */
static void folders(void **state)
{
    (void)state;
    char folder[128];
    struct stat st;
    snprintf(folder, sizeof folder, "%s/onnx-tile/other", root);
    assert_non_null(ot_cache_folder("other", a));
    assert_int_equal(chmod(folder, 0777), 0);
    assert_non_null(ot_cache_folder("other", a));
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    if (geteuid() == 0) {
        assert_int_equal(chown(folder, 12345, (gid_t)-1), 0);
        assert_null(ot_cache_folder("other", a));
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(symlink("device", folder), 0);
    assert_null(ot_cache_folder("other", a));
    unlink(folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_int_equal(setenv("HOME", "relative", 1), 0);
    assert_null(ot_cache_folder("device", a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_and_read), cmocka_unit_test(not_whole), cmocka_unit_test(no_files),
        cmocka_unit_test(of_others),     cmocka_unit_test(folders),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
