"""Asks a Sluice server over gRPC, knowing nothing of it but its address: messages are built from what reflection tells.

Usage: ask_by_reflection.py ADDRESS. Reads lines of JSON {"method", "request", "token"?, "stream"?} from stdin, writes one line
of JSON for each: {"answer"} or {"answers"}, or {"code", "details", "sluice_code"}.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory


def varint(number):
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def text_field(number, text):
    """A field of type string or bytes, by hand: reflection itself has no description yet."""
    raw = text.encode() if isinstance(text, str) else text
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def read_fields(raw):
    """(number, bytes) of every length-delimited field."""
    at = 0
    while at < len(raw):
        tag, at = read_varint(raw, at)
        assert tag & 7 == 2, "only length-delimited fields are expected"
        length, at = read_varint(raw, at)
        yield tag >> 3, raw[at : at + length]
        at += length


def read_varint(raw, at):
    number = shift = 0
    while True:
        byte = raw[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def reflect(channel, *questions):
    ask = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    return [dict(read_fields(answer)) for answer in ask(iter(questions))]


def load(channel):
    (listed,) = reflect(channel, text_field(7, "*"))
    services = [dict(read_fields(one))[1].decode() for number, one in read_fields(listed[6]) if number == 1]
    pool = descriptor_pool.DescriptorPool()
    known = set()
    for answer in reflect(channel, *[text_field(4, name) for name in services]):
        files = [descriptor_pb2.FileDescriptorProto.FromString(raw) for number, raw in read_fields(answer[4]) if number == 1]
        # What is imported comes behind what imports it.
        for file in reversed(files):
            add(pool, known, file, {one.name: one for one in files})
    return services, pool


def add(pool, known, file, others):
    if file.name in known:
        return
    known.add(file.name)
    for name in file.dependency:
        add(pool, known, others[name], others)
    pool.Add(file)


def call(channel, pool, asked):
    service, name = asked["method"].split("/")
    method = pool.FindServiceByName(service).methods_by_name[name]
    factory = message_factory.MessageFactory(pool)
    request_type, response_type = (factory.GetPrototype(kind) for kind in (method.input_type, method.output_type))
    codecs = {"request_serializer": request_type.SerializeToString, "response_deserializer": response_type.FromString}
    options = {"timeout": 20}
    if "token" in asked:
        options["metadata"] = [("authorization", "Bearer " + asked["token"])]
    path = "/" + asked["method"]

    def read(request):
        return json_format.ParseDict(request, request_type())

    def show(answer):
        return json_format.MessageToDict(answer, preserving_proto_field_name=True)

    if asked.get("stream"):
        answers = channel.stream_stream(path, **codecs)(iter([read(one) for one in asked["request"]]), **options)
        return {"answers": [show(one) for one in answers]}
    return {"answer": show(channel.unary_unary(path, **codecs)(read(asked["request"]), **options))}


def main():
    with grpc.insecure_channel(sys.argv[1]) as channel:
        services, pool = load(channel)
        print(json.dumps({"services": services}), flush=True)
        for line in sys.stdin:
            try:
                told = call(channel, pool, json.loads(line))
            except grpc.RpcError as error:
                trailers = dict(error.trailing_metadata() or ())
                told = {"code": error.code().name, "details": error.details(), "sluice_code": trailers.get("sluice-code")}
            print(json.dumps(told), flush=True)


main()
