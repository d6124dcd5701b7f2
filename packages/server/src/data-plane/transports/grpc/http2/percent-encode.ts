const plain = /^[\x20-\x24\x26-\x7e]*$/;

/**
 * A text as `grpc-message` has it: UTF-8, with every byte that is not printable ASCII, and `%`, as `%XX`. Half a character
 * becomes a replacement character.
 */
export function percentEncode(text: string): string {
  if (plain.test(text)) return text;
  let encoded = "";
  for (const byte of Buffer.from(text, "utf8"))
    encoded +=
      byte < 0x20 || byte > 0x7e || byte === 0x25
        ? `%${byte.toString(16).toUpperCase().padStart(2, "0")}`
        : String.fromCharCode(byte);
  return encoded;
}
