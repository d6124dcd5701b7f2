import { isUtf8 } from "node:buffer";
import { SluiceError } from "sluice";

export const maxBodyBytes: number = 64 * 1024;
export const maxBatchBodyBytes: number = 1024 * 1024;

export function parseJsonBody(buffer: Buffer): unknown {
  if (buffer.length === 0) throw invalid("the body is empty; it should be a JSON object");
  const value = parseJson(parseTextBody(buffer));
  if (value === null) throw invalid("the body is null; it should be a JSON object");
  return value;
}

export function parseTextBody(buffer: Buffer): string {
  if (!isUtf8(buffer)) throw invalid("the body is not UTF-8");
  return buffer.toString("utf8");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`the body is not JSON: ${(error as Error).message}`);
  }
}

/** Limits a body that may be a batch, but is not, to the size of a single check. */
export function refuseLargeSingle(bytes: number): void {
  if (bytes <= maxBodyBytes) return;
  throw tooLarge(bytes, maxBodyBytes);
}

export function tooLarge(bytes: number | undefined, mostBytes: number): SluiceError {
  const size = bytes === undefined ? "more" : `${bytes} bytes`;
  return new SluiceError("body_too_large", `the body may have ${mostBytes} bytes here, and has ${size}`);
}

function invalid(message: string): SluiceError {
  return new SluiceError("invalid_request", message);
}
