"""`ptt completion`: shell functions that complete the command line, made from the parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace import cli
from nptltrace.cli.pages.describe import arguments

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from nptltrace.cli.pages.describe import Argument

SUMMARY = "print a completion script for bash, zsh or fish"
EXAMPLE = """\
source <(ptt completion bash)
ptt completion zsh > ~/.zfunc/_ptt
ptt completion fish > ~/.config/fish/completions/ptt.fish"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the shell."""
    parser.add_argument("shell", choices=sorted(_SHELLS), help="the shell to complete in")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    commands = {name: arguments(cli.command_parser(name)) for name in cli.command_names()}
    print(_SHELLS[args.shell](arguments(cli.top_parser()), commands), end="")
    return 0


def _words(entries: Iterable[Argument]) -> str:
    """Return all option strings, separated by blanks."""
    return " ".join(name for entry in entries for name in entry.names)


def _positional_choices(entries: Iterable[Argument]) -> str:
    """Return the words that positional arguments choose from."""
    return " ".join(word for entry in entries if not entry.names for word in entry.choices)


def _bash(top: list[Argument], commands: dict[str, list[Argument]]) -> str:
    """Return the script for bash."""
    values = []
    options = []
    for name, entries in commands.items():
        for entry in entries:
            if entry.names and entry.value is not None:
                # No words: bash then completes file names.
                patterns = "|".join(f"'{name} {option}'" for option in entry.names)
                values.append(f"\t{patterns}) words='{' '.join(entry.suggestions)}' ;;")
        plain = _positional_choices(entries)
        options.append(f"\t{name}) options='{_words(entries)}' words='{plain}' ;;")
    programs = "|".join(name for name, entries in commands.items() if _takes_program(entries))
    return _BASH.format(
        commands=" ".join(commands),
        top=_words(top),
        programs=programs or "''",
        values="\n".join(values),
        options="\n".join(options),
    )


_BASH = """\
# Completion of ptt for bash; made by `ptt completion bash`.
_ptt() {{
	local current=${{COMP_WORDS[COMP_CWORD]}} command='' options='' words='' separator='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ -z $command && ${{COMP_WORDS[i]}} != -* ]]; then
			command=${{COMP_WORDS[i]}}
		elif [[ ${{COMP_WORDS[i]}} == -- ]]; then
			separator=$i
			break
		fi
	done
	COMPREPLY=()
	if [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W '{commands} {top}' -- "$current")
		return
	fi
	case $command in {programs})
		if [[ -n $separator ]]; then
			if ((separator == COMP_CWORD - 1)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$current")
			fi
			return
		fi ;;
	esac
	case "$command ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
	*)
		case $command in
{options}
		esac
		[[ $current == -* ]] && words=$options ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o bashdefault -o default -F _ptt ptt
"""


def _takes_program(entries: Iterable[Argument]) -> bool:
    """Return whether a command runs a program."""
    return any(entry.is_command for entry in entries)


def _zsh(top: list[Argument], commands: dict[str, list[Argument]]) -> str:
    """Return the script for zsh."""
    cases = []
    for name, entries in commands.items():
        specs = "".join(f" \\\n\t\t\t{_zsh_spec(entry)}" for entry in entries)
        cases.append(f"\t\t{name}) _arguments -s{specs} ;;")
    listed = "\n".join(
        f"\t\t{_quoted(f'{name}:{cli.load_command(name).SUMMARY}')}" for name in commands
    )
    specs = "".join(f" \\\n\t\t{_zsh_spec(entry)}" for entry in top)
    return _ZSH.format(commands=listed, top=specs, cases="\n".join(cases))


_ZSH = """\
#compdef ptt
# Completion of ptt for zsh; made by `ptt completion zsh`.
_ptt() {{
	local context state state_descr line
	typeset -A opt_args
	local -a commands=(
{commands}
	)
	_arguments -C{top} \\
		'1:command:->command' '*::argument:->argument'
	case $state in
	command) _describe command commands ;;
	argument)
		case $words[1] in
{cases}
		esac ;;
	esac
}}
if [[ $funcstack[1] == _ptt ]]; then
	_ptt "$@"
else
	compdef _ptt ptt
fi
"""


def _zsh_spec(entry: Argument) -> str:
    """Return one specification of zsh's `_arguments`."""
    label = entry.help.replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
    action = f"({' '.join(entry.suggestions)})" if entry.suggestions else "_files"
    if not entry.names:
        return "'*::program:_normal'" if entry.is_command else f"'*:{entry.value}:{action}'"
    value = "" if entry.value is None else f":{entry.value.replace(':', ' ')}:{action}"
    if len(entry.names) == 1:
        return _quoted(f"*{entry.names[0]}[{label}]{value}")
    return "'*'{" + ",".join(entry.names) + "}" + _quoted(f"[{label}]{value}")


def _fish(top: list[Argument], commands: dict[str, list[Argument]]) -> str:
    """Return the script for fish."""
    lines = ["# Completion of ptt for fish; made by `ptt completion fish`."]
    names = " ".join(commands)
    none = f"not __fish_seen_subcommand_from {names}"
    lines += [_fish_option(none, entry) for entry in top]
    for name, entries in commands.items():
        summary = _quoted(cli.load_command(name).SUMMARY)
        lines.append(f"complete -c ptt -f -n '{none}' -a {name} -d {summary}")
        inside = f"__fish_seen_subcommand_from {name}"
        lines += [_fish_option(inside, entry) for entry in entries if entry.names]
        words = _positional_choices(entries)
        if words:
            lines.append(f"complete -c ptt -f -n '{inside}' -a '{words}'")
        if _takes_program(entries):
            lines.append(f"complete -c ptt -n '{inside}' -a '(__fish_complete_subcommand)'")
    return "\n".join(lines) + "\n"


def _fish_option(condition: str, entry: Argument) -> str:
    """Return the line for one option."""
    parts = [f"complete -c ptt -n '{condition}'"]
    parts += [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in entry.names
    ]
    if entry.suggestions:
        # Files too, where other values are possible.
        only = "-x" if entry.choices else "-r"
        parts.append(f"{only} -a '{' '.join(entry.suggestions)}'")
    elif entry.value is not None:
        parts.append("-r")
    return " ".join([*parts, f"-d {_quoted(entry.help)}"])


def _quoted(text: str) -> str:
    """Return `text` in single quotes, as all three shells read them."""
    return "'" + text.replace("'", "'\\''") + "'"


_SHELLS = {"bash": _bash, "fish": _fish, "zsh": _zsh}
