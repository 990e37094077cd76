"""Numbers for the catalogue's entries, a file for each subject: a function returns rows of `Evidence`."""
