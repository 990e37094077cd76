"""How results are written for a person: words in two languages, reports, tables, files."""
