#!/usr/bin/env python3
"""Keeps figures of the benchmarks as data, and draws how they grow.

  ./dev bench --benchmark_out=run.json --benchmark_out_format=json
  tests/benchmarks/record.py run.json [--note TEXT]   -> tests/benchmarks/results/DATE-HARDWARE.json
  tests/benchmarks/record.py --draw                   -> tests/benchmarks/growth.svg, from the newest results

Of repetitions the fastest counts. Only the standard library is needed.
"""
import argparse
import json
import math
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results"
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
STANDARD = {"name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions", "threads",
            "repetition_index", "iterations", "real_time", "cpu_time", "time_unit", "label", "aggregate_name",
            "aggregate_unit", "items_per_second", "bytes_per_second"}
# Lines of the chart: benchmark, what the argument counts, name. Arguments after the first must match `rest`.
LINES = [("queue_hold", "pending events", "queue, pop + push", ""),
         ("max_min_disjoint", "activities", "max-min, private links", ""),
         ("max_min_chain", "activities", "max-min, one chain", ""),
         ("all_to_all", "GPUs", "all-to-all, 1 us quantum", "/8192/1000"),
         ("all_to_all", "GPUs", "all-to-all, exact", "/8192/0"),
         ("all_to_all_summed", "GPUs", "all-to-all, summed", ""),
         ("ring_chunk_steps", "GPUs", "ring in chunk steps", ""),
         ("step_folded", "GPUs", "step, folded", ""),
         ("step_folded_with_faults", "GPUs", "step, folded, with faults", ""),
         ("step_every_rank", "GPUs", "step, every rank", "")]


def processor():
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                return re.sub(r"\s+", " ", line.split(":", 1)[1].strip())
    except OSError:
        pass
    return "unknown processor"


def digits(value):
    value = float(f"{value:.6g}")
    return int(value) if value == int(value) else value


def record(path, note):
    run = json.load(open(path))
    context = run["context"]
    rows = {}
    for entry in run["benchmarks"]:
        if entry.get("run_type") == "aggregate" or entry.get("error_occurred"):
            continue
        ns = entry["cpu_time"] * NS[entry["time_unit"]]
        name = re.sub(r"/iterations:\d+$", "", entry.get("run_name", entry["name"]))
        if name in rows and rows[name]["ns"] <= ns:
            continue
        rows[name] = {"ns": digits(ns)}
        rows[name].update({key: digits(value) for key, value in entry.items()
                           if key not in STANDARD and isinstance(value, (int, float)) and not isinstance(value, bool)})
    date = context["date"][:10]
    kept = {"date": date, "hardware": f"{processor()}, {context['num_cpus']} CPUs seen", "note": note,
            "load": [digits(value) for value in context.get("load_avg", [])], "results": rows}
    slug = re.sub(r"[^a-z0-9]+", "-", processor().lower()).strip("-")[:40].strip("-")
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{date}-{slug}.json"
    if target.exists():  # a run of some of them replaces these alone
        before = json.load(open(target))
        before["results"].update(rows)
        kept["results"] = before["results"]
    text = "{\n" + ",\n".join(f' {json.dumps(key)}: {json.dumps(value)}' for key, value in kept.items()
                              if key != "results")
    lines = ",\n".join(f'  {json.dumps(name)}: {json.dumps(row)}' for name, row in sorted(kept["results"].items()))
    target.write_text(f'{text},\n "results": {{\n{lines}\n }}\n}}\n')
    print(f"{target.relative_to(HERE.parent.parent)}: {len(rows)} of {len(kept['results'])} rows are new")


def points(results, benchmark, rest):
    found = []
    for name, row in results.items():
        match = re.fullmatch(rf"(?:exact_)?{benchmark}/(\d+){re.escape(rest)}", name)
        if match:
            found.append((int(match.group(1)), row["ns"] * 1e-9))
    return sorted(found)


def text_of_seconds(exponent):
    value = 10.0 ** exponent
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if value >= size * 0.999:
            return f"{value / size:g} {unit}"
    return f"{value:g} s"


def draw():
    newest = max(RESULTS.glob("*.json"), default=None)
    if newest is None:
        sys.exit("record.py: no results yet")
    kept = json.load(open(newest))
    lines = [(name, what, points(kept["results"], bench, rest)) for bench, what, name, rest in LINES]
    lines = [line for line in lines if line[2]]
    width, height, left, right, top, bottom = 860, 520, 70, 250, 40, 50
    xs = [x for line in lines for x, _ in line[2]]
    ys = [y for line in lines for _, y in line[2]]
    x0, x1 = math.log10(min(xs)) - 0.1, math.log10(max(xs)) + 0.1
    y0, y1 = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def px(value):
        return left + (math.log10(value) - x0) / (x1 - x0) * (width - left - right)

    def py(value):
        return height - bottom - (math.log10(value) - y0) / (y1 - y0) * (height - top - bottom)

    colours = ["#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f",
               "#79706e"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="12">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           f'<text x="{left}" y="22" font-size="14">CPU time against size, {kept["date"]}, one core</text>']
    for exponent in range(y0, y1 + 1):
        y = py(10.0 ** exponent)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{text_of_seconds(exponent)}</text>')
    for exponent in range(math.ceil(x0), math.floor(x1) + 1):
        x = px(10.0 ** exponent)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - bottom}" stroke="#dddddd"/>')
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{10 ** exponent:,}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 12}" text-anchor="middle">'
               'GPUs; activities of the solver; pending events of the queue</text>')
    labels = []
    for number, (name, what, data) in enumerate(lines):
        colour = colours[number % len(colours)]
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in data)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"/>' for x, y in data]
        slope = ""
        if len(data) > 1:
            slope = math.log(data[-1][1] / data[0][1]) / math.log(data[-1][0] / data[0][0])
            slope = f" (n^{slope:.1f})"
        labels.append([py(data[-1][1]), f"{name}{slope}", colour, px(data[-1][0]), py(data[-1][1])])
    labels.sort()
    for i in range(1, len(labels)):
        labels[i][0] = max(labels[i][0], labels[i - 1][0] + 16)
    for y, name, colour, x, at in labels:
        out.append(f'<line x1="{x + 4:.1f}" y1="{at:.1f}" x2="{width - right + 8}" y2="{y:.1f}" stroke="{colour}" '
                   f'stroke-dasharray="2 3"/>')
        out.append(f'<text x="{width - right + 12}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    out.append("</svg>")
    (HERE / "growth.svg").write_text("\n".join(out) + "\n")
    print(f"tests/benchmarks/growth.svg: {len(lines)} lines from {newest.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", help="output of the benchmarks, JSON")
    parser.add_argument("--note", default="", help="what else ran, which build")
    parser.add_argument("--draw", action="store_true", help="draw growth.svg from the newest results")
    arguments = parser.parse_args()
    if not arguments.run and not arguments.draw:
        parser.error("give the output of a run, or --draw")
    if arguments.run:
        record(arguments.run, arguments.note)
    if arguments.draw:
        draw()


if __name__ == "__main__":
    main()
