"""Identifiers leave, layout and joins stay."""

from __future__ import annotations

import re
from ipaddress import IPv4Address

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bringup.core.masking import DOCUMENTATION, mask


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GPU-6f3d1a2b-1111-2222-3333-444455556666", "GPU-00000000-0000-0000-0000-000000000001"),
        ("ClusterUUID : 00000000-0000-0000-0000-000000000000", None),
        ("Port GUID: 0x946dae0300f81f3e", "Port GUID: 0x0000000000000001"),
        ("sys_image_guid: 946d:ae03:00f8:1f3e", "sys_image_guid: 0000:0000:0000:0001"),
        ("link/ether b8:3f:d2:11:22:33", "link/ether 02:00:00:00:00:01"),
        ("<serial>1650924012345</serial>", "<serial>0000000000001</serial>"),
        ("Serial Number   : N/A", None),
        ("|cmdline\tquiet iommu=pt -- --join 7", "|cmdline\tquiet iommu=pt"),
        ("inet 10.20.30.41/24", "inet 192.0.2.2/24"),
        ("via 10.20.30.1 dev bond0", "via 192.0.2.1 dev bond0"),
        ("try 10.1.2.3. Retrying 10.1.2.4-10.1.2.9", "try 192.0.2.2. Retrying 192.0.2.3-192.0.2.4"),
        ("peer_10.1.2.3_up, see http://10.1.2.3.", "peer_192.0.2.2_up, see http://192.0.2.2."),
        ("from fd12:3456::9: lost. fd12:3456::9.", "from 2001:db8::1: lost. 2001:db8::1."),
        ("ip-10-1-2-3 is 10.1.2.3", "ip-192-0-2-2 is 192.0.2.2"),
        ("node-10-1-2-3.lan ec2-8-8-4-4.net", "node-192-0-2-2.lan ec2-198-51-100-2.net"),
        ("2026-01-02-03 at 08:02:11: gpus-1-2-4-8 libcudnn.so.9.10.2.21", None),
        ("127.0.0.1 0.0.0.0 255.255.255.0", None),
        ("driver 580.95.05, firmware 28.43.1014, VBIOS 97.00.9A.00.10", None),
        ("0000:18:00.0 00000000:1B:00.0", None),
        ("inet6 fd12:3456::9 ::1", "inet6 2001:db8::1 ::1"),
        ("|if_inet6\tfe8000000000000000fc00fffe000001 04 40 20 80 eth0",
         "|if_inet6\tfe800000000000000000000000000001 04 40 20 80 eth0"),
        ("hostname b300-04.corp.net\nat b300-04 now", "hostname host-1\nat host-1 now"),
        ("Jan 13 08:02:11 node01 systemd[1]: x", "Jan 13 08:02:11 host-1 systemd[1]: x"),
        ("uid=1000(ann.lee) /home/ann.lee/x", "uid=1000(user-1) /home/user-1/x"),
        ("uid=0(root) gid=0(root)", None),
        ("http://etcd-1.corp.net:2379/health", "http://host-1:2379/health"),
        ("reach\tb300-07:8998\t0\nname\tb300-07\t10.1.1.7",
         "reach\thost-1:8998\t0\nname\thost-1\t192.0.2.2"),
        ("https://index.docker.io/v1/", None),
        ("nats://user:pw@10.1.1.7:4222", "nats://***@192.0.2.2:4222"),
        ("HF_TOKEN=hf_abcdefghijklmnopqrstuvw", "HF_TOKEN=***"),
        ('"registry-password": "hunter2"', '"registry-password": "***"'),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer ***"),
        ("mail ann@corp.net", "mail user@example"),
        ("tokenizer.json 9 tokens", None),
        ('{"pad_token": null, "bos_token": "[BOS]", "eos_token_id": 163585}', None),
        ('{"max_password_tries": 3, "secret": {"a": 1}, "token": null}', None),
        ("token: hunter2222", "token: ***"),
        ("AWS_SECRET_ACCESS_KEY=abc/def", "AWS_SECRET_ACCESS_KEY=***"),
    ],
)  # fmt: skip
def test_an_identifier_is_masked_and_nothing_else(text: str, masked: str | None) -> None:
    assert mask(text) == (text if masked is None else masked)


VERSIONS = (
    "NV_CUDNN_VERSION=9.10.2.21-1", '"TRT_VERSION=10.7.0.23"', "|package\tnvidia-curand 10.3.9.90",
    "|package nvidia-cublas-cu12 12.8.4.1", "CUDA Version: 12.4.0.1", '"version": "v12.4.0.1"',
    "<driver_version>12.4.0.1</driver_version>", "version Fabric Manager version is : 12.4.0.1",
    "nvidia-cudnn-cu12==9.10.2.21", "NV_LIBCUBLAS_PACKAGE=libcublas-12-8=12.8.4.1-1",
    "libcudnn9:amd64 (9.10.2.21-1, 9.11.0.98-1)",
    "libcudnn9-cuda-12\t9.10.2.21-1+cuda12.9", "doca-ofed 24.1.1.4-1.el9",
)  # fmt: skip


