"""One file a scheme, each the shortest honest example of it: what readers see on a run's page.

There is no instrumentation in these files. The probe attaches itself from outside.
"""
