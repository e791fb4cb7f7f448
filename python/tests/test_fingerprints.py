"""Checks which runs have digests in `studies/fingerprints.jsonl`: each study's quick form.

`cargo test -p airtcp-sim --test simulator fingerprints` compares the digests themselves. After a
change of a study, `AIRTCP_BLESS=1` makes this test write the list, and that one the digests.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from airtcp.study import definition, plan

STUDIES = Path(__file__).parents[2] / "studies"
FINGERPRINTS = STUDIES / "fingerprints.jsonl"


def quick_forms() -> list[dict[str, Any]]:
    """A row, without digests, for each variant of each study."""
    rows = []
    for name in definition.names():
        study = definition.load(definition.find(name), quick=True)
        experiments = study.choose(study.quick_experiments)
        # The order of the jobs, each variant once.
        variants = dict.fromkeys(
            (job.file, job.overrides)
            for job in plan.jobs(study, experiments, study.quick_runs)
            if job.testbed is None
        )
        rows += [
            {"scenario": f"studies/{name}/{file}", "set": dict(set_), "seeds": study.quick_runs}
            for file, set_ in variants
        ]
    return rows


def test_the_fingerprints_are_those_of_the_quick_forms() -> None:
    known = [json.loads(line) for line in FINGERPRINTS.read_text().splitlines()]
    wanted = [{**row, "set": [list(pair) for pair in row["set"].items()]} for row in quick_forms()]
    if "AIRTCP_BLESS" in os.environ:
        kept = {(row["scenario"], str(row["set"]), row["seeds"]): row for row in known}
        rows = [row for row in known if "/scenarios/" not in row["scenario"]]
        for row in wanted:
            old = kept.get((row["scenario"], str(row["set"]), row["seeds"]))
            rows.append(old or {**row, "metrics": "", "events": ""})
        lines = (json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows)
        FINGERPRINTS.write_text("".join(line + "\n" for line in lines))
        return
    listed = [
        {key: row[key] for key in ("scenario", "set", "seeds")}
        for row in known
        if "/scenarios/" in row["scenario"]
    ]
    assert listed == wanted
