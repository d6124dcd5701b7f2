/** A command as it was sent, its name first. Valid until the next one is read. */
export interface Arguments {
  readonly count: number;
  /** An argument as text, or a part of it from one byte to another: see `decodeText`. */
  text(index: number, from?: number, to?: number): string;
  /** The byte of an argument at which its first `=` is; −1 if there is none. */
  findEquals(index: number): number;
  /** An argument byte by byte, one character for each. */
  bytes(index: number): string;
  /** What was sent from the start of one argument to the end of another: the same bytes for the same arguments. */
  span(first: number, last: number): string;
}
