"""Take identifiers out of text and keep its layout: for captures that people share.

The same identifier gets the same stand-in wherever it appears, so that facts still join. Addresses
become documentation or benchmark addresses (RFC 5737, RFC 2544, RFC 3849), which reach nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from .masking_versions import spared

HEX = "[0-9a-fA-F]"
UUID = re.compile(rf"(?<!{HEX}){HEX}{{8}}-(?:{HEX}{{4}}-){{3}}{HEX}{{12}}(?!{HEX})")
_START, _END = r"(?<![^\W_])(?<!:)", r"(?![^\W_]|:\w)"
MAC = re.compile(rf"{_START}(?:{HEX}{{2}}:){{5}}{HEX}{{2}}{_END}")
GUID = re.compile(
    rf"{_START}(?:{HEX}{{4}}:){{3}}{HEX}{{4}}{_END}|(?<![^\W_])0x{HEX}{{16}}(?![^\W_])"
)
WORD32 = re.compile(rf"(?<!if_inet6\t)(?<![^\W_]){HEX}{{32}}(?![^\W_])")
ENGINE = re.compile(r"\b(?:[A-Z0-9]{4}:){11}[A-Z0-9]{4}\b")
_BEFORE, _AFTER = r"(?<![^\W_])(?<!\w\.)", r"(?![^\W_]|\.\w)"
IPV4 = re.compile(rf"{_BEFORE}(?:\d{{1,3}}\.){{3}}\d{{1,3}}{_AFTER}")
"""Four numbers; a dot before or behind belongs to it only where a word goes on."""
_DASHED = r"(?:\d{1,3}-){3}\d{1,3}"
DASHED = re.compile(
    rf"(?<![^\W_])(ip-|ec2-)({_DASHED})(?!\d)|(?<![\d.])(?<!\d-)({_DASHED})(?!-?\d|\.\d)"
)
"""An address in a host's name, as clouds give them: ip-10-1-2-3."""
IPV6 = re.compile(
    rf"{_START}(?<!\w\.){HEX}{{0,4}}(?::{HEX}{{0,4}}){{1,6}}(?::{HEX}{{1,4}}|(?<=:):)"
    r"(?![^\W_]|:[\w:]|\.\w)"
)
SERIAL = re.compile(
    r"(?i)(serial(?:[_ ]?num(?:ber)?)?\s*(?:[:=]|>|\t)\s*\"?)(?!N/A|\[)"
    r"([A-Za-z0-9][A-Za-z0-9-]{4,})"
)
EMAIL = re.compile(r"\b[\w.+-]+@(?:[\w-]+\.)+[a-zA-Z]{2,}\b")
URL_HOST = re.compile(r"(?<=://)([A-Za-z0-9](?:[\w.-]*\w)?)")

SECRETS = (
    re.compile(r"(?<=://)[^/\s@:]+(?::[^/\s@]*)?(?=@)"),
    re.compile(
        r"(?<![^\W_])(?:hf_|ghp_|gho_|github_pat_|glpat-|nvapi-|sk-|xox[abp]-|AKIA)[\w-]{12,}"
    ),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"),
    re.compile(r"(?i)(?<=bearer )[\w.~+/=-]{8,}"),
    re.compile(
        r"(?<![\w-])(?i:[\w-]*(?:password|passwd|secret|api[_-]?key|access[_-]?key|"
        r"(?:auth|access|api|bearer|hf|hub|refresh|session|registry)[_-]?token)|token)"
        r"\"?\s*[=:]\s*\"?(?!(?:null|true|false|[\[{])|-?[\d.]+\s*[,}\n])(?P<value>[^\s\",;&]+)"
    ),
    re.compile(r"\b[A-Z][A-Z0-9_]*(?:TOKEN|PASSWORD|SECRET|_KEY)=\"?(?P<value>[^\s\"]+)"),
    re.compile(r"(?s)(?<=-----)\n.*?\n(?=\|?-----END [A-Z ]*PRIVATE KEY)"),
)
"""What is taken out whole: user and password of a URL, keys by their makers' prefixes, values of
words that mean a secret, and the body of a private key. Tokens of a tokenizer are no secrets, and
JSON has to stay JSON."""

_NETWORKS = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15")
DOCUMENTATION = tuple(IPv4Network(network) for network in _NETWORKS)
PUBLIC = re.compile(
    r"(?i)(?:^|\.)(?:docker\.io|github\.com|nvidia\.com|ubuntu\.com|debian\.org|python\.org|"
    r"pypi\.org|huggingface\.co|kernel\.org|example|invalid|localhost)$"
)
"""Host names that identify nobody."""

SYSTEM_USERS = frozenset((
    "root", "nobody", "daemon", "bin", "sys", "sync", "adm", "sudo", "docker", "slurm", "munge",
    "ubuntu", "debian", "admin", "users", "wheel", "messagebus", "systemd", "dynamo", "www-data",
))  # fmt: skip

