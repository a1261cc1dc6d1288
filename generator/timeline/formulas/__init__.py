"""Closed forms that runs are held against. Each is executable and says where it comes from.

A parameter is a pure number, or has the unit that the formula names for it; what comes out has the
unit of the formula. Every formula has an example, which the definitions page shows and the unit check
of the tests computes with units.
"""

from __future__ import annotations

import importlib

from generator.timeline.formulas.entry import FORMULAS, SUBJECTS, Formula

__all__ = ["FORMULAS", "SUBJECTS", "Formula"]

# Importing a module enters its formulas, in the order in which they are listed.
for _subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{_subject}")
