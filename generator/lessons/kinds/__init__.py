"""One module per kind of question: its keys, its answer, and what is wrong with it."""
