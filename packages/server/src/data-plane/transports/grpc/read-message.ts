import { SluiceError } from "sluice";

/** Reads a message. Throws `invalid_request` where the bytes are none: grpc-js would call that our mistake. */
export function readMessage<T>(decode: (bytes: Uint8Array) => T, bytes: Uint8Array): T {
  try {
    return decode(bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new SluiceError("invalid_request", `the message cannot be read as what this method takes: ${why}`);
  }
}
