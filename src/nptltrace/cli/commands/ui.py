"""`ptt ui`: the viewer in a browser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nptltrace.cli import traces
from nptltrace.cli.options import say
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from nptltrace.trace.traceset import Traceset
    from nptltrace.ui.server.serving import Served
    from nptltrace.ui.viewer import Viewer

SUMMARY = "show a trace in a browser"
DESCRIPTION = """\
Serves the viewer to a browser on this machine: threads and locks by time, events, contention,
findings. The first line on stdout is the address. The server refuses requests without the token of
the address. Press Ctrl-C to stop it. PTT keeps what it computed for a large trace in a hidden
directory of the trace.

Options for a part of the trace set what the page shows first. They hide nothing: the page marks the
time, and lists the events of the chosen threads, objects and call sites until you choose others.

With --export, ptt serves nothing and writes the page with the trace, or a part of it, to one HTML
file. You need no PTT and no network to open the file. With --store, the page shows the runs in a
store, by release, host or label."""
EXAMPLE = """\
ptt ui run.ptt
ptt ui --follow run.ptt
ptt ui --from 1.2s --to 1.3s --object g_lock run.ptt
ptt ui --no-browser --port 8080 --token-file ~/.ptt-token run.ptt
ptt ui --store ~/runs
ptt ui --export report.html --from 1.2s --to 1.3s run.ptt"""

_PLAIN = (
    "this is plain HTTP: anybody between here and a browser elsewhere can read the token and the "
    "trace; ssh -L with the default --host hides both"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "traces", metavar="TRACE", nargs="*", help="trace directories, read as one traceset"
    )
    parser.add_argument(
        "--store", metavar="STORE", help="show the runs in a store of ptt fleet instead of a trace"
    )
    parser.add_argument(
        "--before", metavar="TRACE",
        help="compare with an earlier run, as ptt diff does: the panel Compare shows what changed",
    )  # fmt: skip
    parser.add_argument(
        "--port", metavar="N", type=_port, default=0,
        help="port to listen on (default: any free port)",
    )  # fmt: skip
    parser.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1",
        help="address to listen on; with 0.0.0.0 or ::, others can reach the page over plain "
        "HTTP (default: 127.0.0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--token-file", metavar="FILE",
        help="keep the token in a file that only you can read; with --port, the address is then "
        "the same each time (default: a new token)",
    )  # fmt: skip
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, and do not open a browser"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="follow a trace that is being recorded"
    )
    # For `ptt record --ui`: end when stdin has ended and no page is open.
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--export", metavar="FILE", help="write the page and the trace to one HTML file"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    traces.add_filters(parser, events=False)
    traces.add_window(parser, counts=False)
    traces.add_rules(parser)
    traces.add_names(parser)


def _port(text: str) -> int:
    value = traces.whole(text)
    if value > 65535:  # noqa: PLR2004 -- the last port
        raise argparse.ArgumentTypeError(f"{text} is no port")
    return value


def run(args: argparse.Namespace) -> int:
    """Serve until a signal ends the viewer, or write the page to a file."""
    import gc
    from concurrent.futures import ThreadPoolExecutor

    from nptltrace import _paths
    from nptltrace.cli.imports import import_now
    from nptltrace.errors import NativeFilesMissing
    from nptltrace.trace.traceset import Traceset

    import_now()
    if args.store is not None:
        return _serve_store(args)
    if not args.traces:
        raise UsageError("name a trace, or a store with --store (see ptt ui --help)")
    for option in ("pid", "tid", "object", "site"):
        if len(getattr(args, option)) > 1:
            raise UsageError(f"--{option} once, with commas between alternatives: the page has one")
    traces.load_rules(args)
    # The trace is opened during the imports, which leave nothing to the garbage collector.
    gc.disable()
    with ThreadPoolExecutor(1) as aside:
        opening = aside.submit(Traceset, *args.traces)
        from nptltrace.ui.server.serving import viewer_application
        from nptltrace.ui.viewer import Viewer
    gc.enable()
    viewer = Viewer(
        args.traces, follow=args.follow, aliases=args.alias, directories=args.symbols,
        source=opening.result(), passed_over=traces.passed_over(args), before=args.before,
    )  # fmt: skip
    for remark in viewer.remarks():
        say(args, f"warning: {remark}")
    _open_at(args, opening.result(), viewer)
    if args.export is not None:
        _export(args, viewer)
        return 0
    try:
        _paths.page_dir()
    except NativeFilesMissing as missing:
        say(args, f"warning: {missing}")

    return _serve(args, viewer, viewer_application(viewer))


def _serve(args: argparse.Namespace, viewer: Served, app: ASGIApp) -> int:
    from nptltrace.ui.server.access import is_loopback
    from nptltrace.ui.server.serving import kept_token, serve

    def ready(url: str) -> None:
        print(url, flush=True)
        if not is_loopback(args.host):
            say(args, f"warning: {_PLAIN}")

    serve(
        viewer,
        app,
        host=args.host,
        port=args.port,
        browser=not args.no_browser,
        beside=args.beside,
        token=None if args.token_file is None else kept_token(args.token_file),
        ready=ready,
    )
    return 0


def _serve_store(args: argparse.Namespace) -> int:
    """Serve the page of a store."""
    part = traces.selection(args) or (args.begin, args.end, args.before) != (None, None, None)
    if args.traces or args.follow or args.export is not None or part:
        raise UsageError(
            "--store shows a whole store: remove the traces, the part, --before and --export"
        )
    from nptltrace.cli.store_viewer import StoreViewer
    from nptltrace.ui.server.store_app import store_application

    viewer = StoreViewer(args.store, args.host)
    return _serve(args, viewer, store_application(viewer))


def _open_at(args: argparse.Namespace, source: Traceset, viewer: Viewer) -> None:
    """Set the part of the trace that the page shows first, from the options."""
    from nptltrace.analysis.model import Window
    from nptltrace.cli.unmatched import say_unmatched

    chosen = traces.selection(args)
    if not chosen and (args.begin, args.end) == (None, None):
        return
    symbols = traces.open_symbols(args, source)
    chosen.build(source, symbols)
    filters = {
        "pid": "".join(chosen.pids),
        "tid": "".join(chosen.tids),
        "on": "".join(chosen.objects),
        "site": "".join(chosen.sites),
    }
    window = Window(args.begin, args.end)
    # A file has only the chosen part, so the page shows all of it.
    viewer.open_at(Window() if args.export is not None else window, filters)
    if not args.follow:
        say_unmatched(args, source, symbols)


def _export(args: argparse.Namespace, viewer: Viewer) -> None:
    """Write the page with the trace to one file."""
    from nptltrace.export.writing.target import Target
    from nptltrace.ui.page_file import page

    part = (-1 if end is None else end for end in (args.begin, args.end))
    with Target(args.export, force=args.force).file() as file:
        viewer.start()
        try:
            whole = page(viewer, *part)
        finally:
            viewer.close()
        file.write(whole)
    say(args, f"wrote {args.export} ({len(whole) / 1e6:.1f} MB)")
