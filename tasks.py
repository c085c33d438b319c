"""Invoke's table of contents; every task is a verb of bringup, `test` and `dev.*` are ours."""

from bringup.doors.invoke import collection, heed_arguments
from bringup.verbs import collect

ns = collection(collect())
heed_arguments(collect())
