/** Parsed in a millisecond or two, which is less than the detour to another thread takes. */
const maxShortLength = 2_048;

/**
 * Whether a text in YAML is parsed at once, rather than in another thread. With anchors, a short text may expand to a
 * long one.
 */
export function isShortText(text: string): boolean {
  return text.length <= maxShortLength && !text.includes("&");
}
