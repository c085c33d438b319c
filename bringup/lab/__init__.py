"""The practice fleet: bare hosts of described hardware on loopback."""