_HOSTS = (
    re.compile(r"(?m)^\|?hostname[ \t]+(\S+)"),
    re.compile(r"(?m)^\|?name\t(\S+)"),
    re.compile(r"(?m)^\|?reach\t([A-Za-z0-9][\w.-]*):\d+"),
    re.compile(r'(?<="Name":")([^"/]+)(?=","Labels")'),
    re.compile(r"\bNodeName=(\S+)"),
    re.compile(r"(?m)^\|?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (\S+) "),
)
_USERS = (
    re.compile(r"\buid=\d+\(([^)]+)\)"),
    re.compile(r"(?<![\w.])/home/([A-Za-z_][\w.-]*)"),
    re.compile(r"(?m)^\|?line\tjob\|[^|]*\|([^|]+)\|"),
    re.compile(r"(?m)^\|?owner\t\d+\t[^\t\n]*\t([A-Za-z_][\w.-]*)"),
)
_HEX_TABLE = re.compile(r"(?m)^(\|?(?:tcp6?|route)\t)(.*)$")
_HEX_WORD = re.compile(r"(?<![0-9A-Fa-f])[0-9A-F]{8}(?:[0-9A-F]{24})?(?=:[0-9A-F]{4}\s|\t)")
_INET6 = re.compile(r"(?m)^(\|?if_inet6\t)([0-9a-f]{32})\b")


INIT_WORDS = re.compile(r"(?m)^(\|?cmdline\t.*?) -- .*$")
"""Words for the first process, behind the kernel's own: whatever a platform hands to its guest."""


