"""Invoke's table of contents; every task is a verb of bringup, `test` and `dev.*` are ours."""

from bringup.doors.invoke import collection
from bringup.verbs import collect

ns = collection(collect())
