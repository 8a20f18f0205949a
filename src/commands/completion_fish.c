/* A script for fish that completes the words of the program, with what they mean: a line for each
 * option, with the commands that take it. */
#include "completion.h"

/* Inside of '...'. */
static void put_text(const char *text, FILE *f)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == '\\') fputc('\\', f);
        fputc(*c, f);
    }
}

/* -x: a value and no files; -r: a value. */
static ot_status put_value(const option *o, FILE *f)
{
    static const char *const files[] = {"", "", "(__fish_complete_suffix .xml)",
                                        "(__fish_complete_directories)"};
    const completion_files kind = completion_files_of(o);
    const bool words = o->kind == TARGET || o->kind == RUNTIME || completion_lists_words(o);
    if (kind == FILES_ALL) {
        fputs(" -r -F", f);
        return OT_OK;
    }
    fputs(" -x", f);
    if (!words && kind == FILES_NONE) return OT_OK;
    fputs(" -a '", f);
    OT_TRY(completion_words(o, f));
    fprintf(f, "%s%s'", words && *files[kind] ? " " : "", files[kind]);
    return OT_OK;
}

static ot_status put_option(const option *o, FILE *f)
{
    fputs("complete -c onnx-tile -n '__onnx_tile_is", f);
    for (size_t k = 0; k < n_commands; k++)
        if (o->commands & 1u << command_table[k].command)
            fprintf(f, " %s", command_word(&command_table[k]));
    fprintf(f, "' -l %s", o->name);
    if (o->letter) fprintf(f, " -s %c", o->letter);
    if (o->value) OT_TRY(put_value(o, f));
    fputs(" -d '", f);
    put_text(o->help, f);
    fputs("'\n", f);
    return OT_OK;
}

ot_status completion_fish(FILE *f)
{
    fputs("# Completion of onnx-tile for fish, which \"onnx-tile --completion fish\" prints.\n"
          "function __onnx_tile_is\n"
          "    set -l words (commandline -opc)\n"
          "    set -l command tiling\n"
          "    if test (count $words) -gt 1; and contains -- $words[2]",
          f);
    for (size_t k = 1; k < n_commands; k++) fprintf(f, " %s", command_table[k].name);
    fputs("\n        set command $words[2]\n    end\n    contains -- $command $argv\nend\n", f);
    for (size_t k = 1; k < n_commands; k++) {
        fprintf(f, "complete -c onnx-tile -n 'test (count (commandline -opc)) -eq 1' -a %s -d '",
                command_table[k].name);
        put_text(command_table[k].help, f);
        fputs("'\n", f);
    }
    for (size_t k = 0; k < n_options; k++)
        if (option_table[k].help) OT_TRY(put_option(&option_table[k], f));
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
