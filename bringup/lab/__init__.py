"""The practice fleet: bare hosts of described hardware on loopback."""

MISSING = (
    "cannot serve practice hosts: AsyncSSH is not installed; "
    "install the extra: pip install 'bringup[lab]'"
)
