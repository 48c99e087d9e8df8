# envkit: `make` alone prints this help. Variables: CUDA PYTHON TORCH SOURCE MIRROR EXTRAS NAME PREFIX LOCK ARGS
#
#   make env                        the best environment this machine can run
#   make env CUDA=11.8              a CUDA version of your choice (cpu for none)
#   make env NAME=py311-torch       a variant of environments/matrix.yaml by its name
#   make env CUDA=11.8 EXTRAS="notebook vision" MIRROR=tuna

BOOTSTRAP ?= python3
VENV      := .venv
ENVKIT    := $(VENV)/bin/envkit

# A variable counts when it stands on the command line of make: WSL sets NAME for every process, and
# others have PYTHON or PREFIX in their environment for reasons of their own.
# It counts as it stands: make would expand a dollar sign in it and run a $(shell ...), on its way into the
# environment of every recipe too.
unexport CUDA PYTHON TORCH SOURCE MIRROR EXTRAS NAME PREFIX LOCK
# Another Python's: with it none starts, neither the one that bootstraps nor the private one.
unexport PYTHONHOME
given = $(if $(filter command,$(firstword $(origin $(1)))),$(call oneline,$(1),$(value $(1))))
oneline = $(if $(findstring $(newline),$(2)),$(error $(1) holds a line break),$(2))
define newline


endef
# A misspelt one (EXTRA=, cuda=) would be ignored in silence and another environment made than was meant. Under
# another make there may be variables of its own on the command line.
KNOWN   = CUDA PYTHON TORCH SOURCE MIRROR EXTRAS NAME PREFIX LOCK ARGS BOOTSTRAP
UNKNOWN = $(strip $(foreach name,$(filter-out $(KNOWN) VENV SHELL MAKE% ENVKIT_% -*,$(.VARIABLES)), \
            $(if $(filter command,$(firstword $(origin $(name)))),$(name))))
ifeq ($(MAKELEVEL),0)
  $(if $(UNKNOWN),$(error there is no variable $(UNKNOWN); there are $(KNOWN)))
endif
# Quoted for the shell, so that no value can end its argument early.
quote = '$(subst ','\'',$(1))'
flag  = $(if $(call given,$(2)),$(1) $(call quote,$(call given,$(2))))

AXES   = $(call flag,--python,PYTHON) $(call flag,--cuda,CUDA) $(call flag,--torch,TORCH) \
         $(call flag,--source,SOURCE) $(foreach extra,$(call given,EXTRAS),--with $(call quote,$(extra)))
PLACE  = $(call flag,--prefix,PREFIX) $(call flag,--lock,LOCK)
NAMED  = $(call quote,$(call given,NAME))
WHICH  = $(if $(call given,NAME),$(if $(call given,LOCK),--name) $(NAMED))

# Hints then name make's variables, not envkit's options.
env validate lock render variants: export ENVKIT_DOOR = make

.DEFAULT_GOAL := help
.PHONY: help env lock render variants validate test test-full check lint messages clean

help: ## Print this help
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

env: $(VENV)/.ready ## Make the environment that CUDA, PYTHON, TORCH, SOURCE, EXTRAS or NAME ask for, and prove it
	@$(ENVKIT) up $(WHICH) $(AXES) $(call flag,--mirror,MIRROR) $(PLACE) $(ARGS)

validate: $(VENV)/.ready ## Prove again, in full, that the environment works here
	@$(ENVKIT) validate $(if $(call given,PREFIX),$(call quote,$(call given,PREFIX)),$(WHICH)) $(AXES) $(ARGS)

lock: $(VENV)/.ready ## Lock all variants, pins stay (NAME=... for one; ARGS="--update numpy", --fresh or --check)
	@$(ENVKIT) lock $(if $(call given,NAME),$(NAMED),--all) $(call flag,--mirror,MIRROR) $(ARGS)

render: $(VENV)/.ready ## Write environment.yml of all variants (NAME=... for one)
	@$(ENVKIT) render $(if $(call given,NAME),$(NAMED),--all) $(ARGS)

variants: $(VENV)/.ready ## Print the matrix
	@$(ENVKIT) variants $(ARGS)

test: $(VENV)/.dev ## Run the tests (under ten minutes on two cores)
	@$(VENV)/bin/python -m pytest -q -n auto -m "not slow and not network" $(ARGS)

test-full: $(VENV)/.dev ## Run every test, the slow ones and those that need a package registry too
	@$(VENV)/bin/python -m pytest -q $(ARGS)

check: lint test ## Lint, then the tests: what CI runs

lint: $(VENV)/.dev ## Style, types and layers
	@$(VENV)/bin/ruff check -q . && $(VENV)/bin/ruff format -q --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache

messages: $(VENV)/.dev ## Bring the message catalogues up to date with the code
	@$(VENV)/bin/pybabel -q extract --no-location --sort-output --ignore-dirs probe -k _ -o $(VENV)/envkit.pot envkit
	@$(VENV)/bin/pybabel -q update --no-fuzzy-matching --ignore-pot-creation-date -i $(VENV)/envkit.pot -d envkit/messages -D envkit -l zh
	@$(VENV)/bin/pybabel -q compile -d envkit/messages -D envkit

clean: ## Remove the tool's own files here; environments stay (envkit remove ENV)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# The stamp is touched last: a bootstrap that was cut short is done again.
$(VENV)/.ready: pyproject.toml
	@$(BOOTSTRAP) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	  || { echo "error: envkit needs Python 3.10 or newer; $(BOOTSTRAP) is not" >&2; \
	       echo "hint: make BOOTSTRAP=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@case "$$PWD" in *[:\$$[:cntrl:]]*) \
	  echo "error: neither venv nor setuptools works with ':', '$$' or a line break in a folder's name: $$PWD" >&2; \
	  echo "hint: move the clone to another folder" >&2; exit 2;; esac
	@echo "setting up envkit in $(VENV) (once)" >&2
	@$(BOOTSTRAP) -m venv --clear $(VENV) \
	  || { echo "hint: on Debian and Ubuntu: apt install python3-venv" >&2; exit 3; }
	@$(VENV)/bin/python -m pip install -q --disable-pip-version-check -e . \
	  || { echo "hint: pip could not fetch envkit's dependencies; behind a slow link set a mirror: pip config set global.index-url URL" >&2; exit 3; }
	@touch $@

$(VENV)/.dev: $(VENV)/.ready
	@$(VENV)/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@
