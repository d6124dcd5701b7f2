/** A command as it was sent, its name first. Good until the next one is read. */
export interface Arguments {
  readonly count: number;
  /** An argument as text, or a part of it from one byte to another: see `decodeText`. */
  text(index: number, from?: number, to?: number): string;
  /** At which byte of an argument the first `=` is; −1 where there is none. */
  findEquals(index: number): number;
  /** An argument byte by byte, one character for each. */
  bytes(index: number): string;
  /** What was sent from one argument's begin to another's end: the same bytes for the same arguments. */
  span(first: number, last: number): string;
}
