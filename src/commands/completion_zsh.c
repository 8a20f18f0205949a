/* A script for zsh that completes the words of the program, with what they mean.
 *
 *   '--goal=[what to minimise]:value:(time memory)'     an option, as _arguments reads it
 */
#include "completion.h"

/* Inside of '...', where _arguments ends a text at a bracket. */
static void put_text(const char *text, FILE *f)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputs("'\\''", f);
        else if (strchr("[]:\\", *c))
            fprintf(f, "\\%c", *c);
        else
            fputc(*c, f);
    }
}

/* What follows the name of an option. */
static ot_status put_value(const option *o, FILE *f)
{
    static const char *const files[] = {"", "_files", "_files -g \"*.xml\"", "_files -/"};
    const completion_files kind = completion_files_of(o);
    const bool words = o->kind == TARGET || o->kind == RUNTIME || completion_lists_words(o);
    fputs(":value:", f);
    if (words && kind != FILES_NONE) { /* both */
        fputs("{_values \"\" ", f);
        OT_TRY(completion_words(o, f));
        fprintf(f, "; %s}", files[kind]);
    } else if (words) {
        fputc('(', f);
        OT_TRY(completion_words(o, f));
        fputc(')', f);
    } else {
        fputs(kind == FILES_NONE ? " " : files[kind], f);
    }
    return OT_OK;
}

static ot_status put_option(const option *o, FILE *f)
{
    if (o->letter) {
        fprintf(f, "        '-%c[", o->letter);
        put_text(o->help, f);
        fputc(']', f);
        if (o->value) OT_TRY(put_value(o, f));
        fputs("'\n", f);
    }
    fprintf(f, "        '--%s%s[", o->name, o->value ? "=" : "");
    put_text(o->help, f);
    fputc(']', f);
    if (o->value) OT_TRY(put_value(o, f));
    fputs("'\n", f);
    return OT_OK;
}

ot_status completion_zsh(FILE *f)
{
    fputs("#compdef onnx-tile\n"
          "# Completion of onnx-tile for zsh, which \"onnx-tile --completion zsh\" prints.\n"
          "_onnx_tile()\n{\n    local -a options commands\n    commands=(\n",
          f);
    for (size_t k = 1; k < n_commands; k++) {
        fprintf(f, "        '%s:", command_table[k].name);
        put_text(command_table[k].help, f);
        fputs("'\n", f);
    }
    fputs("    )\n    case ${words[2]} in\n", f);
    for (size_t k = 1; k <= n_commands; k++) { /* the one without a name last: its pattern is * */
        const command_row *c = &command_table[k % n_commands];
        fprintf(f, "    %s) options=(\n", *c->name ? c->name : "*");
        for (size_t i = 0; i < n_options; i++)
            if (option_table[i].help && (option_table[i].commands & 1u << c->command))
                OT_TRY(put_option(&option_table[i], f));
        fputs("    ) ;;\n", f);
    }
    fputs("    esac\n"
          "    if ((CURRENT == 2)) && [[ ${words[2]} != -* ]]; then\n"
          "        _describe -t commands command commands\n"
          "        _files\n"
          "    else\n"
          "        _arguments -S : $options '*:file:_files'\n"
          "    fi\n"
          "}\n"
          "compdef _onnx_tile onnx-tile\n",
          f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
