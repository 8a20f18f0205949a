/* One input as a file that holds an array: .npy, raw elements, or a TensorProto.
 *
 *   byte 0      ending, whether it is mapped, made long enough for that, and given as a raw file
 *   byte 1      type of the raw file
 *   then        its rank and dimensions, one byte each
 *   the rest    the file --open--> array --read all, check, write--> .npy --open--> the same
 *
 * LLVMFuzzerTestOneInput is libFuzzer's entry (`make fuzz`). Whatever is wrong with a file must end
 * in a status and one line, in bounded memory (fuzz_bounds.h); what is an array must be memory that
 * can be read, and come back from a file as it was.
 */
#include "engine/core/array_file.h"

#include "fuzz_bounds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define RAW_RANK 4
#define HEAD     (3 + RAW_RANK)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/onnx-tile-fuzz-XXXXXX";
static char file[sizeof folder + 8], copy[sizeof folder + 12];

static void remove_all(void)
{
    (void)unlink(file);
    (void)unlink(copy);
    (void)rmdir(folder);
}

static void begin(void)
{
    static bool begun;
    if (begun) return;
    begun = true;
    if (!mkdtemp(folder)) OT_BUG("no folder");
    snprintf(copy, sizeof copy, "%s/copy.npy", folder);
    (void)atexit(remove_all);
}

/* Every element, whichever way it lies. */
static uint64_t read_all(const ot_nd *a)
{
    int64_t n;
    if (!ot_nd_is_dense(a) || !ot_nd_elems(a, &n)) OT_BUG("an array of a file is not dense");
    const int64_t bytes = n * (int64_t)ot_dtype_bytes(a->dtype);
    return bytes > 0 ? ot_hash_bytes(0, a->data, (size_t)bytes) : 0;
}

/* As .npy and back: the same elements. */
static void there_and_back(const ot_nd *a, uint64_t want)
{
    ot_diag d = {0};
    ot_arena *arena = ot_arena_new();
    ot_array_out out = {.file = {.dir_fd = -1}};
    ot_array_in in = {0};
    if (!arena) return;
    ot_status s = ot_array_out_put(&out, copy, a, arena, &d);
    if (s == OT_OK) s = ot_array_out_publish(&out);
    ot_array_out_close(&out);
    fuzz_expect_line(s, d.message);
    if (s == OT_OK) {
        s = ot_array_in_open(&in, copy, NULL, true, &d);
        if (s == OT_E_INPUT && ot_dtype_bits(a->dtype) >= 8 &&
            strncmp(ot_dtype_name(a->dtype), "float8", 6))
            OT_BUG("the tool does not read an array that it wrote");
        if (s == OT_OK && (ot_array_in_check(&in, &d) != OT_OK || read_all(&in.array) != want))
            OT_BUG("an array is another once it was written");
        if (s == OT_OK) ot_array_in_close(&in);
    }
    ot_arena_free(arena);
}

/* The file; false: it cannot be made. */
static bool put_file(const uint8_t *data, size_t size, bool longer)
{
    const int fd = open(file, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    if (ok && longer) ok = ftruncate(fd, (off_t)size + OT_MAPPED_MIN) == 0;
    return fd >= 0 && close(fd) == 0 && ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ENDINGS[] = {".npy", ".raw", ".pb", ".npy"};
    static const ot_dtype TYPES[] = {OT_F32, OT_F16, OT_U8,   OT_BOOL,
                                     OT_I64, OT_I4,  OT_BF16, OT_F64};
    int64_t dims[RAW_RANK];
    ot_nd raw;
    ot_diag d = {0};
    ot_array_in in;
    if (size < HEAD) return 0;
    begin();
    fuzz_begin();
    snprintf(file, sizeof file, "%s/f%s", folder, ENDINGS[data[0] & 3]);
    for (uint32_t k = 0; k < RAW_RANK; k++) dims[k] = data[3 + k];
    ot_nd_set_dense(&raw, TYPES[data[1] % (sizeof TYPES / sizeof *TYPES)], data[2] % (RAW_RANK + 1),
                    dims);
    if (put_file(data + HEAD, size - HEAD, data[0] & 8)) {
        ot_status s = ot_array_in_open(&in, file, data[0] & 16 ? NULL : &raw, data[0] & 4, &d);
        fuzz_expect_line(s, d.message);
        if (s == OT_OK) {
            const uint64_t sum = read_all(&in.array);
            if (ot_array_in_check(&in, &d) != OT_OK)
                OT_BUG("a file that stays is said to be shorter");
            there_and_back(&in.array, sum);
            ot_array_in_close(&in);
        }
    }
    (void)unlink(file);
    if (atomic_load(&fuzz_alive) != 0) OT_BUG("an array keeps memory");
    return 0;
}
