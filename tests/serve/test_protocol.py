"""Connections that say nothing, or not enough."""

import asyncio
import gc
import socket
import threading

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from serving import wait_for
from softgaze.serve.protocol import LARGEST, PatientProtocol


class Hurried(PatientProtocol):
    patience = 0.3


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture
def address():
    config = uvicorn.Config(hello, port=0, http=Hurried, lifespan="off", log_config=None, timeout_keep_alive=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server._serve()))
    thread.start()
    wait_for(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()
    server.should_exit = True
    thread.join()


def answer_to(client):
    """All of it."""
    heard = b""
    while not heard.endswith(b"hi"):
        heard += client.recv(1000)
    return heard


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: a\r\nX: "], ids=["nothing", "half a head"])
def test_who_never_asks_is_sent_away(address, said):
    with socket.create_connection(address, timeout=60) as client:
        client.sendall(said)
        assert client.recv(100) == b""


def test_who_asks_is_answered_and_then_has_to_ask_again(address):
    with socket.create_connection(address, timeout=60) as client:
        for _ in range(2):
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            answer_to(client)
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert client.recv(100) == b""


@pytest.mark.parametrize(
    "begun",
    [b"GET / HTTP/1.1\r\nX: ", b"GET /", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 9000],
    ids=["value", "path", "many"],
)
def test_a_head_without_an_end_is_refused(address, begun):
    with socket.create_connection(address, timeout=60) as client:
        client.sendall(begun.ljust(LARGEST + 1, b"a"))
        assert client.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_a_large_body_is_no_head(address):
    body = b"a" * (3 * LARGEST)
    with socket.create_connection(address, timeout=60) as client:
        for _ in range(2):
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            assert answer_to(client).startswith(b"HTTP/1.1 200 ")


def test_a_request_that_was_answered_is_let_go(address):
    with socket.create_connection(address, timeout=60) as client:
        for _ in range(20):
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            answer_to(client)
        gc.collect()
        assert sum(type(each) is RequestResponseCycle for each in gc.get_objects()) < 5
