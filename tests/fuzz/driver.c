/* Mutate models and run each through fuzz_model.c, without libFuzzer: fuzz_driver SECONDS SEED
 * FILE...
 *
 * Every file is run as it is first; then copies with a few random changes until the time is
 * over. The input under way lies in fuzz-current.bin in the working folder, and stays there when
 * the process dies. A single input has 20 seconds (SIGALRM).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX   (1u << 20)
#define CURRENT     "fuzz-current.bin"
#define INPUT_LIMIT 20 /* seconds */

typedef struct input {
    uint8_t *data;
    size_t n;
} input;

static uint64_t state;

/* xorshift64*: the same on every machine. */
static uint32_t random_below(uint32_t n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717ull) >> 32) % n;
}

static void die(const char *what, const char *name)
{
    fprintf(stderr, "fuzz_driver: %s %s\n", what, name);
    exit(2);
}

static input read_file(const char *path)
{
    input in = {malloc(INPUT_MAX), 0};
    FILE *f = fopen(path, "rb");
    if (!f || !in.data) die("cannot read", path);
    in.n = fread(in.data, 1, INPUT_MAX, f);
    fclose(f);
    return in;
}

static void run(const uint8_t *data, size_t n)
{
    FILE *f = fopen(CURRENT, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) die("cannot write", CURRENT);
    uint8_t *exact = malloc(n ? n : 1); /* of the very size, so that a read past the end is seen */
    if (!exact) die("no memory for", CURRENT);
    memcpy(exact, data, n);
    alarm(INPUT_LIMIT);
    LLVMFuzzerTestOneInput(exact, n);
    alarm(0);
    free(exact);
}

static void erase(input *x, size_t at, size_t n)
{
    memmove(x->data + at, x->data + at + n, x->n - at - n);
    x->n -= n;
}

static void insert(input *x, size_t at, const uint8_t *from, size_t n)
{
    if (x->n + n > INPUT_MAX) return;
    memmove(x->data + at + n, x->data + at, x->n - at);
    memcpy(x->data + at, from, n);
    x->n += n;
}

/* One change; `other` is another file to take pieces from. */
static void mutate(input *x, const input *other)
{
    static const uint8_t extremes[] = {0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x0a, 0x12, 0x3a};
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    static const uint8_t minus[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    if (x->n == 0) return;
    uint32_t at = random_below((uint32_t)x->n), left = (uint32_t)x->n - at;
    uint32_t some = 1 + random_below(left < 32 ? left : 32);
    uint8_t piece[64];
    switch (random_below(10)) {
    case 0: x->data[at] ^= (uint8_t)(1u << random_below(8)); return;
    case 1:
    case 2: x->data[at] = extremes[random_below(sizeof extremes)]; return;
    case 3: x->data[at] = (uint8_t)(x->data[at] + 1 - 2 * random_below(2)); return;
    case 4: erase(x, at, some); return;
    case 5:
        memcpy(piece, x->data + at, some);
        insert(x, random_below((uint32_t)x->n), piece, some);
        return;
    case 6:
        if (random_below(8) == 0) x->n = at;
        return;
    case 7: /* a varint of the same place, made absurd */
        erase(x, at, 1);
        if (random_below(2))
            insert(x, at, huge, sizeof huge);
        else
            insert(x, at, minus, sizeof minus);
        return;
    case 8:
        if (other->n < 64) return;
        insert(x, at, other->data + random_below((uint32_t)other->n - 48), 1 + random_below(48));
        return;
    default: /* two bytes change places */
        some = random_below((uint32_t)x->n);
        piece[0] = x->data[at];
        x->data[at] = x->data[some];
        x->data[some] = piece[0];
        return;
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc < 4) die("usage:", "fuzz_driver SECONDS SEED FILE...");
    uint32_t n_files = (uint32_t)argc - 3, runs = 0;
    double end = now() + atof(argv[1]);
    input *files = calloc(n_files, sizeof *files), work = {malloc(INPUT_MAX), 0};
    if (!files || !work.data) die("no memory for", "the files");
    state = strtoull(argv[2], NULL, 10) * 2 + 1;
    for (int k = 0; k < 16; k++) (void)random_below(2);
    for (uint32_t k = 0; k < n_files; k++) {
        files[k] = read_file(argv[3 + k]);
        run(files[k].data, files[k].n);
    }
    while (now() < end) {
        const input *from = &files[random_below(n_files)];
        memcpy(work.data, from->data, from->n);
        work.n = from->n;
        for (uint32_t k = 1 + random_below(6); k-- > 0;)
            mutate(&work, &files[random_below(n_files)]);
        run(work.data, work.n);
        runs++;
    }
    printf("fuzz_driver: %u files, %u mutations, seed %s: no crash\n", n_files, runs, argv[2]);
    for (uint32_t k = 0; k < n_files; k++) free(files[k].data);
    free(files);
    free(work.data);
    remove(CURRENT);
    return 0;
}
