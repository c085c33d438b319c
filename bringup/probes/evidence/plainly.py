"""Output as a plain terminal in English would have shown it."""

from __future__ import annotations

import re
from dataclasses import replace

from ..text import unescaped
from .asked import Output

_ENGLISH: tuple[tuple[str, str], ...] = (
    (
        r"Datei oder Verzeichnis nicht gefunden|Aucun fichier ou dossier de ce (?:type|nom)"
        r"|No existe el (?:fichero|archivo) o el directorio|没有那个文件或目录|沒有此一檔案或目錄"
        r"|そのようなファイルやディレクトリはありません|그런 파일이나 디렉터리가 없습니다"
        r"|Нет такого файла или каталога|Arquivo ou diretório inexistente"
        r"|File o directory non esistente",
        "No such file or directory",
    ),
    (
        r"Keine Berechtigung|Permission non accordée|Permiso denegado|权限不够|拒絕不符權限的操作"
        r"|許可がありません|허가 거부|Отказано в доступе|Permissão negada|Permesso negato",
        "Permission denied",
    ),
    (
        r"Die Operation ist nicht erlaubt|Opération non permise|Operación no permitida|不允许的操作"
        r"|許可されていない操作です|Операция не позволена|Operazione non permessa",
        "Operation not permitted",
    ),
    (
        r"(?:Kommando|Befehl) nicht gefunden\.?|commande introuvable|orden no encontrada|未找到命令"
        r"|コマンドが見つかりません|команда не найдена|comando não encontrado|comando non trovato",
        "command not found",
    ),
)
"""What the C library and shells say in other languages, by what they say in English."""


def plain(output: Output) -> Output:
    """Return output without terminal escapes and carriage returns, errors in English."""
    return replace(output, stdout=_plain(output.stdout), stderr=_plain(output.stderr))


def _plain(text: str) -> str:
    bare = unescaped(text).replace("\r\n", "\n")
    if bare.isascii():
        return bare
    for pattern, english in _ENGLISH:
        bare = re.sub(pattern, english, bare)
    return bare
