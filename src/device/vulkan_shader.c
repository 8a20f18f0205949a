/* GLSL to SPIR-V: by shaderc, which is found when the first text comes; where it cannot be
 * loaded (Debian 12 links it against nothing), by the command glslangValidator. */
#if __has_include(<vulkan/vulkan.h>)

#include "vulkan_api.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static ot_status keep_words(const void *data, size_t bytes, ot_device_error *e, uint32_t **words,
                            size_t *n)
{
    *words = malloc(bytes ? bytes : 1);
    if (!*words) return dev_fail_host_memory(e);
    memcpy(*words, data, bytes);
    *n = bytes / 4;
    return OT_OK;
}

/* ---- shaderc: the few functions that are used, declared here ---- */

enum { SHADERC_COMPUTE = 2, SHADERC_SUCCESS = 0 };

typedef struct shaderc_api {
    void *(*compiler_new)(void);
    void (*compiler_free)(void *compiler);
    void *(*compile)(const void *compiler, const char *text, size_t n, int kind, const char *name,
                     const char *entry, const void *options);
    void (*result_free)(void *result);
    size_t (*length)(const void *result);
    const char *(*bytes)(const void *result);
    int (*status)(const void *result);
    const char *(*message)(const void *result);
} shaderc_api;

static ot_status load_shaderc(ot_device_error *e, shaderc_api *out)
{
    static const char *const names[] = {"shaderc_compiler_initialize",
                                        "shaderc_compiler_release",
                                        "shaderc_compile_into_spv",
                                        "shaderc_result_release",
                                        "shaderc_result_get_length",
                                        "shaderc_result_get_bytes",
                                        "shaderc_result_get_compilation_status",
                                        "shaderc_result_get_error_message"};
    void *library = dlopen("libshaderc.so.1", RTLD_NOW), **functions = (void **)out;
    _Static_assert(sizeof *out == sizeof names, "a pointer for each name");
    if (!library) library = dlopen("libshaderc_shared.so.1", RTLD_NOW);
    if (!library) return dev_fail(e, OT_DEV_UNSUPPORTED, "no shaderc");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        functions[k] = dlsym(library, names[k]);
        if (!functions[k]) return dev_fail(e, OT_DEV_UNSUPPORTED, "shaderc lacks %s", names[k]);
    }
    return OT_OK;
}

static ot_status compile_by_library(const shaderc_api *api, const char *name,
                                    const ot_dev_source *s, ot_device_error *e, uint32_t **words,
                                    size_t *n)
{
    void *compiler = api->compiler_new();
    if (!compiler) return dev_fail_host_memory(e);
    void *result = api->compile(compiler, s->text, s->n, SHADERC_COMPUTE, *name ? name : "kernel",
                                "main", NULL);
    ot_status st = !result ? dev_fail_host_memory(e)
                   : api->status(result) != SHADERC_SUCCESS
                       ? dev_fail(e, OT_DEV_COMPILE, "program '%s': the compiler: %s", name,
                                  api->message(result))
                       : keep_words(api->bytes(result), api->length(result), e, words, n);
    if (result) api->result_free(result);
    api->compiler_free(compiler);
    return st;
}

/* ---- the command ---- */

enum { TEXT_FILE, CODE_FILE, SAID_FILE, FILES };

typedef struct shader_files {
    char folder[PATH_MAX - 16], paths[FILES][PATH_MAX]; /* folder "": none */
} shader_files;

static ot_status make_files(shader_files *f, const ot_dev_source *s, ot_device_error *e)
{
    static const char *const names[FILES] = {"kernel.comp", "kernel.spv", "said"};
    int length = snprintf(f->folder, sizeof f->folder, "%s/onnx-tile-XXXXXX", ot_temp_folder());
    if (length < 0 || (size_t)length >= sizeof f->folder || !mkdtemp(f->folder)) {
        *f->folder = '\0';
        return dev_fail(e, OT_DEV_FAILED, "no folder for a compiler's files in %.100s",
                        ot_temp_folder());
    }
    for (int k = 0; k < FILES; k++)
        snprintf(f->paths[k], sizeof f->paths[k], "%s/%s", f->folder, names[k]);
    FILE *text = fopen(f->paths[TEXT_FILE], "w");
    bool ok = text && fwrite(s->text, 1, s->n, text) == s->n;
    if (text && fclose(text) != 0) ok = false;
    return ok ? OT_OK : dev_fail(e, OT_DEV_FAILED, "a compiler's file cannot be written");
}

static void drop_files(const shader_files *f)
{
    if (!*f->folder) return;
    for (int k = 0; k < FILES; k++) unlink(f->paths[k]);
    rmdir(f->folder);
}

/* The exit status; -1: there is no such command. */
static int run_command(const shader_files *f)
{
    char *const argv[] = {"glslangValidator",
                          "--target-env",
                          "vulkan1.2",
                          "-S",
                          "comp",
                          "-o",
                          (char *)f->paths[CODE_FILE],
                          (char *)f->paths[TEXT_FILE],
                          NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) return -1;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, f->paths[SAID_FILE],
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    int failed = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

/* The file's bytes, at most `size`; returns how many. */
static size_t read_some(const char *path, void *to, size_t size)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(to, 1, size, f) : 0;
    if (f) fclose(f);
    return n;
}

static ot_status read_code(const shader_files *f, ot_device_error *e, uint32_t **words, size_t *n)
{
    enum { MOST = 16 << 20 };
    void *data = malloc(MOST);
    if (!data) return dev_fail_host_memory(e);
    size_t bytes = read_some(f->paths[CODE_FILE], data, MOST);
    ot_status s = bytes >= 20 && bytes < MOST && bytes % 4 == 0
                      ? keep_words(data, bytes, e, words, n)
                      : dev_fail(e, OT_DEV_FAILED, "a compiler's file cannot be read");
    free(data);
    return s;
}

static ot_status compile_by_command(const char *name, const ot_dev_source *s, ot_device_error *e,
                                    uint32_t **words, size_t *n)
{
    shader_files f;
    char said[400] = "";
    ot_status st = make_files(&f, s, e);
    int code = st == OT_OK ? run_command(&f) : 0;
    if (code < 0) {
        st = dev_fail(e, OT_DEV_UNSUPPORTED,
                      "GLSL needs libshaderc, or glslangValidator (Debian: glslang-tools)");
    } else if (code > 0) {
        said[read_some(f.paths[SAID_FILE], said, sizeof said - 1)] = '\0';
        st = dev_fail(e, OT_DEV_COMPILE, "program '%s': the compiler: %s", name, said);
    } else if (st == OT_OK) {
        st = read_code(&f, e, words, n);
    }
    drop_files(&f);
    return st;
}

ot_status vk_compile(const char *name, const ot_dev_source *s, ot_device_error *e, uint32_t **words,
                     size_t *n)
{
    shaderc_api api;
    if (load_shaderc(NULL, &api) == OT_OK) return compile_by_library(&api, name, s, e, words, n);
    return compile_by_command(name, s, e, words, n);
}

#endif