@pytest.mark.parametrize("text", VERSIONS)
def test_a_version_of_four_numbers_stays(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "12.4.0.1", "host=12.4.0.1", "NODE_IP=12.4.0.1", "conversion 12.4.0.1", "ip.addr==12.4.0.1",
        "version 12.4.0.1:443", "version 12.4.0.1/24", "version 10.1.2.3", "lib-host=12.4.0.1",
        "torch.distributed.addr==12.4.0.1", "nccl_addr=12.4.0.1-12.4.0.9",
        "rival 12.4.0.1-1", "peers 12.4.0.1-12.4.0.9", "(12.4.0.1, 12.4.0.2)",
        "seen by version of 12.4.0.1", "SUBVERSION 10.2.3.4", "|packages\tx 12.4.0.1",
    ],
)  # fmt: skip
def test_what_may_be_an_address_is_masked_whatever_stands_before_it(text: str) -> None:
    assert not re.search(r"\b1[02]\.[1-4]\.\d+\.\d+", mask(text))


@pytest.mark.parametrize(
    "other",
    ["inet 12.4.9.7/24", "ip-12-4-9-7", "|tcp\t   0: 0709040C:1F90 00000000:0000 0A\n",
     "at 12.4.0.1."],
)  # fmt: skip
def test_a_version_in_the_network_of_an_address_is_masked_with_it(other: str) -> None:
    assert "12.4" not in mask(f"CUDA Version: 12.4.0.1\n{other}").replace("12-4", "12.4")


def test_an_address_that_the_caller_knows_is_no_version() -> None:
    assert "12.4.0" not in mask("X_VERSION=12.4.0.1", hosts=["12.4.0.9"])


def test_the_same_address_joins_in_every_form() -> None:
    text = (
        "|fib_trie\t  |-- 10.20.30.41\n"
        "|route\tbond0\t001E140A\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
        "|tcp\t   0: 291E140A:1F90 00000000:0000 0A\n"
    )
    assert mask(text) == (
        "|fib_trie\t  |-- 192.0.2.2\n"
        "|route\tbond0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
        "|tcp\t   0: 020200C0:1F90 00000000:0000 0A\n"
    )


def test_private_keys_lose_their_body() -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
    masked = mask(key)
    assert "b3BlbnNz" not in masked
    assert masked.count("\n") == key.count("\n")


def test_names_that_the_caller_knows_go_as_well() -> None:
    assert mask("on gpu-rack-7 by lee99", hosts=["gpu-rack-7"], users=["lee99"]) == (
        "on host-1 by user-1"
    )


IDENTIFIERS = st.sampled_from([
    "10.1.2.3", "ip-10-1-2-4", "172.16.9.200", "8.8.4.4", "fd00:1::7", "b8:3f:d2:11:22:33",
    "0x946dae0300f81f3e",
    "6f3d1a2b-1111-2222-3333-444455556666", "946d:ae03:00f8:1f3e", "hf_abcdefghijklmnopqrstuvw",
    "0123456789abcdef0123456789abcdef",
])  # fmt: skip


GAPS = st.sampled_from([" ", "\n", ", ", "\t", ". ", ": ", "-", "_"])


@given(st.lists(st.tuples(IDENTIFIERS, GAPS), max_size=12))
def test_no_identifier_survives_and_masking_again_changes_nothing(
    parts: list[tuple[str, str]],
) -> None:
    text = "".join(word + gap for word, gap in parts)
    masked = mask(text)
    assert not [word for word, _ in parts if word in masked]
    assert masked.count("\n") == text.count("\n")
    assert mask(masked) == masked


BEFORE = st.sampled_from([
    "CUDNN_VERSION=", "|package\tx ", "libx:amd64 (", "version: ", "nvidia-x==", "x ",
])  # fmt: skip
AFTER = st.sampled_from(["", "-1", "-1+cuda12", "/24", ":80", ")"])


@given(BEFORE, st.ip_addresses(v=4), AFTER)
def test_an_address_that_stands_anywhere_as_one_is_masked_where_it_could_be_a_version(
    before: str, address: IPv4Address, after: str
) -> None:
    first = int(address) >> 24
    assume(first not in (0, 127, 255) and not any(address in net for net in DOCUMENTATION))
    masked = mask(f"{before}{address}{after}\ninet {address}/24")
    assert str(address) not in masked
    assert mask(masked) == masked


@given(BEFORE, st.ip_addresses(v=4), AFTER)
def test_masking_a_version_again_changes_nothing(
    before: str, address: IPv4Address, after: str
) -> None:
    masked = mask(f"{before}{address}{after}")
    assert mask(masked) == masked


@given(st.text())
def test_any_text_can_be_masked(text: str) -> None:
    assert mask(text).count("\n") == text.count("\n")
