"""The outside: files, SSH, templates. Effects live here and in flow."""