def mask(text: str, *, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> str:
    """Return text without identifiers and secrets. `hosts` and `users` are names known to be such.

    Lines stay lines, and hexadecimal identifiers keep their length. Masking twice changes nothing.
    """
    stand_ins, hosts = _StandIns(), tuple(hosts)
    text = INIT_WORDS.sub(r"\1", without_secrets(text))
    text = EMAIL.sub("user@example", text)
    text = _named(text, (*users, *_found(text, _USERS)), stand_ins.user, SYSTEM_USERS)
    text = _named(text, (*hosts, *_found(text, _HOSTS)), stand_ins.host, frozenset(("localhost",)))
    text = URL_HOST.sub(lambda m: stand_ins.url_host(m[1]), text)
    text = SERIAL.sub(lambda m: m[1] + stand_ins.digits(m[2]), text)
    text = _HEX_TABLE.sub(lambda m: m[1] + _HEX_WORD.sub(stand_ins.kernel_word, m[2]), text)
    text = _INET6.sub(lambda m: m[1] + stand_ins.packed6(m[2]), text)
    text = UUID.sub(lambda m: stand_ins.uuid(m[0]), text)
    text = MAC.sub(lambda m: stand_ins.mac(m[0]), text)
    text = GUID.sub(lambda m: stand_ins.guid(m[0]), text)
    text = ENGINE.sub(lambda _: ":".join(["XXXX"] * 12), text)
    text = IPV6.sub(lambda m: stand_ins.ipv6(m[0]), text)
    text = stand_ins.addresses(text, known=(name for name in hosts if IPV4.fullmatch(name)))
    text = DASHED.sub(stand_ins.dashed, text)
    return WORD32.sub(lambda m: stand_ins.hexadecimal(m[0]), text)


def without_secrets(text: str) -> str:
    """Return text without passwords, tokens and keys; names and addresses stay."""
    for pattern in SECRETS:
        text = pattern.sub(_without_value, text)
    return text


def _without_value(match: re.Match[str]) -> str:
    """Return the match with its group "value" masked, or all of it; line ends are kept."""
    if "value" in match.re.groupindex:
        return match[0][: match.start("value") - match.start()] + "***"
    return "\n".join("***" if line.strip("|") else line for line in match[0].split("\n"))


def _found(text: str, patterns: Iterable[re.Pattern[str]]) -> list[str]:
    return [name for pattern in patterns for name in pattern.findall(text)]


def _named(
    text: str, names: Iterable[str], stand_in: Callable[[str], str], spared: frozenset[str]
) -> str:
    """Replace names as whole words. One too short to be told from other words is left alone.

    The short form of a name with a domain is the same host.
    """
    told = {name for name in names if name and not _is_spared(name, spared)}
    short = {name.partition(".")[0] for name in told if not name.replace(".", "").isdigit()}
    for name in sorted(told | short, key=lambda word: (-len(word), word)):
        if len(name) < 4 and not re.search(r"\d", name):
            continue
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", stand_in(name), text)
    return text


def _is_spared(name: str, spared: frozenset[str]) -> bool:
    is_stand_in = re.fullmatch(r"(?:host|user)-\d+", name) or IPV4.fullmatch(name)
    return name in spared or bool(is_stand_in) or ":" in name


@dataclass(slots=True)
class _StandIns:
    """Numbers identifiers in the order in which they appear."""

    seen: dict[str, dict[str, int]] = field(default_factory=dict)
    networks: dict[str, str] = field(default_factory=dict)

    def number(self, kind: str, value: str) -> int:
        known = self.seen.setdefault(kind, {})
        return known.setdefault(value.lower(), len(known) + 1)

    def user(self, name: str) -> str:
        return f"user-{self.number('user', name)}"

    def host(self, name: str) -> str:
        return f"host-{self.number('host', name.partition('.')[0])}"

    def url_host(self, name: str) -> str:
        is_address = bool(IPV4.fullmatch(name))
        if is_address or PUBLIC.search(name) or _is_spared(name, frozenset()):
            return name
        return self.host(name)

    def digits(self, value: str) -> str:
        if not value.strip("0"):
            return value
        known = re.fullmatch(r"0+[1-9]\d{0,3}", value)
        return value if known else str(self.number("serial", value)).zfill(len(value))

    def hexadecimal(self, value: str) -> str:
        """Return as many digits: zeros and a number. Zeros, and what is such already, stay."""
        if re.fullmatch(r"0{16,}[0-9a-f]{1,16}", value) or not value.strip("0fF"):
            return value
        return f"{self.number('hexadecimal', value):0{len(value)}x}"

    def uuid(self, value: str) -> str:
        if value.startswith("00000000-0000-"):
            return value
        return f"00000000-0000-0000-0000-{self.number('uuid', value):012x}"

    def mac(self, value: str) -> str:
        if value.startswith("02:00:00:00:") or not value.strip("0:fF"):
            return value
        number = self.number("mac", value)
        return f"02:00:00:00:{number // 256 % 256:02x}:{number % 256:02x}"

    def guid(self, value: str) -> str:
        digits = value.removeprefix("0x").replace(":", "")
        if digits.startswith("0" * 8) or digits in ("fe80" + "0" * 12, "f" * 16):
            return value
        masked = f"{self.number('guid', digits):016x}"
        if ":" not in value:
            return f"0x{masked}"
        return ":".join(masked[i : i + 4] for i in range(0, 16, 4))

    def addresses(self, text: str, *, known: Iterable[str]) -> str:
        """Mask what looks like an address, but for versions that surely are none."""
        dashed = (m[2] or m[3] for m in DASHED.finditer(text))
        kept = spared(text, IPV4, networks=self.networks, known=(*known, *dashed))
        return IPV4.sub(lambda m: m[0] if m.start() in kept else self.ipv4(m[0]), text)

    def ipv4(self, value: str) -> str:
        """Return an address whose network of 256 stands for the original's; ends 0, 1, 255 stay."""
        try:
            address = IPv4Address(value)
        except ValueError:
            return value
        if not _identifies(address):
            return value
        network, _, end = value.rpartition(".")
        if network not in self.networks:
            self.networks[network] = _network(len(self.networks))
        if end in ("0", "1", "255"):
            return f"{self.networks[network]}.{end}"
        return f"{self.networks[network]}.{2 + (self.number(network, value) - 1) % 252}"

    def dashed(self, match: re.Match[str]) -> str:
        """Mask an address with dashes; without a cloud's word before it, a private one only."""
        prefix, value = match[1] or "", (match[2] or match[3]).replace("-", ".")
        try:
            told = bool(prefix) or IPv4Address(value).is_private
        except ValueError:
            return match[0]
        return prefix + self.ipv4(value).replace(".", "-") if told else match[0]

    def ipv6(self, value: str) -> str:
        try:
            address = ip_address(value)
        except ValueError:
            return value
        if not isinstance(address, IPv6Address) or address.is_loopback or address.is_unspecified:
            return value
        if address in _DOCUMENTATION6 or int(address) >> 16 == 0xFE80 << 96:
            return value
        start = "fe80::" if address.is_link_local else "2001:db8::"
        return f"{start}{self.number('ipv6', str(address)):x}"

    def kernel_word(self, match: re.Match[str]) -> str:
        """Mask an address as /proc/net prints it: words in the machine's own byte order."""
        digits = match[0]
        words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
        packed = b"".join(words)
        masked = self.packed(packed)
        swapped = (masked[i : i + 4][::-1] for i in range(0, len(masked), 4))
        return b"".join(swapped).hex().upper()

    def packed6(self, digits: str) -> str:
        return self.packed(bytes.fromhex(digits)).hex()

    def packed(self, data: bytes) -> bytes:
        if len(data) == 4:
            return IPv4Address(self.ipv4(str(IPv4Address(data)))).packed
        return IPv6Address(self.ipv6(str(IPv6Address(data)))).packed


_DOCUMENTATION6 = IPv6Network("2001:db8::/32")


def _identifies(address: IPv4Address) -> bool:
    """Loopback, masks, and what is a stand-in already tell nothing."""
    if address.is_loopback or address.is_unspecified or int(address) >> 24 in (0, 255):
        return False
    return not any(address in network for network in DOCUMENTATION)


def _network(number: int) -> str:
    named = ("192.0.2", "198.51.100", "203.0.113")
    if number < len(named):
        return named[number]
    rest = number - len(named)
    return f"198.{18 + rest // 256 % 2}.{rest % 256}"
