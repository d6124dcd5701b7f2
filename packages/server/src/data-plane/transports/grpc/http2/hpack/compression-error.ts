/** A header block that cannot be decoded. Nothing after it on the same connection can be either, so the connection ends. */
export class CompressionError extends Error {
  override readonly name = "CompressionError";
}
