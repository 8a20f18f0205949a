/* A script for bash that completes the words of the program: every command, every option, and
 * what values its kind has.
 *
 * bash hands over COMP_WORDS, cut at "=", too: "--goal=mem" is three words. The word before the
 * cursor that is no "=" says what comes.
 */
#include "completion.h"

static void put_options(unsigned bit, FILE *f)
{
    for (size_t k = 0; k < n_options; k++)
        if (option_table[k].help && (option_table[k].commands & bit))
            fprintf(f, " --%s", option_table[k].name);
}

bool completion_lists_words(const option *o)
{
    return o->value[strspn(o->value, "abcdefghijklmnopqrstuvwxyz-|")] == '\0';
}

/* `name` of a list that has a name at the beginning of each line ("host   this machine"). */
typedef ot_status list_writer(FILE *f);
static ot_status put_first_words(list_writer *list, FILE *f)
{
    char *text = NULL;
    size_t n;
    FILE *m = open_memstream(&text, &n);
    if (!m) return OT_E_NOMEM;
    ot_status s = list(m);
    if (fclose(m) != 0 && s == OT_OK) s = OT_E_NOMEM;
    for (const char *line = text; s == OT_OK && *line; line += strcspn(line, "\n") + 1)
        fprintf(f, "%s%.*s", line == text ? "" : " ", (int)strcspn(line, " "), line);
    free(text);
    return s;
}

ot_status completion_words(const option *o, FILE *f)
{
    if (o->kind == TARGET) return put_first_words(ot_target_list, f);
    if (o->kind == RUNTIME) return put_first_words(ot_runtime_list, f);
    if (completion_lists_words(o))
        for (const char *c = o->value; *c; c++) fputc(*c == '|' ? ' ' : *c, f);
    return OT_OK;
}

completion_files completion_files_of(const option *o)
{
    switch (o->kind) {
    case TARGET: return FILES_XML;
    case FOLDER: return FILES_FOLDERS;
    case FILENAME:
    case REPORT:
    case SOURCE:
    case OUTPUT:
    case INPUT: return FILES_ALL;
    default: return FILES_NONE;
    }
}

/* The shell code that completes the value of an option, after "case". */
static ot_status put_value(const option *o, FILE *f)
{
    static const char *const files[] = {"", "_onnx_tile_files", "_onnx_tile_files xml",
                                        "_onnx_tile_files /"};
    const char *of = files[completion_files_of(o)];
    const bool words = o->kind == TARGET || o->kind == RUNTIME || completion_lists_words(o);
    fputs("    ", f);
    if (o->letter) fprintf(f, "-%c|", o->letter);
    fprintf(f, "--%s) ", o->name);
    if (words) fputs("_onnx_tile_words \"", f);
    OT_TRY(completion_words(o, f));
    if (words) fputs(*of ? "\"; " : "\"", f);
    fprintf(f, "%s ;;\n", words || *of ? of : ":");
    return OT_OK;
}

static const char HEAD[] =
    "# Completion of onnx-tile for bash, which \"onnx-tile --completion bash\" prints.\n"
    "_onnx_tile_words()\n"
    "{\n"
    "    COMPREPLY+=($(compgen -W \"$1\" -- \"$cur\"))\n"
    "}\n"
    "\n"
    "# Files: all, those that end in .$1, or folders for /.\n"
    "_onnx_tile_files()\n"
    "{\n"
    "    local IFS=$'\\n'\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    COMPREPLY+=($(compgen -d -- \"$cur\"))\n"
    "    [ \"${1-}\" = / ] || COMPREPLY+=($(compgen -f ${1:+-X} ${1:+\"!*.$1\"} -- \"$cur\"))\n"
    "}\n"
    "\n"
    "# What follows the option $1, and true; false: it takes no value.\n"
    "_onnx_tile_value()\n"
    "{\n"
    "    case $1 in\n";

static const char TAIL[] =
    "_onnx_tile()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) options commands\n"
    "    COMPREPLY=()\n"
    "    [ \"$cur\" = = ] && cur= && at=$((at + 1))\n"
    "    if [ \"${COMP_WORDS[at]}\" = = ]; then\n"
    "        at=$((at - 1))\n"
    "        # --input NAME=FILE\n"
    "        case ${COMP_WORDS[at]} in -*) ;; *) _onnx_tile_files; return ;; esac\n"
    "        case ${COMP_WORDS[at]} in --help) _onnx_tile_topics; return ;; --verify) "
    "_onnx_tile_words all; return ;; esac\n"
    "    fi\n"
    "    _onnx_tile_value \"${COMP_WORDS[at]}\" && return\n"
    "    _onnx_tile_options \"${COMP_WORDS[1]}\"\n"
    "    case $cur in\n"
    "    -*) _onnx_tile_words \"$options\" ;;\n"
    "    *) [ \"$COMP_CWORD\" = 1 ] && _onnx_tile_words \"$commands\"; _onnx_tile_files ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _onnx_tile onnx-tile\n";

static ot_status put_bash(FILE *f)
{
    fputs(HEAD, f);
    for (size_t k = 0; k < n_options; k++)
        if (option_table[k].help && option_table[k].value) OT_TRY(put_value(&option_table[k], f));
    fputs("    *) return 1 ;;\n    esac\n}\n\n# The options of the command $1, and all "
          "commands.\n_onnx_tile_options()\n{\n    commands=\"",
          f);
    for (size_t k = 1; k < n_commands; k++) fprintf(f, " %s", command_table[k].name);
    fputs("\"\n    case $1 in\n", f);
    for (size_t k = 1; k <= n_commands; k++) { /* the one without a name last: its pattern is * */
        const command_row *c = &command_table[k % n_commands];
        fprintf(f, "    %s) options=\"", *c->name ? c->name : "*");
        put_options(1u << c->command, f);
        fputs("\" ;;\n", f);
    }
    fputs("    esac\n}\n\n_onnx_tile_topics()\n{\n    _onnx_tile_words \"all", f);
    for (size_t k = 0; k < TOPIC_COUNT; k++) fprintf(f, " %s", topic_table[k].name);
    for (size_t k = 0; k < n_commands; k++) fprintf(f, " %s", command_word(&command_table[k]));
    fputs("\"\n}\n\n", f);
    fputs(TAIL, f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}

ot_status ot_options_completion(const char *shell, FILE *f)
{
    if (strcmp(shell, "zsh") == 0) return completion_zsh(f);
    if (strcmp(shell, "fish") == 0) return completion_fish(f);
    return put_bash(f);
}
