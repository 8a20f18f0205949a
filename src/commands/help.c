/* --help: an overview of the commands, the options of one command, the options of one topic.
 * Made from the tables, in lines of 80 columns. */
#include "option_table.h"

enum { COLUMNS = 80, HELP_AT = 27, USAGE_AT = 33 };

/* The words of `text` from column `at` on, indented to it in every further line. The first line
 * is there up to column `used`. */
static void put_wrapped(const char *text, int used, int at, FILE *f)
{
    int column = used;
    if (used >= at) {
        fputc('\n', f);
        column = 0;
    }
    fprintf(f, "%*s", at - column, "");
    column = at;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column > at && column + 1 + n > COLUMNS) {
            fprintf(f, "\n%*s", at, "");
            column = at;
        }
        column += fprintf(f, "%s%.*s", column > at ? " " : "", n, text);
        text += n + (text[n] == ' ');
    }
    fputc('\n', f);
}

/* Names of the commands of some bits, with commas. */
static void put_names(unsigned commands, char *buf, size_t size)
{
    *buf = '\0';
    for (size_t k = 0; k < n_commands; k++) {
        size_t used = strlen(buf);
        if (commands & 1u << command_table[k].command)
            snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
                     command_word(&command_table[k]));
    }
}

/* " (not a, b)" or " (of a, b)", whichever is shorter: where the commands of an option are not
 * those of its topic. */
static void put_exceptions(unsigned commands, unsigned all, char *buf, size_t size)
{
    char has[160], lacks[160];
    *buf = '\0';
    if (commands == all) return;
    put_names(commands, has, sizeof has);
    put_names(all & ~commands, lacks, sizeof lacks);
    bool of = (commands & ~all) || strlen(has) < strlen(lacks);
    snprintf(buf, size, " (%s %s)", of ? "of" : "not", of ? has : lacks);
}

/* " (run, bench: random numbers for the others)" in a topic, "; random numbers for the others" in
 * the help of one of these commands. */
static void put_remark(const option *o, unsigned of, char *buf, size_t size)
{
    char names[160];
    *buf = '\0';
    for (size_t k = 0; k < n_remarks; k++) {
        const option_remark *r = &remark_table[k];
        if (strcmp(r->name, o->name) != 0 || !(of & r->commands)) continue;
        put_names(r->commands, names, sizeof names);
        if (of & ~r->commands)
            snprintf(buf, size, " (%s: %s)", names, r->text);
        else
            snprintf(buf, size, "; %s", r->text);
    }
}

/* `all`: the commands that the reader takes for granted; `of`: those that are told about. */
static void help_option(const option *o, unsigned all, unsigned of, FILE *f)
{
    char text[512], exceptions[200], remark[200];
    put_remark(o, of, remark, sizeof remark);
    int used = o->letter ? fprintf(f, "  -%c, --%s", o->letter, o->name)
                         : fprintf(f, "  --%s", o->name);
    if (o->value) used += fprintf(f, " %s", o->value);
    put_exceptions(o->commands, all, exceptions, sizeof exceptions);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", o->help, remark, o->dflt ? " (default: " : "",
             o->dflt ? o->dflt : "", o->dflt ? ")" : "", exceptions);
    put_wrapped(text, used, HELP_AT, f);
}

static void help_topic(option_subject topic, FILE *f)
{
    char names[200];
    const option_topic *t = &topic_table[topic];
    put_names(t->commands, names, sizeof names);
    fprintf(f, "%s: %s (%s)\n", t->name, t->heading,
            t->commands == EVERY ? "every command" : names);
    for (size_t k = 0; k < n_options; k++)
        if (option_table[k].help && option_table[k].topic == topic)
            help_option(&option_table[k], t->commands, option_table[k].commands, f);
}

static void help_usage(const command_row *c, FILE *f)
{
    char text[96];
    int used = fprintf(f, "  onnx-tile %s", c->usage);
    snprintf(text, sizeof text, "%s%s%s", c->needs ? "(needs " : c->help, c->needs ? c->needs : "",
             c->needs ? ")" : "");
    put_wrapped(text, used, USAGE_AT, f);
}

/* All that a command takes, topic by topic. */
static void help_command(const command_row *c, FILE *f)
{
    const unsigned bit = 1u << c->command;
    help_usage(c, f);
    for (size_t t = 0; t < TOPIC_COUNT; t++) {
        bool begun = false;
        for (size_t k = 0; k < n_options; k++) {
            const option *o = &option_table[k];
            if (!o->help || o->topic != t || !(o->commands & bit)) continue;
            if (!begun) fprintf(f, "\n%s:\n", topic_table[t].heading);
            begun = true;
            help_option(o, o->commands, bit, f);
        }
    }
}

static void help_overview(FILE *f)
{
    char topics[160] = "";
    fputs("onnx-tile: run chains of an ONNX model tile by tile: same results, less memory\n\n", f);
    for (size_t k = 0; k < n_commands; k++) help_usage(&command_table[k], f);
    for (size_t k = 0; k < TOPIC_COUNT; k++) {
        size_t used = strlen(topics);
        snprintf(topics + used, sizeof topics - used, "%s%s", k ? ", " : "", topic_table[k].name);
    }
    fputs("\n  COMMAND --help       its options\n", f);
    fputs("  --help=TOPIC        ", f);
    put_wrapped(topics, 22, 23, f);
    fputs("  --help=all           every option\n\n"
          "sizes take K, M, G; a MODEL, FILE or OUT of - is stdin or stdout\n"
          "exit: 0 done, 1 the input is wrong, 2 usage, 3 a budget or limit cannot be kept,\n"
          "      4 the system failed\n",
          f);
}

/* What the word after --help= asks for. */
static ot_status help_named(const char *name, FILE *f, ot_diag *d)
{
    char hint[96];
    ot_nearest near = ot_nearest_to(name, strlen(name));
    bool all = strcmp(name, "all") == 0, found = all;
    for (option_subject t = 0; t < TOPIC_COUNT; t++) {
        ot_nearest_try(&near, topic_table[t].name, strlen(topic_table[t].name));
        if (!all && strcmp(name, topic_table[t].name) != 0) continue;
        if (all && t > 0) fputc('\n', f);
        help_topic(t, f);
        found = true;
    }
    for (size_t k = 0; k < n_commands; k++) {
        const char *word = command_word(&command_table[k]);
        ot_nearest_try(&near, word, strlen(word));
        if (strcmp(name, word) != 0) continue;
        help_command(&command_table[k], f);
        found = true;
    }
    if (found) return OT_OK;
    return ot_fail(d, OT_E_USAGE, "--help '%.80s': no topic or command of this name%s", name,
                   ot_nearest_hint(&near, "; ", hint, sizeof hint));
}

ot_status ot_options_help(const ot_options *o, FILE *f, ot_diag *diag)
{
    if (o->help_topic)
        OT_TRY(help_named(o->help_topic, f, diag));
    else if (o->command == OT_CMD_OPTIMISE)
        help_overview(f);
    for (size_t k = 0; k < n_commands && !o->help_topic && o->command != OT_CMD_OPTIMISE; k++)
        if (command_table[k].command == o->command) help_command(&command_table[k], f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
