# onnx-tile. `make help` lists the targets; V=1 shows the commands.
#
#   src/**/*.c ---------> build/obj/*.o --> build/libonnxtile.a --> build/onnx-tile, build/tests/*
#   /usr/include/onnx/onnx.proto --protoc-c--> build/gen/onnx.pb-c.{c,h}
#
# scripts/setup.sh installs what is missing, and what it found is in $(CONFIG) (once; a no-op when all is there).

ifeq ($(origin CC),default)
CC := gcc
endif
AR       ?= ar
PREFIX   ?= /usr/local
DESTDIR  ?=
LIBDIR   ?= lib
BUILD    ?= build
# A complete build whose objects are taken where ENGINE=no and GLPK=no change none (`make no-engine`).
BASE     ?= $(BUILD)
# The native engine is a separate part: `ENGINE=no` builds without src/engine/ and the commands that run models.
ENGINE   ?= yes
# `GLPK=no` builds without src/select/search/*milp*, lp*: plans are the same, found by label_search.c.
GLPK     ?= yes
# `PLATFORM=windows`, `PLATFORM=wasm`: what they lack of POSIX is in src/base/port/ (scripts/cross.sh).
PLATFORM ?= linux
VERSION  := 0.1.0
PYTHON   ?= .venv/bin/python

OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror=implicit-function-declaration
SAN      :=
# Of the tests' own code, which is compiled for one run: making it fast takes longer than it saves, most of all what a sanitizer adds.
TEST_OPT ?= -O0
# Nearly two hundred test programs are linked, of the whole library each: the fastest linker that is there. Looked for at the first.
TEST_LD   = $(eval TEST_LD := $(firstword $(foreach l,$(if $(filter linux,$(PLATFORM)),lld gold),$(shell \
    echo 'int main(void){return 0;}' | $(CC) $(LDFLAGS) -fuse-ld=$(l) -x c - -o /dev/null 2>/dev/null && echo -fuse-ld=$(l)))))$(TEST_LD)
CPPFLAGS += -D_GNU_SOURCE -DOT_VERSION='"$(VERSION)"' -Iinclude -Isrc -isystem $(BASE)/gen
CFLAGS   ?=
# A section for each function: links leave out what nobody reaches, and `make dead` lists it.
SECTIONS := -ffunction-sections -fdata-sections
override CFLAGS := -std=c17 $(OPT) $(WARN) $(SECTIONS) $(SAN) $(CFLAGS)
# Loops that vectorise are marked as OpenMP does; a compiler that does not know the marks leaves some of them as they are.
SIMD     := $(if $(filter yes,$(ENGINE)),$(shell echo 'int main(void){return 0;}' | $(CC) -fopenmp-simd -x c - -o /dev/null 2>/dev/null && echo -fopenmp-simd))
# oneDNN, and the OpenMP library that it uses, which is told to use one thread.
DNNL_LIBS := $(if $(filter yes,$(ENGINE)),-ldnnl -lgomp)
GLPK_LIBS := $(if $(filter yes,$(GLPK)),-lglpk)
LDLIBS    = $(DNNL_LIBS) $(PROTOBUF_LIBS) $(XML_LIBS) $(GLPK_LIBS) -lm -lpthread

Q := @
ifeq ($(V),1)
Q :=
endif

