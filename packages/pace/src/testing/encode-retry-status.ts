/** Just enough protobuf to encode a server's status. */
export function encodeVarint(value: bigint): Buffer {
  const bytes: number[] = [];
  for (let rest = BigInt.asUintN(64, value); ; rest >>= 7n) {
    if (rest < 0x80n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}

export function encodeField(field: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([encodeVarint(BigInt(field * 8 + 2)), encodeVarint(BigInt(bytes.length)), bytes]);
}

/** A `google.rpc.Status` of RESOURCE_EXHAUSTED with a `google.rpc.RetryInfo`. */
export function encodeRetryStatus(seconds: number, nanos: number): Buffer {
  const integer = (field: number, value: number): Buffer =>
    Buffer.concat([encodeVarint(BigInt(field * 8)), encodeVarint(BigInt(value))]);
  const duration = Buffer.concat([integer(1, seconds), integer(2, nanos)]);
  const any = Buffer.concat([
    encodeField(1, Buffer.from("type.googleapis.com/google.rpc.RetryInfo")),
    encodeField(2, encodeField(1, duration)),
  ]);
  return Buffer.concat([integer(1, 8), encodeField(2, Buffer.from("slow down")), encodeField(3, any)]);
}
