# The front door: each target is one line of work done by a script or by meson.
#
#   make            build build/walberg          make check       everything that must pass
#   make demo       see it work, 3 minutes       make check-full  what takes longer, too
#   make bench      measure it                   make install     PREFIX=/usr/local
#
# DUCKDB=/prefix  a libduckdb of your own instead of the pinned one
# JOBS=N          compilers at a time
DUCKDB ?=
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD  ?= build

export DUCKDB JOBS
sources = git ls-files -co --exclude-standard -- 'src/*.[ch]' 'test/*.[ch]'

all: build

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j$(JOBS) --quiet

$(BUILD)/build.ninja:
	@deps/install build
	@tools/configure $(BUILD)

check:
	@tools/check

check-full:
	@tools/check full

e2e: build
	@test/setup
	@test/run

lint: $(BUILD)/build.ninja
	@deps/install lint
	@tools/lint

demo: build
	@deps/install demo
	@KEEP="$(KEEP)" WALBERG=$(abspath $(BUILD)/walberg) demo/run

bench: build
	@test/setup
	@WALBERG=$(abspath $(BUILD)/walberg) bench/run

format:
	@deps/install lint
	@$(sources) | xargs -r clang-format-14 -i

install: build
	@meson configure $(BUILD) --prefix $(PREFIX)
	@meson install -C $(BUILD) --quiet

clean:
	@rm -rf $(BUILD) build-*

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

.PHONY: all build check check-full e2e lint demo bench format install clean help