ENGINE_SRCS := $(wildcard src/engine/*/*.c src/engine/*/*/*.c src/measure/*.c) \
    $(addprefix src/commands/,bench_command.c bench_print.c calibrate_command.c model_device.c kernel_tune.c run_command.c run_kernel.c run_outputs.c) src/api/verify_tiled.c src/api/session_arrays.c src/api/session_json.c
# The operator library for ONNX Runtime is a library of its own, beside the shared one.
ORT_SRCS  := $(wildcard src/ort/*.c)
PORT_SRCS := $(wildcard src/base/port/*.c)
SRCS      := $(filter-out $(ORT_SRCS) $(PORT_SRCS),$(sort $(wildcard src/*/*.c src/*/*/*.c src/*/*/*/*.c)))
UNIT_SRCS := $(sort $(wildcard tests/unit/test_*.c))
ifeq ($(ENGINE),yes)
CPPFLAGS  += -DOT_ENGINE
else
SRCS      := $(filter-out $(ENGINE_SRCS),$(SRCS))
UNIT_SRCS := $(filter-out tests/unit/test_engine%.c tests/unit/test_ref_%.c tests/unit/test_cost_engine.c,$(UNIT_SRCS))
endif
ifeq ($(GLPK),yes)
CPPFLAGS  += -DOT_GLPK
else
SRCS      := $(filter-out $(addprefix src/select/search/,lp.c lp_glpk.c net_milp.c),$(SRCS))
UNIT_SRCS := $(filter-out tests/unit/test_lp.c tests/unit/test_net_milp.c,$(UNIT_SRCS))
endif
ifeq ($(PLATFORM),windows)
CPPFLAGS  += -include base/port/port.h -Isrc/base/port/include -D_FILE_OFFSET_BITS=64 -D__USE_MINGW_ANSI_STDIO=1
SRCS      := $(filter-out src/base/file_view.c src/base/signals.c,$(SRCS)) $(filter src/base/port/win_%,$(PORT_SRCS))
# Its headers' isfinite narrows, and formats are checked as Microsoft's, which they are not: other builds look at both.
override CFLAGS += -Wno-conversion -Wno-format -Wno-format-extra-args
LDLIBS    += -lbcrypt -lshell32 -lws2_32
EXE       := .exe
endif
ifeq ($(PLATFORM),wasm)
CPPFLAGS  += -include base/port/wasm.h
SRCS      += $(filter src/base/port/wasm_%,$(PORT_SRCS))
EXE       := .js
endif
# Thousands of plans that ask whether each number of a runtime counts, and large graphs that nothing is to be planned
# for: nothing that a sanitizer or a build without the engine would add to.
ifneq ($(SAN)$(filter no,$(ENGINE)),)
UNIT_SRCS := $(filter-out tests/unit/test_runtime_fields.c tests/unit/test_plan_scale.c,$(UNIT_SRCS))
endif
# Drivers of devices take most of their time, and are not instrumented: of tests of device sessions only some are.
ifneq ($(findstring sanitize,$(SAN)),)
UNIT_SRCS := $(filter-out $(addprefix tests/unit/test_engine_device_,shared.c layout.c blocks.c),$(UNIT_SRCS))
endif
OWN_SRCS  := $(SRCS)
ORACLE_SRCS := $(sort $(wildcard tests/oracle/*.c))
ifneq ($(ENGINE),yes)
ORACLE_SRCS := $(filter-out tests/oracle/compare_fusion.c tests/oracle/noise_rule.c tests/oracle/guarded.c,$(ORACLE_SRCS))
endif
ifneq ($(BASE),$(BUILD))
OWN_SRCS    := $(filter $(shell scripts/config_changes.sh sources $(BASE)),$(SRCS))
OTHERS      := $(shell scripts/config_changes.sh programs $(BASE) $(SRCS))
# What a whole range of sizes holds: many plans of what other tests plan once.
UNIT_SRCS   := $(filter-out tests/unit/test_size_bounds.c,$(filter $(OTHERS:%=tests/unit/%.c),$(UNIT_SRCS)))
ORACLE_SRCS := $(filter $(OTHERS:%=tests/oracle/%.c),$(ORACLE_SRCS))
endif
OBJS      := $(OWN_SRCS:src/%.c=$(BUILD)/obj/%.o) $(patsubst src/%.c,$(BASE)/obj/%.o,$(filter-out $(OWN_SRCS),$(SRCS)))
GEN_OBJ   := $(addprefix $(BASE)/obj/gen/,onnx.pb-c.o page.o benefit_xsd.o)
LIB_OBJS  := $(filter-out %/obj/commands/main.o,$(OBJS)) $(GEN_OBJ)
LIB       := $(BUILD)/libonnxtile.a
# Tile kernels, a library of its own (src/tk/tk.h): nothing of ONNX, no third party.
TK_LIB    := $(BUILD)/libonnxtile_tk.a
TK_SRCS   := $(wildcard src/base/*.c src/machine/*.c src/pack/*.c) $(filter-out src/tk/device/%,$(wildcard src/tk/*/*.c))
TOOL      := $(BUILD)/onnx-tile$(EXE)
UNIT_BINS := $(UNIT_SRCS:tests/unit/%.c=$(BUILD)/tests/%)
# Oracle programs: read by scripts and end-to-end tests, not run by themselves.
ORACLE_BINS := $(ORACLE_SRCS:tests/oracle/%.c=$(BUILD)/tests/%)
EXAMPLE_SRCS := $(sort $(wildcard examples/*.c))
EXAMPLE_BINS := $(EXAMPLE_SRCS:examples/%.c=$(BUILD)/examples/%)
FUZZ_SRCS := $(sort $(wildcard tests/fuzz/*.c))
E2E_TESTS := $(sort $(wildcard tests/e2e/*.sh))
C_FILES   := $(sort $(SRCS) $(PORT_SRCS)) $(ORT_SRCS) $(wildcard tests/unit/*.h tests/oracle/*.h tests/fuzz/*.h) $(wildcard include/*.h src/*/*.h src/*/*/*.h src/*/*/*/*.h) $(UNIT_SRCS) $(ORACLE_SRCS) $(EXAMPLE_SRCS) $(FUZZ_SRCS)

TEST_ENV   = TOOL=$(abspath $(TOOL)) PYTHON=$(abspath $(PYTHON)) BUILD=$(abspath $(BUILD))
RUN_TESTS  = $(TEST_ENV) scripts/run_tests.sh

# Seconds that `make fuzz` takes, and graphs of `make soak`.
FUZZ_TIME ?= 240
SOAK_SEEDS ?= 5000

.PHONY: all tk help check unit no-engine golden golden-update e2e doc-test soak demo reports install uninstall asan ubsan ubsan-clang ubsan-clang-run sanitize san-run tsan tsan-run fuzz fuzz-run matrix arrows dead lint format \
        format-check bench busy cover clean python test-tools wheel wheel-parts ort-library types check-python check-wheel deb check-deb sdist release check-sdist site page check-page
.DELETE_ON_ERROR:
.SECONDARY:

all: $(TOOL) $(LIB)

help:
	@echo 'make [all]        build/onnx-tile and build/libonnxtile.a'
	@echo 'make tk           build/libonnxtile_tk.a: tile kernels as a library of their own (src/tk/tk.h)'
	@echo 'make check        every test: unit, golden, e2e'
	@echo 'make unit | golden | golden-update | e2e'
	@echo 'make no-engine    what ENGINE=no GLPK=no changes: the program, and the unit tests of that'
	@echo 'make soak         SOAK_SEEDS=$(SOAK_SEEDS) random graphs in ONNX Runtime and in the engine, a fifth as many kernels on OpenCL; OT_SEED=n for others'
	@echo 'make doc-test     commands that the documents show are run, names and links in them checked'
	@echo 'make site         build/site: the documents as static pages, with search and references; links are checked'
	@echo 'make page         build/page: the optimizer as WebAssembly in a page of its own; check-page: in headless Chromium'
	@echo 'make demo         tile a ResNet-50 and a super-resolution network, run them in ONNX Runtime'
	@echo 'make reports      the sample reports and the screenshot of reports/, anew'
	@echo 'make install      PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'
	@echo 'make wheel        dist/onnx_tile-$(VERSION)-py3-none-manylinux_*.whl: the Python package with the program and the library inside'
	@echo 'make sdist        dist/onnx_tile-$(VERSION).tar.gz: from which pip compiles the package'
	@echo 'make release      wheel and source archive, checked: descriptions, tags, licences, what they hold; HOMEPAGE=PREFIX of README'\''s links'
	@echo 'make deb          dist/*.deb: Debian packages of the program and of the library (scripts/setup.sh deb)'
	@echo 'make ort-library  build/wheel/libonnxtile_ort.so: the engine as an operator of ONNX Runtime (docs/onnxruntime-operators.md)'
	@echo 'make check-deb    the packages in a bare root: installed, run, removed'
	@echo 'make check-sdist  the source archive in a bare root: compiled by pip, run'
	@echo 'make types        mypy --strict over the Python package'
	@echo 'make check-python tests of the wheel, in a fresh virtual environment'
	@echo 'make check-wheel  the wheel in a bare root: installed, README'\''s lines of Python run'
	@echo 'make asan | ubsan unit tests, the tool over small models and mutations of them under a sanitizer'
	@echo 'make sanitize     unit tests under both at once'
	@echo 'make ubsan-clang  a part of them under that of clang'
	@echo 'make tsan         the engine: unit tests and tiled models on three threads, under ThreadSanitizer (clang)'
	@echo 'make fuzz         libFuzzer for FUZZ_TIME=$(FUZZ_TIME) seconds (clang)'
	@echo 'make matrix       what other runtimes make of tiled models: docs/matrix.md anew (downloads them, once)'
	@echo 'make busy         small steps beside processes that never rest, the engine next to ONNX Runtime'
	@echo 'make dead         functions of the library that nobody reaches'
	@echo 'make arrows       which folders use which: none uses a later one'
	@echo 'make lint | format | format-check | bench | cover | clean'
	@echo 'variables: CC CFLAGS OPT PYTHON PREFIX DESTDIR V=1 ENGINE=no GLPK=no'

# ---- configuration: found (and installed) once ----

# The last build without GLPK, as a make of their own: nothing of GLPK is to be installed for them.
NO_CONFIG := clean help format format-check wheel sdist release ort-library
CONFIG    := build/config-$(ENGINE)$(if $(filter yes,$(GLPK)),,-no-glpk).mk
ifneq ($(filter-out $(NO_CONFIG),$(or $(MAKECMDGOALS),all)),)
include $(CONFIG)
endif

$(CONFIG): scripts/setup.sh
	$(Q)ENGINE=$(ENGINE) GLPK=$(GLPK) scripts/setup.sh build
	@mkdir -p build
	@{ echo "PROTOBUF_LIBS := $$(pkg-config --libs libprotobuf-c)"; \
	   echo "XML_CFLAGS := $$(pkg-config --cflags libxml-2.0)"; \
	   echo "XML_LIBS := $$(pkg-config --libs libxml-2.0)"; \
	   echo "CMOCKA_LIBS := -lcmocka"; \
	   echo "ONNX_PROTO_DIR := /usr/include/onnx"; } > $@

# ---- compile ----

$(BUILD)/gen/onnx.pb-c.c: $(ONNX_PROTO_DIR)/onnx.proto
	@echo '  PROTOC   $@'
	@mkdir -p $(@D)
	$(Q)protoc-c -I $(ONNX_PROTO_DIR) --c_out=$(@D) onnx.proto
$(BUILD)/gen/onnx.pb-c.h: $(BUILD)/gen/onnx.pb-c.c ;

# Style and script of the HTML report as C strings, without the comments that begin a line, and what a
# Content-Security-Policy calls them.
$(BUILD)/gen/page.c: src/report/html/page.css src/report/html/page.js
	@echo '  EMBED    $@'
	@mkdir -p $(@D)
	$(Q)for x in css js; do \
	    sed -e '/^\/\*.*\*\/$$/d' -e '/^\/\*/,/\*\/$$/d' src/report/html/page.$$x > $(@D)/page.$$x || exit 1; \
	    echo "const char ot_page_$$x[] ="; sed 's/[\\"?]/\\&/g; s/.*/    "&\\n"/' $(@D)/page.$$x; echo '    ;'; \
	    echo "const char ot_page_$${x}_hash[] = \"sha256-$$(sha256sum < $(@D)/page.$$x | cut -c1-64 | tr a-f A-F | \
	        basenc --base16 -d | basenc --base64)\";"; \
	done > $@

# The schema of XML reports, by which `compare` checks what it reads.
$(BUILD)/gen/benefit_xsd.c: reports/benefit.xsd
	@echo '  EMBED    $@'
	@mkdir -p $(@D)
	$(Q){ echo 'const char ot_benefit_xsd[] ='; sed 's/[\\"?]/\\&/g; s/.*/    "&\\n"/' $<; echo '    ;'; } > $@

# Generated code: our warnings are not its business.
$(BUILD)/obj/gen/page.o $(BUILD)/obj/gen/benefit_xsd.o: $(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 $(OPT) $(SAN) -w -c $< -o $@

$(BUILD)/obj/gen/onnx.pb-c.o: $(BUILD)/gen/onnx.pb-c.c $(BUILD)/gen/onnx.pb-c.h
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE $(OPT) $(SAN) -w -I$(BUILD)/gen -c $< -o $@

$(BUILD)/obj/%.o: src/%.c | $(BASE)/gen/onnx.pb-c.h
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(patsubst -I%,-isystem %,$(XML_CFLAGS)) -MMD -MP -c $< -o $@

# The port itself sees what the system has.
$(BUILD)/obj/base/port/%.o: override CFLAGS += -DOT_PORT_ITSELF

# Loops over numbers are the compiler's to vectorise.
$(BUILD)/obj/engine/%.o $(BUILD)/obj/measure/%.o: override CFLAGS += $(if $(SAN),,-O3) -fno-math-errno -fno-trapping-math -ffp-contract=fast $(or $(SIMD),-Wno-unknown-pragmas)

$(LIB): $(LIB_OBJS)
	@echo '  AR       $@'
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

tk: $(TK_LIB)

$(TK_LIB): $(TK_SRCS:src/%.c=$(BUILD)/obj/%.o)
	@echo '  AR       $@'
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(TOOL): $(BUILD)/obj/commands/main.o $(LIB)
	@echo '  LINK     $@'
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--gc-sections -o $@ $^ $(LDLIBS)

$(BUILD)/tests/%: tests/unit/%.c $(LIB)
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit -Itests/oracle $(patsubst -I%,-isystem %,$(XML_CFLAGS)) $(CFLAGS) $(TEST_OPT) \
	    $(if $(findstring sanitize,$(SAN)),-DOT_SANITIZED) -MMD -MP -MF $@.d $(LDFLAGS) $(TEST_LD) -o $@ $< $(LIB) \
	    $(CMOCKA_LIBS) $(LDLIBS)

# Most of what they compute is their own: kernels are run, convolutions done in double precision.
$(BUILD)/tests/test_kernel_run $(BUILD)/tests/test_engine_winograd: TEST_OPT := -O1

# Sees the library of tile kernels, and nothing else.
$(BUILD)/tests/test_tk_library: tests/unit/test_tk_library.c $(TK_LIB)
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -Isrc $(CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) $(TEST_LD) -o $@ $< $(TK_LIB) $(CMOCKA_LIBS) -lm -lpthread

# What it makes fail: calls between files of the library, which need no code of their own for it.
OOM_WRAPS := ot_alloc ot_alloc_n ot_memdup ot_strdup ot_strndup ot_format ot_grow ot_arena_new malloc calloc open_memstream fsync
$(BUILD)/tests/test_oom_commands: override LDFLAGS += $(OOM_WRAPS:%=-Wl,--wrap=%)

$(BUILD)/tests/%: tests/oracle/%.c $(LIB)
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/oracle $(CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) $(TEST_LD) -o $@ $< $(LIB) \
	    $(CMOCKA_LIBS) $(LDLIBS)

# The fuzz harness with its own driver, and with libFuzzer's (`make fuzz`; clang).
$(BUILD)/tests/fuzz_driver: tests/fuzz/driver.c tests/fuzz/fuzz_model.c $(LIB)
	@echo '  CC       tests/fuzz'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LIB) $(LDLIBS)

# What `make fuzz` runs, each with its corpus.
FUZZERS := kernel mlir model range crops $(if $(filter yes,$(ENGINE)),session engine_form arrays)
$(FUZZERS:%=$(BUILD)/tests/fuzz_%): $(BUILD)/tests/%: tests/fuzz/%.c tests/fuzz/fuzz_bounds.h tests/fuzz/fuzz_input.h $(LIB)
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< $(LIB) $(LDLIBS)

# Objects of all of them, built by `make unit` and `check` so that none falls behind the library; needs no clang.
FUZZ_OBJS := $(FUZZERS:%=$(BUILD)/tests/fuzz_%.o)
$(FUZZ_OBJS): $(BUILD)/tests/%.o: tests/fuzz/%.c | $(BASE)/gen/onnx.pb-c.h
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# The example sees what a user of the installed library sees: one header and the archive.
$(BUILD)/examples/%: examples/%.c $(LIB) include/onnx_tile.h
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) -Iinclude $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

-include $(OBJS:.o=.d) $(FUZZ_OBJS:.o=.d) $(addsuffix .d,$(UNIT_BINS) $(ORACLE_BINS))

# ---- test ----

# The Python environment of the scripts; PYTHON=... uses one of your own instead.
python:
	$(Q)$(if $(filter .venv/bin/python,$(PYTHON)),scripts/setup.sh demo,true)

# That, and what tests run besides: a browser, devices.
test-tools:
	$(Q)$(if $(filter .venv/bin/python,$(PYTHON)),scripts/setup.sh check,true)

# Under a sanitizer without what none of them runs.
unit: $(UNIT_BINS) $(if $(SAN),,$(ORACLE_BINS) $(FUZZ_OBJS))
	@$(RUN_TESTS) $(UNIT_BINS)

# The unit tests that a build without engine and GLPK changes: what it does not is taken from the complete one.
no-engine: $(TOOL) $(UNIT_BINS) $(ORACLE_BINS)
	@$(MAKE) --no-print-directory ENGINE=no GLPK=no BUILD=$(BUILD)/no-engine BASE=$(BUILD) all unit

golden: $(TOOL)
	@$(RUN_TESTS) scripts/golden.sh

golden-update: $(TOOL)
	@$(TEST_ENV) scripts/golden.sh --update

e2e: test-tools $(TOOL) $(ORACLE_BINS) $(EXAMPLE_BINS)
	@$(RUN_TESTS) $(E2E_TESTS)

check: test-tools $(TOOL) $(UNIT_BINS) $(ORACLE_BINS) $(EXAMPLE_BINS) $(FUZZ_OBJS)
	@$(RUN_TESTS) $(UNIT_BINS) scripts/golden.sh $(E2E_TESTS)

# README and docs: commands are run, shown output is compared, what they name exists.
doc-test: test-tools $(TOOL)
	@$(TEST_ENV) tests/e2e/doc_test.sh

# Not part of check: as many random graphs as patience allows.
soak: test-tools $(TOOL)
	@$(TEST_ENV) RANDOM_SEEDS=$(SOAK_SEEDS) tests/e2e/random_graphs.sh
	@$(TEST_ENV) RANDOM_KERNELS=$$(($(SOAK_SEEDS) / 5)) tests/e2e/kernel_device.sh

demo: python $(TOOL)
	@$(PYTHON) scripts/demo.py --tool $(TOOL)

reports: test-tools $(TOOL)
	@$(TEST_ENV) scripts/reports.sh reports
	@$(PYTHON) scripts/screenshot.py reports/resnet50.html reports/resnet50.png

bench: python $(TOOL)
	@$(PYTHON) scripts/bench.py --tool $(TOOL)

# Leaks of drivers' libraries are not ours. What the sanitizer notes of their thread-local memory is a guess at what lies before it, and
# where the guess is wrong it dies while it looks for leaks ("Tracer caught signal 11"); that of ours is static, which is no guess.
ASAN := detect_leaks=1:intercept_tls_get_addr=0:exitcode=99
LSAN := LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0
asan: python
	@ASAN_OPTIONS=$(ASAN):abort_on_error=0 $(LSAN) $(MAKE) --no-print-directory BUILD=build/asan OPT='-O1 -g' \
	    SAN='-fsanitize=address -fno-omit-frame-pointer' unit san-run

# Both in one build: what .ci/run has the time for. gcc warns of more that may be uninitialized when it instruments. What
# object-size would find of a pointer, AddressSanitizer finds.
sanitize:
	@ASAN_OPTIONS=$(ASAN) $(LSAN) UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) --no-print-directory BUILD=build/sanitize OPT='-O1 -g1' \
	    SAN='-fsanitize=address,undefined -fno-sanitize=object-size -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Wno-maybe-uninitialized' unit

ubsan: python
	@UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) --no-print-directory BUILD=build/ubsan OPT='-O1 -g' \
	    SAN='-fsanitize=undefined -fno-sanitize-recover=all' unit san-run

