"""The book: formulas with their steps and evidence as LaTeX, PDF, Markdown, HTML and notebooks."""
