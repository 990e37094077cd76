"""Which packages are installed; everything else stands in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("symbolic", "numeric", "models", "cli")
found = find_packages(include=[pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")])

setup(
    script_name="setup.py",  # so that this file is no module of the package
    packages=["gradproof", *(f"gradproof.{name}" for name in found)],
    package_dir={"gradproof": "."},  # gradproof.symbolic lies in symbolic/, and so on
)
