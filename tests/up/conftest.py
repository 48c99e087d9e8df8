"""Fixtures: a small project as cloned, and one whose locks are committed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small_project import Project, write_mirror


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a directory of channels."""
    return write_mirror(tmp_path_factory.mktemp("mirror")).as_uri()


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory, mirror: str) -> Path:
    """The folder environments/ of the small project, rendered and locked."""
    made = Project(tmp_path_factory.mktemp("committed"), mirror)
    made.ok("lock", "--all")
    return made.matrix.parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, mirror: str, committed: Path) -> Project:
    """The small project with its first variant installed, for tests that change nothing."""
    made = Project(tmp_path_factory.mktemp("installed"), mirror)
    shutil.copytree(committed, made.matrix.parent, dirs_exist_ok=True)
    made.ok("install")
    return made


@pytest.fixture
def bare(tmp_path: Path, mirror: str) -> Project:
    """The small project with nothing rendered or locked."""
    return Project(tmp_path, mirror)


@pytest.fixture
def project(bare: Project, committed: Path) -> Project:
    """The small project with its locks."""
    shutil.copytree(committed, bare.matrix.parent, dirs_exist_ok=True)
    return bare
