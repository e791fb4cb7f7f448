#!/bin/sh
# aiomqttc 1.0.7 (PyPI), MQTT for asyncio and for microcontrollers, has "automatic reconnection with configurable
# backoff strategy" (README), which never comes. Where the broker is silent for one and a half times the keep alive,
# it logs "Server timeout, reconnecting", notes that it is not connected, and ends its tasks (_keep_alive and
# mark_disconnected in aiomqttc.py). Where the connection is closed, it takes the end of it for no data and reads on,
# and when a ping fails, or the receiving task does, the same happens (_receive_loop); handle_disconnect, which would
# connect again, cancels the very task that calls it. on_disconnect is not called either. So who only subscribes, as a
# display or a valve does, hears nothing any more after the first outage, and is not told; a client that publishes
# connects by the next message, without its subscriptions. The README's reconnect_delay_set does not exist, the
# attributes that the code reads do.
#
# Seen, keep alive of 2 s, reconnect_interval 1 and max_reconnect_interval 4, a subscription. Broker that closes the
# connection after a second, or that is silent: in 15 s one connection, no call of on_disconnect, connected is False.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check aiomqttc==1.0.7
cat >run.py <<'END'
import asyncio

import aiomqttc

CONNECT, CONNACK, SUBSCRIBE, SUBACK = 0x10, 0x20, 0x80, 0x90
KEEP_ALIVE = 2

aiomqttc.log = lambda *_: None
aiomqttc.console.print_exception = lambda *_, **__: None


async def outage(closes):
    """Connections and calls of a client whose broker closes the first connection, or falls silent on it."""
    connections = 0
    calls = []

    async def serve(reader, writer):
        nonlocal connections
        connections += 1
        try:
            while True:
                kind, length = await reader.readexactly(2)
                body = await reader.readexactly(length)
                if kind & 0xF0 == CONNECT:
                    writer.write(bytes([CONNACK, 2, 0, 0]))
                elif kind & 0xF0 == SUBSCRIBE:
                    writer.write(bytes([SUBACK, 3, *body[:2], 0]))
                    if closes:
                        await asyncio.sleep(1)
                        return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def note(name):
        async def call(client, code):
            calls.append(name)

        return call

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = aiomqttc.MQTTClient("display", "127.0.0.1", port, keepalive=KEEP_ALIVE)
    client.reconnect_interval, client.max_reconnect_interval = 1, 4
    client.on_connect, client.on_disconnect = note("connect"), note("disconnect")
    await client.connect()
    await client.subscribe("level")
    await asyncio.sleep(15)
    told = connections, calls, client.connected
    print(f"{'closed' if closes else 'silent'}: {connections} connection, calls {calls}, connected {client.connected}")
    server.close()
    return told


async def main():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    return await asyncio.gather(outage(True), outage(False))


assert asyncio.run(main()) == [(1, ["connect"], False)] * 2
END
env/bin/python run.py