# clang's notes what gcc's does not: numbers that are converted to types that cannot hold them, offsets to null. A part of the unit
# tests, for .ci/run: those that read models, plan and compute.
CLANG_TESTS := import raise reader changing_files shape other_size plan plan_check plan_limits plan_memory \
    engine engine_npy engine_lower engine_chain engine_rows engine_int8 engine_lent
ubsan-clang:
	$(Q)scripts/setup.sh fuzz
	@UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) --no-print-directory CC=clang BUILD=build/ubsan-clang OPT=-O0 \
	    SAN='-fsanitize=undefined,integer-divide-by-zero -fno-sanitize-recover=all' ubsan-clang-run

ubsan-clang-run: $(CLANG_TESTS:%=$(BUILD)/tests/test_%)
	@$(RUN_TESTS) $^

san-run: $(TOOL) $(BUILD)/tests/fuzz_driver
	@$(RUN_TESTS) scripts/sanitize_run.sh

# oneDNN and its OpenMP library are not instrumented; threads that wait for each other are the engine's own (src/engine/core/pool.h).
tsan: python
	$(Q)scripts/setup.sh tsan
	@TSAN_OPTIONS='ignore_noninstrumented_modules=1:exitcode=66' $(MAKE) --no-print-directory CC=clang BUILD=build/tsan OPT='-O1 -g' \
	    SAN='-fsanitize=thread' tsan-run

