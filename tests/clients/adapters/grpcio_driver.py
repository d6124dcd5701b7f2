"""Makes gRPC calls with grpcio, as lines of JSON on stdin say, and writes a line of JSON for each call that has ended.

The lines are described in driver-adapter.ts. Messages are bytes in base64, so no .proto file is needed.
"""

import base64
import json
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc

channels = {}
channels_lock = threading.Lock()
output_lock = threading.Lock()
# Large answers are part of the contract. Channels share no connection, and no proxy comes between.
options = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]


def read(path):
    if path is None:
        return None
    with open(path, "rb") as file:
        return file.read()


def channel_for(target):
    key = json.dumps(target, sort_keys=True)
    with channels_lock:
        if key not in channels:
            tls = target.get("tls")
            if tls is None:
                channels[key] = grpc.insecure_channel(target["address"], options=options)
            else:
                credentials = grpc.ssl_channel_credentials(read(tls["ca"]), read(tls.get("key")), read(tls.get("cert")))
                channels[key] = grpc.secure_channel(target["address"], credentials, options=options)
        return channels[key]


def requests_of(asked, ended):
    for request in asked["requests"]:
        yield base64.b64decode(request)
    if asked.get("holdOpen"):
        ended.get()


def fields(metadata):
    return {name: base64.b64encode(value).decode() if isinstance(value, bytes) else value for name, value in metadata or ()}


def make(asked):
    channel = channel_for(asked["target"])
    given = {"metadata": list(asked.get("metadata", {}).items())}
    if "timeoutMs" in asked:
        given["timeout"] = asked["timeoutMs"] / 1000
    if asked.get("gzip"):
        given["compression"] = grpc.Compression.Gzip
    ended = queue.SimpleQueue()
    if asked["kind"] == "bidirectional":
        call = channel.stream_stream(asked["method"])(requests_of(asked, ended), **given)
    else:
        # A unary answer is a stream of one, and shows its headers and trailers in the same way.
        call = channel.unary_stream(asked["method"])(base64.b64decode(asked["requests"][0]), **given)
    responses = []
    try:
        for response in call:
            responses.append(base64.b64encode(response).decode())
            if len(responses) == asked.get("cancelAfter"):
                call.cancel()
    except grpc.RpcError:
        pass
    finally:
        ended.put(None)
    return {
        "id": asked["id"],
        "code": call.code().value[0],
        "message": call.details() or "",
        "responses": responses,
        "headers": fields(call.initial_metadata()),
        "trailers": fields(call.trailing_metadata()),
    }


def answer(line):
    result = json.dumps(make(json.loads(line)))
    with output_lock:
        print(result, flush=True)


def main():
    with ThreadPoolExecutor(max_workers=300) as pool:
        futures = [pool.submit(answer, line) for line in sys.stdin]
        for future in futures:
            future.result()
    for channel in channels.values():
        channel.close()


main()