tsan-run: $(TOOL) $(filter $(BUILD)/tests/test_engine%,$(UNIT_BINS))
	@$(RUN_TESTS) $(filter $(BUILD)/tests/test_engine%,$(UNIT_BINS)) scripts/tsan_run.sh

fuzz: python
	$(Q)scripts/setup.sh fuzz
	@$(MAKE) --no-print-directory CC=clang BUILD=build/fuzz OPT='-O1 -g' \
	    SAN='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' fuzz-run

# Each fuzzer for its share of the time; what it finds new stays in its corpus, what breaks it is left in build/fuzz/crash-NAME-*.
fuzz-run: $(TOOL) $(FUZZERS:%=$(BUILD)/tests/fuzz_%)
	@mkdir -p $(FUZZERS:%=$(BUILD)/corpus-%)
	@cp tests/golden/kernel/*.tk examples/kernels/*.tk $(BUILD)/corpus-kernel
	@cp tests/golden/mlir/*.mlir $(BUILD)/corpus-mlir
	@$(PYTHON) tests/fuzz/make_corpus.py $(BUILD)/corpus-model
	@$(PYTHON) tests/fuzz/make_corpus.py $(BUILD)/corpus-range --range
	@$(PYTHON) tests/fuzz/make_corpus.py $(BUILD)/corpus-crops
	@$(if $(filter session,$(FUZZERS)),$(PYTHON) tests/fuzz/make_corpus.py $(BUILD)/corpus-session --no-text)
	@$(if $(filter arrays,$(FUZZERS)),$(PYTHON) tests/fuzz/make_corpus.py $(BUILD)/corpus-arrays --arrays)
	@$(if $(filter engine_form,$(FUZZERS)),$(PYTHON) tests/fuzz/make_corpus.py $(BUILD)/corpus-engine_form --engine-form $(TOOL))
	@cd $(BUILD) && for f in $(FUZZERS); do \
	    echo "== fuzz_$$f"; dict=; [ -f $(abspath tests/fuzz)/$$f.dict ] && dict=-dict=$(abspath tests/fuzz)/$$f.dict; \
	    tests/fuzz_$$f -max_total_time=$$(($(FUZZ_TIME) / $(words $(FUZZERS)))) -timeout=30 -rss_limit_mb=3000 -max_len=30000 $$dict \
	        -print_final_stats=1 -artifact_prefix=crash-$$f- corpus-$$f || exit 1; done

# Every output form and small models in every runtime that can be had here; writes docs/matrix.md.
MATRIX_PYTHON ?= .venv-matrix/bin/python
matrix: $(TOOL)
	$(Q)$(if $(filter .venv-matrix/bin/python,$(MATRIX_PYTHON)),scripts/setup.sh matrix,true)
	@$(MATRIX_PYTHON) scripts/matrix.py --tool $(TOOL) --write docs

# A network of small steps, the machine as it is and beside busy processes; ONNX Runtime next to it.
busy: python $(TOOL)
	@$(PYTHON) scripts/busy_bench.py --tool $(TOOL)

cover:
	@$(MAKE) --no-print-directory BUILD=build/cover OPT='-O0 -g' SAN='--coverage' unit
	@scripts/cover.sh build/cover

# ---- source care ----

# Includes and link symbols between the folders of src/: none runs up.
arrows: python $(TOOL)
	@$(PYTHON) scripts/arrows.py --objects $(BUILD)/obj

# Functions of the library that nobody reaches: none.
dead: python $(TOOL)
	$(if $(filter yes,$(ENGINE)),,$(error Without the engine, what only it uses is not reached))
	@$(PYTHON) scripts/dead.py --main $(BUILD)/obj/commands/main.o --library $(LIB) --sources src --link $(CC) $(CFLAGS) $(LDFLAGS) $(LDLIBS)

lint: $(BUILD)/gen/onnx.pb-c.h
	$(Q)scripts/setup.sh lint
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	    --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches -Iinclude -Isrc -D_GNU_SOURCE $(SRCS)
	$(Q)clang-tidy --quiet $(SRCS) $(EXAMPLE_SRCS) -- -std=c17 $(CPPFLAGS) $(XML_CFLAGS)

format:
	$(Q)scripts/setup.sh format
	$(Q)clang-format -i $(C_FILES)

format-check:
	$(Q)scripts/setup.sh format
	$(Q)clang-format --dry-run --Werror $(C_FILES)
	$(Q)python3 scripts/width.py $(C_FILES) $(wildcard src/*/*/*.inc)

# ---- install ----

D := $(DESTDIR)$(PREFIX)
install: all
	install -d '$(D)/bin' '$(D)/$(LIBDIR)/pkgconfig' '$(D)/include' '$(D)/share/man/man1' '$(D)/share/onnx-tile' '$(D)/share/bash-completion/completions' \
	    '$(D)/share/zsh/vendor-completions' '$(D)/share/fish/vendor_completions.d'
	install -m 755 $(TOOL) '$(D)/bin/onnx-tile'
	install -m 644 $(LIB) '$(D)/$(LIBDIR)/libonnxtile.a'
	install -m 644 include/onnx_tile.h '$(D)/include/onnx_tile.h'
	$(TOOL) --completion bash > '$(D)/share/bash-completion/completions/onnx-tile'
	$(TOOL) --completion zsh > '$(D)/share/zsh/vendor-completions/_onnx-tile'
	$(TOOL) --completion fish > '$(D)/share/fish/vendor_completions.d/onnx-tile.fish'
	install -m 644 docs/onnx-tile.1 '$(D)/share/man/man1/onnx-tile.1'
	install -m 644 reports/target.xsd '$(D)/share/onnx-tile/target.xsd'
	install -m 644 reports/benefit.xsd '$(D)/share/onnx-tile/benefit.xsd'
	@{ echo 'prefix=$(PREFIX)'; echo 'libdir=$${prefix}/$(LIBDIR)'; echo 'includedir=$${prefix}/include'; echo; \
	   echo 'Name: onnxtile'; echo 'Description: Tiles ONNX models: same results, less memory'; \
	   echo 'Version: $(VERSION)'; echo 'Requires: libprotobuf-c libxml-2.0'; \
	   echo 'Cflags: -I$${includedir}'; echo 'Libs: -L$${libdir} -lonnxtile $(DNNL_LIBS) $(GLPK_LIBS) -lm -lpthread'; } > '$(D)/$(LIBDIR)/pkgconfig/onnxtile.pc'

# ---- the Python package ----

# A library of its own objects: position independent, and nothing to see but include/onnx_tile.h and the program's main, which the program
# of the wheel calls.
SHARED := $(BUILD)/libonnxtile.so
$(BUILD)/obj/shared/main.o: src/commands/main.c | $(BASE)/gen/onnx.pb-c.h
	@echo '  CC       $<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fvisibility=default -Dmain=onnx_tile_main -MMD -MP -c $< -o $@

$(SHARED): $(BUILD)/obj/shared/main.o $(LIB) python/native/exports.map
	@echo '  LINK     $@'
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libonnxtile.so -Wl,--version-script=python/native/exports.map -Wl,-z,defs -Wl,--gc-sections -o $@ \
	    $< -Wl,--whole-archive $(LIB) -Wl,--no-whole-archive $(LDLIBS)

$(BUILD)/shared-program: python/native/program.c $(SHARED)
	@echo '  LINK     $@'
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(SHARED) -Wl,-rpath,'$$ORIGIN/../lib'

# The engine as an operator of ONNX Runtime: reaches the engine through the shared library, as any program would.
ORT_LIBRARY := $(BUILD)/libonnxtile_ort.so
$(ORT_LIBRARY): $(ORT_SRCS) $(wildcard src/ort/*.h) include/onnx_tile.h $(SHARED)
	@echo '  LINK     $@'
	$(Q)$(CC) -D_GNU_SOURCE -Iinclude $(CFLAGS) $(LDFLAGS) -fPIC -fvisibility=hidden -shared -Wl,-soname,libonnxtile_ort.so -Wl,-z,defs -o $@ $(ORT_SRCS) \
	    $(SHARED) -lpthread -Wl,-rpath,'$$ORIGIN'

-include $(BUILD)/obj/shared/main.d

wheel-parts: $(SHARED) $(BUILD)/shared-program $(if $(filter yes,$(ENGINE)),$(ORT_LIBRARY))

# Objects of the two builds differ. Without GLPK: nothing in the wheel is under the GPL.
BUILD_WHEEL  := build/wheel$(if $(filter yes,$(ENGINE)),,-no-engine)
CFLAGS_WHEEL := -fPIC -fvisibility=hidden
# `+` where it is used: make does not see $(MAKE) in it, and would compile one file at a time.
MAKE_WHEEL    = $(MAKE) --no-print-directory GLPK=no BUILD=$(BUILD_WHEEL) OPT=-O2 CFLAGS='$(CFLAGS_WHEEL)'

# build/wheel/libonnxtile_ort.so, for SessionOptions.register_custom_ops_library
ort-library:
	$(if $(filter yes,$(ENGINE)),,$(error The library of operators is the engine's: not with ENGINE=no))
	+@$(MAKE_WHEEL) build/wheel/libonnxtile_ort.so

wheel:
	$(Q)ENGINE=$(ENGINE) GLPK=no scripts/setup.sh wheel
	+@$(MAKE_WHEEL) wheel-parts
	@BUILD=$(BUILD_WHEEL) VERSION=$(VERSION) CC='$(CC)' scripts/wheel.sh dist

sdist:
	$(Q)GLPK=no scripts/setup.sh wheel
	@scripts/sdist.sh dist

# All that is passed on, checked. Debian packages that `make deb` has left there are told, too.
release: wheel sdist
	@scripts/release.sh dist

# Debian packages, checked by lintian; and installed in a bare root, where the program is run.
deb:
	$(Q)scripts/setup.sh deb
	@scripts/deb.sh dist

check-wheel: python
	$(Q)scripts/setup.sh deb
	@PYTHON=$(abspath $(PYTHON)) tests/python/bare_root.sh dist

check-sdist: python
	$(Q)scripts/setup.sh deb
	@PYTHON=$(abspath $(PYTHON)) tests/python/bare_sdist.sh dist

check-deb:
	$(Q)scripts/setup.sh deb
	@tests/deb/run.sh dist

# The documents as static pages, every link looked up.
site:
	$(Q)scripts/setup.sh site
	@.venv-site/bin/python scripts/site.py build/site

# The optimizer as WebAssembly and the page around it: static files, for any server of files.
PAGE := $(addprefix build/page/,$(notdir $(wildcard page/*)))
page: $(PAGE)
	$(Q)scripts/cross.sh wasm page
$(PAGE): build/page/%: page/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# In headless Chromium; files are those that this machine's program writes.
check-page: page python $(TOOL)
	@$(TEST_ENV) tests/cross/page.sh

# The package's types, as those who use it see them.
types:
	$(Q)[ -x build/types/bin/mypy ] || { $(PYTHON) -m venv build/types && build/types/bin/pip install -q -r scripts/requirements-types.txt; }
	$(Q)build/types/bin/mypy --strict --python-executable $(PYTHON) python/onnx_tile

check-python: types python
	@$(PYTHON) tests/python/run.py dist

uninstall:
	rm -f '$(D)/bin/onnx-tile' '$(D)/$(LIBDIR)/libonnxtile.a' '$(D)/include/onnx_tile.h' '$(D)/share/man/man1/onnx-tile.1' \
	    '$(D)/share/onnx-tile/target.xsd' '$(D)/share/onnx-tile/benefit.xsd' '$(D)/$(LIBDIR)/pkgconfig/onnxtile.pc' \
	    '$(D)/share/bash-completion/completions/onnx-tile' '$(D)/share/zsh/vendor-completions/_onnx-tile' '$(D)/share/fish/vendor_completions.d/onnx-tile.fish'

clean:
	rm -rf build dist demo-out
